//! Checkout of a workspace with many files for a program.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use toolrest_testkit::temp_folder;

use super::super::Effort;
use super::{POOL_REFILL, run_code_ms};
use crate::report::{Figure, Report, Target, median, number};
use crate::server::Server;

const FILES: usize = 5000;
const FOLDERS: usize = 100;

pub(super) fn run(server: &Server, effort: Effort, report: &mut Report) {
    report.section(
        format!("Checkout of {FILES} files"),
        "A whole call of `run_code` over HTTP with an empty program. First call: in a workspace that was not checked out \
         before, divided by `cp -r` of the same files. Next call: with a waiting interpreter, minus the same call in a \
         workspace of one file.",
    );
    let tree = temp_folder("copied");
    let tree = tree.path();
    for number in 0..FILES {
        let path = tree.join("from").join(path(number));
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a new folder");
        fs::write(path, content(number)).expect("a new file");
    }
    let session = server.session();
    let small = session.create_workspace("small");
    session.write(&small, "/a.txt", "a file");
    let (mut firsts, mut copies, mut ratios, mut nexts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..effort.rounds {
        let workspace = session.create_workspace(&format!("large {round}"));
        server.prepare(FILES, |session, number| {
            session.write(&workspace, &format!("/{}", path(number)), &content(number));
        });
        run_code_ms(&session, &small, "bash", "true");
        let copy = copy_ms(tree, round);
        let first = run_code_ms(&session, &workspace, "bash", "true");
        let mut later = Vec::new();
        for _ in 0..21 {
            thread::sleep(POOL_REFILL);
            let base = run_code_ms(&session, &small, "bash", "true");
            thread::sleep(POOL_REFILL);
            later.push(run_code_ms(&session, &workspace, "bash", "true") - base);
        }
        firsts.push(first);
        copies.push(copy);
        ratios.push(first / copy);
        nexts.push(median(&later));
    }
    report.add(Figure {
        case: "first call".to_owned(),
        unit: "× `cp -r`",
        rounds: ratios,
        target: Target::AtMost(2.0),
        notes: format!("{} ms, `cp -r` {} ms", number(median(&firsts)), number(median(&copies))),
    });
    report.add(Figure {
        case: "next call, nothing changed".to_owned(),
        unit: "ms",
        rounds: nexts,
        target: Target::AtMost(10.0),
        notes: "added to the call in a workspace of one file".to_owned(),
    });
}

fn path(number: usize) -> String {
    format!("folder{:02}/file{number}.txt", number % FOLDERS)
}

fn content(number: usize) -> String {
    format!("line of file {number}, as long as lines are\n").repeat(40)
}

fn copy_ms(tree: &Path, round: usize) -> f64 {
    let to = tree.join(format!("to{round}"));
    let start = Instant::now();
    let status = Command::new("cp").arg("-r").arg(tree.join("from")).arg(&to).status().expect("cp starts");
    assert!(status.success());
    start.elapsed().as_secs_f64() * 1e3
}
