//! Files with several names (hard links) that programs replace in a folder.

use crate::folder_checkouts::on_sqlite;
use crate::folders::Pair;
use crate::programs::{changes, named, run, run_in, tree, write};
use crate::test_workspace::{TestWorkspace, put};
use std::fs;
use std::os::unix::fs::MetadataExt;
use tempfile::TempDir;
use toolrest_core::{Changeset, CheckedIn, KeepLimits};

/// A build as cargo makes it: the program is written to `deps` and linked to where people look for it.
const BUILD: &str = r#"
build() {
  mkdir -p target/debug/deps target/debug/incremental
  for name in app tool lib; do
    hash=$(printf %s "$name" | md5sum | cut -c1-8)
    rm -f target/debug/deps/$name-$hash
    { cat src; echo $name; } > target/debug/deps/$name-$hash
    rm -f target/debug/$name
    ln target/debug/deps/$name-$hash target/debug/$name
  done
}
"#;

/// Where the program's changes come from: the same file system as the folder, or another.
async fn each(check: impl AsyncFn(&Pair)) {
    check(&on_sqlite().await).await;
    check(&Pair::at(TempDir::new_in("/dev/shm").unwrap(), &TestWorkspace::on_sqlite().await).await).await;
}

fn same_file(pair: &Pair, one: &str, other: &str) -> bool {
    let inode = |name| fs::metadata(pair.path(name)).unwrap().ino();
    inode(one) == inode(other)
}

