//! Measures the release binary over loopback HTTP on SQLite and PostgreSQL, against the targets it is held to.
//! `make bench` runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a bench stops at the first fault; what it has started is cleaned up while the panic unwinds"
)]
#![allow(clippy::cast_precision_loss, reason = "counts of requests stay far below 2^52")]
#![allow(clippy::disallowed_methods, reason = "it starts what it measures, and leaves it idle on purpose")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use crate::cases::{Effort, cpu, folder_edits, memory, moves, programs, search, sql_writes, updates};
use crate::postgres::Cluster;
use crate::report::Report;
use crate::server::{Backend, Server};

mod cases;
mod client;
mod contents;
mod load;
mod machine;
mod postgres;
mod process;
mod report;
mod server;

const USAGE: &str = "\
usage: toolrest-bench --toolrest BINARY [--only sqlite|postgres|sql|search|folder|programs] [--large] [--out FILE.md] [--quick]
  --toolrest  the release binary to measure
  --only      one backend; `sql` is only the comparison of SQL statements, which needs no binary; `search` is search
              on both backends, which needs ripgrep; `folder` is work in a folder, which needs git, ripgrep and fd;
              `programs` is programs in the sandbox
  --large     with search, also in a workspace of 2 GB, which takes some minutes to fill
  --out       also write the document to this file
  --quick     two short rounds, to see that everything runs
Data goes to the folder for temporary files (TMPDIR), which should be on a real disk.";

struct Options {
    toolrest: Option<PathBuf>,
    only: Option<Part>,
    large: bool,
    out: Option<PathBuf>,
    effort: Effort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Sqlite,
    Postgres,
    Sql,
    Search,
    Folder,
    Programs,
}

impl Part {
    /// Whether the binary is measured.
    fn needs_binary(self) -> bool {
        !matches!(self, Self::Sql | Self::Folder)
    }
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { toolrest: None, only: None, large: false, out: None, effort: Effort::FULL };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--toolrest" => options.toolrest = Some(value()?.into()),
                "--out" => options.out = Some(value()?.into()),
                "--large" => options.large = true,
                "--quick" => options.effort = Effort::QUICK,
                "--only" => {
                    options.only = Some(match value()?.as_str() {
                        "sqlite" => Part::Sqlite,
                        "postgres" => Part::Postgres,
                        "sql" => Part::Sql,
                        "search" => Part::Search,
                        "folder" => Part::Folder,
                        "programs" => Part::Programs,
                        other => return Err(format!("--only does not know \"{other}\"")),
                    });
                }
                other => return Err(format!("unknown argument \"{other}\"")),
            }
        }
        match &options.toolrest {
            None if options.only.is_none_or(Part::needs_binary) => Err("--toolrest is missing".to_owned()),
            Some(binary) if !binary.is_file() => {
                Err(format!("{} is not there; build it with `cargo build --release`", binary.display()))
            }
            _ => Ok(options),
        }
    }

    fn wants(&self, part: Part) -> bool {
        match self.only {
            None => true,
            Some(only) => only == part,
        }
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
    if options.wants(Part::Sqlite) {
        over_http(&options, Backend::Sqlite, &mut report);
    }
    if options.wants(Part::Folder) {
        report.describe_machine("ripgrep", search::ripgrep::version());
        report.describe_machine("fd", search::folder::fd_version());
        report.describe_machine("git", folder_edits::git_version());
        folder_edits::run(options.effort, &mut report);
        search::folder::run(options.effort, &mut report);
    }
    if options.wants(Part::Programs) {
        let toolrest = options.toolrest.as_deref().expect("parsing asked for the binary");
        programs::run(toolrest, options.effort, &mut report);
    }
    if !matches!(options.only, Some(Part::Sqlite | Part::Folder | Part::Programs)) {
        report.describe_machine("PostgreSQL", postgres::version());
        let cluster = Cluster::start();
        if options.wants(Part::Postgres) {
            over_http(&options, Backend::Postgres(&cluster), &mut report);
        }
        if options.only != Some(Part::Search) {
            sql_writes::run(&cluster, options.effort, &mut report);
        }
        if options.wants(Part::Search) {
            searches(&options, &cluster, &mut report);
        }
    }
    let document = report.markdown();
    println!("{document}");
    if let Some(out) = &options.out {
        fs::write(out, &document).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
    }
    ExitCode::SUCCESS
}

fn searches(options: &Options, cluster: &Cluster, report: &mut Report) {
    if options.only.is_some() {
        report.describe_machine("ripgrep", search::ripgrep::version());
    }
    let toolrest = options.toolrest.as_deref().expect("parsing asked for the binary");
    search::run(toolrest, cluster, options.effort, report);
    if options.large {
        search::large::run(toolrest, options.effort, report);
    }
}

fn over_http(options: &Options, backend: Backend, report: &mut Report) {
    let toolrest = options.toolrest.as_deref().expect("parsing asked for the binary");
    let server = Server::start(toolrest, backend, "load");
    moves::run(&server, options.effort, report);
    cpu::run(&server, options.effort, report);
    updates::run(&server, options.effort, report);
    drop(server);
    let server = Server::start(toolrest, backend, "memory");
    memory::run(&server, report);
}
