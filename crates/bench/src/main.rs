//! Benchmarks of the release binary over HTTP on SQLite and PostgreSQL, and of work in folders, against fixed targets.
//! `make bench` runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark stops at the first error; destructors end the processes it has started"
)]
#![allow(clippy::cast_precision_loss, reason = "counts of requests are far below 2^52")]
#![allow(clippy::disallowed_methods, reason = "it starts the programs that it measures, and waits for idle servers")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use toolrest_testkit::{Postgres, postgres_program};

use crate::cases::{
    Effort, approvals, cpu, folder_edits, memories, memory, moves, programs, rules, search, tool_backend, updates,
};
use crate::report::Report;
use crate::server::{Backend, Server};

mod cases;
mod contents;
mod load;
mod machine;
mod process;
mod report;
mod server;

const USAGE: &str = "\
usage: toolrest-bench --toolrest BINARY [--only PART] [--large] [--out FILE.md] [--quick]
  --toolrest  the release binary to measure
  --only      one part: `sqlite` or `postgres` for calls over HTTP on that backend; `control` for rules, approvals,
              memories and the listener of specification 003; `search` for searches on both, compared with ripgrep;
              `folder` for work in a folder, compared with git, ripgrep and fd; `programs` for programs in the sandbox
  --large     with search, also search a workspace of 2 GB, which takes some minutes to fill
  --out       also write the report to this file
  --quick     two short rounds, to see that everything runs
Data is written to the folder for temporary files (TMPDIR), which should be on a disk.";

struct Options {
    toolrest: PathBuf,
    only: Option<BenchPart>,
    large: bool,
    out: Option<PathBuf>,
    effort: Effort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BenchPart {
    Sqlite,
    Postgres,
    Control,
    Search,
    Folder,
    Programs,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { toolrest: PathBuf::new(), only: None, large: false, out: None, effort: Effort::FULL };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--toolrest" => options.toolrest = value()?.into(),
                "--out" => options.out = Some(value()?.into()),
                "--large" => options.large = true,
                "--quick" => options.effort = Effort::QUICK,
                "--only" => {
                    options.only = Some(match value()?.as_str() {
                        "sqlite" => BenchPart::Sqlite,
                        "postgres" => BenchPart::Postgres,
                        "control" => BenchPart::Control,
                        "search" => BenchPart::Search,
                        "folder" => BenchPart::Folder,
                        "programs" => BenchPart::Programs,
                        other => return Err(format!("--only does not accept \"{other}\"")),
                    });
                }
                other => return Err(format!("unknown argument \"{other}\"")),
            }
        }
        if options.toolrest.is_file() {
            Ok(options)
        } else {
            Err("--toolrest must name the binary; build it with `cargo build --release`".to_owned())
        }
    }

    fn includes(&self, part: BenchPart) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

fn main() -> ExitCode {
    let options = match Options::parse(env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut report = Report::default();
    machine::describe(&mut report);
    describe_programs(&options, &mut report);
    run(&options, &mut report);
    let document = report.markdown();
    println!("{document}");
    if let Some(out) = &options.out {
        fs::write(out, &document).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
    }
    ExitCode::SUCCESS
}

fn run(options: &Options, report: &mut Report) {
    let Options { toolrest, effort, .. } = options;
    if options.includes(BenchPart::Sqlite) {
        over_http(toolrest, Backend::Sqlite, *effort, report);
    }
    if options.includes(BenchPart::Folder) {
        folder_edits::run(*effort, report);
        search::folder::run(*effort, report);
    }
    if options.includes(BenchPart::Programs) {
        programs::run(toolrest, *effort, report);
    }
    if options.includes(BenchPart::Control) {
        tool_backend::run(toolrest, *effort, report);
        control(toolrest, Backend::Sqlite, *effort, report);
    }
    if ![BenchPart::Postgres, BenchPart::Control, BenchPart::Search].iter().any(|part| options.includes(*part)) {
        return;
    }
    let postgres = Postgres::start();
    if options.includes(BenchPart::Postgres) {
        over_http(toolrest, Backend::Postgres(&postgres), *effort, report);
    }
    if options.includes(BenchPart::Control) {
        control(toolrest, Backend::Postgres(&postgres), *effort, report);
    }
    if options.includes(BenchPart::Search) {
        search::run(toolrest, &postgres, *effort, report);
        if options.large {
            search::large::run(toolrest, *effort, report);
        }
    }
}

fn over_http(toolrest: &Path, backend: Backend, effort: Effort, report: &mut Report) {
    let server = Server::start(toolrest, backend);
    moves::run(&server, effort, report);
    cpu::run(&server, effort, report);
    updates::run(&server, effort, report);
    drop(server);
    let server = Server::start(toolrest, backend);
    memory::run(&server, report);
}

fn control(toolrest: &Path, backend: Backend, effort: Effort, report: &mut Report) {
    let server = Server::start(toolrest, backend);
    rules::run(&server, effort, report);
    approvals::run(&server, effort, report);
    memories::run(&server, effort, report);
}

/// Adds the versions of the programs that the measured parts use.
fn describe_programs(options: &Options, report: &mut Report) {
    let programs: [(&str, PathBuf, &[BenchPart]); 4] = [
        ("PostgreSQL", postgres_program("postgres"), &[BenchPart::Postgres, BenchPart::Control, BenchPart::Search]),
        ("ripgrep", "rg".into(), &[BenchPart::Search, BenchPart::Folder]),
        ("fd", "fdfind".into(), &[BenchPart::Folder]),
        ("git", "git".into(), &[BenchPart::Folder]),
    ];
    for (name, program, parts) in programs {
        if parts.iter().any(|part| options.includes(*part)) {
            let output = Command::new(&program).arg("--version").output();
            let output = output.unwrap_or_else(|error| panic!("{name} must be installed: {error}"));
            let text = String::from_utf8_lossy(&output.stdout);
            report.describe_machine(name, text.lines().next().unwrap_or_default());
        }
    }
}
