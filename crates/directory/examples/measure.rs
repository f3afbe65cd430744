//! How long commits, reads and listings of a real folder take.
//!
//! Run with `cargo run --release --package toolrest-directory --example measure_directory`.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to say")]

#[path = "../tests/suite/fixture.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod fixture;

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use toolrest_directory::{Expect, Hash, ListOptions};

use fixture::{Fixture, write};

fn main() {
    compare_commits_with_plain_writes();
    read_list_and_commit_in_memory();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Writes, syncs and renames a file without protection against crashes or concurrent changes.
fn write_plainly(folder: &Path, bytes: &[u8]) {
    let mut file = File::create_new(folder.join("temporary")).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    fs::rename(folder.join("temporary"), folder.join("plain")).unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
}

fn compare_commits_with_plain_writes() {
    const ROUNDS: usize = 400;
    let fixture = Fixture::on(TempDir::new().unwrap());
    let mut text = "x".repeat(10_000);
    fixture.put("file", &text);
    let (mut commits, mut plain_writes, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let new = format!("{round} {}", "x".repeat(10_000));
        // Alternating, so that both run under the same load.
        let plain_write = time(|| write_plainly(&fixture.path(""), new.as_bytes()));
        let change = [write("file", &new, Expect::Hash(Hash::of(text.as_bytes())))];
        let commit = time(|| drop(fixture.commit(&change).unwrap()));
        ratios.push(commit.as_secs_f64() / plain_write.as_secs_f64());
        commits.push(commit);
        plain_writes.push(plain_write);
        text = new;
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "commit {:?}, plain write {:?}, median ratio {:.2}",
        median(commits),
        median(plain_writes),
        ratios[ROUNDS / 2]
    );
}

fn read_list_and_commit_in_memory() {
    let fixture = Fixture::new();
    fixture.put("file", &"x".repeat(10_000));
    let read =
        median((0..1000).map(|_| time(|| drop(fixture.root.read(Path::new("file"), 1 << 20).unwrap()))).collect());
    println!("read of 10 KB: {read:?}");
    let commit = |n: usize| time(|| drop(fixture.commit(&[write("file", &n.to_string(), Expect::Anything)]).unwrap()));
    println!("commit without the disk: {:?}", median((0..1000).map(commit).collect()));
    for folder in 0..100 {
        fs::create_dir(fixture.path(format!("{folder}"))).unwrap();
        for file in 0..1000 {
            fs::write(fixture.path(format!("{folder}/{file}")), "").unwrap();
        }
    }
    let options = ListOptions { depth: usize::MAX, limit: usize::MAX };
    let list = median((0..5).map(|_| time(|| drop(fixture.root.list(Path::new(""), options).unwrap()))).collect());
    println!("list of 100,000 files: {list:?}");
}
