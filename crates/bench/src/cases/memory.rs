//! Memory of an idle server with many workspaces.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::contents;
use crate::report::{Figure, Report, Target, number};
use crate::server::Server;

const WORKSPACES: usize = 10_000;
const IDLE: Duration = Duration::from_secs(2);
const TARGET: Target = Target::AtMost(60.0);

/// Needs a server that was just started, so that its caches are empty.
pub fn run(server: &Server, report: &mut Report) {
    let backend = server.backend();
    eprintln!("memory on {}", backend.name());
    report.section(
        format!("Memory, {}", backend.name()),
        format!("Resident memory (RSS) of the server process in MB (10⁶ bytes), after {IDLE:?} without a request."),
    );
    report.add(figure("just started", server, Target::None));

    let workspaces = Mutex::new(Vec::with_capacity(WORKSPACES));
    server.prepare(WORKSPACES, |session, index| {
        let workspace = session.create_workspace(&format!("workspace {index}"));
        workspaces.lock().expect("no worker panicked").push(workspace);
    });
    let workspaces = workspaces.into_inner().expect("no worker panicked");
    report.add(figure("10,000 idle workspaces", server, TARGET));

    let text = contents::prose(1, 1024);
    server.prepare(WORKSPACES, |session, index| {
        session.write(&workspaces[index], "/notes.md", &text);
        assert_eq!(session.read(&workspaces[index], "/notes.md").len(), text.len());
    });
    report.add(figure("10,000 idle workspaces, after one read (of 1 KB) in each", server, TARGET));
}

fn figure(case: &str, server: &Server, target: Target) -> Figure {
    thread::sleep(IDLE);
    let resident = server.resident_memory();
    Figure {
        case: case.to_owned(),
        unit: "MB",
        rounds: vec![resident.total_mb],
        target,
        notes: format!("{} MB without mapped files", number(resident.anonymous_mb)),
    }
}
