//! Commits that are refused: typed errors, no changes, no leftovers.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use rustix::{
    fs::{CWD, FileType, Gid, Mode, Uid, mknodat},
    thread::{set_thread_res_gid, set_thread_res_uid},
};
use tempfile::TempDir;
use toolrest_directory::{Change, CommitOptions, Contents, Effect, ErrorKind, Expect, Hash, Parents, Replace, Root};

use crate::fixture::{Fixture, hash, make_folder, moving, remove, remove_folder, tree, write, write_deep};

/// Set for the child process that has a small disk.
const SMALL_DISK: &str = "TOOLREST_DIRECTORY_SMALL_DISK";

macro_rules! refused {
    ($fixture:expr, $change:expr, $kind:pat $(if $guard:expr)?) => {
        let kind = $fixture.refused(&[write("first", "is rolled back", Expect::Absent), $change]);
        assert!(matches!(kind, $kind $(if $guard)?), "{kind:?}");
    };
}

#[test]
fn every_refusal_has_a_typed_error_and_changes_nothing() {
    let fixture = Fixture::with(&[("file", "text"), ("folder/inside", ""), ("other", "")]);
    mknodat(CWD, fixture.path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    symlink("folder", fixture.path("to folder")).unwrap();
    let actual = Hash::of(b"text");
    refused!(fixture, write("file", "", hash("wrong")), ErrorKind::Changed { actual: Some(found) } if found == actual);
    refused!(fixture, write("file", "", Expect::Absent), ErrorKind::Exists);
    refused!(fixture, write("missing", "", hash("")), ErrorKind::NotFound);
    refused!(fixture, write("folder", "", Expect::Anything), ErrorKind::IsFolder);
    refused!(fixture, write("to folder", "", Expect::Anything), ErrorKind::IsFolder);
    refused!(fixture, write("fifo", "", Expect::Anything), ErrorKind::Special);
    refused!(fixture, write("", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(fixture, write(".", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(fixture, write("folder/..", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(fixture, write("n".repeat(256), "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(fixture, write("nul\0", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(fixture, write(".toolrest~0123456789abcdef0123456789abcdef", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(fixture, write("file/below", "", Expect::Absent), ErrorKind::NotAFolder);
    refused!(fixture, write_deep("file/below/it", "", Expect::Absent), ErrorKind::NotAFolder);
    refused!(fixture, write("missing/below", "", Expect::Absent), ErrorKind::NotFound);
    refused!(fixture, remove("missing", Expect::Anything), ErrorKind::NotFound);
    refused!(fixture, remove("folder", Expect::Anything), ErrorKind::IsFolder);
    refused!(fixture, remove("file", hash("wrong")), ErrorKind::Changed { .. });
    refused!(fixture, remove("fifo", hash("")), ErrorKind::Special);
    refused!(fixture, remove_folder("file", Contents::Anything), ErrorKind::NotAFolder);
    refused!(fixture, remove_folder("to folder", Contents::Anything), ErrorKind::NotAFolder);
    refused!(fixture, remove_folder("", Contents::Anything), ErrorKind::Invalid(_));
    refused!(fixture, remove_folder("folder", Contents::Nothing), ErrorKind::NotEmpty);
    refused!(fixture, moving("missing", "new"), ErrorKind::NotFound);
    refused!(fixture, moving("file", "other"), ErrorKind::Exists);
    refused!(fixture, moving("file", "file"), ErrorKind::Exists);
    refused!(fixture, moving("folder", "folder/inside/itself"), ErrorKind::Invalid(_));
    refused!(fixture, moving("file", "missing/new"), ErrorKind::NotFound);
    refused!(fixture, moving("file", "other/new"), ErrorKind::NotAFolder);
    let replacing = |from: &str, to: &str| Change::Move {
        from: from.into(),
        to: to.into(),
        replace: Replace::File,
        parents: Parents::Required,
    };
    refused!(fixture, replacing("file", "folder"), ErrorKind::IsFolder);
    refused!(fixture, replacing("folder", "file"), ErrorKind::NotAFolder);
    refused!(fixture, make_folder("file"), ErrorKind::Exists);
    refused!(fixture, make_folder("folder"), ErrorKind::Exists);
    refused!(fixture, make_folder("missing/new"), ErrorKind::NotFound);
    refused!(fixture, write("first", "", Expect::Anything), ErrorKind::Overlap);
    refused!(fixture, moving("first", "second"), ErrorKind::Overlap);
    refused!(fixture, write("first/below", "", Expect::Anything), ErrorKind::NotAFolder);
}

/// Runs something on a thread without superuser privileges.
fn unprivileged<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let (user, group) = (Uid::from_raw(65534), Gid::from_raw(65534));
            if rustix::process::geteuid().is_root() {
                set_thread_res_gid(group, group, group).unwrap();
                set_thread_res_uid(user, user, user).unwrap();
            }
            work()
        });
        worker.join().unwrap()
    })
}

/// Gives all files of a fixture to the user of [`unprivileged`].
fn give_away(fixture: &Fixture) {
    if rustix::process::geteuid().is_root() {
        let give = |path: &Path| chown(path, Some(65534), Some(65534)).unwrap();
        give(fixture.home.path());
        give(&fixture.path(""));
        give(&fixture.journal());
        fixture.tree().keys().for_each(|path| give(&fixture.path(path)));
    }
}

fn set_mode(path: PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn unwritable_files_and_folders_are_denied() {
    let fixture =
        Fixture::with(&[("readonly", "text"), ("locked/file", ""), ("unreadable", ""), ("tree/locked/file", "")]);
    fs::hard_link(fixture.path("readonly"), fixture.path("readonly too")).unwrap();
    fixture.put("single", "text");
    give_away(&fixture);
    set_mode(fixture.path("readonly"), 0o444);
    set_mode(fixture.path("single"), 0o444);
    set_mode(fixture.path("unreadable"), 0o200);
    set_mode(fixture.path("locked"), 0o555);
    set_mode(fixture.path("tree/locked"), 0o555);
    let before = |path: &str| fs::read(fixture.path(path)).unwrap();
    let tree_before = fixture.tree();
    let changes = [
        write("single", "new", Expect::Anything),
        write("readonly", "new", hash("text")),
        write("unreadable", "new", hash("")),
        write("locked/file", "new", Expect::Anything),
        write("locked/new", "new", Expect::Absent),
        write_deep("locked/new/below", "new", Expect::Absent),
        remove("locked/file", Expect::Anything),
        moving("locked/file", "file"),
        moving("single", "locked/single"),
        make_folder("locked/folder"),
        remove_folder("tree", Contents::Anything),
    ];
    assert_eq!(before("single"), b"text");
    for change in changes {
        let all = [write("first", "is rolled back", Expect::Absent), change];
        let error = unprivileged(|| fixture.commit(&all)).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Denied), "{error:?} of {all:?}");
        assert_eq!(fixture.tree(), tree_before, "{all:?}");
    }
    // With permission, the same user can.
    unprivileged(|| fixture.commit(&[write("tree/new", "", Expect::Absent)])).unwrap();
}

#[test]
fn files_of_others_in_sticky_folders_are_rewritten() {
    let fixture = Fixture::with(&[("shared/file", "old")]);
    assert!(rustix::process::geteuid().is_root(), "only the superuser can give files away; run this test as root");
    give_away(&fixture);
    for (path, mode) in [("shared", 0o1777), ("shared/file", 0o666)] {
        chown(fixture.path(path), Some(0), Some(0)).unwrap();
        set_mode(fixture.path(path), mode);
    }
    let applied = unprivileged(|| fixture.commit(&[write("shared/file", "new", hash("old"))])).unwrap();
    assert_eq!(applied.changes[0].effect, Effect::RewrittenInPlace);
    assert_eq!(fixture.text("shared/file"), "new");
    for change in [remove("shared/file", Expect::Anything), moving("shared/file", "mine")] {
        let error = unprivileged(|| fixture.commit(&[change])).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Denied), "{error:?}");
    }
    // Nothing is left that would block the next commit.
    assert_eq!(fs::read_dir(fixture.path("shared")).unwrap().count(), 1);
    unprivileged(|| fixture.commit(&[write("new", "", Expect::Absent)])).unwrap();
}

#[test]
fn an_owner_that_cannot_be_kept_does_not_fail_the_commit() {
    let fixture = Fixture::with(&[("file", "old")]);
    assert!(rustix::process::geteuid().is_root(), "only the superuser can give files away; run this test as root");
    give_away(&fixture);
    for (owner, mode, kept) in [(4321, 0o666, 0o666), (65534, 0o2775, 0o775)] {
        fixture.put("file", "old");
        chown(fixture.path("file"), Some(owner), Some(4321)).unwrap();
        set_mode(fixture.path("file"), mode);
        unprivileged(|| fixture.commit(&[write("file", "new", hash("old"))])).unwrap();
        assert_eq!(fixture.text("file"), "new");
        let mode = fs::metadata(fixture.path("file")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, kept, "set-group-id is not kept for another group");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a small disk needs a process with mounts of its own")]
fn a_full_disk_changes_nothing() {
    let home = TempDir::new().unwrap();
    let script = r#"mount -t tmpfs -o size=256k none "$1" && shift && exec "$@""#;
    let status = Command::new("unshare")
        // An ordinary user needs a user namespace to mount.
        .args([if rustix::process::geteuid().is_root() { "-m" } else { "-rm" }, "sh", "-c", script, "sh"])
        .arg(home.path())
        .arg(env::current_exe().unwrap())
        .args(["--exact", "refusals::commits_on_a_small_disk", "--nocapture"])
        .env(SMALL_DISK, home.path())
        .output();
    match status {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("the disk was full") => {}
        other => panic!("a small disk needs `unshare` (util-linux) and the right to mount; run as root: {other:?}"),
    }
}

/// The part of the test above that runs with a small disk. Does nothing in a normal run.
#[test]
fn commits_on_a_small_disk() {
    let Some(home) = env::var_os(SMALL_DISK).map(PathBuf::from) else { return };
    let (path, journal) = (home.join("root"), home.join("journal"));
    fs::create_dir(&path).unwrap();
    fs::create_dir(&journal).unwrap();
    fs::write(path.join("file"), "old").unwrap();
    fs::write(path.join("one"), "old").unwrap();
    fs::hard_link(path.join("one"), path.join("two")).unwrap();
    let root = Root::open(&path).unwrap();
    let commit = |changes: &[Change]| root.commit(changes, &journal, &CommitOptions::default());
    commit(&[write("other", "text", Expect::Absent)]).unwrap();
    let before = tree(&path);
    let large = "x".repeat(300_000);
    for change in
        [write("file", &large, hash("old")), write("new", &large, Expect::Absent), write("one", &large, hash("old"))]
    {
        let error = commit(&[write("other", "more", hash("text")), change]).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::NoSpace), "{error}");
        assert_eq!(tree(&path), before);
        assert!(root.recover(&journal).unwrap().is_none());
    }
    commit(&[write("other", "more", hash("text"))]).unwrap();
    println!("the disk was full");
}
