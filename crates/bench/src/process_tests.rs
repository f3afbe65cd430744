use super::*;

#[test]
fn a_supervised_program_and_its_folder_go_with_the_handle() {
    let folder = fresh_folder("test");
    let script = "echo up; exec sleep 600";
    let program = Supervised::start(&["sh", "-c", script], &[], StopSignal::Term, folder.clone());
    program.wait_for_line("up", Duration::from_secs(10));
    let pid = program.pid();
    assert!(Stat::of(pid).is_some());
    drop(program);
    assert!(Stat::of(pid).is_none());
    assert!(!folder.exists());
}

#[test]
fn a_folder_goes_with_its_handle() {
    let folder = Folder::new("test");
    let path = folder.path();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("file"), "text").unwrap();
    drop(folder);
    assert!(!path.exists());
}

#[test]
fn a_line_of_output_is_found_behind_other_lines() {
    let script = "echo first; echo ready on 127.0.0.1:5; sleep 600";
    let program = Supervised::start(&["sh", "-c", script], &[], StopSignal::Term, fresh_folder("test"));
    assert_eq!(program.wait_for_line("ready on ", Duration::from_secs(10)), "127.0.0.1:5");
}

#[test]
fn cpu_of_a_family_holds_that_of_ended_children() {
    let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let program = Supervised::start(
        &["sh", "-c", &format!("(sh -c '{script}'); echo done; sleep 600; :")],
        &[],
        StopSignal::Term,
        fresh_folder("test"),
    );
    program.wait_for_line("done", Duration::from_secs(60));
    let own = cpu(program.pid());
    let family = family_cpu(program.pid());
    assert!(family >= own + Duration::from_millis(50), "own {own:?}, family {family:?}");
}

#[test]
fn resident_memory_of_this_process_is_known() {
    let resident = resident(std::process::id());
    assert!(resident.total_mb > resident.anonymous_mb);
    assert!(resident.anonymous_mb > 0.1);
}
