use super::*;

#[test]
fn a_folder_with_other_files_is_refused_and_not_changed() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("precious");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("thesis.txt"), "years").unwrap();
    let refusal = python(&folder).unwrap_err();
    assert!(matches!(&refusal, SetupError::NotOurs(_)), "{refusal}");
    assert_eq!(fs::read_to_string(folder.join("thesis.txt")).unwrap(), "years");
}

#[test]
fn symbolic_links_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("link");
    std::os::unix::fs::symlink("/nowhere", &folder).unwrap();
    assert!(matches!(python(&folder), Err(SetupError::NotOurs(_))));
}

#[test]
fn an_environment_of_other_packages_is_replaceable_and_not_current() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(STAMP), "pandas==1.0").unwrap();
    assert!(is_replaceable(home.path()) && !is_current(home.path()));
}

#[test]
fn every_package_is_pinned_with_hashes() {
    let logical = REQUIREMENTS.replace("\\\n", "");
    let lines = logical.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        assert!(line.contains("==") && line.contains("--hash=sha256:"), "{line}");
    }
}

#[test]
fn a_failed_step_shows_the_end_of_what_it_printed() {
    let home = tempfile::tempdir().unwrap();
    let held = SetupLock::take(home.path().join("lock")).unwrap();
    let code = "import sys; [print(n) for n in range(100)]; sys.exit(sys.stdin.read() + 'at last')";
    let mut step = held.isolated(&find_python(&held).unwrap()).unwrap();
    let Err(SetupError::Step { output, .. }) = run("counting", step.args(["-c", code])) else {
        panic!("it went well");
    };
    assert_eq!(output.lines().count(), SHOWN_LINES);
    assert!(output.starts_with("81\n") && output.ends_with("99\nat last"), "{output}");
}

#[test]
fn a_step_that_outlives_its_command_keeps_the_lock() {
    let home = tempfile::tempdir().unwrap();
    let lock = home.path().join("lock");
    let held = SetupLock::take(lock.clone()).unwrap();
    let mut command = held.isolated(&find_python(&held).unwrap()).unwrap();
    let mut step = command.args(["-c", "import time; time.sleep(600)"]).spawn().unwrap();
    drop((held, command));
    let other = File::open(&lock).unwrap();
    assert!(other.try_lock().is_err());
    step.kill().unwrap();
    step.wait().unwrap();
    other.try_lock().unwrap();
}
