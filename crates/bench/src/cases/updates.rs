//! Durable updates per second, compared with what the disk can sync.

use std::time::Duration;

use super::{Effort, latencies, median_of, per_round};
use crate::load::{self, Round, Updates};
use crate::process;
use crate::report::{Figure, Report, Target};
use crate::server::{Backend, Server};

const DOCUMENTS: usize = 500;

pub fn run(server: &Server, effort: Effort, report: &mut Report) {
    let backend = server.backend();
    eprintln!("updates per second on {}", backend.name());
    let (connections, target) = match backend {
        Backend::Sqlite => (32, Target::AtLeast(5000.0)),
        Backend::Postgres(_) => (8, Target::None),
    };
    report.section(
        format!("Durable updates over HTTP, {}", backend.name()),
        format!("Writes of new contents to {DOCUMENTS} documents; an answer means that the write is on disk."),
    );
    let workspace = server.session().create_workspace("updates");
    let mut syncs = Vec::new();
    let mut measured = [("4 KB", 4096), ("1 KB", 1024)].map(|(name, size)| (name, size, Vec::new()));
    let update = |size, duration| {
        load::run(server, connections, duration, |connection| {
            Updates::new(server, &workspace, DOCUMENTS, size, connection)
        })
    };
    Updates::prepare(server, &workspace, DOCUMENTS, 1024);
    update(1024, effort.warm_up);
    for _ in 0..effort.rounds {
        syncs.push(process::fdatasync_per_second(server.data_folder(), Duration::from_secs(1)));
        for (_, size, rounds) in &mut measured {
            rounds.push(update(*size, effort.round));
        }
    }
    for (name, _, rounds) in measured {
        report.add(Figure {
            case: format!("updates with {name} from {connections} connections"),
            unit: "/s",
            rounds: per_round(&rounds, Round::requests_per_second),
            target,
            notes: format!("{}, CPU {} ms per write", latencies(&rounds), median_of(&rounds, Round::cpu_ms)),
        });
    }
    // Figures of writes depend on the speed of the disk at that time.
    report.add(Figure {
        case: "fdatasync of 4 KB on this disk".to_owned(),
        unit: "/s",
        rounds: syncs,
        target: Target::None,
        notes: "one after the other, between the rounds above".to_owned(),
    });
}
