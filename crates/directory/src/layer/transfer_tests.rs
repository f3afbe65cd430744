//! Transfers of whole trees, with a fault at each of the system calls.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;
use crate::{
    layer::{Baseline, OPAQUE},
    sys::faults::{Fault, with_faults, with_others},
};

/// What is at each path of the folder: a text, or nothing for folders.
type Tree = BTreeMap<PathBuf, Option<String>>;

struct Scene {
    root: TempDir,
    upper: TempDir,
    journal: TempDir,
}

/// What is in the folder, and what the program replaced it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Nothing,
    File,
    Folder,
    /// A whiteout.
    Gone,
}

impl Scene {
    /// With the two folders on one file system, or on two.
    fn new(before: What, after: What, on_two: bool) -> Self {
        let scene = Self {
            root: if on_two { TempDir::new_in("/dev/shm") } else { TempDir::new() }.unwrap(),
            upper: TempDir::new().unwrap(),
            // In memory, where syncs cost nothing.
            journal: TempDir::new_in("/dev/shm").unwrap(),
        };
        put(&scene.root.path().join("out"), before, "old");
        put(&scene.upper.path().join("out"), after, "new");
        scene
    }

    fn transfer(&self) -> Result<Vec<NotTransferred>> {
        let (root, upper) = (Root::open(self.root.path())?, Root::open(self.upper.path())?);
        // Nothing counts as changed by others.
        let moment = SystemTime::now() + Duration::from_secs(3600);
        let baseline = Baseline::new(moment, HashMap::new());
        self.transfer_since(&root, &upper, &baseline)
    }

    fn transfer_since(&self, root: &Root, upper: &Root, baseline: &Baseline) -> Result<Vec<NotTransferred>> {
        let rules = TransferRules { committed: &[], baseline, conflict_path: &|_| None };
        root.lock(self.journal.path())?.transfer(upper, Path::new("out"), Path::new("out"), &rules)
    }

    fn recover(&self) {
        let root = Root::open(self.root.path()).unwrap();
        assert_eq!(root.recover(self.journal.path()).unwrap(), None);
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut pending = vec![self.root.path().to_owned()];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let text = if path.is_dir() { None } else { Some(fs::read_to_string(&path).unwrap()) };
                tree.insert(path.strip_prefix(self.root.path()).unwrap().to_owned(), text.clone());
                pending.extend(text.is_none().then_some(path));
            }
        }
        tree
    }
}

fn put(path: &Path, what: What, text: &str) {
    match what {
        What::Nothing => {}
        What::File => fs::write(path, text).unwrap(),
        What::Folder => {
            fs::create_dir_all(path.join("sub")).unwrap();
            for name in ["both", text, "sub/both"] {
                fs::write(path.join(name), text).unwrap();
            }
            if text == "new" {
                sys::set_attribute(File::open(path).unwrap(), OsStr::new(OPAQUE), b"y").unwrap();
            }
        }
        What::Gone => mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap(),
    }
}

/// Every replacement of one kind by another, on one file system and on two, with the folder before and after.
fn each(check: impl Fn(&dyn Fn() -> Scene, &Tree, &Tree, usize, &str)) {
    for before in [What::Nothing, What::File, What::Folder] {
        for (after, on_two) in
            [What::File, What::Folder, What::Gone].into_iter().flat_map(|it| [(it, false), (it, true)])
        {
            let new = || Scene::new(before, after, on_two);
            let scene = new();
            let old = scene.tree();
            let (not_transferred, calls) = with_faults(&[], || scene.transfer());
            assert!(not_transferred.unwrap().is_empty());
            let wanted = Scene::new(if after == What::Gone { What::Nothing } else { after }, What::Nothing, on_two);
            let expected = wanted.tree().into_keys().map(|path| path.with_file_name(renamed(&path)));
            assert!(scene.tree().into_keys().eq(expected), "{after:?} for {before:?}: {:?}", scene.tree());
            assert!(!scene.tree().values().any(|text| text.as_deref() == Some("old")), "{after:?} for {before:?}");
            check(&new, &old, &scene.tree(), calls, &format!("{after:?} for {before:?}, on two: {on_two}"));
        }
    }
}

/// Returns the name of a file after the transfer: what was called `old` is called `new`.
fn renamed(path: &Path) -> &OsStr {
    path.file_name().map_or(OsStr::new(""), |name| if name == "old" { OsStr::new("new") } else { name })
}

