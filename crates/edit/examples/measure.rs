//! Measures how long patches of real sources take in memory, compared with the `git apply` command.
//!
//! Run with `cargo run --release --package toolrest-edit --example measure`.

#![allow(clippy::disallowed_methods, reason = "it runs the git command to measure it")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot run fails")]

#[path = "../tests/it/version_pairs.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod version_pairs;

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};
use toolrest_edit::{Limits, StopFlag, diff, patch};
use version_pairs::{git, pairs, path_in_version};

const LIMITS: Limits = Limits::of_bytes(64 << 20);
const REPETITIONS: u32 = 20;

fn main() {
    let mut in_memory = Vec::new();
    let mut moved = Vec::new();
    let mut diffs = Vec::new();
    let mut with_git = Vec::new();
    for pair in pairs() {
        let (old, new) = (pair.old_tree(), pair.new_tree());
        let whole = pair.diff(&["-U3"]);
        for file in patch::parse(&whole).expect("git's patch is parsed") {
            let (Some(source), Some(target)) = (file.source(), file.target()) else { continue };
            let (path, base) = (path_in_version(source), &old[&path_in_version(source)]);
            let text =
                diff::unified(path.as_bytes(), Some(base), Some(&new[&path_in_version(target)]), StopFlag::never());
            if !text.starts_with("---") {
                continue;
            }
            in_memory.push(measure(|| apply(text.as_bytes(), base)));
            // If the line numbers are wrong, the hunks have to be searched for.
            let shifted = [b"// one line more\n".as_slice(), base].concat();
            moved.push(measure(|| apply(text.as_bytes(), &shifted)));
            diffs.push(measure(|| {
                diff::unified(b"x", Some(base), Some(&new[&path_in_version(target)]), StopFlag::never()).len()
            }));
            with_git.push(apply_with_git(&path, base, &text));
        }
    }
    let mut table = String::new();
    for (what, times) in [
        ("parse and apply in memory", &mut in_memory),
        ("the same, moved by one line", &mut moved),
        ("create the diff", &mut diffs),
        ("git apply, whole command", &mut with_git),
    ] {
        times.sort();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        _ = writeln!(table, "{what:<28} p50 {:>10.1?}  p99 {:>10.1?}  ({} files)", at(50), at(99), times.len());
    }
    println!("{table}");
}

fn apply(patch: &[u8], base: &[u8]) -> usize {
    let files = patch::parse(patch).expect("our own patch is parsed");
    patch::apply(&files[0], base, LIMITS).map_or(0, |applied| applied.content.len())
}

fn measure(mut run: impl FnMut() -> usize) -> Duration {
    let start = Instant::now();
    for _ in 0..REPETITIONS {
        std::hint::black_box(run());
    }
    start.elapsed() / REPETITIONS
}

fn apply_with_git(path: &str, base: &[u8], diff: &str) -> Duration {
    let folder = tempfile::tempdir().expect("a folder is made");
    let file = folder.path().join(path);
    fs::create_dir_all(file.parent().expect("a file has a folder")).expect("a folder is made");
    fs::write(file, base).expect("a file is written");
    let patch_file = folder.path().join("x.patch");
    fs::write(&patch_file, diff).expect("a file is written");
    let start = Instant::now();
    let status =
        git(folder.path()).args(["apply", "x.patch"]).stderr(Stdio::null()).status().expect("git is installed");
    let elapsed = start.elapsed();
    assert!(status.success(), "git refused our diff of {path}");
    elapsed
}
