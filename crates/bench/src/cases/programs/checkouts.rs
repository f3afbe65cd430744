//! Checking out a workspace of many files for a program.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Instant;

use super::super::Effort;
use super::{SETTLE, run_code_ms};
use crate::process::Folder;
use crate::report::{Figure, Report, Target, median, number};
use crate::server::Server;

const FILES: usize = 5000;
const FOLDERS: usize = 100;

pub(super) fn run(server: &Server, effort: Effort, report: &mut Report) {
    report.section(
        format!("Checkout of {FILES} files"),
        "A whole call of `run_code` over HTTP that does nothing, in a workspace that was not checked out before, and the \
         next ones, for which an interpreter waits, less the same call in a workspace of one file. `cp -r` of the same files, in turns.",
    );
    let tree = Folder::new("copied");
    fs::create_dir_all(tree.path().join("from")).expect("a new folder");
    for number in 0..FILES {
        let path = tree.path().join("from").join(path(number));
        fs::create_dir_all(path.parent().expect("it has one")).expect("a new folder");
        fs::write(path, content(number)).expect("a new file");
    }
    let mut session = server.session();
    let small = session.create_workspace("small");
    session.write(&small, "/a.txt", "a file");
    let (mut firsts, mut copies, mut ratios, mut nexts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..effort.rounds {
        let workspace = session.create_workspace(&format!("large {round}"));
        server.prepare(FILES, |session, number| {
            session.write(&workspace, &format!("/{}", path(number)), &content(number));
        });
        run_code_ms(&mut session, &small, "bash", "true");
        let copy = copy_ms(&tree, round);
        let first = run_code_ms(&mut session, &workspace, "bash", "true");
        let mut later = Vec::new();
        for _ in 0..21 {
            thread::sleep(SETTLE);
            let base = run_code_ms(&mut session, &small, "bash", "true");
            thread::sleep(SETTLE);
            later.push(run_code_ms(&mut session, &workspace, "bash", "true") - base);
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
        beside: format!("{} ms, `cp -r` {} ms", number(median(&firsts)), number(median(&copies))),
    });
    report.add(Figure {
        case: "next call, nothing changed".to_owned(),
        unit: "ms",
        rounds: nexts,
        target: Target::AtMost(10.0),
        beside: "more than in a workspace of one file".to_owned(),
    });
}

fn path(number: usize) -> String {
    format!("folder{:02}/file{number}.txt", number % FOLDERS)
}

fn content(number: usize) -> String {
    format!("line of file {number}, as long as lines are\n").repeat(40)
}

fn copy_ms(tree: &Folder, round: usize) -> f64 {
    let to = tree.path().join(format!("to{round}"));
    let begun = Instant::now();
    let status = Command::new("cp").arg("-r").arg(tree.path().join("from")).arg(&to).status().expect("cp starts");
    assert!(status.success());
    begun.elapsed().as_secs_f64() * 1e3
}
