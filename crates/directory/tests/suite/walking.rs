//! Walking through folders.

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
use toolrest_directory::{ErrorKind, Files, Heed, PassedOver, Paths, Result, Visitor, WalkOptions};

use crate::scene::Scene;

/// Visits everything but what git keeps for itself, and reads it where it is told to.
#[derive(Default)]
struct All {
    reads: bool,
    /// Visits nothing from here on.
    end: Option<&'static str>,
    texts: Mutex<Vec<String>>,
    unopened: AtomicUsize,
}

#[derive(Default)]
struct Kept {
    files: Vec<Paths>,
    passed_over: PassedOver,
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

    fn passed_over(&self, _: &str, passed_over: PassedOver, kept: &mut Kept) {
        kept.passed_over += passed_over;
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Walked {
    paths: Vec<String>,
    passed_over: PassedOver,
}

const OPTIONS: WalkOptions<'static> = WalkOptions {
    shown_as: "",
    depth: usize::MAX,
    rules: Heed::Rules,
    files_at_a_time: 3,
    longest_path_bytes: 2048,
    threads: 4,
};

/// Walks, and checks that the order is right by itself.
fn walk_with(scene: &Scene, folder: &str, options: WalkOptions<'_>, visitor: &All) -> Result<Walked> {
    let mut files = Vec::new();
    let mut passed_over = PassedOver::default();
    for kept in scene.root.walk(Path::new(folder), options, visitor)? {
        files.extend(kept.files);
        passed_over += kept.passed_over;
    }
    files.sort_by_key(Paths::first);
    let path = |files: &Paths| files.names().map(|name| [files.folder(), name].concat()).collect::<Vec<_>>();
    let paths: Vec<String> = files.iter().flat_map(path).collect();
    assert!(paths.is_sorted(), "{paths:?}");
    Ok(Walked { paths, passed_over })
}

fn walk(scene: &Scene) -> Walked {
    walk_with(scene, "", OPTIONS, &All::default()).unwrap()
}

#[test]
fn files_are_found_in_the_order_of_their_paths() {
    let scene =
        Scene::with(&[("a/b", ""), ("a.txt", ""), ("a b/c", ""), ("Z", ""), ("a/ü", ""), ("a/z/y", ""), ("a0", "")]);
    let all = ["/Z", "/a b/c", "/a.txt", "/a/b", "/a/z/y", "/a/ü", "/a0"];
    assert_eq!(walk(&scene).paths, all);
    for files_at_a_time in [1, 2, usize::MAX] {
        for threads in [1, 2, 8] {
            let options = WalkOptions { files_at_a_time, threads, ..OPTIONS };
            assert_eq!(walk_with(&scene, "", options, &All::default()).unwrap().paths, all);
        }
    }
    let options = WalkOptions { depth: 1, ..OPTIONS };
    assert_eq!(walk_with(&scene, "", options, &All::default()).unwrap().paths, ["/Z", "/a.txt", "/a0"]);
    let options = WalkOptions { shown_as: "/a", ..OPTIONS };
    assert_eq!(walk_with(&scene, "a", options, &All::default()).unwrap().paths, ["/a/b", "/a/z/y", "/a/ü"]);
    let visitor = All { end: Some("/a/b"), ..All::default() };
    let options = WalkOptions { files_at_a_time: 1, ..OPTIONS };
    assert_eq!(walk_with(&scene, "", options, &visitor).unwrap().paths, ["/Z", "/a b/c", "/a.txt"]);
}

#[test]
fn what_cannot_be_walked_through_is_an_error_and_never_nothing() {
    let scene = Scene::with(&[("file", "")]);
    symlink(scene.outside(), scene.path("out")).unwrap();
    let refused = |folder: &str| walk_with(&scene, folder, OPTIONS, &All::default()).unwrap_err().kind;
    assert!(matches!(refused("missing"), ErrorKind::NotFound));
    assert!(matches!(refused("file"), ErrorKind::NotAFolder));
    assert!(matches!(refused("out"), ErrorKind::Outside));
    assert!(matches!(refused("../outside"), ErrorKind::Outside));
}

#[test]
fn links_pipes_and_temporary_files_are_not_visited() {
    let scene = Scene::with(&[("folder/file", "text"), (".toolrest~0123456789abcdef0123456789abcdef", "")]);
    symlink(".", scene.path("folder/loop")).unwrap();
    symlink("..", scene.path("folder/up")).unwrap();
    symlink(scene.outside(), scene.path("out")).unwrap();
    symlink("folder", scene.path("in")).unwrap();
    symlink("file", scene.path("folder/link")).unwrap();
    fs::write(scene.outside().join("secret"), "secret").unwrap();
    mknodat(CWD, scene.path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let visitor = All { reads: true, ..All::default() };
    assert_eq!(walk_with(&scene, "", OPTIONS, &visitor).unwrap().paths, ["/folder/file"]);
    assert_eq!(visitor.texts.into_inner().unwrap(), ["text"]);
    // Named by the caller, a link that stays inside is followed, and keeps its name.
    let options = WalkOptions { shown_as: "/in", ..OPTIONS };
    assert_eq!(walk_with(&scene, "in", options, &All::default()).unwrap().paths, ["/in/file"]);
}

#[test]
fn names_that_no_path_can_have_are_counted() {
    let scene = Scene::with(&[("good", ""), ("new\nline", ""), ("bell\u{7}/below", ""), ("\u{85}", "")]);
    fs::write(scene.path(OsStr::from_bytes(b"\xff\xfe")), "").unwrap();
    let walked = walk(&scene);
    assert_eq!((walked.paths, walked.passed_over.unnamed), (vec!["/good".to_owned()], 4));
    let options = WalkOptions { longest_path_bytes: 4, ..OPTIONS };
    let walked = walk_with(&scene, "", options, &All::default()).unwrap();
    assert_eq!((walked.paths.len(), walked.passed_over.unnamed), (0, 5));
}

#[test]
fn a_folder_that_cannot_be_read_is_counted() {
    let scene = Scene::with(&[("closed/file", ""), ("open/file", "")]);
    fs::set_permissions(scene.place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(scene.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let walked = thread::scope(|scope| {
        let walked = scope.spawn(|| {
            // Only this thread gives up its rights, and those that it starts. Without any to give up, it had none.
            let nobody = Uid::from_raw(65534);
            let _ = set_thread_res_uid(nobody, nobody, nobody);
            walk(&scene)
        });
        walked.join().unwrap()
    });
    fs::set_permissions(scene.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!((walked.paths, walked.passed_over.unreadable), (vec!["/open/file".to_owned()], 1));
}

#[test]
fn a_deep_tree_is_walked_through_to_its_end_with_few_files_open() {
    let scene = Scene::new();
    let mut folder = scene.path("d");
    for level in 0..1000 {
        fs::create_dir(&folder).unwrap();
        if level % 100 == 0 {
            fs::write(folder.join("a"), "a").unwrap();
            fs::write(folder.join("z"), "z").unwrap();
        }
        folder.push("d");
    }
    let visitor = All { reads: true, ..All::default() };
    let options = WalkOptions { files_at_a_time: 1, ..OPTIONS };
    let walked = walk_with(&scene, "", options, &visitor).unwrap();
    assert_eq!((walked.paths.len(), visitor.texts.into_inner().unwrap().len()), (20, 20));
    assert_eq!(walked.passed_over, PassedOver::default());
}

#[test]
fn a_hundred_thousand_files_are_walked_through_quickly() {
    let scene = Scene::with_a_hundred_thousand_files();
    let start = Instant::now();
    let walked = walk(&scene);
    let time = start.elapsed();
    println!("{} files in {time:?}", walked.paths.len());
    assert_eq!(walked.paths.len(), 100_000);
    // Far more than it takes, also unoptimised and on a busy machine.
    assert!(time.as_secs() < 5, "{time:?}");
}

#[test]
fn a_folder_swapped_for_a_link_during_walks_never_leads_out() {
    let scene = Scene::with(&[("folder/below/file", "inside"), ("folder/file", "inside"), ("other", "inside")]);
    fs::create_dir(scene.outside().join("below")).unwrap();
    fs::write(scene.outside().join("below/file"), "secret").unwrap();
    fs::write(scene.outside().join("file"), "secret").unwrap();
    symlink("../outside", scene.path("swap")).unwrap();
    let done = AtomicBool::new(false);
    let (mut whole, mut parts) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| scene.swap_until(&done));
        let end = Instant::now() + Duration::from_secs(60);
        let mut rounds = 0;
        while Instant::now() < end && (rounds < 3000 || whole == 0 || parts == 0) {
            rounds += 1;
            let visitor = All { reads: true, ..All::default() };
            walk_with(&scene, "", WalkOptions { threads: 2, ..OPTIONS }, &visitor).unwrap();
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
fn what_was_found_can_be_described() {
    let scene = Scene::with(&[("a/b", "1"), ("a/c", "22"), ("a/gone", ""), ("d", "333")]);
    let mut files: Vec<Paths> = Vec::new();
    for kept in scene.root.walk(Path::new(""), OPTIONS, &All::default()).unwrap() {
        files.extend(kept.files);
    }
    files.sort_by_key(Paths::first);
    fs::remove_file(scene.path("a/gone")).unwrap();
    let described = scene.root.describe(Path::new(""), "", &files, 4).unwrap();
    let sizes: Vec<_> = described.iter().map(|one| one.map(|metadata| metadata.size_bytes)).collect();
    assert_eq!(sizes, [Some(1), Some(2), None, Some(3)]);
}
