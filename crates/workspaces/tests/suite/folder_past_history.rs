//! What programs change in a folder and no history is kept of.

use crate::folder_checkouts::on_sqlite;
use crate::folders::Pair;
use crate::programs::{changes, left_out, named, run, tree, write};
use crate::test_workspace::{TestWorkspace, put};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use toolrest_core::{Changeset, KeepLimits, LeftOutReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ignored_trees_are_transferred_without_versions() {
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
async fn links_have_no_versions_and_are_not_followed() {
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
async fn files_over_the_limits_are_transferred_without_versions() {
    let pair = on_sqlite().await;
    let folder = pair.root.path();
    write(folder, &[("large", &"x".repeat(2000)), ("small", "s")]);
    let keep = KeepLimits { file_bytes: 1000, commit_bytes: 2500, commit_files: 4 };
    let mut checkout = pair.check_out(keep).await;
    run(
        &checkout.execution_root(),
        "echo less > large; head -c 1500 /dev/zero > huge; for i in 1 2 3; do head -c 900 /dev/zero > d$i; done; mkdir m; for i in $(seq 5); do echo $i > m/$i; done",
    );
    let done = pair.check_in(&mut checkout).await;
    let reported = left_out(&done);
    let expected = [
        ("/", LeftOutReason::TooMuch),
        ("/huge", LeftOutReason::TooLarge),
        ("/large", LeftOutReason::TooLarge),
        ("/m", LeftOutReason::TooMuch),
    ];
    assert_eq!(reported, expected);
    assert_eq!(pair.text("large"), "less\n");
    assert_eq!(
        (fs::metadata(pair.path("huge")).unwrap().len(), fs::metadata(pair.path("d3")).unwrap().len()),
        (1500, 900)
    );
    assert!((1..=5).all(|number| pair.text(&format!("m/{number}")) == format!("{number}\n")));
    assert!(done.changed.len() <= 5, "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unversioned_files_are_transferred_from_another_file_system_too() {
    let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let pair = Pair::at(in_memory, &TestWorkspace::on_sqlite().await).await;
    let folder = pair.root.path();
    write(folder, &[(".gitignore", "out\n"), ("out/old/x", "x"), ("f", "f")]);
    let script = "rm -r out/old; mkdir -p out/new/deep; echo y > out/new/deep/y; chmod 750 out/new/deep/y; ln -s new out/link; \
                  truncate -s 1T sparse; echo end >> sparse; ln -s f link; chmod 555 out/new";
    let done = pair.runs(script).await;
    let out = tree(&pair.path("out"));
    assert_eq!(named(&out), ["link", "new/", "new/deep/", "new/deep/y"]);
    let mode = |name: &str| fs::metadata(pair.path(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("out/new/deep/y"), mode("out/new") & 0o77), (0o750, 0o55));
    let sparse = fs::metadata(pair.path("sparse")).unwrap();
    assert_eq!(sparse.len(), (1 << 40) + 4);
    assert!(sparse.blocks() < 1000, "{} blocks", sparse.blocks());
    assert_eq!(fs::read_link(pair.path("link")).unwrap().to_str(), Some("f"));
    let reported =
        [("/link", LeftOutReason::Link), ("/out", LeftOutReason::Ignored), ("/sparse", LeftOutReason::TooLarge)];
    assert_eq!((left_out(&done), done.commit), (reported.to_vec(), None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ignored_files_are_transferred_to_the_conflict_copy_of_their_folder() {
    let pair = on_sqlite().await;
    let folder = pair.root.path();
    write(folder, &[(".gitignore", "out\n"), ("t", "old")]);
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    run(&checkout.execution_root(), "rm t; mkdir -p t/out; echo in > t/in; echo built > t/out/x");
    write(folder, &[("t", "theirs")]);
    let done = pair.check_in(&mut checkout).await;
    let kept_as = done.conflicts[0].kept_as.as_ref().unwrap().without_slash();
    assert_eq!(named(&tree(&pair.path(kept_as))), ["in", "out/", "out/x"]);
    assert_eq!(pair.text("t"), "theirs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unversioned_entries_at_the_paths_of_a_commit_are_removed_with_it() {
    let pair = on_sqlite().await;
    let folder = pair.root.path();
    write(
        folder,
        &[(".gitignore", "out\n"), ("d/out/x", "x"), ("d/f", "f"), ("out/y", "y"), ("g", "g"), ("real/y", "y")],
    );
    symlink("g", pair.path("link")).unwrap();
    symlink("real", pair.path("to-folder")).unwrap();
    fs::create_dir(pair.path("bad\u{1}")).unwrap();
    write(folder, &[("bad\u{1}/in", "in")]);
    let script = "rm -r d out bad*; rm link; echo own > link; echo new > g; rm to-folder; mkdir -p to-folder/sub; \
                  echo in > to-folder/sub/y; echo y > to-folder/y";
    let done = pair.runs(script).await;
    let expected = [
        "D /d",
        "D /d/f",
        "M /g",
        "A /link",
        "A /to-folder",
        "A /to-folder/sub",
        "A /to-folder/sub/y",
        "A /to-folder/y",
    ];
    assert_eq!(changes(&done), expected);
    let after = tree(folder);
    let expected = [
        ".gitignore",
        "g",
        "link",
        "real/",
        "real/y",
        "to-folder/",
        "to-folder/sub/",
        "to-folder/sub/y",
        "to-folder/y",
    ];
    assert_eq!(named(&after), expected);
    assert_eq!((after["real/y"].as_str(), after["link"].as_str()), ("y", "own\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_replaces_a_link_at_the_path_of_a_file_or_folder() {
    let pair = on_sqlite().await;
    let (folder, outside) = (pair.root.path(), tempfile::tempdir().unwrap());
    write(outside.path(), &[("x", "outside")]);
    write(folder, &[("t/a", "a"), ("d/x", "x")]);
    let before = tree(folder);
    let out = outside.path().display();
    pair.runs(&format!("rm t/a; ln -s {out}/x t/a; rm -r d; ln -s {out} d")).await;
    assert_eq!(tree(folder)["t/a"], format!("-> {out}/x"));
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(tree(folder), before);
    assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "outside");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_others_to_ignored_files_stay() {
    let pair = on_sqlite().await;
    let folder = pair.root.path();
    write(
        folder,
        &[
            (".gitignore", ".env\nout\ngone\nagain\n"),
            (".env", "old"),
            ("out/both", "old"),
            ("out/same", "old"),
            ("out/mine", "old"),
            ("out/removed", "old"),
            ("gone/x", "old"),
            ("again/x", "old"),
            ("again/y", "old"),
        ],
    );
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    let script = "echo mine > .env; echo mine > out/both; echo same > out/same; echo mine > out/mine; rm out/removed; \
                  rm -r gone; rm -r again; mkdir again; echo mine > again/z";
    run(&checkout.execution_root(), script);
    let theirs = [
        (".env", "theirs"),
        ("out/both", "theirs"),
        ("out/same", "same\n"),
        ("out/removed", "theirs"),
        ("gone/x", "theirs"),
        ("again/x", "theirs"),
    ];
    write(folder, &theirs);
    let done = pair.check_in(&mut checkout).await;
    for (name, text) in theirs {
        assert_eq!(pair.text(name), text, "{name}");
    }
    assert_eq!((pair.text("out/mine"), pair.text("again/z")), ("mine\n".into(), "mine\n".into()));
    assert!(!pair.path("again/y").exists());
    let reported: Vec<(&str, bool)> =
        done.conflicts.iter().map(|conflict| (conflict.path.as_str(), conflict.kept_as.is_some())).collect();
    let expected =
        [("/.env", true), ("/again/x", false), ("/gone", false), ("/out/both", true), ("/out/removed", false)];
    assert_eq!(reported, expected);
    for kept_as in done.conflicts.iter().filter_map(|conflict| conflict.kept_as.as_ref()) {
        assert_eq!(pair.text(kept_as.without_slash()), "mine\n");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_that_both_changed_is_left_as_the_other_made_it() {
    for (theirs, is_taken) in [(".git/HEAD", false), (".git/FETCH_HEAD", true)] {
        let pair = on_sqlite().await;
        let folder = pair.root.path();
        write(folder, &[(".git/HEAD", "old"), (".git/refs/a", "old"), (".git/objects/1", "1"), ("f", "f")]);
        let mut checkout = pair.check_out(KeepLimits::default()).await;
        run(
            &checkout.execution_root(),
            "echo mine > .git/HEAD; echo mine > .git/refs/a; echo 2 > .git/objects/2; echo g > f",
        );
        write(folder, &[(theirs, "theirs"), (".git/objects/2", "2\n")]);
        let done = pair.check_in(&mut checkout).await;
        assert_eq!((pair.text(theirs), pair.text("f")), ("theirs".into(), "g\n".into()));
        assert_eq!(pair.text(".git/refs/a"), if is_taken { "mine\n" } else { "old" });
        let reported: Vec<&str> = done.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
        assert_eq!(reported, if is_taken { vec![] } else { vec!["/.git"] });
        assert!(done.conflicts.iter().all(|conflict| conflict.reason.contains("repeat the git command")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_history_survives_that_the_ignored_folder_around_it_is_made_again() {
    let pair = on_sqlite().await;
    write(pair.root.path(), &[(".gitignore", "dist\n"), ("dist/other", "other")]);
    pair.commit(pair.in_folder, Changeset::one(put("/dist/known", "by a tool"))).await.unwrap();
    let done = pair.runs("rm -r dist; mkdir dist; echo program > dist/known; echo new > dist/new").await;
    assert_eq!((changes(&done), done.conflicts), (vec!["M /dist/known".to_owned()], vec![]));
    assert_eq!(named(&tree(&pair.path("dist"))), ["known", "new"]);
    assert_eq!(pair.text("dist/known"), "program\n");
}
