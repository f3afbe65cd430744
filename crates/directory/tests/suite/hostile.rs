//! Paths that try to leave the root.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use toolrest_directory::{Change, CommitOptions, ErrorKind, Expect, Links, ListOptions, SymbolicLinks};

use crate::scene::{Scene, make_folder, moving, remove, tree, write, write_deep};

/// A root with every kind of way out.
fn scene() -> Scene {
    let scene = Scene::with(&[("folder/file", "inside")]);
    fs::write(scene.outside().join("secret"), "secret").unwrap();
    symlink(scene.outside().join("secret"), scene.path("absolute")).unwrap();
    symlink("../outside/secret", scene.path("relative")).unwrap();
    symlink("folder/../../outside/secret", scene.path("winding")).unwrap();
    symlink("../outside", scene.path("intermediate")).unwrap();
    symlink("relative", scene.path("chained")).unwrap();
    symlink("../../outside", scene.path("folder/deeper")).unwrap();
    symlink("/proc/self/root", scene.path("magic")).unwrap();
    symlink(scene.path("folder/file"), scene.path("absolute but inside")).unwrap();
    symlink("..", scene.path("up")).unwrap();
    scene
}

const WAYS_OUT: [&str; 16] = [
    "absolute",
    "relative",
    "winding",
    "chained",
    "intermediate/secret",
    "folder/deeper/secret",
    "folder/../intermediate/secret",
    "magic/etc/passwd",
    "absolute but inside",
    "up/outside/secret",
    "../outside/secret",
    "folder/../../outside/secret",
    "../root/folder/file",
    "/etc/passwd",
    "//etc/passwd",
    "folder/../../../../../../etc/passwd",
];

#[test]
fn no_way_out_can_be_read_or_described() {
    let scene = scene();
    for path in WAYS_OUT.map(Path::new) {
        let read = scene.root.read(path, 1000).unwrap_err();
        assert!(matches!(read.kind, ErrorKind::Outside), "{read}");
        assert_eq!(read.path, path);
        assert!(matches!(scene.root.open_reader(path).unwrap_err().kind, ErrorKind::Outside));
        assert!(matches!(scene.root.stat(path, Links::Follow).unwrap_err().kind, ErrorKind::Outside));
        assert!(matches!(scene.root.resolve(path).unwrap_err().kind, ErrorKind::Outside));
        assert!(matches!(scene.root.list(path, ListOptions::default()).unwrap_err().kind, ErrorKind::Outside));
    }
}

#[test]
fn no_way_out_can_be_written_to() {
    let scene = scene();
    for path in WAYS_OUT {
        for expect in [Expect::Anything, Expect::Absent] {
            let kind = scene.refused(&[write(path, "evil", expect)]);
            assert!(matches!(kind, ErrorKind::Outside), "{path}: {kind}");
        }
    }
    for path in ["intermediate/new", "folder/deeper/new/below", "up/new", "../new", "/new", "up/root/new"] {
        for change in [
            write_deep(path, "evil", Expect::Absent),
            make_folder(path),
            moving("folder/file", path),
            moving(path, "taken"),
            remove(path, Expect::Anything),
        ] {
            let kind = scene.refused(&[change]);
            assert!(matches!(kind, ErrorKind::Outside), "{path}: {kind}");
        }
    }
}

#[test]
fn a_link_that_dangles_outside_makes_nothing_there() {
    let scene = scene();
    symlink("../outside/new", scene.path("dangling")).unwrap();
    symlink(scene.outside().join("new"), scene.path("dangling absolute")).unwrap();
    for path in ["dangling", "dangling absolute"] {
        let kind = scene.refused(&[write_deep(path, "evil", Expect::Anything)]);
        assert!(matches!(kind, ErrorKind::Outside), "{path}: {kind}");
    }
}

