//! Programs work on a folder itself, and what they did is recorded as it is.

use crate::folders::Pair;
use crate::programs::{changes, left_out, run_in, tree, write};
use crate::test_workspace::{TestWorkspace, on_both_stores, path, put};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use toolrest_core::{
    Attribution, Change, Changeset, CheckedIn, CheckoutMode, CheckoutOptions, Destination, ExecutionRoot, KeepLimits,
    LeftOutReason, Removal,
};

on_both_stores![
    what_a_program_did_in_place_is_recorded_and_can_be_undone,
    what_tools_did_meanwhile_is_not_recorded_twice,
    each_check_in_records_what_is_new,
    folders_that_are_moved_made_or_change_their_type_in_place_are_recorded,
    what_rules_come_to_ignore_in_place_keeps_its_history,
    what_tools_took_away_is_not_in_the_way_of_what_a_program_removes,
];

/// What is reported where nothing has changed.
fn nothing() -> CheckedIn {
    CheckedIn { attribution: Attribution::Folder, ..CheckedIn::default() }
}

async fn what_a_program_did_in_place_is_recorded_and_can_be_undone(room: TestWorkspace) {
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
    let ExecutionRoot::Shared { folder: execution_root, read_only } = checkout.execution_root() else {
        panic!("it is not the folder itself")
    };
    assert_eq!(execution_root.path, folder.canonicalize().unwrap());
    assert_eq!(read_only, [Path::new(".git")]);
    assert_eq!(pair.check_in(&mut checkout).await, nothing());

    let made =
        [("changed", "new"), ("new/sub/file", "made"), ("d/e/f", "longer"), ("target/y", "y"), (".git/HEAD", "other")];
    write(folder, &made);
    fs::remove_file(pair.path("gone")).unwrap();
    fs::rename(pair.path("moved"), pair.path("renamed")).unwrap();
    fs::set_permissions(pair.path("tool"), Permissions::from_mode(0o755)).unwrap();
    fs::write(pair.path("kept"), "kept").unwrap();
    let done = pair.check_in(&mut checkout).await;
    let expected =
        ["M /changed", "M /d/e/f", "D /gone", "A /new", "A /new/sub", "A /new/sub/file", "R /renamed", "M /tool"];
    assert_eq!(changes(&done), expected);
    assert_eq!((done.conflicts.len(), done.left_out.len()), (0, 0), "{done:?}");
    assert_eq!((pair.text("changed"), pair.text("renamed")), ("new".into(), "moved text".into()));
    let commits = pair.commits().await;
    assert_eq!((commits.len(), Some(commits[0].id)), (1, done.commit));
    assert_eq!(pair.check_in(&mut checkout).await, nothing());

    pair.undo(pair.in_folder).await.unwrap();
    let mut after = tree(folder);
    // What is ignored has no history.
    assert_eq!(after.remove("target/y").as_deref(), Some("y"));
    after.insert(".git/HEAD".into(), "head".into());
    assert_eq!(after, before);
    assert_eq!(fs::metadata(pair.path("tool")).unwrap().mode() & 0o111, 0);
    // The undoing is history already.
    assert_eq!(pair.check_in(&mut checkout).await, nothing());
}

async fn what_tools_did_meanwhile_is_not_recorded_twice(room: TestWorkspace) {
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
    assert_eq!(pair.check_in(&mut checkout).await, nothing());
    write(folder, &[("e/x", "more")]);
    assert_eq!(changes(&pair.check_in(&mut checkout).await), ["M /e/x"]);
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(pair.text("e/x"), "x");
}

