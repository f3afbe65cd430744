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

use crate::fixture::{Fixture, make_folder, moving, remove, tree, write, write_deep};

/// Returns a root with every kind of link that leads out.
fn fixture() -> Fixture {
    let fixture = Fixture::with(&[("folder/file", "inside")]);
    fs::write(fixture.outside().join("secret"), "secret").unwrap();
    symlink(fixture.outside().join("secret"), fixture.path("absolute")).unwrap();
    symlink("../outside/secret", fixture.path("relative")).unwrap();
    symlink("folder/../../outside/secret", fixture.path("winding")).unwrap();
    symlink("../outside", fixture.path("intermediate")).unwrap();
    symlink("relative", fixture.path("chained")).unwrap();
    symlink("../../outside", fixture.path("folder/deeper")).unwrap();
    symlink("/proc/self/root", fixture.path("magic")).unwrap();
    symlink(fixture.path("folder/file"), fixture.path("absolute but inside")).unwrap();
    symlink("..", fixture.path("up")).unwrap();
    fixture
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
fn paths_outside_cannot_be_read() {
    let fixture = fixture();
    for path in WAYS_OUT.map(Path::new) {
        let read = fixture.root.read(path, 1000).unwrap_err();
        assert!(matches!(read.kind, ErrorKind::Outside), "{read}");
        assert_eq!(read.path, path);
        assert!(matches!(fixture.root.open_reader(path).unwrap_err().kind, ErrorKind::Outside));
        assert!(matches!(fixture.root.stat(path, Links::Follow).unwrap_err().kind, ErrorKind::Outside));
        assert!(matches!(fixture.root.resolve(path).unwrap_err().kind, ErrorKind::Outside));
        assert!(matches!(fixture.root.list(path, ListOptions::default()).unwrap_err().kind, ErrorKind::Outside));
    }
}

#[test]
fn paths_outside_cannot_be_written() {
    let fixture = fixture();
    for path in WAYS_OUT {
        for expect in [Expect::Anything, Expect::Absent] {
            let kind = fixture.refused(&[write(path, "evil", expect)]);
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
            let kind = fixture.refused(&[change]);
            assert!(matches!(kind, ErrorKind::Outside), "{path}: {kind}");
        }
    }
}

#[test]
fn a_dangling_link_to_the_outside_creates_nothing() {
    let fixture = fixture();
    symlink("../outside/new", fixture.path("dangling")).unwrap();
    symlink(fixture.outside().join("new"), fixture.path("dangling absolute")).unwrap();
    for path in ["dangling", "dangling absolute"] {
        let kind = fixture.refused(&[write_deep(path, "evil", Expect::Anything)]);
        assert!(matches!(kind, ErrorKind::Outside), "{path}: {kind}");
    }
}

#[test]
fn cyclic_links_are_refused() {
    let fixture = Fixture::new();
    symlink("one", fixture.path("two")).unwrap();
    symlink("two", fixture.path("one")).unwrap();
    symlink("self/self", fixture.path("self")).unwrap();
    for path in ["one", "one/below", "self"] {
        let error = fixture.root.read(Path::new(path), 10).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Loop), "{error}");
        let kind = fixture.refused(&[write(path, "", Expect::Anything)]);
        assert!(matches!(kind, ErrorKind::Loop), "{path}: {kind}");
    }
}

#[test]
fn a_folder_swapped_for_a_link_during_calls_never_leads_out() {
    let fixture = Fixture::with(&[("folder/file", "inside"), ("other", "")]);
    fs::write(fixture.outside().join("file"), "secret").unwrap();
    symlink("../outside", fixture.path("swap")).unwrap();
    let before = tree(&fixture.outside());
    let done = AtomicBool::new(false);
    let (mut read, mut refused, mut written) = (0, 0, 0);
    thread::scope(|scope| {
        scope.spawn(|| fixture.swap_until(&done));
        let end = Instant::now() + Duration::from_secs(60);
        let mut rounds = 0;
        while Instant::now() < end && (rounds < 20_000 || read == 0 || refused == 0) {
            rounds += 1;
            match fixture.root.read(Path::new("folder/file"), 100) {
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
            match fixture.commit(&[write(&path, "new", Expect::Absent), write("folder/file", "mine", Expect::Anything)])
            {
                Ok(_) => written += 1,
                // A commit that met the link during its rollback is recovered.
                Err(error) if matches!(error.kind, ErrorKind::Unfinished) => {
                    let _ = fixture.root.recover(&fixture.journal());
                }
                Err(_) => {}
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("{read} read, {refused} refused, {written} commits written");
    assert!(read > 0 && refused > 0 && written > 0);
    assert_eq!(tree(&fixture.outside()), before);
}

#[test]
fn a_commit_that_refuses_links_detects_every_link_on_its_paths() {
    let fixture = Fixture::with(&[("folder/file", "inside"), (".git/hooks/sample", "s")]);
    symlink("folder", fixture.path("link")).unwrap();
    symlink("folder/file", fixture.path("to-file")).unwrap();
    symlink(".git/hooks/new", fixture.path("dangling")).unwrap();
    let options = CommitOptions { symbolic_links: SymbolicLinks::Refuse, ..CommitOptions::default() };
    let commit = |changes: &[Change]| fixture.root.commit(changes, &fixture.journal(), &options);
    let before = fixture.tree();
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
    assert_eq!(fixture.tree(), before);
    // A link itself can be removed and replaced by the same commit.
    let clear = |path: &str| Change::Clear { path: path.into() };
    commit(&[clear("to-file"), write("to-file", "own", Expect::Absent), remove("dangling", Expect::Anything)]).unwrap();
    commit(&[clear("link"), write_deep("link/new", "own", Expect::Absent), clear(".git")]).unwrap();
    assert_eq!((fixture.text("to-file"), fixture.text("link/new")), ("own".into(), "own".into()));
    assert_eq!(fixture.text("folder/file"), "inside");
    assert!(!fixture.path(".git").exists() && !fixture.path("folder/new").exists());
}