#[test]
fn links_that_lead_in_circles_end() {
    let scene = Scene::new();
    symlink("one", scene.path("two")).unwrap();
    symlink("two", scene.path("one")).unwrap();
    symlink("self/self", scene.path("self")).unwrap();
    for path in ["one", "one/below", "self"] {
        let error = scene.root.read(Path::new(path), 10).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Loop), "{error}");
        let kind = scene.refused(&[write(path, "", Expect::Anything)]);
        assert!(matches!(kind, ErrorKind::Loop), "{path}: {kind}");
    }
}

#[test]
fn a_folder_swapped_for_a_link_during_calls_never_leads_out() {
    let scene = Scene::with(&[("folder/file", "inside"), ("other", "")]);
    fs::write(scene.outside().join("file"), "secret").unwrap();
    symlink("../outside", scene.path("swap")).unwrap();
    let before = tree(&scene.outside());
    let done = AtomicBool::new(false);
    let (mut read, mut refused, mut written) = (0, 0, 0);
    thread::scope(|scope| {
        scope.spawn(|| scene.swap_until(&done));
        let end = Instant::now() + Duration::from_secs(60);
        let mut rounds = 0;
        while Instant::now() < end && (rounds < 20_000 || read == 0 || refused == 0) {
            rounds += 1;
            match scene.root.read(Path::new("folder/file"), 100) {
                Ok(content) => {
                    assert_ne!(content.bytes, b"secret");
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        }
        let mut round = 0;
        while Instant::now() < end && (round < 1000 || written == 0) {
            round += 1;
            let path = format!("folder/new {round}");
            match scene.commit(&[write(&path, "new", Expect::Absent), write("folder/file", "mine", Expect::Anything)]) {
                Ok(_) => written += 1,
                // A commit that met the link while it was rolled back is taken up again.
                Err(error) if matches!(error.kind, ErrorKind::Unfinished) => {
                    let _ = scene.root.recover(&scene.journal());
                }
                Err(_) => {}
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("{read} read, {refused} refused, {written} commits written");
    assert!(read > 0 && refused > 0 && written > 0);
    assert_eq!(tree(&scene.outside()), before);
}

#[test]
fn a_commit_that_follows_no_links_finds_every_link_on_its_paths() {
    let scene = Scene::with(&[("folder/file", "inside"), (".git/hooks/sample", "s")]);
    symlink("folder", scene.path("link")).unwrap();
    symlink("folder/file", scene.path("to-file")).unwrap();
    symlink(".git/hooks/new", scene.path("dangling")).unwrap();
    let options = CommitOptions { symbolic_links: SymbolicLinks::Refuse, ..CommitOptions::default() };
    let commit = |changes: &[Change]| scene.root.commit(changes, &scene.journal(), &options);
    let before = scene.tree();
    for change in [
        write("to-file", "x", Expect::Anything),
        write("dangling", "x", Expect::Absent),
        write_deep("link/new", "x", Expect::Absent),
        write_deep("link/deep/new", "x", Expect::Absent),
        remove("link/file", Expect::Anything),
        moving("link/file", "elsewhere"),
        moving("folder/file", "link/elsewhere"),
        make_folder("link/made"),
        Change::Clear { path: "link/file".into() },
    ] {
        let error = commit(std::slice::from_ref(&change)).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Changed { .. }), "{change:?}: {error}");
    }
    let error = commit(&[write(".git/hooks/new", "x", Expect::Absent)]).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Repository), "{error}");
    assert_eq!(scene.tree(), before);
    // A link itself can be taken away, and something else be put in its place by the same commit.
    let clear = |path: &str| Change::Clear { path: path.into() };
    commit(&[clear("to-file"), write("to-file", "own", Expect::Absent), remove("dangling", Expect::Anything)]).unwrap();
    commit(&[clear("link"), write_deep("link/new", "own", Expect::Absent), clear(".git")]).unwrap();
    assert_eq!((scene.text("to-file"), scene.text("link/new")), ("own".into(), "own".into()));
    assert_eq!(scene.text("folder/file"), "inside");
    assert!(!scene.path(".git").exists() && !scene.path("folder/new").exists());
}
