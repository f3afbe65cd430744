use super::*;
use std::os::unix::fs::symlink;

/// Creates an environment for the Python of that name.
fn environment(home: &Path, python: &str) -> PathBuf {
    let folder = home.join("python");
    fs::create_dir_all(folder.join("bin")).unwrap();
    fs::create_dir_all(folder.join("lib/python3.11/site-packages")).unwrap();
    fs::write(home.join(python), "").unwrap();
    symlink(home.join(python), folder.join("bin/python3")).unwrap();
    folder
}

#[test]
fn an_environment_is_complete_once_it_has_its_stamp() {
    let home = tempfile::tempdir().unwrap();
    let folder = environment(home.path(), "python3.11");
    assert!(!is_complete(&folder));
    fs::write(folder.join(STAMP), "").unwrap();
    assert!(is_complete(&folder));
}

#[test]
fn an_environment_of_another_python_version_is_incomplete() {
    let home = tempfile::tempdir().unwrap();
    let folder = environment(home.path(), "python3.13");
    fs::write(folder.join(STAMP), "").unwrap();
    assert!(!is_complete(&folder));
}

#[test]
fn an_environment_without_its_python_is_incomplete() {
    let home = tempfile::tempdir().unwrap();
    let folder = environment(home.path(), "python3.11");
    fs::write(folder.join(STAMP), "").unwrap();
    fs::remove_file(home.path().join("python3.11")).unwrap();
    assert!(!is_complete(&folder));
}

#[test]
fn an_environment_is_found_as_soon_as_it_is_complete() {
    let home = tempfile::tempdir().unwrap();
    let environment_in_use = PythonEnvironment::new(home.path().join("python"));
    assert_eq!(environment_in_use.find(), None);
    let folder = environment(home.path(), "python3.11");
    assert_eq!(environment_in_use.find(), None);
    fs::write(folder.join(STAMP), "").unwrap();
    assert_eq!(environment_in_use.find(), Some(folder.canonicalize().unwrap().as_path()));
}

#[test]
fn an_environment_is_being_set_up_while_its_lock_is_held() {
    let home = tempfile::tempdir().unwrap();
    let environment_in_use = PythonEnvironment::new(home.path().join("python"));
    assert!(!environment_in_use.is_being_set_up());
    let lock = File::create(home.path().join(".python.lock")).unwrap();
    assert!(!environment_in_use.is_being_set_up());
    lock.lock().unwrap();
    assert!(environment_in_use.is_being_set_up());
    drop(lock);
    assert!(!environment_in_use.is_being_set_up());
}
