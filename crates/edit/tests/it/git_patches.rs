//! Applies patches created by git: the result is the newer version, byte for byte.

use crate::version_pairs::{Pair, Tree, git, pairs, path_in_version, read_tree};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use toolrest_edit::Limits;
use toolrest_edit::patch::{self, Change};

const LIMITS: Limits = Limits::of_bytes(64 << 20);

/// Returns the old version with the patch applied by this crate, and the number of files in the patch.
fn patch_with_this_crate(old: &Tree, patch: &[u8]) -> (Tree, usize) {
    let files = patch::parse(patch).unwrap_or_else(|error| panic!("{error}"));
    let mut tree = old.clone();
    for file in &files {
        let base = file.source().map(|path| old[&path_in_version(path)].as_slice()).unwrap_or_default();
        let applied = patch::apply(file, base, LIMITS).unwrap_or_else(|error| panic!("{error}"));
        if let Change::Delete(path) | Change::Rename { from: path, .. } = &file.change {
            tree.remove(&path_in_version(path));
        }
        if let Some(path) = file.target() {
            tree.insert(path_in_version(path), applied.content);
        }
    }
    (tree, files.len())
}

/// Returns the old version with the patch applied by git.
fn patch_with_git(pair: &Pair, old: &Tree, patch: &[u8]) -> Tree {
    let folder = tempfile::tempdir().expect("a folder is made");
    for (path, content) in old {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().expect("a file has a folder")).expect("a folder is made");
        fs::write(file, content).expect("a file is written");
    }
    let mut apply = git(folder.path())
        .args(["apply", "-p2", "--unidiff-zero", "--whitespace=nowarn"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("git is installed");
    apply.stdin.take().expect("stdin is piped").write_all(patch).expect("git reads the patch");
    assert!(apply.wait().expect("git ends").success(), "git refused the patch from {} to {}", pair.old, pair.new);
    read_tree(folder.path())
}

/// Applies the diffs of all pairs, and compares the results with the newer version and with git's results.
fn check(options: &[&str]) {
    let mut files_applied = 0;
    let pairs = pairs();
    for pair in &pairs {
        let (old, new) = (pair.old_tree(), pair.new_tree());
        let patch = pair.diff(options);
        let (ours, files) = patch_with_this_crate(&old, &patch);
        files_applied += files;
        let from_git = patch_with_git(pair, &old, &patch);
        for (path, content) in &new {
            assert!(
                ours.get(path) == Some(content),
                "{path} from {} to {} differs from its target",
                pair.old,
                pair.new
            );
        }
        assert_eq!(ours.len(), new.len());
        assert!(ours == from_git, "git gives another result from {} to {}", pair.old, pair.new);
    }
    println!("git diff {options:?}: {} pairs, {files_applied} files, all identical", pairs.len());
}

#[test]
fn patches_with_usual_context_give_the_newer_version() {
    check(&["-U3", "--no-renames"]);
}

#[test]
fn patches_that_rename_and_copy_give_the_newer_version() {
    check(&["--find-copies-harder", "-C30%", "-M30%", "-U3"]);
}

#[test]
fn patches_with_little_context_give_the_newer_version() {
    check(&["-U1", "-M"]);
}

#[test]
fn patches_without_context_give_the_newer_version() {
    check(&["-U0"]);
}

#[test]
fn patches_with_much_context_give_the_newer_version() {
    check(&["-U25", "--patience"]);
}

#[test]
fn reversed_patches_give_the_older_version() {
    for pair in pairs() {
        let (old, new) = (pair.old_tree(), pair.new_tree());
        let patch = pair.diff(&["-M"]);
        for file in patch::parse(&patch).unwrap_or_else(|error| panic!("{error}")) {
            let back = file.reversed();
            let base = back.source().map(|path| new[&path_in_version(path)].as_slice()).unwrap_or_default();
            let applied = patch::apply(&back, base, LIMITS).unwrap_or_else(|error| panic!("{error}"));
            let expected = back.target().map(|path| old[&path_in_version(path)].as_slice()).unwrap_or_default();
            assert!(applied.content == expected, "{:?}", back.change);
        }
    }
}

#[test]
fn binary_patches_give_the_new_bytes_from_a_literal_or_a_delta() {
    let folder = tempfile::tempdir().expect("a folder is made");
    let mut state = 1_u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let old: Vec<u8> = std::iter::once(0).chain(std::iter::repeat_with(&mut byte).take(200_000)).collect();
    let mut changed = old.clone();
    changed.splice(100_000..100_010, [7; 300]);
    let other: Vec<u8> = std::iter::once(0).chain(std::iter::repeat_with(&mut byte).take(3_000)).collect();
    for (new, kind) in [(changed, "\ndelta "), (other, "\nliteral ")] {
        fs::write(folder.path().join("old"), &old).expect("a file is written");
        fs::write(folder.path().join("new"), &new).expect("a file is written");
        let diff =
            git(folder.path()).args(["diff", "--no-index", "--binary", "old", "new"]).output().expect("git runs");
        assert!(String::from_utf8_lossy(&diff.stdout).contains(kind));
        let file = &patch::parse(&diff.stdout).unwrap_or_else(|error| panic!("{error}"))[0];
        let applied = patch::apply(file, &old, LIMITS).unwrap_or_else(|error| panic!("{error}"));
        assert!(applied.content == new);
        let back = patch::apply(&file.reversed(), &new, LIMITS).unwrap_or_else(|error| panic!("{error}"));
        assert!(back.content == old);
    }
}
