//! Many writers at once.

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

use crate::scene::{Scene, hash, write};

#[test]
fn of_all_writers_that_hold_the_same_hash_one_wins() {
    const WRITERS: usize = 16;
    const ROUNDS: usize = 20;
    let scene = Scene::with(&[("file", "start")]);
    let barrier = Barrier::new(WRITERS);
    let mut current = "start".to_owned();
    for round in 0..ROUNDS {
        let winners: Vec<String> = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (scene, barrier, current) = (&scene, &barrier, &current);
                    scope.spawn(move || {
                        let mine = format!("round {round}, writer {writer}");
                        barrier.wait();
                        match scene.commit(&[write("file", &mine, hash(current))]) {
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
        assert_eq!(scene.text("file"), current);
    }
}

#[test]
fn those_who_keep_their_journals_elsewhere_take_turns_too() {
    let (scene, elsewhere) = (Scene::with(&[]), tempfile::tempdir().unwrap());
    let (one, other) = (Root::open(&scene.path("")).unwrap(), Root::open(&scene.path("")).unwrap());
    let turn = one.turn(&scene.journal()).unwrap();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || tell.send(other.turn(elsewhere.path()).is_ok()).unwrap());
        assert_eq!(told.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
        drop(turn);
        assert_eq!(told.recv(), Ok(true));
    });
}

#[test]
fn every_acknowledged_edit_is_in_the_file() {
    const WRITERS: usize = 64;
    const EDITS: usize = 3;
    let scene = Scene::with(&[("file", "")]);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let scene = &scene;
            scope.spawn(move || {
                // Each has its own root, as another process would.
                let root = Root::open(&scene.path("")).unwrap();
                for edit in 0..EDITS {
                    loop {
                        let old = root.read(Path::new("file"), u64::MAX).unwrap();
                        let text = format!("{}{writer}-{edit}\n", String::from_utf8(old.bytes).unwrap());
                        let change = write("file", &text, Expect::Hash(old.hash));
                        match root.commit(&[change], &scene.journal(), &CommitOptions::default()) {
                            Ok(_) => break,
                            Err(error) => assert!(matches!(error.kind, ErrorKind::Changed { .. }), "{error}"),
                        }
                    }
                }
            });
        }
    });
    let text = scene.text("file");
    let lines: BTreeSet<&str> = text.lines().collect();
    assert_eq!(lines.len(), WRITERS * EDITS);
    assert_eq!(text.lines().count(), WRITERS * EDITS);
}

#[test]
fn of_many_that_make_the_same_file_one_wins() {
    let scene = Scene::new();
    let won: usize = thread::scope(|scope| {
        let make = || usize::from(scene.commit(&[write("file", "text", Expect::Absent)]).is_ok());
        let writers: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!(won, 1);
}