async fn each_check_in_records_what_is_new(room: TestWorkspace) {
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

async fn folders_that_are_moved_made_or_change_their_type_in_place_are_recorded(room: TestWorkspace) {
    for (script, expected) in [
        ("mv d e", vec!["R /e"]),
        ("mkdir n; mv a n/a", vec!["A /n", "R /n/a"]),
        ("rm -r d; echo file > d", vec!["D /d", "A /d", "D /d/0", "D /d/sub", "D /d/sub/1"]),
        ("rm a; mkdir a; echo in > a/in", vec!["D /a", "A /a", "A /a/in"]),
        ("mkdir -p x/y; mv d x/y/d; rmdir empty", vec!["D /empty", "A /x", "A /x/y", "R /x/y/d"]),
        ("mv d/sub .; rm -r d; ln -s sub d", vec!["D /d", "D /d/0", "R /sub"]),
    ] {
        let pair = Pair::of(&room).await;
        let folder = pair.root.path();
        write(folder, &[(".gitignore", "built\n"), ("a", "text a"), ("d/0", "zero"), ("d/sub/1", "one")]);
        fs::create_dir(pair.path("empty")).unwrap();
        let mut before = tree(folder);
        let mut checkout = pair.check_out_in_place(KeepLimits::default()).await;
        run_in(folder, &format!("{script}; mkdir built; echo x > built/x"));
        let done = pair.check_in(&mut checkout).await;
        assert_eq!(changes(&done), expected, "{script}: {done:?}");
        assert_eq!(pair.check_in(&mut checkout).await, nothing(), "{script}");
        if !script.contains("ln -s") {
            pair.undo(pair.in_folder).await.unwrap();
            before.extend([("built/".into(), String::new()), ("built/x".into(), "x\n".into())]);
            assert_eq!(tree(folder), before, "{script}");
        }
    }
}

async fn what_rules_come_to_ignore_in_place_keeps_its_history(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    let folder = pair.root.path();
    write(folder, &[("a.txt", "a"), ("b.txt", "b"), ("d/c.txt", "c")]);
    let before = tree(folder);
    let mut checkout = pair.check_out_in_place(KeepLimits::default()).await;
    run_in(folder, "echo '*' > .gitignore; echo lost > a.txt; rm b.txt; echo lost > d/c.txt; echo x > d/new");
    let done = pair.check_in(&mut checkout).await;
    assert_eq!(changes(&done), ["M /a.txt", "D /b.txt", "M /d/c.txt"]);
    pair.undo(pair.in_folder).await.unwrap();
    let mut after = tree(folder);
    assert_eq!((after.remove(".gitignore").as_deref(), after.remove("d/new").as_deref()), (Some("*\n"), Some("x\n")));
    assert_eq!(after, before);
    assert_eq!(pair.check_in(&mut checkout).await, nothing());
    run_in(folder, "rm -r d");
    assert_eq!(changes(&pair.check_in(&mut checkout).await), ["D /d", "D /d/c.txt"]);
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(pair.text("d/c.txt"), "c");
}

async fn what_tools_took_away_is_not_in_the_way_of_what_a_program_removes(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    let folder = pair.root.path();
    write(folder, &[("p/d/x", "x"), ("p/y", "y"), ("p/z", "z")]);
    let mut checkout = pair.check_out_in_place(KeepLimits::default()).await;
    let moved = Change::Move { from: path("/p/d"), to: Destination::Exactly(path("/e")) };
    let removed = Change::Remove { path: path("/p/y"), removal: Removal::File };
    for change in [moved, removed, put("/p/new", "by a tool")] {
        pair.commit(pair.in_folder, Changeset::one(change)).await.unwrap();
    }
    run_in(folder, "rm -r p; mkdir q; echo z > q/w");
    let done = pair.check_in(&mut checkout).await;
    assert_eq!(changes(&done), ["D /p", "D /p/z", "A /q", "A /q/w"]);
    assert_eq!(pair.check_in(&mut checkout).await, nothing());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_over_the_limits_are_reported_and_not_recorded() {
    let pair = Pair::of(&TestWorkspace::on_sqlite().await).await;
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
    assert_eq!(pair.check_in(&mut checkout).await, nothing());
}

/// What a program that works on the folder itself may not change.
fn read_only(execution_root: ExecutionRoot) -> Vec<PathBuf> {
    let ExecutionRoot::Shared { read_only, .. } = execution_root else { panic!("it is not the folder itself") };
    read_only
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_repository_is_kept_from_programs_in_place() {
    let pair = Pair::of(&TestWorkspace::on_sqlite().await).await;
    let root = pair.root.path();
    let files = [
        (".gitignore", "ignored\n"),
        (".git/HEAD", "x"),
        ("sub/.git/HEAD", "x"),
        ("sub/deep/.GIT/HEAD", "x"),
        ("ignored/dep/.git/HEAD", "x"),
        ("store/HEAD", "x"),
        ("elsewhere/.git", "gitdir: ../store\n"),
        ("bare/worktrees/w/commondir", "../..\n"),
        ("worktree/.git", "gitdir: ../bare/worktrees/w"),
        ("linked-to/HEAD", "x"),
        ("module/.git", "gitdir: ../.git/modules/m"),
        // These name no repository of theirs.
        ("above/.git", "gitdir: ..\n"),
        ("out/.git", "gitdir: ../../../../etc\n"),
        ("gone/.git", "gitdir: ../nowhere\n"),
    ];
    write(root, &files);
    symlink("../linked-to", root.join("above/git")).unwrap();
    fs::create_dir(root.join("link")).unwrap();
    symlink("../linked-to", root.join("link/.git")).unwrap();
    symlink("/etc", root.join("bare/.git")).unwrap();
    let checkout = pair.check_out_in_place(KeepLimits::default()).await;
    let expected = [
        ".git",
        "above/.git",
        "bare",
        "elsewhere/.git",
        "gone/.git",
        "ignored/dep/.git",
        "linked-to",
        "module/.git",
        "out/.git",
        "store",
        "sub/.git",
        "sub/deep/.GIT",
        "worktree/.git",
    ];
    assert_eq!(read_only(checkout.execution_root()), expected.map(PathBuf::from));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repositories_that_appear_while_a_program_works_in_place_are_reported_at_its_end() {
    let pair = Pair::of(&TestWorkspace::on_sqlite().await).await;
    let root = pair.root.path();
    write(root, &[(".git/HEAD", "x"), ("sub/.git/HEAD", "x"), (".gitignore", "ignored\n"), ("store/HEAD", "x")]);
    fs::create_dir(root.join("link")).unwrap();
    symlink("../store", root.join("link/.git")).unwrap();
    let checkout = pair.check_out_in_place(KeepLimits::default()).await;
    run_in(
        root,
        "mv sub moved; echo y > .git/HEAD; git init -q ignored/new; echo 'gitdir: x' > .gitignore.d; \
                  rm link/.git; ln -s ../other link/.git; mkdir f; echo 'gitdir: ../x' > f/.git",
    );
    let done = checkout.finish(&pair.cx(pair.in_folder).await).await.unwrap();
    let new: Vec<_> =
        left_out(&done).into_iter().filter(|(_, reason)| *reason == LeftOutReason::NewRepository).collect();
    let expected = ["/f/.git", "/ignored/new/.git", "/link/.git"];
    assert_eq!(new, expected.map(|path| (path, LeftOutReason::NewRepository)), "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_more_repositories_than_can_be_kept_from_programs_runs_none_in_place() {
    let pair = Pair::of(&TestWorkspace::on_sqlite().await).await;
    for number in 0..=1_000 {
        fs::create_dir_all(pair.path(&format!("{number}/.git"))).unwrap();
    }
    let options = CheckoutOptions { mode: CheckoutMode::InPlace, keep: KeepLimits::default() };
    let refused = pair.cx(pair.in_folder).await.workspace.check_out(options).await;
    let error = refused.err().unwrap();
    assert!(error.message.contains("repositories"), "{error:?}");
}
