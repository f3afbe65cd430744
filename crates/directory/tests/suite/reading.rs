//! Resolving, describing and reading.

use std::{
    ffi::OsStr,
    fs,
    io::{Read, Seek, SeekFrom},
    os::unix::{ffi::OsStrExt, fs::symlink, net::UnixListener},
    path::Path,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use toolrest_directory::{ErrorKind, Hash, Kind, Links, Root};

use crate::scene::Scene;

#[test]
fn a_file_is_read_with_its_hash_and_metadata() {
    let scene = Scene::with(&[("folder/file", "some text")]);
    let content = scene.root.read(Path::new("folder/file"), 9).unwrap();
    assert_eq!(content.bytes, b"some text");
    assert_eq!(content.hash.to_string(), "b94f6f125c79e3a5ffaa826f584c10d52ada669e6762051b826b55776d05aed2");
    assert_eq!(content.hash, Hash::of(b"some text"));
    assert_eq!((content.metadata.kind, content.metadata.size_bytes, content.metadata.links), (Kind::File, 9, 1));
}

#[test]
fn a_file_over_the_limit_is_refused_with_its_size() {
    let scene = Scene::with(&[("file", "0123456789")]);
    let error = scene.root.read(Path::new("file"), 9).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::TooLarge { size_bytes: 10, limit_bytes: 9 }));
    assert_eq!(error.path, Path::new("file"));
}

#[test]
fn a_large_file_is_read_from_any_place() {
    let scene = Scene::new();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    fs::write(scene.path("large"), &bytes).unwrap();
    let mut reader = scene.root.open_reader(Path::new("large")).unwrap();
    reader.seek(SeekFrom::Start(2_999_990)).unwrap();
    let mut end = Vec::new();
    reader.read_to_end(&mut end).unwrap();
    assert_eq!(end, bytes[2_999_990..]);
    assert_eq!(reader.hash().unwrap(), Hash::of(&bytes));
    assert_eq!(reader.metadata().size_bytes, 3_000_000);
}

#[test]
fn what_is_missing_or_a_folder_is_told_apart() {
    let scene = Scene::with(&[("folder/file", "")]);
    let kind = |path: &str| scene.root.read(Path::new(path), 100).unwrap_err().kind;
    assert!(matches!(kind("missing"), ErrorKind::NotFound));
    assert!(matches!(kind("folder"), ErrorKind::IsFolder));
    assert!(matches!(kind(""), ErrorKind::IsFolder));
    assert!(matches!(kind("folder/file/below"), ErrorKind::NotAFolder));
}

#[test]
fn fifos_sockets_and_devices_are_refused_without_waiting() {
    let scene = Scene::new();
    mknodat(CWD, scene.path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    let _socket = UnixListener::bind(scene.path("socket")).unwrap();
    let mut special = vec!["fifo", "socket"];
    let zero = rustix::fs::makedev(1, 5);
    if mknodat(CWD, scene.path("device"), FileType::CharacterDevice, Mode::from_raw_mode(0o666), zero).is_ok() {
        special.push("device");
    }
    for path in special {
        // A place that forbids devices answers "denied", which is as good.
        let error = scene.root.read(Path::new(path), 100).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Special | ErrorKind::Denied), "{error}");
        assert_eq!(scene.root.stat(Path::new(path), Links::Follow).unwrap().kind, Kind::Other);
    }
}

#[test]
fn a_link_is_described_itself_or_followed() {
    let scene = Scene::with(&[("folder/file", "text")]);
    symlink("folder/file", scene.path("link")).unwrap();
    let stat = |links| scene.root.stat(Path::new("link"), links).unwrap();
    assert_eq!(stat(Links::Keep).kind, Kind::Symlink);
    assert_eq!(stat(Links::Follow).size_bytes, 4);
    assert_eq!(stat(Links::Follow).identity, scene.root.stat(Path::new("folder/file"), Links::Keep).unwrap().identity);
    assert_eq!(scene.root.stat(Path::new(""), Links::Keep).unwrap().identity, scene.root.identity());
}

#[test]
fn the_real_path_has_no_links_and_no_dots() {
    let scene = Scene::with(&[("a/b/file", "")]);
    symlink("a/b", scene.path("short")).unwrap();
    let resolve = |path: &str| scene.root.resolve(Path::new(path)).unwrap();
    assert_eq!(resolve("short/file"), Path::new("a/b/file"));
    assert_eq!(resolve("./a/../short/../b/file"), Path::new("a/b/file"));
    assert_eq!(resolve("a/.."), Path::new(""));
}

#[test]
fn an_absolute_path_inside_becomes_relative() {
    let scene = Scene::new();
    symlink(scene.path(""), scene.place.path().join("alias")).unwrap();
    let root = Root::open(&scene.place.path().join("alias")).unwrap();
    let relative = |path: &Path| root.relative(path).ok();
    assert_eq!(relative(&scene.path("a/b")).as_deref(), Some(Path::new("a/b")));
    assert_eq!(relative(&scene.place.path().join("alias/a")).as_deref(), Some(Path::new("a")));
    assert_eq!(relative(Path::new("a")).as_deref(), Some(Path::new("a")));
    assert_eq!(relative(&scene.outside()), None);
    // A name that only begins like the root's is another folder.
    let longer = format!("{}-too/a", scene.path("").display().to_string().trim_end_matches('/'));
    assert_eq!(relative(Path::new(&longer)), None);
}

#[test]
fn names_are_bytes() {
    let scene = Scene::new();
    let long = vec![b'n'; 255];
    for name in [&b"new\nline"[..], b"not \xff utf-8 \xc3\x28", b" ", b"-rf", b"\\", b"...", &long] {
        let name = OsStr::from_bytes(name);
        fs::write(scene.path(name), "text").unwrap();
        assert_eq!(scene.root.read(Path::new(name), 10).unwrap().bytes, b"text");
        assert_eq!(scene.root.resolve(Path::new(name)).unwrap(), Path::new(name));
        let listing = scene.root.list(Path::new(""), toolrest_directory::ListOptions::default()).unwrap();
        assert_eq!(listing.entries[0].path, Path::new(name));
        fs::remove_file(scene.path(name)).unwrap();
    }
    let too_long = "n".repeat(256);
    let error = scene.root.read(Path::new(&too_long), 10).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Invalid(_)), "{error}");
    let error = scene.root.read(Path::new("a\0b"), 10).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Invalid(_)), "{error}");
}

#[test]
fn what_is_in_memory_is_read_at_once_and_the_same() {
    // On a real disk: file systems in memory do not tell.
    let scene = Scene::on(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    scene.put("dir/file", "text");
    symlink("dir/file", scene.path("link")).unwrap();
    symlink("/etc/hostname", scene.path("out")).unwrap();
    scene.put("empty", "");
    for path in ["dir/file", "link", "empty"] {
        let whole = scene.root.read(Path::new(path), 1000).unwrap();
        let cached = scene.root.read_cached(Path::new(path), 1000).unwrap_or_else(|| panic!("{path}"));
        assert_eq!((cached.bytes, cached.hash, cached.metadata), (whole.bytes, whole.hash, whole.metadata), "{path}");
    }
    // All else is left to the slower way, which says what is the matter.
    for path in ["missing", "dir", "out", "../x", "/etc/hostname"] {
        assert!(scene.root.read_cached(Path::new(path), 1000).is_none(), "{path}");
    }
    assert!(scene.root.read_cached(Path::new("dir/file"), 3).is_none(), "it is longer than that");
}
