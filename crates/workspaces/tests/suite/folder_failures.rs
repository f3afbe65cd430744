//! The disk fails while what a program did is checked in.

use crate::folders::Pair;
use crate::programs::{changes, left_out, named, run, run_in, tree, write};
use crate::test_workspace::TestWorkspace;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use toolrest_core::{ErrorKind, KeepLimits, LeftOutReason};

/// Where the small disk is, for a test that is started once more to run on it.
const SMALL_DISK: &str = "TOOLREST_TEST_SMALL_DISK";

/// Runs a test of this file once more, where a small disk is mounted that nobody else sees.
#[allow(clippy::disallowed_methods, reason = "a small disk needs a process with mounts of its own")]
fn on_a_small_disk(test: &str) {
    let place = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=256k none "$1" && shift && exec "$@""#;
    let output = Command::new("unshare")
        .args(["-Urm", "sh", "-c", script, "sh"])
        .arg(place.path())
        .arg(env::current_exe().unwrap())
        .args(["--exact", &format!("folder_failures::{test}"), "--nocapture"])
        .env(SMALL_DISK, place.path())
        .output()
        .expect("unshare (util-linux) is needed for a small disk");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// The small disk; none in a usual run, where such a test is started once more by `on_a_small_disk`.
fn small_disk() -> Option<PathBuf> {
    env::var_os(SMALL_DISK).map(PathBuf::from)
}

async fn pair_at(disk: &Path) -> Pair {
    Pair::at(tempfile::tempdir_in(disk).unwrap(), &TestWorkspace::on_sqlite().await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_finds_the_disk_full_changes_nothing_and_can_be_done_later() {
    let Some(disk) = small_disk() else {
        return on_a_small_disk("a_commit_that_finds_the_disk_full_changes_nothing_and_can_be_done_later");
    };
    let pair = pair_at(&disk).await;
    let folder = pair.root.path();
    write(
        folder,
        &[(".gitignore", "out\n"), ("changed", "old"), ("gone", "old"), ("d/moved", "old"), ("out/x", "old")],
    );
    let before = tree(folder);
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    let script = "echo new > changed; rm gone; mv d/moved moved; head -c 400000 /dev/zero > large; rm -r out";
    run(&checkout.execution_root(), script);
    let error = checkout.check_in(&pair.cx(pair.in_folder).await).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::StorageFull, "{error:?}");
    assert_eq!((tree(folder), pair.commits().await.len()), (before, 0));
    run_in(&disk, "mount -o remount,size=4m .");
    let done = pair.check_in(&mut checkout).await;
    assert_eq!(changes(&done), ["M /changed", "D /gone", "A /large", "R /moved"]);
    assert_eq!(named(&tree(folder)), [".gitignore", "changed", "d/", "large", "moved"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_may_not_write_everywhere_changes_nothing() {
    let Some(disk) = small_disk() else {
        return on_a_small_disk("a_commit_that_may_not_write_everywhere_changes_nothing");
    };
    let pair = pair_at(&disk).await;
    let folder = pair.root.path();
    write(folder, &[("changed", "old"), ("gone", "old"), ("closed/f", "old"), ("z/last", "old")]);
    let before = tree(folder);
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    run(&checkout.execution_root(), "echo new > changed; rm gone; echo new > closed/f; echo new > closed/new; rm -r z");
    run_in(folder, "mount --bind closed closed; mount -o remount,bind,ro closed");
    let error = checkout.check_in(&pair.cx(pair.in_folder).await).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden, "{error:?}");
    assert_eq!((tree(folder), pair.commits().await.len()), (before, 0));
    run_in(folder, "umount closed");
    let done = pair.check_in(&mut checkout).await;
    assert_eq!(changes(&done), ["M /changed", "M /closed/f", "A /closed/new", "D /gone", "D /z", "D /z/last"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unversioned_files_that_find_the_disk_full_are_reported_with_the_commit() {
    let Some(disk) = small_disk() else {
        return on_a_small_disk("unversioned_files_that_find_the_disk_full_are_reported_with_the_commit");
    };
    let pair = pair_at(&disk).await;
    write(pair.root.path(), &[(".gitignore", "out*\n"), ("f", "old"), ("out/x", "old")]);
    let mut checkout = pair.check_out(KeepLimits::default()).await;
    run(&checkout.execution_root(), "echo new > f; head -c 400000 /dev/zero > out/large; mkdir out2; echo y > out2/y");
    let done = pair.check_in(&mut checkout).await;
    assert_eq!((changes(&done), done.commit), (vec!["M /f".to_owned()], Some(pair.commits().await[0].id)));
    assert!(left_out(&done).contains(&("/out/large", LeftOutReason::Unreadable)), "{done:?}");
    assert_eq!(named(&tree(pair.root.path())), [".gitignore", "f", "out/", "out/x", "out2/", "out2/y"]);
}
