//! Resolving paths, metadata and reading.

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

use crate::fixture::Fixture;

#[test]
fn a_file_is_read_with_its_hash_and_metadata() {
    let fixture = Fixture::with(&[("folder/file", "some text")]);
    let content = fixture.root.read(Path::new("folder/file"), 9).unwrap();
    assert_eq!(content.bytes, b"some text");
    assert_eq!(content.hash.to_string(), "b94f6f125c79e3a5ffaa826f584c10d52ada669e6762051b826b55776d05aed2");
    assert_eq!(content.hash, Hash::of(b"some text"));
    assert_eq!((content.metadata.kind, content.metadata.size_bytes, content.metadata.links), (Kind::File, 9, 1));
}

#[test]
fn a_file_over_the_limit_is_refused_with_its_size() {
    let fixture = Fixture::with(&[("file", "0123456789")]);
    let error = fixture.root.read(Path::new("file"), 9).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::TooLarge { size_bytes: 10, limit_bytes: 9 }));
    assert_eq!(error.path, Path::new("file"));
}

#[test]
fn a_large_file_is_read_from_any_offset() {
    let fixture = Fixture::new();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
    fs::write(fixture.path("large"), &bytes).unwrap();
    let mut reader = fixture.root.open_reader(Path::new("large")).unwrap();
    reader.seek(SeekFrom::Start(2_999_990)).unwrap();
    let mut end = Vec::new();
    reader.read_to_end(&mut end).unwrap();
    assert_eq!(end, bytes[2_999_990..]);
    assert_eq!(reader.hash().unwrap(), Hash::of(&bytes));
    assert_eq!(reader.metadata().size_bytes, 3_000_000);
}

#[test]
fn missing_files_and_folders_have_different_errors() {
    let fixture = Fixture::with(&[("folder/file", "")]);
    let kind = |path: &str| fixture.root.read(Path::new(path), 100).unwrap_err().kind;
    assert!(matches!(kind("missing"), ErrorKind::NotFound));
    assert!(matches!(kind("folder"), ErrorKind::IsFolder));
    assert!(matches!(kind(""), ErrorKind::IsFolder));
    assert!(matches!(kind("folder/file/below"), ErrorKind::NotAFolder));
}

#[test]
fn fifos_sockets_and_devices_are_refused_without_blocking() {
    let fixture = Fixture::new();
    mknodat(CWD, fixture.path("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    let _socket = UnixListener::bind(fixture.path("socket")).unwrap();
    let mut special = vec!["fifo", "socket"];
    let zero = rustix::fs::makedev(1, 5);
    if mknodat(CWD, fixture.path("device"), FileType::CharacterDevice, Mode::from_raw_mode(0o666), zero).is_ok() {
        special.push("device");
    }
    for path in special {
        // On file systems that forbid devices the error is "denied", which is fine too.
        let error = fixture.root.read(Path::new(path), 100).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Special | ErrorKind::Denied), "{error}");
        assert_eq!(fixture.root.stat(Path::new(path), Links::Follow).unwrap().kind, Kind::Other);
    }
}

#[test]
fn metadata_of_a_link_or_of_its_target_is_returned() {
    let fixture = Fixture::with(&[("folder/file", "text")]);
    symlink("folder/file", fixture.path("link")).unwrap();
    let stat = |links| fixture.root.stat(Path::new("link"), links).unwrap();
    assert_eq!(stat(Links::Keep).kind, Kind::Symlink);
    assert_eq!(stat(Links::Follow).size_bytes, 4);
    assert_eq!(
        stat(Links::Follow).identity,
        fixture.root.stat(Path::new("folder/file"), Links::Keep).unwrap().identity
    );
    assert_eq!(fixture.root.stat(Path::new(""), Links::Keep).unwrap().identity, fixture.root.identity());
}

#[test]
fn the_real_path_has_no_links_and_no_dots() {
    let fixture = Fixture::with(&[("a/b/file", "")]);
    symlink("a/b", fixture.path("short")).unwrap();
    let resolve = |path: &str| fixture.root.resolve(Path::new(path)).unwrap();
    assert_eq!(resolve("short/file"), Path::new("a/b/file"));
    assert_eq!(resolve("./a/../short/../b/file"), Path::new("a/b/file"));
    assert_eq!(resolve("a/.."), Path::new(""));
}

#[test]
fn an_absolute_path_inside_becomes_relative() {
    let fixture = Fixture::new();
    symlink(fixture.path(""), fixture.home.path().join("alias")).unwrap();
    let root = Root::open(&fixture.home.path().join("alias")).unwrap();
    let relative = |path: &Path| root.relative(path).ok();
    assert_eq!(relative(&fixture.path("a/b")).as_deref(), Some(Path::new("a/b")));
    assert_eq!(relative(&fixture.home.path().join("alias/a")).as_deref(), Some(Path::new("a")));
    assert_eq!(relative(Path::new("a")).as_deref(), Some(Path::new("a")));
    assert_eq!(relative(&fixture.outside()), None);
    // A path that only shares a prefix with the root's name is another folder.
    let longer = format!("{}-too/a", fixture.path("").display().to_string().trim_end_matches('/'));
    assert_eq!(relative(Path::new(&longer)), None);
}

#[test]
fn names_are_bytes() {
    let fixture = Fixture::new();
    let long = vec![b'n'; 255];
    for name in [&b"new\nline"[..], b"not \xff utf-8 \xc3\x28", b" ", b"-rf", b"\\", b"...", &long] {
        let name = OsStr::from_bytes(name);
        fs::write(fixture.path(name), "text").unwrap();
        assert_eq!(fixture.root.read(Path::new(name), 10).unwrap().bytes, b"text");
        assert_eq!(fixture.root.resolve(Path::new(name)).unwrap(), Path::new(name));
        let listing = fixture.root.list(Path::new(""), toolrest_directory::ListOptions::default()).unwrap();
        assert_eq!(listing.entries[0].path, Path::new(name));
        fs::remove_file(fixture.path(name)).unwrap();
    }
    let too_long = "n".repeat(256);
    let error = fixture.root.read(Path::new(&too_long), 10).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Invalid(_)), "{error}");
    let error = fixture.root.read(Path::new("a\0b"), 10).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Invalid(_)), "{error}");
}

#[test]
fn cached_reads_return_the_same_content() {
    // On a real disk: file systems in memory do not support it.
    let fixture = Fixture::on(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    fixture.put("dir/file", "text");
    symlink("dir/file", fixture.path("link")).unwrap();
    symlink("/etc/hostname", fixture.path("out")).unwrap();
    fixture.put("empty", "");
    for path in ["dir/file", "link", "empty"] {
        let whole = fixture.root.read(Path::new(path), 1000).unwrap();
        let cached = fixture.root.read_cached(Path::new(path), 1000).unwrap_or_else(|| panic!("{path}"));
        assert_eq!((cached.bytes, cached.hash, cached.metadata), (whole.bytes, whole.hash, whole.metadata), "{path}");
    }
    // For all other paths the caller uses `read`, which returns the error.
    for path in ["missing", "dir", "out", "../x", "/etc/hostname"] {
        assert!(fixture.root.read_cached(Path::new(path), 1000).is_none(), "{path}");
    }
    assert!(fixture.root.read_cached(Path::new("dir/file"), 3).is_none(), "it is longer than that");
}
