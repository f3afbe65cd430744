use super::*;

#[test]
fn the_lock_passes_on_when_its_holder_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let (first, second) = (LockFile::open(&path), LockFile::open(&path));
    assert!(first.try_hold() && first.try_hold());
    assert!(!second.try_hold());
    drop(first);
    assert!(second.try_hold());
}

#[test]
fn without_the_file_everybody_holds_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/lock");
    assert!(LockFile::open(&missing).try_hold() && LockFile::open(&missing).try_hold());
}
