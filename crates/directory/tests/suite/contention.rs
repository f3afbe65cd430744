//! Many concurrent writers.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Barrier,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use toolrest_directory::{CommitOptions, ErrorKind, Expect, Root};

use crate::fixture::{Fixture, hash, write};

#[test]
fn only_one_of_many_writers_with_the_same_expected_hash_wins() {
    const WRITERS: usize = 16;
    const ROUNDS: usize = 20;
    let fixture = Fixture::with(&[("file", "start")]);
    let barrier = Barrier::new(WRITERS);
    let mut current = "start".to_owned();
    for round in 0..ROUNDS {
        let winners: Vec<String> = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (fixture, barrier, current) = (&fixture, &barrier, &current);
                    scope.spawn(move || {
                        let mine = format!("round {round}, writer {writer}");
                        barrier.wait();
                        match fixture.commit(&[write("file", &mine, hash(current))]) {
                            Ok(_) => Some(mine),
                            Err(error) => {
                                assert!(matches!(error.kind, ErrorKind::Changed { actual: Some(_) }), "{error}");
                                None
                            }
                        }
                    })
                })
                .collect();
            writers.into_iter().filter_map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(winners.len(), 1, "{winners:?}");
        current.clone_from(&winners[0]);
        assert_eq!(fixture.text("file"), current);
    }
}

#[test]
fn writers_with_separate_journals_are_serialised_too() {
    let (fixture, elsewhere) = (Fixture::with(&[]), tempfile::tempdir().unwrap());
    let (one, other) = (Root::open(&fixture.path("")).unwrap(), Root::open(&fixture.path("")).unwrap());
    let turn = one.lock(&fixture.journal()).unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || sender.send(other.lock(elsewhere.path()).is_ok()).unwrap());
        assert_eq!(receiver.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
        drop(turn);
        assert_eq!(receiver.recv(), Ok(true));
    });
}

#[test]
fn every_acknowledged_edit_is_kept() {
    const WRITERS: usize = 64;
    const EDITS: usize = 3;
    let fixture = Fixture::with(&[("file", "")]);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let fixture = &fixture;
            scope.spawn(move || {
                // Each writer has its own root, like another process.
                let root = Root::open(&fixture.path("")).unwrap();
                for edit in 0..EDITS {
                    loop {
                        let old = root.read(Path::new("file"), u64::MAX).unwrap();
                        let text = format!("{}{writer}-{edit}\n", String::from_utf8(old.bytes).unwrap());
                        let change = write("file", &text, Expect::Hash(old.hash));
                        match root.commit(&[change], &fixture.journal(), &CommitOptions::default()) {
                            Ok(_) => break,
                            Err(error) => assert!(matches!(error.kind, ErrorKind::Changed { .. }), "{error}"),
                        }
                    }
                }
            });
        }
    });
    let text = fixture.text("file");
    let lines: BTreeSet<&str> = text.lines().collect();
    assert_eq!(lines.len(), WRITERS * EDITS);
    assert_eq!(text.lines().count(), WRITERS * EDITS);
}

#[test]
fn only_one_of_many_creators_of_a_file_wins() {
    let fixture = Fixture::new();
    let won: usize = thread::scope(|scope| {
        let make = || usize::from(fixture.commit(&[write("file", "text", Expect::Absent)]).is_ok());
        let writers: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!(won, 1);
}
