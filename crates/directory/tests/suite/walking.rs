//! Walking folders.

use std::{
    ffi::OsStr,
    fs,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, fs::symlink},
    path::Path,
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, FileType, Mode, Uid, mknodat},
    thread::set_thread_res_uid,
};
use toolrest_directory::{ErrorKind, Files, IgnoreMode, Paths, Result, SkipCounts, Visitor, WalkOptions};

use crate::fixture::Fixture;

/// Visits everything except `.git`, and optionally reads the files.
#[derive(Default)]
struct All {
    reads: bool,
    /// Visits nothing from this path on.
    end: Option<&'static str>,
    texts: Mutex<Vec<String>>,
    unopened: AtomicUsize,
}

#[derive(Default)]
struct Kept {
    files: Vec<Paths>,
    skipped: SkipCounts,
}

impl Visitor for All {
    type Thread = Kept;

    fn enters(&self, folder: &str) -> bool {
        !folder.ends_with("/.git")
    }

    fn accepts(&self, _: &str) -> bool {
        true
    }

    fn is_over(&self, path: &str) -> bool {
        self.end.is_some_and(|end| path >= end)
    }

    fn visit(&self, files: &mut Files<'_>, kept: &mut Kept) {
        kept.files.push(files.paths());
        for place in (0..files.len()).filter(|_| self.reads) {
            let mut text = String::new();
            match files.open(place) {
                Ok(Some(mut file)) => {
                    file.read_to_string(&mut text).unwrap();
                    self.texts.lock().unwrap().push(text);
                }
                Ok(None) => {
                    self.unopened.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn skipped(&self, _: &str, skipped: SkipCounts, kept: &mut Kept) {
        kept.skipped += skipped;
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Walked {
    paths: Vec<String>,
    skipped: SkipCounts,
}

const OPTIONS: WalkOptions<'static> = WalkOptions {
    shown_as: "",
    depth: usize::MAX,
    rules: IgnoreMode::Respect,
    max_files_per_visit: 3,
    max_path_bytes: 2048,
    threads: 4,
};

/// Walks, and checks the order.
fn walk_with(fixture: &Fixture, folder: &str, options: WalkOptions<'_>, visitor: &All) -> Result<Walked> {
    let mut files = Vec::new();
    let mut skipped = SkipCounts::default();
    for kept in fixture.root.walk(Path::new(folder), options, visitor)? {
        files.extend(kept.files);
        skipped += kept.skipped;
    }
    files.sort_by_key(Paths::first);
    let path = |files: &Paths| files.names().map(|name| [files.folder(), name].concat()).collect::<Vec<_>>();
    let paths: Vec<String> = files.iter().flat_map(path).collect();
    assert!(paths.is_sorted(), "{paths:?}");
    Ok(Walked { paths, skipped })
}

fn walk(fixture: &Fixture) -> Walked {
    walk_with(fixture, "", OPTIONS, &All::default()).unwrap()
}

#[test]
fn files_are_found_in_the_order_of_their_paths() {
    let fixture =
        Fixture::with(&[("a/b", ""), ("a.txt", ""), ("a b/c", ""), ("Z", ""), ("a/ü", ""), ("a/z/y", ""), ("a0", "")]);
    let all = ["/Z", "/a b/c", "/a.txt", "/a/b", "/a/z/y", "/a/ü", "/a0"];
    assert_eq!(walk(&fixture).paths, all);
    for max_files_per_visit in [1, 2, usize::MAX] {
        for threads in [1, 2, 8] {
            let options = WalkOptions { max_files_per_visit, threads, ..OPTIONS };
            assert_eq!(walk_with(&fixture, "", options, &All::default()).unwrap().paths, all);
        }
    }
    let options = WalkOptions { depth: 1, ..OPTIONS };
    assert_eq!(walk_with(&fixture, "", options, &All::default()).unwrap().paths, ["/Z", "/a.txt", "/a0"]);
    let options = WalkOptions { shown_as: "/a", ..OPTIONS };
    assert_eq!(walk_with(&fixture, "a", options, &All::default()).unwrap().paths, ["/a/b", "/a/z/y", "/a/ü"]);
    let visitor = All { end: Some("/a/b"), ..All::default() };
    let options = WalkOptions { max_files_per_visit: 1, ..OPTIONS };
    assert_eq!(walk_with(&fixture, "", options, &visitor).unwrap().paths, ["/Z", "/a b/c", "/a.txt"]);
}

#[test]
fn an_unwalkable_folder_is_an_error() {
    let fixture = Fixture::with(&[("file", "")]);
    symlink(fixture.outside(), fixture.path("out")).unwrap();
    let refused = |folder: &str| walk_with(&fixture, folder, OPTIONS, &All::default()).unwrap_err().kind;
    assert!(matches!(refused("missing"), ErrorKind::NotFound));
    assert!(matches!(refused("file"), ErrorKind::NotAFolder));
    assert!(matches!(refused("out"), ErrorKind::Outside));
    assert!(matches!(refused("../outside"), ErrorKind::Outside));
}

#[test]
fn links_pipes_and_temporary_files_are_not_visited() {
    let fixture = Fixture::with(&[("folder/file", "text"), (".toolrest~0123456789abcdef0123456789abcdef", "")]);
    symlink(".", fixture.path("folder/loop")).unwrap();
    symlink("..", fixture.path("folder/up")).unwrap();
    symlink(fixture.outside(), fixture.path("out")).unwrap();
    symlink("folder", fixture.path("in")).unwrap();
    symlink("file", fixture.path("folder/link")).unwrap();
    fs::write(fixture.outside().join("secret"), "secret").unwrap();
    mknodat(CWD, fixture.path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let visitor = All { reads: true, ..All::default() };
    assert_eq!(walk_with(&fixture, "", OPTIONS, &visitor).unwrap().paths, ["/folder/file"]);
    assert_eq!(visitor.texts.into_inner().unwrap(), ["text"]);
    // A link in the caller's path is followed if it stays inside, and keeps its name.
    let options = WalkOptions { shown_as: "/in", ..OPTIONS };
    assert_eq!(walk_with(&fixture, "in", options, &All::default()).unwrap().paths, ["/in/file"]);
}

#[test]
fn invalid_names_are_counted() {
    let fixture = Fixture::with(&[("good", ""), ("new\nline", ""), ("bell\u{7}/below", ""), ("\u{85}", "")]);
    fs::write(fixture.path(OsStr::from_bytes(b"\xff\xfe")), "").unwrap();
    let walked = walk(&fixture);
    assert_eq!((walked.paths, walked.skipped.unnamed), (vec!["/good".to_owned()], 4));
    let options = WalkOptions { max_path_bytes: 4, ..OPTIONS };
    let walked = walk_with(&fixture, "", options, &All::default()).unwrap();
    assert_eq!((walked.paths.len(), walked.skipped.unnamed), (0, 5));
}

#[test]
fn an_unreadable_folder_is_counted() {
    let fixture = Fixture::with(&[("closed/file", ""), ("open/file", "")]);
    fs::set_permissions(fixture.home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(fixture.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let walked = thread::scope(|scope| {
        let walked = scope.spawn(|| {
            // Only this thread and its children drop their privileges, if they have any.
            let nobody = Uid::from_raw(65534);
            let _ = set_thread_res_uid(nobody, nobody, nobody);
            walk(&fixture)
        });
        walked.join().unwrap()
    });
    fs::set_permissions(fixture.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!((walked.paths, walked.skipped.unreadable), (vec!["/open/file".to_owned()], 1));
}

#[test]
fn a_deep_tree_is_walked_completely_with_few_open_files() {
    let fixture = Fixture::new();
    let mut folder = fixture.path("d");
    for level in 0..1000 {
        fs::create_dir(&folder).unwrap();
        if level % 100 == 0 {
            fs::write(folder.join("a"), "a").unwrap();
            fs::write(folder.join("z"), "z").unwrap();
        }
        folder.push("d");
    }
    let visitor = All { reads: true, ..All::default() };
    let options = WalkOptions { max_files_per_visit: 1, ..OPTIONS };
    let walked = walk_with(&fixture, "", options, &visitor).unwrap();
    assert_eq!((walked.paths.len(), visitor.texts.into_inner().unwrap().len()), (20, 20));
    assert_eq!(walked.skipped, SkipCounts::default());
}

#[test]
fn a_hundred_thousand_files_are_walked_quickly() {
    let fixture = Fixture::with_a_hundred_thousand_files();
    let start = Instant::now();
    let walked = walk(&fixture);
    let time = start.elapsed();
    println!("{} files in {time:?}", walked.paths.len());
    assert_eq!(walked.paths.len(), 100_000);
    // Far more than needed, even without optimisation on a busy machine.
    assert!(time.as_secs() < 5, "{time:?}");
}

#[test]
fn a_folder_swapped_for_a_link_during_walks_never_leads_out() {
    let fixture = Fixture::with(&[("folder/below/file", "inside"), ("folder/file", "inside"), ("other", "inside")]);
    fs::create_dir(fixture.outside().join("below")).unwrap();
    fs::write(fixture.outside().join("below/file"), "secret").unwrap();
    fs::write(fixture.outside().join("file"), "secret").unwrap();
    symlink("../outside", fixture.path("swap")).unwrap();
    let done = AtomicBool::new(false);
    let (mut whole, mut parts) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| fixture.swap_until(&done));
        let end = Instant::now() + Duration::from_secs(60);
        let mut rounds = 0;
        while Instant::now() < end && (rounds < 3000 || whole == 0 || parts == 0) {
            rounds += 1;
            let visitor = All { reads: true, ..All::default() };
            walk_with(&fixture, "", WalkOptions { threads: 2, ..OPTIONS }, &visitor).unwrap();
            let texts = visitor.texts.into_inner().unwrap();
            assert!(texts.iter().all(|text| text == "inside"), "{texts:?}");
            if texts.len() == 3 { whole += 1 } else { parts += 1 }
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("{whole} walks saw all of it, {parts} a part");
    assert!(whole > 0 && parts > 0);
}

#[test]
fn metadata_of_found_files_can_be_read() {
    let fixture = Fixture::with(&[("a/b", "1"), ("a/c", "22"), ("a/gone", ""), ("d", "333")]);
    let mut files: Vec<Paths> = Vec::new();
    for kept in fixture.root.walk(Path::new(""), OPTIONS, &All::default()).unwrap() {
        files.extend(kept.files);
    }
    files.sort_by_key(Paths::first);
    fs::remove_file(fixture.path("a/gone")).unwrap();
    let described = fixture.root.describe(Path::new(""), "", &files, 4).unwrap();
    let sizes: Vec<_> = described.iter().map(|one| one.map(|metadata| metadata.size_bytes)).collect();
    assert_eq!(sizes, [Some(1), Some(2), None, Some(3)]);
}
