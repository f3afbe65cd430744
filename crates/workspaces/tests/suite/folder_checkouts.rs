//! Programs work on a view of a folder, and what they did becomes one commit.

use crate::folders::Pair;
use crate::programs::{changes, left_out, named, run, tree, write};
use crate::test_workspace::{TestWorkspace, on_both_stores, path, put};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use toolrest_core::{Changeset, CheckedIn, ExecutionRoot, FolderHandle, KeepLimits, LeftOutReason};

on_both_stores![
    what_a_program_did_becomes_one_commit_that_can_be_undone,
    moves_of_files_and_whole_folders_are_reported_as_moves,
    what_changes_its_type_comes_out_right,
    the_change_of_somebody_else_wins_and_the_programs_version_is_a_conflict_copy,
    two_programs_at_once_both_keep_their_results,
    files_that_history_knows_keep_it_though_rules_ignore_them,
    ignore_rules_of_a_program_do_not_take_away_the_history_of_files,
];

async fn what_a_program_did_becomes_one_commit_that_can_be_undone(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    let folder = pair.root.path();
    write(
        folder,
        &[("kept", "kept"), ("changed", "old"), ("gone", "gone"), ("tool", "tool"), ("d/e/deep", "deep"), ("d/f", "f")],
    );
    let before = tree(folder);
    let script = "echo new > changed; rm gone; chmod +x tool; mkdir -p made/empty; echo made > made/file; \
                  echo more >> d/e/deep; touch kept; rm -r d/f; echo again > d/f; head -c 300 /dev/urandom > bytes";
    let done = pair.runs(script).await;
    let expected = [
        "A /bytes",
        "M /changed",
        "M /d/e/deep",
        "M /d/f",
        "D /gone",
        "A /made",
        "A /made/empty",
        "A /made/file",
        "M /tool",
    ];
    assert_eq!(changes(&done), expected);
    assert_eq!((done.conflicts.len(), done.left_out.len()), (0, 0), "{done:?}");
    assert_eq!((pair.text("changed"), pair.text("d/e/deep")), ("new\n".into(), "deepmore\n".into()));
    assert!(!pair.path("gone").exists() && pair.path("made/empty").is_dir());
    assert_eq!(fs::metadata(pair.path("tool")).unwrap().mode() & 0o777, 0o755);
    let commits = pair.commits().await;
    assert_eq!((commits.len(), Some(commits[0].id)), (1, done.commit));
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(tree(folder), before);
    assert_eq!(fs::metadata(pair.path("tool")).unwrap().mode() & 0o111, 0);
}

async fn moves_of_files_and_whole_folders_are_reported_as_moves(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    let folder = pair.root.path();
    write(folder, &[("a", "text a"), ("src/x/one", "one"), ("src/x/two", "two"), ("src/y", "y"), ("empty", "")]);
    let before = tree(folder);
    let done = pair.runs("mv a b; mkdir -p new; mv src new/lib; mv empty void").await;
    assert_eq!(changes(&done), ["R /b", "D /empty", "A /new", "R /new/lib", "A /void"]);
    assert_eq!(
        named(&tree(folder)),
        ["b", "new/", "new/lib/", "new/lib/x/", "new/lib/x/one", "new/lib/x/two", "new/lib/y", "void"]
    );
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(tree(folder), before);
}

async fn what_changes_its_type_comes_out_right(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    let folder = pair.root.path();
    write(
        folder,
        &[
            ("file", "file"),
            ("folder/a", "a"),
            ("folder/sub/b", "b"),
            ("again/old", "old"),
            ("again/sub/x", "x"),
            ("over", "o"),
        ],
    );
    let before = tree(folder);
    let script = "rm file; mkdir file; echo in > file/in; rm -r folder; echo now > folder; \
                  rm -r again; mkdir -p again/sub; echo new > again/sub/y; rm over; mkdir over";
    let done = pair.runs(script).await;
    let after = tree(folder);
    assert_eq!(
        named(&after),
        ["again/", "again/sub/", "again/sub/y", "file/", "file/in", "folder", "over/"],
        "{done:?}"
    );
    assert_eq!(done.conflicts, []);
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(tree(folder), before);
}

