//! Retrieving and searching among many memories.

use serde_json::{Value, json};

use super::{Effort, median_of, per_round};
use crate::contents;
use crate::load::{self, Repeated, Round};
use crate::report::{Figure, Report, Target, number};
use crate::server::{Backend, Server};

/// Number of tags that memories have in turn.
const TAGS: usize = 1000;
const VALUE_BYTES: usize = 200;

pub fn run(server: &Server, effort: Effort, report: &mut Report) {
    let backend = server.backend();
    eprintln!("memories on {}", backend.name());
    report.section(
        format!("Memories, {}", backend.name()),
        format!(
            "Calls over HTTP from one connection, p50, in a workspace with {} memories of {VALUE_BYTES} bytes. A tag has \
             {} of them.",
            number(effort.memories as f64),
            effort.memories / TAGS
        ),
    );
    let session = server.session();
    let workspace = session.create_workspace("memories");
    server.prepare(effort.memories, |session, index| {
        let value = format!("number{index} {}", contents::prose(index as u64, VALUE_BYTES));
        let tags = [format!("tag{}", index % TAGS), "all".to_owned()];
        let args = json!({"key": format!("key{index}"), "value": value, "tags": tags});
        let reply = session.exchange(&session.render_call(&workspace, "backend", "memory_save", &args));
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    });
    // The connection of the first session was closed meanwhile, because it was idle.
    let session = server.session();
    let middle = effort.memories / 2;
    let target = |bound| if matches!(backend, Backend::Sqlite) { Target::AtMost(bound) } else { Target::None };
    let cases: [(&str, &str, Value, Target); 5] = [
        ("memory_retrieve by key", "memory_retrieve", json!({"key": format!("key{middle}")}), target(1.0)),
        ("memory_retrieve by a tag", "memory_retrieve", json!({"tags": ["tag7"]}), Target::None),
        (
            "memory_retrieve by a rare and a common tag",
            "memory_retrieve",
            json!({"tags": ["tag7", "all"]}),
            Target::None,
        ),
        ("memory_search for a rare word", "memory_search", json!({"query": format!("number{middle}")}), target(10.0)),
        ("memory_search for two words of many", "memory_search", json!({"query": "parser number5"}), target(10.0)),
    ];
    for (case, tool, args, target) in cases {
        let request = session.render_call(&workspace, "backend", tool, &args);
        let found = session.exchange(&request);
        let found: Value = serde_json::from_slice(&found.body).expect("JSON");
        let count = found["result"]["items"].as_array().map_or(0, Vec::len);
        assert!(count > 0, "{case} finds nothing: {found}");
        let load = |duration| load::run(server, 1, duration, |_| Repeated(request.clone()));
        load(effort.warm_up);
        let rounds: Vec<Round> = (0..effort.rounds).map(|_| load(effort.round)).collect();
        report.add(Figure {
            case: case.to_owned(),
            unit: "ms",
            rounds: per_round(&rounds, |round| round.latency_ms(50)),
            target,
            notes: format!("{count} found; p99 {} ms, CPU {} ms", p99(&rounds), median_of(&rounds, Round::cpu_ms)),
        });
    }
}

fn p99(rounds: &[Round]) -> String {
    median_of(rounds, |round| round.latency_ms(99))
}
