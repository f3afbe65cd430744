//! Others replace whole folders that a program works on. The files in such a folder keep their old times.

use crate::folder_checkouts::on_sqlite;
use crate::folders::Pair;
use crate::programs::{changes, run, run_in, tree, write};
use crate::test_workspace::path;
use toolrest_core::{CheckedIn, KeepLimits};

/// Runs a script on a view, with another one in the folder itself before what the first did is checked in.
async fn meanwhile(pair: &Pair, script: &str, theirs: &str) -> CheckedIn {
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    run(&checkout.execution_root(), script);
    run_in(pair.root.path(), theirs);
    pair.check_in(&mut checkout).await
}

/// Where the program's version of a path is.
fn kept_as(done: &CheckedIn, name: &str) -> Option<String> {
    let conflict = done.conflicts.iter().find(|conflict| conflict.path == path(name));
    let conflict = conflict.unwrap_or_else(|| panic!("{name}: {done:?}"));
    conflict.kept_as.as_ref().map(|kept| kept.without_slash().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_others_replaced_stays_with_all_that_is_in_it() {
    for (place, theirs) in [
        ("d", "mv d away; mv new d"),
        // A change in it after that makes it no less theirs.
        ("d", "mv d away; mv new d; touch d/more"),
        ("d/e", "mv d/e away; mv new d/e"),
        ("d", "mkdir whole; mv new whole/e; mv d away; mv whole d"),
        ("deep/1/2/3/4/5/6/7/8/9", "mv deep/1/2/3/4/5/6/7/8/9 away; mv new deep/1/2/3/4/5/6/7/8/9"),
    ] {
        let pair = on_sqlite().await;
        let at = |name: &str| match place {
            "d" if theirs.contains("whole") => format!("d/e/{name}"),
            place => format!("{place}/{name}"),
        };
        let olds = ["both", "same", "removed", "kind"].map(&at);
        write(pair.root.path(), &olds.each_ref().map(|name| (name.as_str(), "old")));
        write(
            pair.root.path(),
            &[("new/both", "theirs"), ("new/same", "agreed\n"), ("new/removed", "theirs"), ("new/kind", "theirs")],
        );
        let [both, same, removed, kind] = &olds;
        let script = format!("echo mine > {both}; echo agreed > {same}; rm {removed}; rm {kind}; mkdir {kind}");
        let done = meanwhile(&pair, &script, theirs).await;
        for name in [both, removed, kind] {
            assert_eq!(pair.text(name), "theirs", "{theirs}: {name}: {done:?}");
        }
        assert_eq!(pair.text(&kept_as(&done, both).unwrap()), "mine\n", "{theirs}");
        assert_eq!(kept_as(&done, removed), None, "{theirs}");
        assert!(pair.path(&kept_as(&done, kind).unwrap()).is_dir(), "{theirs}");
        assert_eq!(done.conflicts.len(), 3, "{theirs}: {done:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_others_replaced_is_not_removed_or_replaced_by_the_program() {
    for script in ["rm -r d", "rm -r d; mkdir d; echo mine > d/a", "rm -r d; echo mine > d", "mv d elsewhere"] {
        let pair = on_sqlite().await;
        write(pair.root.path(), &[("d/a", "old"), ("d/sub/b", "old"), ("new/a", "theirs"), ("new/sub/b", "theirs")]);
        let done = meanwhile(&pair, script, "mv d away; mv new d").await;
        assert_eq!((pair.text("d/a"), pair.text("d/sub/b")), ("theirs".into(), "theirs".into()), "{script}: {done:?}");
        assert_eq!(kept_as(&done, "d/sub/b"), None, "{script}");
        assert_eq!(kept_as(&done, "d/a").is_some(), script.contains("d/a"), "{script}: {done:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_others_moved_to_the_path_of_a_new_folder_stays() {
    let pair = on_sqlite().await;
    write(pair.root.path(), &[("new/a", "theirs"), ("new/b", "theirs")]);
    let done = meanwhile(&pair, "mkdir d; echo mine > d/a; echo mine > d/c", "mv new d").await;
    assert_eq!(
        (pair.text("d/a"), pair.text("d/b"), pair.text("d/c")),
        ("theirs".into(), "theirs".into(), "mine\n".into())
    );
    assert_eq!(pair.text(&kept_as(&done, "d/a").unwrap()), "mine\n");
}

/// In ignored trees, a directory that was replaced is not removed as a whole. Its files have the times that they had, so
/// those that the program wrote or removed count as unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ignored_tree_in_which_others_replaced_a_directory_is_not_removed() {
    for theirs in ["mv out away; mv new out", "mv out/sub away; mv new/sub out/sub"] {
        for (script, conflicts, after) in [
            ("rm -r out", vec![("/out", false)], Some("theirs")),
            ("echo mine > out/sub/x", vec![], Some("mine\n")),
            ("rm out/sub/x", vec![], None),
            ("rm -r out; mkdir -p out/sub; echo mine > out/sub/x", vec![], Some("mine\n")),
        ] {
            let pair = on_sqlite().await;
            write(
                pair.root.path(),
                &[(".gitignore", "out\nnew\naway\n"), ("out/sub/x", "old"), ("new/sub/x", "theirs")],
            );
            let done = meanwhile(&pair, script, theirs).await;
            let found: Vec<(&str, bool)> =
                done.conflicts.iter().map(|conflict| (conflict.path.as_str(), conflict.kept_as.is_some())).collect();
            assert_eq!(found, conflicts, "{script}, {theirs}");
            assert_eq!(tree(&pair.path("out")).get("sub/x").map(String::as_str), after, "{script}, {theirs}: {done:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_to_other_files_in_a_folder_are_no_conflict() {
    let pair = on_sqlite().await;
    let names: Vec<String> = (0..700).map(|number| format!("many/{number}/deep/file")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "old")).collect();
    write(pair.root.path(), &files);
    write(pair.root.path(), &[("d/e/a", "old"), ("d/e/b", "old"), ("d/e/f/c", "old"), ("d/gone/a", "old")]);
    let script = "echo mine > d/e/a; rm d/e/f/c; rm -r d/gone; echo mine > many/699/deep/file";
    let theirs = "touch d/new d/e/new d/e/f/new d/gone/new new; mv d/e/b d/e/moved; touch many/699/deep/new";
    let done = meanwhile(&pair, script, theirs).await;
    assert_eq!(changes(&done), ["M /d/e/a", "D /d/e/f/c", "D /d/gone/a", "M /many/699/deep/file"]);
    assert_eq!(kept_as(&done, "d/gone/new"), None);
    assert_eq!(done.conflicts.len(), 1, "{done:?}");
    assert!(!tree(pair.root.path()).contains_key("d/gone/a"));
}