async fn the_change_of_somebody_else_wins_and_the_programs_version_is_a_conflict_copy(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    let folder = pair.root.path();
    write(
        folder,
        &[
            ("both", "old"),
            ("same", "old"),
            ("removed", "old"),
            ("d/kept", "old"),
            ("d/gone", "old"),
            ("t", "old"),
            ("f/x", "x"),
        ],
    );
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    let script = "echo mine > both; echo agreed > same; rm removed; rm -r d; echo mine > new; rm t; mkdir t; echo in > t/in; \
                  rm -r f; echo file > f";
    run(&checkout.execution_root(), script);
    let theirs = [
        ("both", "theirs"),
        ("same", "agreed\n"),
        ("removed", "theirs"),
        ("d/kept", "theirs"),
        ("new", "theirs"),
        ("t", "theirs"),
        ("f/x", "theirs"),
    ];
    write(folder, &theirs);
    let done = pair.check_in(&mut checkout).await;
    for (name, text) in theirs {
        assert_eq!(pair.text(name), text, "{name}");
    }
    assert!(!pair.path("d/gone").exists());
    let kept = |name: &str| {
        let conflict = done
            .conflicts
            .iter()
            .find(|conflict| conflict.path == path(name))
            .unwrap_or_else(|| panic!("{name}: {done:?}"));
        conflict.kept_as.as_ref().map(|kept| kept.without_slash().to_owned())
    };
    assert_eq!(pair.text(&kept("both").unwrap()), "mine\n");
    assert_eq!(pair.text(&kept("new").unwrap()), "mine\n");
    assert_eq!(pair.text(&format!("{}/in", kept("t").unwrap())), "in\n");
    assert_eq!(pair.text(&kept("f").unwrap()), "file\n");
    assert_eq!((kept("removed"), kept("d/kept"), kept("f/x")), (None, None, None));
    assert_eq!(done.conflicts.len(), 7, "{done:?}");
    let name = kept("both").unwrap();
    let digits = name.strip_prefix("both.conflict-").unwrap();
    assert!(digits.len() == 8 && digits.chars().all(|digit| digit.is_ascii_hexdigit()), "{name}");
    assert_eq!(pair.commits().await.len(), 1);
}

async fn two_programs_at_once_both_keep_their_results(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    write(pair.root.path(), &[("shared", "old"), ("d/a", "a"), ("d/b", "b")]);
    let (mut one, mut other) =
        (pair.check_out(KeepLimits::default()).await, pair.check_out(KeepLimits::default()).await);
    run(&one.execution_root(), "echo one > shared; echo one > d/a; echo one > one");
    run(&other.execution_root(), "echo other > shared; echo other > d/b; echo other > other");
    let (first, second) = tokio::join!(pair.check_in(&mut one), pair.check_in(&mut other));
    assert_eq!(
        (pair.text("d/a"), pair.text("d/b"), pair.text("one"), pair.text("other")),
        ("one\n".into(), "other\n".into(), "one\n".into(), "other\n".into())
    );
    let conflicts: Vec<_> = first.conflicts.iter().chain(&second.conflicts).collect();
    assert_eq!(conflicts.len(), 1, "{first:?} {second:?}");
    let kept_as = conflicts[0].kept_as.as_ref().unwrap().without_slash();
    let mut both = [pair.text("shared"), pair.text(kept_as)];
    both.sort();
    assert_eq!(both, ["one\n", "other\n"]);
    assert_eq!(pair.commits().await.len(), 2);
}

