use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Opens the turns of a database twice, as two processes do.
fn two(folder: &Path) -> (WriteTurns, WriteTurns) {
    let database = folder.join("database");
    (WriteTurns::open(&database).unwrap(), WriteTurns::open(&database).unwrap())
}

#[test]
#[allow(clippy::disallowed_methods, reason = "stands for the time that a commit takes")]
fn a_process_that_writes_without_pause_lets_another_write_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let (busy, other) = two(folder.path());
    let written = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while done.load(Ordering::Relaxed) == 0 {
                let _turn = busy.wait().unwrap();
                written.fetch_add(1, Ordering::Relaxed);
                // A commit takes about as long.
                thread::sleep(Duration::from_millis(2));
            }
        });
        while written.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let before = written.load(Ordering::Relaxed);
        for _ in 0..20 {
            drop(other.wait().unwrap());
        }
        let meanwhile = written.load(Ordering::Relaxed) - before;
        done.store(1, Ordering::Relaxed);
        assert!(meanwhile < 100, "20 turns took as long as {meanwhile} writes of the other process");
    });
}

#[test]
fn a_process_that_keeps_its_turn_does_not_block_others_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let (suspended, other) = two(folder.path());
    let turn = suspended.wait().unwrap();
    assert!(other.wait().is_none());
    drop(turn);
    assert!(other.wait().is_some());
}
