//! Commits that cannot be: typed errors, nothing changed, nothing left.

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

use crate::scene::{Scene, hash, make_folder, moving, remove, remove_folder, tree, write, write_deep};

/// Set for the process that has a small disk of its own.
const SMALL_DISK: &str = "TOOLREST_DIRECTORY_SMALL_DISK";

macro_rules! refused {
    ($scene:expr, $change:expr, $kind:pat $(if $guard:expr)?) => {
        let kind = $scene.refused(&[write("first", "is rolled back", Expect::Absent), $change]);
        assert!(matches!(kind, $kind $(if $guard)?), "{kind:?}");
    };
}

#[test]
fn every_refusal_says_why_and_changes_nothing() {
    let scene = Scene::with(&[("file", "text"), ("folder/inside", ""), ("other", "")]);
    mknodat(CWD, scene.path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    symlink("folder", scene.path("to folder")).unwrap();
    let actual = Hash::of(b"text");
    refused!(scene, write("file", "", hash("wrong")), ErrorKind::Changed { actual: Some(found) } if found == actual);
    refused!(scene, write("file", "", Expect::Absent), ErrorKind::Exists);
    refused!(scene, write("missing", "", hash("")), ErrorKind::NotFound);
    refused!(scene, write("folder", "", Expect::Anything), ErrorKind::IsFolder);
    refused!(scene, write("to folder", "", Expect::Anything), ErrorKind::IsFolder);
    refused!(scene, write("fifo", "", Expect::Anything), ErrorKind::Special);
    refused!(scene, write("", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(scene, write(".", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(scene, write("folder/..", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(scene, write("n".repeat(256), "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(scene, write("nul\0", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(scene, write(".toolrest~0123456789abcdef0123456789abcdef", "", Expect::Anything), ErrorKind::Invalid(_));
    refused!(scene, write("file/below", "", Expect::Absent), ErrorKind::NotAFolder);
    refused!(scene, write_deep("file/below/it", "", Expect::Absent), ErrorKind::NotAFolder);
    refused!(scene, write("missing/below", "", Expect::Absent), ErrorKind::NotFound);
    refused!(scene, remove("missing", Expect::Anything), ErrorKind::NotFound);
    refused!(scene, remove("folder", Expect::Anything), ErrorKind::IsFolder);
    refused!(scene, remove("file", hash("wrong")), ErrorKind::Changed { .. });
    refused!(scene, remove("fifo", hash("")), ErrorKind::Special);
    refused!(scene, remove_folder("file", Contents::Anything), ErrorKind::NotAFolder);
    refused!(scene, remove_folder("to folder", Contents::Anything), ErrorKind::NotAFolder);
    refused!(scene, remove_folder("", Contents::Anything), ErrorKind::Invalid(_));
    refused!(scene, remove_folder("folder", Contents::Nothing), ErrorKind::NotEmpty);
    refused!(scene, moving("missing", "new"), ErrorKind::NotFound);
    refused!(scene, moving("file", "other"), ErrorKind::Exists);
    refused!(scene, moving("file", "file"), ErrorKind::Exists);
    refused!(scene, moving("folder", "folder/inside/itself"), ErrorKind::Invalid(_));
    refused!(scene, moving("file", "missing/new"), ErrorKind::NotFound);
    refused!(scene, moving("file", "other/new"), ErrorKind::NotAFolder);
    let replacing = |from: &str, to: &str| Change::Move {
        from: from.into(),
        to: to.into(),
        replace: Replace::File,
        parents: Parents::Required,
    };
    refused!(scene, replacing("file", "folder"), ErrorKind::IsFolder);
    refused!(scene, replacing("folder", "file"), ErrorKind::NotAFolder);
    refused!(scene, make_folder("file"), ErrorKind::Exists);
    refused!(scene, make_folder("folder"), ErrorKind::Exists);
    refused!(scene, make_folder("missing/new"), ErrorKind::NotFound);
    refused!(scene, write("first", "", Expect::Anything), ErrorKind::Overlap);
    refused!(scene, moving("first", "second"), ErrorKind::Overlap);
    refused!(scene, write("first/below", "", Expect::Anything), ErrorKind::NotAFolder);
}

/// Runs something on a thread that has given up the rights of the superuser. Without them, nothing need be given up.
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

/// Gives everything in a scene to the user that [`unprivileged`] becomes.
fn give_away(scene: &Scene) {
    if rustix::process::geteuid().is_root() {
        let give = |path: &Path| chown(path, Some(65534), Some(65534)).unwrap();
        give(scene.place.path());
        give(&scene.path(""));
        give(&scene.journal());
        scene.tree().keys().for_each(|path| give(&scene.path(path)));
    }
}

fn set_mode(path: PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn files_and_folders_that_may_not_be_written_to_are_denied() {
    let scene = Scene::with(&[("readonly", "text"), ("locked/file", ""), ("unreadable", ""), ("tree/locked/file", "")]);
    fs::hard_link(scene.path("readonly"), scene.path("readonly too")).unwrap();
    scene.put("single", "text");
    give_away(&scene);
    set_mode(scene.path("readonly"), 0o444);
    set_mode(scene.path("single"), 0o444);
    set_mode(scene.path("unreadable"), 0o200);
    set_mode(scene.path("locked"), 0o555);
    set_mode(scene.path("tree/locked"), 0o555);
    let before = |path: &str| fs::read(scene.path(path)).unwrap();
    let tree_before = scene.tree();
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
        let error = unprivileged(|| scene.commit(&all)).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Denied), "{error:?} of {all:?}");
        assert_eq!(scene.tree(), tree_before, "{all:?}");
    }
    // With the rights to it, the same user can.
    unprivileged(|| scene.commit(&[write("tree/new", "", Expect::Absent)])).unwrap();
}

#[test]
fn where_files_of_others_keep_their_names_they_are_rewritten() {
    let scene = Scene::with(&[("shared/file", "old")]);
    assert!(rustix::process::geteuid().is_root(), "only the superuser can give files away; run this test as root");
    give_away(&scene);
    for (path, mode) in [("shared", 0o1777), ("shared/file", 0o666)] {
        chown(scene.path(path), Some(0), Some(0)).unwrap();
        set_mode(scene.path(path), mode);
    }
    let applied = unprivileged(|| scene.commit(&[write("shared/file", "new", hash("old"))])).unwrap();
    assert_eq!(applied.changes[0].effect, Effect::RewrittenInPlace);
    assert_eq!(scene.text("shared/file"), "new");
    for change in [remove("shared/file", Expect::Anything), moving("shared/file", "mine")] {
        let error = unprivileged(|| scene.commit(&[change])).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Denied), "{error:?}");
    }
    // Nothing is left over that stands in the way of the next.
    assert_eq!(fs::read_dir(scene.path("shared")).unwrap().count(), 1);
    unprivileged(|| scene.commit(&[write("new", "", Expect::Absent)])).unwrap();
}

#[test]
fn what_may_not_be_kept_of_an_owner_is_no_obstacle() {
    let scene = Scene::with(&[("file", "old")]);
    assert!(rustix::process::geteuid().is_root(), "only the superuser can give files away; run this test as root");
    give_away(&scene);
    for (owner, mode, kept) in [(4321, 0o666, 0o666), (65534, 0o2775, 0o775)] {
        scene.put("file", "old");
        chown(scene.path("file"), Some(owner), Some(4321)).unwrap();
        set_mode(scene.path("file"), mode);
        unprivileged(|| scene.commit(&[write("file", "new", hash("old"))])).unwrap();
        assert_eq!(scene.text("file"), "new");
        let mode = fs::metadata(scene.path("file")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, kept, "the right to run as a group is not handed on to another");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a small disk needs a process with mounts of its own")]
fn a_full_disk_leaves_everything_as_it_was() {
    let place = TempDir::new().unwrap();
    let script = r#"mount -t tmpfs -o size=256k none "$1" && shift && exec "$@""#;
    let status = Command::new("unshare")
        // Whoever is not the superuser becomes one in a namespace of its own.
        .args([if rustix::process::geteuid().is_root() { "-m" } else { "-rm" }, "sh", "-c", script, "sh"])
        .arg(place.path())
        .arg(env::current_exe().unwrap())
        .args(["--exact", "refusals::on_a_small_disk", "--nocapture"])
        .env(SMALL_DISK, place.path())
        .output();
    match status {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("the disk was full") => {}
        other => panic!("a small disk needs `unshare` (util-linux) and the right to mount; run as root: {other:?}"),
    }
}

/// The part of the test above that runs with a small disk. Does nothing in a usual run.
#[test]
fn on_a_small_disk() {
    let Some(place) = env::var_os(SMALL_DISK).map(PathBuf::from) else { return };
    let (path, journal) = (place.join("root"), place.join("journal"));
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