async fn files_that_history_knows_keep_it_though_rules_ignore_them(room: TestWorkspace) {
    let pair = Pair::of(&room).await;
    let folder = pair.root.path();
    write(folder, &[(".gitignore", "dist\n"), ("dist/other", "other")]);
    for name in ["/dist/known", "/dist/gone"] {
        pair.commit(pair.in_folder, Changeset::one(put(name, "by a tool"))).await.unwrap();
    }
    let done = pair.runs("echo program > dist/known; echo program > dist/other; rm dist/gone").await;
    assert_eq!(changes(&done), ["D /dist/gone", "M /dist/known"]);
    assert_eq!(left_out(&done), [("/dist", LeftOutReason::Ignored)]);
    assert_eq!((pair.text("dist/known"), pair.text("dist/other")), ("program\n".into(), "program\n".into()));
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!((pair.text("dist/known"), pair.text("dist/gone")), ("by a tool".into(), "by a tool".into()));
    let done = pair.runs("rm -r dist").await;
    assert_eq!(changes(&done), ["D /dist", "D /dist/gone", "D /dist/known"]);
    assert_eq!(named(&tree(folder)), [".gitignore"]);
}

async fn ignore_rules_of_a_program_do_not_take_away_the_history_of_files(room: TestWorkspace) {
    for (script, expected) in [
        (
            "echo '*' > .gitignore; echo lost > a.txt; rm b.txt; echo lost > d/c.txt; echo new > d/new",
            vec!["M /a.txt", "D /b.txt", "M /d/c.txt"],
        ),
        ("echo 'd/' > .gitignore; rm -r d; mkdir d; echo x > d/new", vec!["A /.gitignore", "D /d/c.txt"]),
        ("echo 'd' > .gitignore; rm -r d; echo x > d", vec!["A /.gitignore", "D /d", "A /d", "D /d/c.txt"]),
        (
            "mkdir -p .git/info; echo '*.txt' > .git/info/exclude; rm a.txt; echo x > d/c.txt",
            vec!["D /a.txt", "M /d/c.txt"],
        ),
    ] {
        let pair = Pair::of(&room).await;
        let folder = pair.root.path();
        write(folder, &[("a.txt", "a"), ("b.txt", "b"), ("d/c.txt", "c")]);
        let before = tree(folder);
        let done = pair.runs(script).await;
        assert_eq!(changes(&done), expected, "{script}: {done:?}");
        pair.undo(pair.in_folder).await.unwrap();
        let after = tree(folder);
        for (name, text) in &before {
            assert_eq!(after.get(name), Some(text), "{script}: {name}");
        }
    }
}

