//! CPU time of server and database per request.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use super::{Effort, latencies, median_of, per_round};
use crate::contents;
use crate::load::{self, Repeated, Round, Updates};
use crate::report::{Figure, Report, Target, median, number};
use crate::server::{Backend, Server};

const CONNECTIONS: usize = 8;
const CONTENT_BYTES: usize = 1024;
const DOCUMENTS: usize = 500;
const LISTED: usize = 1000;

#[derive(Clone, Copy)]
enum Case {
    Read,
    Update,
    Ls,
}

impl Case {
    const ALL: [Self; 3] = [Self::Read, Self::Update, Self::Ls];

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read of a 1 KB document",
            Self::Update => "update with 1 KB, one of 500 documents",
            Self::Ls => "ls of a folder with 1,000 files",
        }
    }

    fn target(self, backend: Backend) -> Target {
        match (backend, self) {
            (Backend::Sqlite, Self::Read) => Target::AtMost(0.080),
            (Backend::Sqlite, Self::Update) => Target::None,
            (Backend::Sqlite, Self::Ls) => Target::AtMost(0.8),
            (Backend::Postgres(_), Self::Read) => Target::AtMost(0.22),
            (Backend::Postgres(_), Self::Update) => Target::AtMost(0.45),
            (Backend::Postgres(_), Self::Ls) => Target::AtMost(1.5),
        }
    }

    /// CPU time of the original implementation of this API on PostgreSQL, on the same kind of machine.
    fn original_ms(self) -> f64 {
        match self {
            Self::Read => 0.89,
            Self::Update => 1.71,
            Self::Ls => 7.3,
        }
    }

    fn load(self, server: &Server, workspace: &str, duration: Duration) -> Round {
        match self {
            Self::Read => {
                let request = server.render_tool(workspace, "read", &json!({"path": "/read.md"}));
                load::run(server, CONNECTIONS, duration, |_| Repeated(request.clone()))
            }
            Self::Update => load::run(server, CONNECTIONS, duration, |connection| {
                Updates::new(server, workspace, DOCUMENTS, CONTENT_BYTES, connection)
            }),
            Self::Ls => {
                let request = server.render_tool(workspace, "ls", &json!({"path": "/listed"}));
                load::run(server, CONNECTIONS, duration, |_| Repeated(request.clone()))
            }
        }
    }
}

pub fn run(server: &Server, effort: Effort, report: &mut Report) {
    let backend = server.backend();
    eprintln!("CPU per request on {}", backend.name());
    report.section(
        format!("CPU per request, {}", backend.name()),
        format!(
            "CPU time (user and system) of the server and all database processes, divided by the number of requests; \
             {CONNECTIONS} keep-alive connections. It includes the writes that follow an answer in batches."
        ),
    );
    let workspace = prepare(server);
    let mut measured = Case::ALL.map(|case| (case, Vec::new()));
    for (case, _) in &measured {
        case.load(server, &workspace, effort.warm_up);
    }
    for _ in 0..effort.rounds {
        for (case, rounds) in &mut measured {
            rounds.push(case.load(server, &workspace, effort.round));
        }
    }
    check_updates(server, &workspace);
    for (case, rounds) in measured {
        report.add(figure(case, backend, &rounds));
    }
}

fn prepare(server: &Server) -> String {
    let session = server.session();
    let workspace = session.create_workspace("cpu");
    let text = contents::prose(1, CONTENT_BYTES);
    session.write(&workspace, "/read.md", &text);
    assert_eq!(session.read(&workspace, "/read.md"), text);

    Updates::prepare(server, &workspace, DOCUMENTS, CONTENT_BYTES);
    server.prepare(LISTED, |session, index| {
        let path = format!("/listed/file-{index:04}.md");
        session.write(&workspace, &path, "A line of text.\n");
    });
    let listing = session.tool(&workspace, "ls", &json!({"path": "/listed"}));
    assert_eq!(listing["entries"].as_array().map(Vec::len), Some(LISTED));
    workspace
}

/// Checks that the updates were really written.
fn check_updates(server: &Server, workspace: &str) {
    let session = server.session();
    let changed = (0..DOCUMENTS)
        .filter(|&index| {
            let now = session.read(workspace, &Updates::path(index));
            assert_eq!(now.len(), CONTENT_BYTES);
            now != contents::prose(index as u64, CONTENT_BYTES)
        })
        .count();
    assert!(changed > DOCUMENTS / 2, "only {changed} documents were updated");
}

fn figure(case: Case, backend: Backend, rounds: &[Round]) -> Figure {
    let cpu_ms = per_round(rounds, Round::cpu_ms);
    let mut notes = format!("{}/s, {}", median_of(rounds, Round::requests_per_second), latencies(rounds));
    if let Backend::Postgres(_) = backend {
        let ratio = case.original_ms() / median(&cpu_ms);
        let database = median_of(rounds, |round| round.per_request_ms(round.cpu.database));
        let _ = write!(
            notes,
            "; database {database} ms of it; the original takes {} ms, {}× as much",
            number(case.original_ms()),
            number(ratio)
        );
    }
    let generator = median_of(rounds, |round| round.per_request_ms(round.generator_cpu));
    let _ = write!(notes, "; generator {generator} ms on top");
    Figure { case: case.name().to_owned(), unit: "ms", rounds: cpu_ms, target: case.target(backend), notes }
}
