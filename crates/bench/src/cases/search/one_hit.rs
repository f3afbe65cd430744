//! CPU time of a search that finds one line in many documents.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::cases::{Effort, latencies, median_of, per_round};
use crate::contents;
use crate::load::{self, Repeated, Round};
use crate::report::{Figure, Report, Target};
use crate::server::{Backend, Server};

const DOCUMENTS: usize = 5000;
const CONTENT_BYTES: usize = 4096;
const CONNECTIONS: usize = 8;
const NEEDLE: &str = "quizzical_lathe";

pub fn run(toolrest: &Path, backend: Backend, effort: Effort, report: &mut Report) {
    eprintln!("CPU per search on {}", backend.name());
    let server = Server::start(toolrest, backend);
    let session = server.session();
    let workspace = session.create_workspace("one hit");
    server.prepare(DOCUMENTS, |session, index| {
        let mut text = contents::prose(index as u64, CONTENT_BYTES);
        if index == DOCUMENTS / 2 {
            text.insert_str(CONTENT_BYTES / 2, NEEDLE);
        }
        session.write(&workspace, &format!("/folder-{:02}/document-{index:04}.md", index % 50), &text);
    });
    let found = session.tool(&workspace, "grep", &json!({"pattern": NEEDLE}));
    assert_eq!(found["matches"].as_array().map(Vec::len), Some(1), "{found}");

    let request = server.render_tool(&workspace, "grep", &json!({"pattern": NEEDLE}));
    let search = |duration: Duration| load::run(&server, CONNECTIONS, duration, |_| Repeated(request.clone()));
    search(effort.warm_up);
    let rounds: Vec<Round> = (0..effort.rounds).map(|_| search(effort.round)).collect();
    report.section(
        format!("CPU per search, {}", backend.name()),
        format!(
            "CPU time (user and system) of the server and all database processes, divided by the number of searches; \
             {CONNECTIONS} keep-alive connections, in memory."
        ),
    );
    report.add(Figure {
        case: "one line in 5,000 documents of 4 KB".to_owned(),
        unit: "ms",
        rounds: per_round(&rounds, Round::cpu_ms),
        target: Target::AtMost(2.0),
        notes: format!(
            "{}/s, {}; database {} ms of it",
            median_of(&rounds, Round::requests_per_second),
            latencies(&rounds),
            median_of(&rounds, |round| round.per_request_ms(round.cpu.database))
        ),
    });
}