pub(crate) async fn on_sqlite() -> Pair {
    Pair::of(&TestWorkspace::on_sqlite().await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_content_is_reported_and_does_no_harm() {
    let pair = on_sqlite().await;
    let folder = pair.root.path();
    write(folder, &[("ok", "ok"), ("plain", "plain")]);
    let script = "mkfifo pipe; rm plain; mkfifo plain; echo x > $'new\\nline'; echo x > $'bad\\xff'; mkdir $'dir\\x01'; echo y > $'dir\\x01/y'; \
                  mkdir closed; echo in > closed/in; chmod 000 closed/in closed; truncate -s 1T sparse; echo two > two; ln two three; \
                  chmod 4755 two; d=deep; for i in $(seq 60); do d=$d/$(printf 'n%.0s' $(seq 100)); mkdir -p $d 2>/dev/null || break; done; \
                  touch .toolrest~0123456789abcdef0123456789abcdef; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")' || true";
    let done = pair.runs(script).await;
    let reported = left_out(&done);
    assert!(
        reported.contains(&("/pipe", LeftOutReason::Special)) && reported.contains(&("/plain", LeftOutReason::Special)),
        "{reported:?}"
    );
    assert!(reported.contains(&("/new\nline", LeftOutReason::Name)), "{reported:?}");
    assert!(
        reported.iter().any(|(path, reason)| path.starts_with("/bad") && *reason == LeftOutReason::Name),
        "{reported:?}"
    );
    assert!(reported.contains(&("/sparse", LeftOutReason::TooLarge)), "{reported:?}");
    assert_eq!(fs::metadata(pair.path("sparse")).unwrap().len(), 1 << 40);
    assert!(fs::symlink_metadata(pair.path("pipe")).is_err() && !pair.path("plain").exists());
    assert_eq!((pair.text("two"), pair.text("three")), ("two\n".into(), "two\n".into()));
    assert_eq!(fs::metadata(pair.path("two")).unwrap().mode() & 0o7000, 0);
    assert_eq!(fs::metadata(pair.path("closed/in")).unwrap().mode() & 0o777, 0);
    assert_eq!(fs::read_to_string(pair.path("dir\u{1}/y")).unwrap(), "y\n");
    assert!(fs::read_dir(folder).unwrap().all(|entry| !entry.unwrap().file_type().unwrap().is_char_device()));
    pair.runs("chmod 000 .; rm -r deep; rm sparse").await;
    assert!(!pair.path("deep").exists() && !pair.path("sparse").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_that_is_dropped_leaves_no_trace() {
    let pair = on_sqlite().await;
    write(pair.root.path(), &[("f", "f")]);
    let checkout = pair.check_out(KeepLimits::default()).await;
    let ExecutionRoot::Overlay { private: FolderHandle { path: private, .. }, .. } = checkout.execution_root() else {
        panic!("no view")
    };
    run(&checkout.execution_root(), "echo new > f; mkdir closed; chmod 000 closed");
    assert!(private.join("upper/f").exists());
    drop(checkout);
    assert!(!private.exists());
    assert_eq!(pair.text("f"), "f");
    assert_eq!(pair.commits().await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_changes_nothing_makes_no_commit() {
    let pair = on_sqlite().await;
    write(pair.root.path(), &[("f", "f"), ("d/g", "g")]);
    // What was written a moment before is not taken for somebody else's change.
    pair.commit(pair.in_folder, Changeset::one(put("/f", "by a tool"))).await.unwrap();
    let done = pair.runs("cat f d/g > /dev/null; touch f; echo -n > h; rm h").await;
    assert_eq!(done, CheckedIn::default());
    let done = pair.runs("echo more >> f").await;
    assert_eq!((changes(&done), done.conflicts), (vec!["M /f".to_owned()], vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checking_in_twice_changes_nothing_more() {
    let pair = on_sqlite().await;
    write(pair.root.path(), &[("f", "f"), ("g", "g")]);
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    run(&checkout.execution_root(), "echo new > f; rm g");
    assert!(pair.check_in(&mut checkout).await.commit.is_some());
    assert_eq!(pair.check_in(&mut checkout).await, CheckedIn::default());
    run(&checkout.execution_root(), "test ! -e g; echo newer >> f");
    assert_eq!(changes(&pair.check_in(&mut checkout).await), ["M /f"]);
    assert_eq!(pair.text("f"), "new\nnewer\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_are_as_the_program_gave_them() {
    let pair = on_sqlite().await;
    write(pair.root.path(), &[("f", "f")]);
    fs::set_permissions(pair.path("f"), Permissions::from_mode(0o644)).unwrap();
    pair.runs(
        "chmod 600 f; echo s > secret; chmod 640 secret; mkdir private; chmod 700 private; echo x > run; chmod 700 run",
    )
    .await;
    let mode = |name: &str| fs::metadata(pair.path(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("f"), mode("secret"), mode("private"), mode("run")), (0o600, 0o640, 0o700, 0o700));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_made_belongs_to_the_owner_of_the_folder() {
    let pair = on_sqlite().await;
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let owner = if is_root { 4242 } else { fs::metadata(pair.root.path()).unwrap().uid() };
    write(pair.root.path(), &[(".gitignore", "out\n")]);
    chown(pair.root.path(), Some(owner), None).unwrap();
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    let ExecutionRoot::Overlay { private: FolderHandle { path: private, .. }, .. } = checkout.execution_root() else {
        panic!("no view")
    };
    for part in ["", "upper", "work"] {
        assert_eq!(fs::metadata(private.join(part)).unwrap().uid(), owner, "{part}");
    }
    let upper = private.join("upper");
    write(&upper, &[("made/file", "made"), ("out/file", "out")]);
    for name in ["made", "made/file", "out", "out/file"] {
        chown(upper.join(name), Some(owner), None).unwrap();
    }
    pair.check_in(&mut checkout).await;
    for name in ["made", "made/file", "out", "out/file"] {
        assert_eq!(fs::metadata(pair.path(name)).unwrap().uid(), owner, "{name}");
    }
}
