use super::*;
use std::fs::{File, TryLockError};

#[test]
fn dropping_ends_the_command_and_its_steps() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // `flock` and the program that it starts both hold the lock.
    let mut command = Command::new("flock");
    command.arg(file.path()).args(["sleep", "600"]);
    let setup = BackgroundSetup::run(command).unwrap();
    let lock = File::open(file.path()).unwrap();
    while !matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        lock.unlock().unwrap();
        thread::yield_now();
    }
    drop(setup);
    lock.lock().unwrap();
}

#[test]
fn a_command_that_has_ended_is_waited_for() {
    let setup = BackgroundSetup::run(Command::new("true")).unwrap();
    while setup.child.lock().unwrap().is_some() {
        thread::yield_now();
    }
    drop(setup);
}
