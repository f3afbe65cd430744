//! The test fixture: a root in a temporary folder, with a journal next to it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;
use toolrest_directory::{
    Change, CommitOptions, CommitResult, Contents, ErrorKind, Expect, Hash, Parents, Recovered, Replace, Result, Root,
};

/// The state of each path below a folder: the bytes of a file, the target of a link, or nothing for a folder.
pub type Tree = BTreeMap<PathBuf, Node>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Folder,
    File(Vec<u8>),
    Link(PathBuf),
    Other,
}

pub struct Fixture {
    pub home: TempDir,
    pub root: Root,
}

impl Fixture {
    /// Creates a fixture in memory if possible, because syncing costs nothing there.
    pub fn new() -> Self {
        Self::on(TempDir::new_in(Path::new("/dev/shm")).or_else(|_| TempDir::new()).unwrap())
    }

    pub fn on(home: TempDir) -> Self {
        for folder in ["root", "journal", "outside"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        let root = Root::open(&home.path().join("root")).unwrap();
        Self { home, root }
    }

    pub fn with(files: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        for (path, text) in files {
            fixture.put(path, text);
        }
        fixture
    }

    /// Returns a fixture with a hundred folders of a thousand files each.
    pub fn with_a_hundred_thousand_files() -> Self {
        let fixture = Self::new();
        for folder in 0..100 {
            let folder = fixture.path(format!("folder {folder}"));
            fs::create_dir(&folder).unwrap();
            for file in 0..1000 {
                fs::write(folder.join(format!("file {file}")), "").unwrap();
            }
        }
        fixture
    }

    /// Swaps `folder` and `swap` repeatedly, with pauses of different lengths. The longest is enough for a whole commit.
    pub fn swap_until(&self, done: &AtomicBool) {
        let mut yields = (0..200).cycle();
        while !done.load(Ordering::Relaxed) {
            renameat_with(CWD, self.path("folder"), CWD, self.path("swap"), RenameFlags::EXCHANGE).unwrap();
            yields.next().into_iter().flat_map(|count| 0..count).for_each(|_| thread::yield_now());
        }
    }

    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.home.path().join("root").join(path)
    }

    pub fn outside(&self) -> PathBuf {
        self.home.path().join("outside")
    }

    pub fn journal(&self) -> PathBuf {
        self.home.path().join("journal")
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn commit(&self, changes: &[Change]) -> Result<CommitResult> {
        self.root.commit(changes, &self.journal(), &CommitOptions::default())
    }

    pub fn recover(&self) -> Option<Recovered> {
        self.root.recover(&self.journal()).unwrap()
    }

    pub fn tree(&self) -> Tree {
        tree(&self.path(""))
    }

    /// Makes a commit that must fail, and checks that it changed nothing.
    pub fn refused(&self, changes: &[Change]) -> ErrorKind {
        let before = (self.tree(), tree(&self.outside()));
        let error = self.commit(changes).unwrap_err();
        assert_eq!((self.tree(), tree(&self.outside())), before, "{error}");
        error.kind
    }
}

pub fn tree(top: &Path) -> Tree {
    let mut nodes = Tree::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(top.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let kind = entry.file_type().unwrap();
            let node = if kind.is_dir() {
                pending.push(path.clone());
                Node::Folder
            } else if kind.is_symlink() {
                Node::Link(fs::read_link(entry.path()).unwrap())
            } else if kind.is_file() {
                Node::File(fs::read(entry.path()).unwrap())
            } else {
                Node::Other
            };
            nodes.insert(path, node);
        }
    }
    nodes
}

pub fn links_of(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().nlink()
}

pub fn hash(text: &str) -> Expect {
    Expect::Hash(Hash::of(text.as_bytes()))
}

pub fn write(path: impl AsRef<Path>, text: &str, expect: Expect) -> Change {
    let bytes = text.as_bytes().to_vec();
    Change::Write { path: path.as_ref().to_owned(), bytes, expect, mode: None, parents: Parents::Required }
}

pub fn write_deep(path: impl AsRef<Path>, text: &str, expect: Expect) -> Change {
    let bytes = text.as_bytes().to_vec();
    Change::Write { path: path.as_ref().to_owned(), bytes, expect, mode: None, parents: Parents::Make }
}

pub fn remove(path: impl AsRef<Path>, expect: Expect) -> Change {
    Change::Remove { path: path.as_ref().to_owned(), expect }
}

pub fn remove_folder(path: impl AsRef<Path>, contents: Contents) -> Change {
    Change::RemoveFolder { path: path.as_ref().to_owned(), contents }
}

pub fn moving(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Change {
    let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    Change::Move { from, to, replace: Replace::Refuse, parents: Parents::Required }
}

pub fn make_folder(path: impl AsRef<Path>) -> Change {
    Change::MakeFolder { path: path.as_ref().to_owned(), mode: None, parents: Parents::Required }
}