#[test]
fn a_crash_leaves_the_old_or_the_new() {
    each(|scene, old, new, calls, what| {
        for call in 0..calls {
            let scene = scene();
            let _ = with_faults(&[(call, Fault::Dies)], || scene.transfer());
            scene.recover();
            let tree = scene.tree();
            assert!(tree == *old || tree == *new, "{what}: death at call {call} of {calls} leaves {tree:?}");
        }
    });
}

#[test]
fn a_failure_is_reported() {
    each(|scene, old, new, calls, what| {
        for call in 0..calls {
            let scene = scene();
            let (result, _) = with_faults(&[(call, Fault::Fails(Errno::NOSPC))], || scene.transfer());
            let is_reported = result.as_ref().map_or(true, |not_transferred| !not_transferred.is_empty());
            scene.recover();
            let tree = scene.tree();
            assert!(
                tree == *new || is_reported && tree == *old,
                "{what}: failure at call {call}: {result:?}, {tree:?}"
            );
        }
    });
}

/// Changes a file until the clock of the file system goes on. Returns the last time before that.
fn next_moment(folder: &Path) -> SystemTime {
    let stamp = || {
        fs::write(folder.join("stamp"), "").unwrap();
        Metadata::from(sys::stat(File::open(folder.join("stamp")).unwrap()).unwrap()).changed
    };
    let moment = stamp();
    while stamp() == moment {}
    moment
}

#[test]
fn what_others_write_while_a_whole_folder_is_exchanged_stays() {
    for (theirs, on_two) in
        ["out/theirs", "out/sub/theirs"].into_iter().flat_map(|theirs| [(theirs, false), (theirs, true)])
    {
        for call in 0.. {
            let scene = Scene::new(What::Folder, What::Folder, on_two);
            let (root, upper) = (Root::open(scene.root.path()).unwrap(), Root::open(scene.upper.path()).unwrap());
            let folders = root.dir_identities();
            let baseline = Baseline::new(next_moment(scene.journal.path()), folders);
            let path = scene.root.path().join(theirs);
            let write = move || fs::write(path, "theirs").unwrap();
            let (result, has_written) = with_others(call, write, || scene.transfer_since(&root, &upper, &baseline));
            if !has_written {
                assert!(call > 20);
                break;
            }
            result.unwrap();
            let tree = scene.tree();
            let text = |path: &str| tree.get(Path::new(path)).cloned().flatten();
            let context = format!("{theirs} at call {call}, on two: {on_two}: {tree:?}");
            assert_eq!(text(theirs).as_deref(), Some("theirs"), "{context}");
            assert_eq!(text("out/both").as_deref(), Some("new"), "{context}");
            assert_eq!(text("out/sub/both").as_deref(), Some("new"), "{context}");
            assert_eq!((text("out/new").as_deref(), text("out/old")), (Some("new"), None), "{context}");
        }
    }
}

#[test]
fn leftovers_of_one_transfer_are_not_hidden_by_the_next() {
    let leave = |root: &Root| {
        let left = temporary_in(root.identity(), Path::new("")).unwrap();
        fs::write(root.real_path().join(left), "").unwrap();
    };
    let fails = |root: &Root| {
        leave(root);
        Err(Errno::IO).at(Path::new("out"))
    };
    let says_so = |root: &Root| {
        leave(root);
        Ok(((), Leftovers::Possible))
    };
    for work in [&fails as &dyn Fn(&Root) -> Result<((), Leftovers)>, &says_so] {
        let scene = Scene::new(What::Nothing, What::Nothing, false);
        let root = Root::open(scene.root.path()).unwrap();
        let mut lock = root.lock(scene.journal.path()).unwrap();
        let _ = lock.run_without_commit(work);
        lock.run_without_commit(|_| Ok(((), Leftovers::None))).unwrap();
        assert!(lock.is_unfinished().unwrap());
        drop(lock);
        scene.recover();
        assert_eq!(scene.tree(), Tree::new());
        root.lock(scene.journal.path()).unwrap().run_without_commit(|_| Ok(((), Leftovers::None))).unwrap();
        assert!(!root.lock(scene.journal.path()).unwrap().is_unfinished().unwrap());
    }
}