fn assert_no_conflict(done: &CheckedIn) {
    assert_eq!(done.conflicts, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_replaces_linked_files_meets_no_conflict() {
    each(async |pair| {
        run_in(pair.root.path(), "echo a > x; ln x y");
        for round in 0..3 {
            let done = pair.runs(&format!("rm x y; echo b{round} > x; ln x y")).await;
            assert_no_conflict(&done);
            assert_eq!(changes(&done), ["M /x", "M /y"]);
            assert_eq!((pair.text("x"), pair.text("y")), (format!("b{round}\n"), format!("b{round}\n")));
            assert!(same_file(pair, "x", "y"), "round {round}");
        }
        pair.undo(pair.in_folder).await.unwrap();
        assert_eq!((pair.text("x"), pair.text("y")), ("b1\n".into(), "b1\n".into()));
        assert_eq!(named(&tree(pair.root.path())), ["x", "y"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_changes_one_of_two_names_leaves_the_other_as_it_saw_it() {
    let pair = on_sqlite().await;
    run_in(pair.root.path(), "echo a > x; ln x y; ln x z");
    let done = pair.runs("rm x; echo b > x; rm z").await;
    assert_no_conflict(&done);
    assert_eq!((pair.text("x"), pair.text("y")), ("b\n".into(), "a\n".into()));
    assert!(!pair.path("z").exists());
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!(["x", "y", "z"].map(|name| pair.text(name)), ["a\n", "a\n", "a\n"]);
    // Two names of one file that were two files before become two files again.
    pair.runs("rm x y; echo one > x; echo two > y").await;
    pair.runs("rm x y; echo both > x; ln x y").await;
    assert!(same_file(&pair, "x", "y"));
    pair.undo(pair.in_folder).await.unwrap();
    assert_eq!((pair.text("x"), pair.text("y")), ("one\n".into(), "two\n".into()));
    // A new name of a file that was there is one of it.
    let done = pair.runs("ln x also").await;
    assert_eq!((changes(&done), same_file(&pair, "x", "also")), (vec!["A /also".to_owned()], true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_links_what_it_made_leaves_nothing_stale() {
    each(async |pair| {
        write(pair.root.path(), &[(".gitignore", "target\n"), ("src", "0\n")]);
        for round in 0..4 {
            if round > 0 {
                pair.commit(pair.in_folder, Changeset::one(put("/src", &format!("{round}\n")))).await.unwrap();
            }
            // Once everything is made anew.
            let clean = if round == 2 { "rm -r target/debug/deps;" } else { "" };
            assert_no_conflict(&pair.runs(&format!("{BUILD} {clean} build")).await);
            let deps = fs::read_dir(pair.path("target/debug/deps")).unwrap();
            let deps: Vec<String> = deps.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            assert_eq!(deps.len(), 3, "{deps:?}");
            for dep in deps {
                let (name, _) = dep.split_once('-').unwrap();
                assert_eq!(pair.text(&format!("target/debug/{name}")), format!("{round}\n{name}\n"));
                assert_eq!(pair.text(&format!("target/debug/deps/{dep}")), format!("{round}\n{name}\n"));
            }
        }
        assert_no_conflict(&pair.runs("rm -r target").await);
        assert_eq!(named(&tree(pair.root.path())), [".gitignore", "src"]);
    })
    .await;
    let pair = on_sqlite().await;
    write(pair.root.path(), &[(".gitignore", "target\n"), ("src", "0\n")]);
    pair.runs(&format!("{BUILD} build")).await;
    pair.runs(&format!("{BUILD} echo 1 > src; build")).await;
    let dep = fs::read_dir(pair.path("target/debug/deps")).unwrap().next().unwrap().unwrap().file_name();
    let dep = dep.into_string().unwrap();
    let name = dep.split_once('-').unwrap().0;
    assert!(same_file(&pair, &format!("target/debug/deps/{dep}"), &format!("target/debug/{name}")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_between_what_has_a_history_and_what_has_none_are_no_conflict() {
    each(async |pair| {
        write(pair.root.path(), &[(".gitignore", "target\n*.o\n")]);
        run_in(pair.root.path(), "mkdir -p target/a bin; echo 0 > target/a/x; ln target/a/x bin/x; ln bin/x x.o");
        for round in 1..4 {
            let script =
                format!("rm target/a/x bin/x x.o; echo {round} > target/a/x; ln target/a/x bin/x; ln bin/x x.o");
            assert_no_conflict(&pair.runs(&script).await);
            assert_eq!(
                ["target/a/x", "bin/x", "x.o"].map(|name| pair.text(name)),
                [format!("{round}\n"), format!("{round}\n"), format!("{round}\n")]
            );
        }
        assert_no_conflict(&pair.runs("rm -r target x.o; echo last > bin/x").await);
        assert_eq!(
            (named(&tree(pair.root.path())), pair.text("bin/x")),
            (vec![".gitignore", "bin/", "bin/x"], "last\n".into())
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_farm_of_links_is_made_anew_again_and_again() {
    each(async |pair| {
        write(pair.root.path(), &[(".gitignore", "cache\n")]);
        let farm = "farm() { rm -rf cache/store farm; mkdir -p cache/store farm/a/b; for i in $(seq 100); do \
                    echo $1-$i > cache/store/$i; ln cache/store/$i farm/a/$i; ln cache/store/$i farm/a/b/$i; done; }";
        for round in 0..3 {
            assert_no_conflict(&pair.runs(&format!("{farm}; farm {round}")).await);
            for i in [1, 50, 100] {
                for name in ["cache/store", "farm/a", "farm/a/b"] {
                    assert_eq!(pair.text(&format!("{name}/{i}")), format!("{round}-{i}\n"));
                }
            }
            assert!(same_file(pair, "farm/a/7", "farm/a/b/7"));
        }
        pair.undo(pair.in_folder).await.unwrap();
        assert_eq!(pair.text("farm/a/b/9"), "1-9\n");
        assert_eq!(tree(pair.root.path()).len(), 306);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_write_to_a_linked_file_stays() {
    let pair = on_sqlite().await;
    write(pair.root.path(), &[(".gitignore", "out\n")]);
    run_in(pair.root.path(), "echo a > x; ln x y; mkdir out; echo a > out/x; ln out/x out/y");
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    run(&checkout.execution_root(), "rm x y out/x out/y; echo mine > x; ln x y; echo mine > out/x; ln out/x out/y");
    run_in(pair.root.path(), "sleep 0.02; echo theirs > x; echo theirs > out/y");
    let done = pair.check_in(&mut checkout).await;
    let mut kept: Vec<String> = done.conflicts.iter().map(|conflict| conflict.path.to_string()).collect();
    kept.sort();
    assert_eq!(kept, ["/out/x", "/out/y", "/x", "/y"]);
    assert_eq!(["x", "y", "out/x", "out/y"].map(|name| pair.text(name)), ["theirs\n"; 4]);
    // One of the two names is another file by now: only that one is theirs.
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    run(&checkout.execution_root(), "rm x y; echo mine > x; ln x y");
    run_in(pair.root.path(), "sleep 0.02; rm y; echo other > y");
    let done = pair.check_in(&mut checkout).await;
    assert!(done.conflicts.iter().any(|conflict| conflict.path.as_str() == "/y"));
    assert_eq!(pair.text("y"), "other\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_outside_of_a_repository_leads_to_a_file_in_it() {
    each(async |pair| {
        write(pair.root.path(), &[(".gitignore", "out\n"), (".git/config", "[core]\n"), (".git/HEAD", "ref\n")]);
        pair.runs("mkdir out; ln .git/config out/config; ln .git/HEAD out/head; mkdir -p new/.git; echo x > new/.git/HEAD; ln new/.git/HEAD out/new").await;
        for (inside, outside) in [(".git/config", "out/config"), (".git/HEAD", "out/head"), ("new/.git/HEAD", "out/new")] {
            assert_eq!(pair.text(inside), pair.text(outside));
            assert!(!same_file(pair, inside, outside), "{inside}");
            assert_eq!(fs::metadata(pair.path(inside)).unwrap().nlink(), 1, "{inside}");
        }
    })
    .await;
}
