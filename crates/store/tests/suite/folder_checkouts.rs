//! Programs work on a view of a folder, and what they did becomes one commit.

use crate::folders::Pair;
use crate::programs::{changes, left_out, named, run, tree, write};
use crate::room::{Room, on_both_stores, path, put};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use toolrest_core::{Changeset, CheckedIn, Ground, KeepLimits, LeftOutReason};

on_both_stores![
    what_a_program_did_becomes_one_commit_that_can_be_undone,
    moves_of_files_and_whole_folders_are_told_as_such,
    what_changes_its_type_comes_out_right,
    what_somebody_else_changed_stands_and_the_programs_version_is_beside_it,
    two_programs_at_once_both_keep_their_results,
    files_that_history_knows_keep_it_though_rules_ignore_them,
];

async fn what_a_program_did_becomes_one_commit_that_can_be_undone(room: Room) {
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

async fn moves_of_files_and_whole_folders_are_told_as_such(room: Room) {
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

async fn what_changes_its_type_comes_out_right(room: Room) {
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

async fn what_somebody_else_changed_stands_and_the_programs_version_is_beside_it(room: Room) {
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
    run(&checkout.ground(), script);
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

async fn two_programs_at_once_both_keep_their_results(room: Room) {
    let pair = Pair::of(&room).await;
    write(pair.root.path(), &[("shared", "old"), ("d/a", "a"), ("d/b", "b")]);
    let (mut one, mut other) =
        (pair.check_out(KeepLimits::default()).await, pair.check_out(KeepLimits::default()).await);
    run(&one.ground(), "echo one > shared; echo one > d/a; echo one > one");
    run(&other.ground(), "echo other > shared; echo other > d/b; echo other > other");
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

async fn files_that_history_knows_keep_it_though_rules_ignore_them(room: Room) {
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

async fn on_sqlite() -> Pair {
    Pair::of(&Room::on_sqlite().await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ignored_trees_go_through_without_versions() {
    let pair = on_sqlite().await;
    let folder = pair.root.path();
    write(
        folder,
        &[
            (".gitignore", "node_modules\n*.log\n"),
            ("node_modules/old/x", "x"),
            ("node_modules/gone/y", "y"),
            ("a.log", "a"),
        ],
    );
    let script = "rm -r node_modules/gone; mkdir -p node_modules/.bin node_modules/new/node_modules/deep; \
                  echo new > node_modules/new/node_modules/deep/index.js; ln -s ../new/x node_modules/.bin/x; \
                  echo more >> node_modules/old/x; rm a.log; echo b > b.log; echo 'target' >> .gitignore; mkdir target; \
                  echo built > target/built; install -m 6755 /bin/true target/true; mkfifo target/pipe; mkdir -p src/node_modules; \
                  echo x > src/node_modules/x; echo main > src/main";
    let done = pair.runs(script).await;
    assert_eq!(changes(&done), ["M /.gitignore", "A /src", "A /src/main"]);
    let mut reasons = left_out(&done);
    reasons.sort_by_key(|(path, _)| path.to_string());
    let ignored = |path| (path, LeftOutReason::Ignored);
    let expected = [
        ignored("/a.log"),
        ignored("/b.log"),
        ignored("/node_modules"),
        ignored("/src/node_modules"),
        ignored("/target"),
        ("/target/pipe", LeftOutReason::Special),
    ];
    assert_eq!(reasons, expected);
    let after = tree(folder);
    let expected = [
        ".gitignore",
        "b.log",
        "node_modules/",
        "node_modules/.bin/",
        "node_modules/.bin/x",
        "node_modules/new/",
        "node_modules/new/node_modules/",
        "node_modules/new/node_modules/deep/",
        "node_modules/new/node_modules/deep/index.js",
        "node_modules/old/",
        "node_modules/old/x",
        "src/",
        "src/main",
        "src/node_modules/",
        "src/node_modules/x",
        "target/",
        "target/built",
        "target/true",
    ];
    assert_eq!(named(&after), expected);
    assert_eq!(
        (after["node_modules/.bin/x"].as_str(), after["node_modules/old/x"].as_str()),
        ("-> ../new/x", "xmore\n")
    );
    assert_eq!(fs::metadata(pair.path("target/true")).unwrap().mode() & 0o7777, 0o755);
    // A folder that was removed and made again holds nothing of what it held.
    pair.runs("rm -r node_modules; mkdir -p node_modules/old; echo z > node_modules/old/z").await;
    assert_eq!(named(&tree(&pair.path("node_modules"))), ["old/", "old/z"]);
    pair.runs("rm -r src").await;
    assert!(!pair.path("src").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_git_would_run_gets_into_a_repository() {
    let pair = on_sqlite().await;
    let folder = pair.root.path();
    write(
        folder,
        &[
            (".git/config", "own"),
            (".git/HEAD", "ref: a"),
            (".git/hooks/pre-commit", "own"),
            (".git/info/exclude", "built\n"),
            ("f", "f"),
        ],
    );
    let script = "echo evil > .git/config; echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/post-checkout; echo 'ref: b' > .git/HEAD; \
                  mkdir -p .git/modules/m/hooks .git/refs/heads; echo evil > .git/modules/m/config; echo evil > .git/modules/m/hooks/x; \
                  echo id > .git/refs/heads/config; echo ../evil > .git/commondir; ln -s ../evil .git/worktrees; echo x > built; \
                  mkdir -p sub wt; echo 'gitdir: ../evil' > sub/.git; echo 'gitdir: ../.git/worktrees/wt' > wt/.git; git init -q nested; \
                  mkdir -p evil; echo f2 > f";
    let done = pair.runs(script).await;
    assert_eq!((pair.text(".git/config"), pair.text(".git/hooks/pre-commit")), ("own".into(), "own".into()));
    assert_eq!((pair.text(".git/HEAD"), pair.text(".git/refs/heads/config")), ("ref: b\n".into(), "id\n".into()));
    for name in [
        ".git/hooks/post-checkout",
        ".git/modules/m/config",
        ".git/modules/m/hooks",
        ".git/commondir",
        ".git/worktrees",
        "sub/.git",
        "nested/.git/config",
        "nested/.git/hooks",
    ] {
        assert!(fs::symlink_metadata(pair.path(name)).is_err(), "{name}");
        assert!(left_out(&done).contains(&(&format!("/{name}"), LeftOutReason::GitConfig)), "{name}: {done:?}");
    }
    assert!(pair.path("wt/.git").exists() && pair.path("nested/.git/HEAD").exists() && pair.path("built").exists());
    assert_eq!(changes(&done), ["A /evil", "M /f", "A /nested", "A /sub", "A /wt"]);
    // Starting over does not get around it.
    pair.runs("rm -rf .git; git init -q . 2>/dev/null").await;
    assert_eq!((pair.text(".git/config"), pair.text(".git/hooks/pre-commit")), ("own".into(), "own".into()));
    assert!(!pair.path(".git/refs/heads/config").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_come_without_versions_and_lead_nothing_astray() {
    let pair = on_sqlite().await;
    let (folder, outside) = (pair.root.path(), tempfile::tempdir().unwrap());
    write(outside.path(), &[("secret", "secret")]);
    write(folder, &[("target", "target"), ("file", "file"), ("folder/x", "x"), ("real/y", "y")]);
    symlink("target", pair.path("link")).unwrap();
    symlink("real", pair.path("to-folder")).unwrap();
    symlink(outside.path(), pair.path("out")).unwrap();
    symlink("target", pair.path("unlinked")).unwrap();
    let script = format!(
        "ln -s target new; rm file; ln -s target file; rm -r folder; ln -s {0} folder; rm link; echo own > link; rm to-folder; mkdir to-folder; \
         echo in > to-folder/y; rm out; mkdir out; echo mine > out/secret; rm unlinked; ln -s {0}/secret leak",
        outside.path().display()
    );
    let done = pair.runs(&script).await;
    let after = tree(folder);
    let out = outside.path().display();
    assert_eq!((after["new"].as_str(), after["file"].as_str()), ("-> target", "-> target"));
    assert_eq!((after["folder"].clone(), after["leak"].clone()), (format!("-> {out}"), format!("-> {out}/secret")));
    assert_eq!(
        (after["link"].as_str(), after["target"].as_str(), after["to-folder/y"].as_str(), after["real/y"].as_str()),
        ("own\n", "target", "in\n", "y")
    );
    assert_eq!(after["out/secret"], "mine\n");
    assert!(!after.contains_key("unlinked"));
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    assert!(left_out(&done).iter().all(|(_, reason)| *reason == LeftOutReason::Link), "{done:?}");
    assert_eq!(done.left_out.len(), 8, "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_content_is_told_and_harms_nothing() {
    let pair = on_sqlite().await;
    let folder = pair.root.path();
    write(folder, &[("ok", "ok"), ("plain", "plain")]);
    let script = "mkfifo pipe; rm plain; mkfifo plain; echo x > $'new\\nline'; echo x > $'bad\\xff'; mkdir $'dir\\x01'; echo y > $'dir\\x01/y'; \
                  mkdir closed; echo in > closed/in; chmod 000 closed/in closed; truncate -s 1T sparse; echo two > two; ln two three; \
                  chmod 4755 two; d=deep; for i in $(seq 60); do d=$d/$(printf 'n%.0s' $(seq 100)); mkdir -p $d 2>/dev/null || break; done; \
                  touch .toolrest~0123456789abcdef0123456789abcdef; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")' || true";
    let done = pair.runs(script).await;
    let told = left_out(&done);
    assert!(
        told.contains(&("/pipe", LeftOutReason::Special)) && told.contains(&("/plain", LeftOutReason::Special)),
        "{told:?}"
    );
    assert!(told.contains(&("/new\nline", LeftOutReason::Name)), "{told:?}");
    assert!(told.iter().any(|(path, reason)| path.starts_with("/bad") && *reason == LeftOutReason::Name), "{told:?}");
    assert!(told.contains(&("/sparse", LeftOutReason::TooLarge)), "{told:?}");
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
async fn what_is_over_the_limits_is_there_without_versions() {
    let pair = on_sqlite().await;
    let folder = pair.root.path();
    write(folder, &[("large", &"x".repeat(2000)), ("small", "s")]);
    let keep = KeepLimits { file_bytes: 1000, commit_bytes: 2500, commit_files: 4 };
    let mut checkout = pair.check_out(keep).await;
    run(
        &checkout.ground(),
        "echo less > large; head -c 1500 /dev/zero > huge; for i in 1 2 3; do head -c 900 /dev/zero > d$i; done; mkdir m; for i in $(seq 5); do echo $i > m/$i; done",
    );
    let done = pair.check_in(&mut checkout).await;
    let told = left_out(&done);
    let expected = [
        ("/", LeftOutReason::TooMuch),
        ("/huge", LeftOutReason::TooLarge),
        ("/large", LeftOutReason::TooLarge),
        ("/m", LeftOutReason::TooMuch),
    ];
    assert_eq!(told, expected);
    assert_eq!(pair.text("large"), "less\n");
    assert_eq!(
        (fs::metadata(pair.path("huge")).unwrap().len(), fs::metadata(pair.path("d3")).unwrap().len()),
        (1500, 900)
    );
    assert!((1..=5).all(|number| pair.text(&format!("m/{number}")) == format!("{number}\n")));
    assert!(done.changed.len() <= 5, "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_that_is_dropped_leaves_no_trace() {
    let pair = on_sqlite().await;
    write(pair.root.path(), &[("f", "f")]);
    let checkout = pair.check_out(KeepLimits::default()).await;
    let Ground::Overlay { private, .. } = checkout.ground() else { panic!("no view") };
    run(&checkout.ground(), "echo new > f; mkdir closed; chmod 000 closed");
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
    run(&checkout.ground(), "echo new > f; rm g");
    assert!(pair.check_in(&mut checkout).await.commit.is_some());
    assert_eq!(pair.check_in(&mut checkout).await, CheckedIn::default());
    run(&checkout.ground(), "test ! -e g; echo newer >> f");
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
