//! `toolrest doctor`.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::command::{BINARY, stderr, stdout, toolrest};

/// The state that the row of that name is in.
#[track_caller]
fn state<'a>(printed_text: &'a str, section: &str, name: &str) -> &'a str {
    let rows = printed_text
        .split("\n\n")
        .find_map(|part| part.strip_prefix(section))
        .unwrap_or_else(|| panic!("{printed_text}"));
    let row = rows.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix("  "));
    row.unwrap_or_else(|| panic!("no {name}: {printed_text}")).split_whitespace().next().unwrap()
}

fn doctor(folder: &Path) -> String {
    let output = toolrest(folder, &["doctor"]).output().unwrap();
    assert!(output.status.success(), "{}\n{}", stdout(&output), stderr(&output));
    stdout(&output)
}

#[test]
fn the_doctor_reports_every_layer_as_present() {
    let home = tempfile::tempdir().unwrap();
    let printed_text = doctor(home.path());
    for layer in ["namespaces", "private root", "private network", "Landlock", "seccomp", "memory limit", "overlay"] {
        assert_eq!(state(&printed_text, "Sandbox", layer), "present", "{printed_text}");
    }
    for what in ["files", "overlay"] {
        assert_eq!(state(&printed_text, "Data folder", what), "present", "{printed_text}");
    }
    for interpreter in ["python3", "bash"] {
        assert_eq!(state(&printed_text, "Interpreters", interpreter), "present", "{printed_text}");
    }
}

#[test]
fn the_doctor_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    doctor(home.path());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

/// The control groups of launchers with these process ids.
fn groups_of(launchers: &BTreeSet<String>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            match name.strip_prefix("toolrest-").and_then(|rest| rest.split_once('-')) {
                Some((launcher, _)) if launchers.contains(launcher) => found.push(entry.path()),
                Some(_) => {}
                None => waiting.push(entry.path()),
            }
        }
    }
    found
}

/// The ids of the processes that a process has started.
fn children_of(parent: u32) -> impl Iterator<Item = String> {
    let parent = parent.to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let processes = processes.map(|name| name.to_string_lossy().into_owned());
    processes.filter(move |process| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)) == Some(&*parent)
    })
}

#[test]
fn the_doctor_leaves_no_control_group_behind() {
    let home = tempfile::tempdir().unwrap();
    let mut doctor = toolrest(home.path(), &["doctor"]).stdout(Stdio::null()).spawn().unwrap();
    let mut launchers = BTreeSet::new();
    while doctor.try_wait().unwrap().is_none() {
        launchers.extend(children_of(doctor.id()));
    }
    assert!(!launchers.is_empty(), "the doctor started no launcher");
    // The launcher ends shortly after the command.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let left = groups_of(&launchers);
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "{left:?}");
        std::thread::yield_now();
    }
}

#[test]
fn the_doctor_reports_whether_tenants_are_isolated_from_each_other() {
    let home = tempfile::tempdir().unwrap();
    let printed_text = doctor(home.path());
    let row = printed_text
        .lines()
        .find(|line| line.trim_start().starts_with("tenants"))
        .unwrap_or_else(|| panic!("{printed_text}"));
    let has_groups = !printed_text.contains("a watchdog in each job");
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    assert_eq!(row.contains("many: "), is_root && has_groups, "{printed_text}");
    assert_eq!(row.contains("one only: "), !(is_root && has_groups), "{printed_text}");
}

#[test]
fn the_doctor_of_an_ordinary_user_says_that_a_server_is_for_one_tenant() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        // The test above runs as an ordinary user then.
        return;
    }
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The build folder may be private.
    let program = home.path().join("toolrest");
    fs::copy(BINARY, &program).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .arg("doctor")
        .current_dir(home.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed_text = stdout(&output);
    let row = printed_text.lines().find(|line| line.trim_start().starts_with("tenants")).unwrap();
    assert!(row.contains("one only: programs run as the server's own user"), "{printed_text}");
}

#[test]
fn the_doctor_says_how_to_install_the_python_environment() {
    let home = tempfile::tempdir().unwrap();
    let printed_text = doctor(home.path());
    assert_eq!(state(&printed_text, "Data tools", "python packages"), "MISSING");
    assert!(printed_text.contains("toolrest setup python"), "{printed_text}");
}

#[test]
fn a_data_folder_that_cannot_be_used_fails_the_command() {
    let home = tempfile::tempdir().unwrap();
    let output = toolrest(home.path(), &["doctor", "--data-dir", "/proc/data"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(state(&stdout(&output), "Data folder", "files"), "MISSING");
    assert!(stderr(&output).contains("programs cannot be run"), "{output:?}");
}

#[test]
fn a_machine_that_lacks_a_layer_fails_the_command_and_gets_a_remedy() {
    let home = tempfile::tempdir().unwrap();
    // Root by name only: it may not map the owners of folders.
    let mut command = Command::new("unshare");
    let output = command.args(["--user", "--map-root-user", BINARY, "doctor"]).current_dir(home.path()).output();
    let output = output.unwrap();
    let printed_text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(state(&printed_text, "Sandbox", "id-mapped mounts"), "MISSING");
    assert!(printed_text.contains("or run the server as an ordinary user"), "{printed_text}");
    assert_eq!(
        state(&printed_text, "Sandbox", "seccomp"),
        "not",
        "what was not reached is not said to hold: {printed_text}"
    );
}
