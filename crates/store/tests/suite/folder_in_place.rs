//! Programs work on a folder itself, and what they did is recorded as it is.

use crate::folders::Pair;
use crate::programs::{changes, left_out, tree, write};
use crate::room::{Room, on_both_stores, path, put};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use toolrest_core::{Change, Changeset, CheckedIn, Destination, Ground, KeepLimits, LeftOutReason, Removal};

on_both_stores![
    what_a_program_did_in_place_is_recorded_and_can_be_undone,
    what_tools_did_meanwhile_is_not_recorded_twice,
    each_check_in_records_what_is_new,
];

async fn what_a_program_did_in_place_is_recorded_and_can_be_undone(room: Room) {
    let pair = Pair::of(&room).await;
    let folder = pair.root.path();
    let files = [
        (".gitignore", "target\n"),
        ("kept", "kept"),
        ("changed", "old"),
        ("gone", "gone"),
        ("moved", "moved text"),
        ("d/e/f", "f"),
        ("tool", "t"),
        ("target/x", "x"),
        (".git/HEAD", "head"),
    ];
    write(folder, &files);
    let before = tree(folder);
    let mut checkout = pair.check_out_in_place(KeepLimits::default()).await;
    assert_eq!(checkout.ground(), Ground::Shared(folder.canonicalize().unwrap()));
    assert_eq!(pair.check_in(&mut checkout).await, CheckedIn::default());

    let made =
        [("changed", "new"), ("new/sub/file", "made"), ("d/e/f", "longer"), ("target/y", "y"), (".git/HEAD", "other")];
    write(folder, &made);
    fs::remove_file(pair.path("gone")).unwrap();
    fs::rename(pair.path("moved"), pair.path("renamed")).unwrap();
    fs::set_permissions(pair.path("tool"), Permissions::from_mode(0o755)).unwrap();
    fs::write(pair.path("kept"), "kept").unwrap();
    let done = pair.check_in(&mut checkout).await;
    let expected = ["M /changed", "M /d/e/f", "D /gone", "A /new/sub/file", "R /renamed", "M /tool"];
    assert_eq!(changes(&done), expected);
    assert_eq!((done.conflicts.len(), done.left_out.len()), (0, 0), "{done:?}");
    assert_eq!((pair.text("changed"), pair.text("renamed")), ("new".into(), "moved text".into()));
    let commits = pair.commits().await;
    assert_eq!((commits.len(), Some(commits[0].id)), (1, done.commit));
    assert_eq!(pair.check_in(&mut checkout).await, CheckedIn::default());

    pair.undo(pair.in_folder).await.unwrap();
    let mut after = tree(folder);
    // What is ignored has no history.
    assert_eq!(after.remove("target/y").as_deref(), Some("y"));
    after.insert(".git/HEAD".into(), "head".into());
    assert_eq!(after, before);
    assert_eq!(fs::metadata(pair.path("tool")).unwrap().mode() & 0o111, 0);
    // The undoing is history already.
    assert_eq!(pair.check_in(&mut checkout).await, CheckedIn::default());
}

async fn what_tools_did_meanwhile_is_not_recorded_twice(room: Room) {
    let pair = Pair::of(&room).await;
    let folder = pair.root.path();
    write(folder, &[("a", "a"), ("b", "b"), ("gone", "gone"), ("d/x", "x"), ("d/y", "y"), ("both", "first")]);
    let mut checkout = pair.check_out_in_place(KeepLimits::default()).await;
    for change in [
        put("/a", "by a tool"),
        put("/new", "by a tool"),
        put("/both", "by a tool"),
        Change::Remove { path: path("/gone"), removal: Removal::File },
        Change::Move { from: path("/d"), to: Destination::Exactly(path("/e")) },
    ] {
        pair.commit(pair.in_folder, Changeset::one(change)).await.unwrap();
    }
    write(folder, &[("both", "by the program"), ("b", "by the program")]);
    let done = pair.check_in(&mut checkout).await;
    assert_eq!(changes(&done), ["M /b", "M /both"]);
    assert_eq!(pair.commits().await.len(), 6);
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!((pair.text("both"), pair.text("b")), ("by a tool".into(), "b".into()));
    assert_eq!(pair.check_in(&mut checkout).await, CheckedIn::default());
    write(folder, &[("e/x", "more")]);
    assert_eq!(changes(&pair.check_in(&mut checkout).await), ["M /e/x"]);
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(pair.text("e/x"), "x");
}

async fn each_check_in_records_what_is_new(room: Room) {
    let pair = Pair::of(&room).await;
    let mut checkout = pair.check_out_in_place(KeepLimits::default()).await;
    for round in 1..=5 {
        // The same length each time: only times tell that it changed.
        write(pair.root.path(), &[("log", &format!("round {round}"))]);
        let done = pair.check_in(&mut checkout).await;
        assert_eq!(changes(&done), [if round == 1 { "A /log" } else { "M /log" }]);
    }
    assert_eq!(pair.commits().await.len(), 5);
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(pair.text("log"), "round 4");
    fs::remove_file(pair.path("log")).unwrap();
    assert_eq!(changes(&pair.check_in(&mut checkout).await), ["D /log"]);
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(pair.text("log"), "round 4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_was_no_room_for_is_told_and_not_recorded() {
    let pair = Pair::of(&Room::on_sqlite().await).await;
    let folder = pair.root.path();
    write(folder, &[("large", &"x".repeat(2000)), ("small", "s")]);
    let keep = KeepLimits { file_bytes: 1000, commit_bytes: 1500, commit_files: 100 };
    let mut checkout = pair.check_out_in_place(keep).await;
    write(folder, &[("large", "less"), ("small", "t"), ("a", &"a".repeat(900)), ("b", &"b".repeat(900))]);
    let done = pair.check_in(&mut checkout).await;
    assert_eq!(changes(&done), ["A /a", "M /small"]);
    assert_eq!(left_out(&done), [("/", LeftOutReason::TooMuch), ("/large", LeftOutReason::TooLarge)]);
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!((pair.text("large"), pair.text("small")), ("less".into(), "s".into()));
    assert_eq!(pair.check_in(&mut checkout).await, CheckedIn::default());
}
