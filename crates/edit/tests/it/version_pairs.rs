//! Pairs of versions of the same crate from Cargo's registry, and git's diffs between them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that are compared. The manifest requires several versions of each, so that every machine has the same
/// ones.
const CRATES: [&str; 6] = ["base64", "bitflags", "heck", "itertools", "semver", "strsim"];

/// Minimum number of pairs that a test needs.
const PAIRS_MIN: usize = 7;

/// The contents of files by their paths in a folder.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// Two versions of a crate.
pub struct Pair {
    /// The folder that contains both.
    pub folder: PathBuf,
    pub old: String,
    pub new: String,
}

/// Returns the pairs of consecutive versions in Cargo's registry.
pub fn pairs() -> Vec<Pair> {
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("HOME or CARGO_HOME is set")).join(".cargo"),
        PathBuf::from,
    );
    let sources = home.join("registry/src");
    let mut pairs = Vec::new();
    for registry in fs::read_dir(&sources).into_iter().flatten().flatten() {
        let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in fs::read_dir(registry.path()).expect("the registry's folder is read").flatten() {
            let folder = entry.file_name().into_string().expect("a crate's folder is UTF-8");
            let is_version = |text: &str| text.split('.').next().is_some_and(|major| major.parse::<u32>().is_ok());
            let cut = folder.match_indices('-').map(|(at, _)| at).find(|at| is_version(&folder[at + 1..]));
            if let Some(cut) = cut.filter(|cut| CRATES.contains(&&folder[..*cut])) {
                versions.entry(folder[..cut].to_owned()).or_default().push(folder);
            }
        }
        for mut versions in versions.into_values() {
            versions.sort();
            for two in versions.windows(2) {
                pairs.push(Pair { folder: registry.path(), old: two[0].clone(), new: two[1].clone() });
            }
        }
    }
    assert!(
        pairs.len() >= PAIRS_MIN,
        "only {} crates with two versions are in {}; `cargo fetch` the workspace first",
        pairs.len(),
        sources.display()
    );
    pairs
}

impl Pair {
    pub fn old_tree(&self) -> Tree {
        read_tree(&self.folder.join(&self.old))
    }

    pub fn new_tree(&self) -> Tree {
        read_tree(&self.folder.join(&self.new))
    }

    /// Returns the output of `git diff` with additional options.
    pub fn diff(&self, options: &[&str]) -> Vec<u8> {
        let output = git(&self.folder)
            .args(["diff", "--no-index", "--no-ext-diff", "--no-color", "--binary"])
            .args(options)
            .args([&self.old, &self.new])
            .output()
            .expect("git is installed");
        assert!(output.status.code() == Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

/// Returns a git command that ignores the configuration of the user and the system.
#[allow(clippy::disallowed_methods, reason = "these tests compare with git")]
pub fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

/// Reads all files in a folder and its subfolders.
pub fn read_tree(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder is read").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("a file lies in its folder");
                tree.insert(
                    name.to_str().expect("a name is UTF-8").to_owned(),
                    fs::read(&path).expect("a file is read"),
                );
            }
        }
    }
    tree
}

/// Returns the path without its first folder, that of the version.
pub fn path_in_version(path: &[u8]) -> String {
    let path = str::from_utf8(path).expect("a name is UTF-8");
    path.split_once('/').expect("a name has its version's folder in front").1.to_owned()
}
