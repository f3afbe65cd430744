//! Memory of a server with many workspaces and nothing to do.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::contents;
use crate::report::{Figure, Report, Target, number};
use crate::server::Server;

const WORKSPACES: usize = 10_000;
const IDLE: Duration = Duration::from_secs(2);
const TARGET: Target = Target::AtMost(60.0);

/// Takes a server that has done nothing else, so that nothing else has left caches behind.
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
    let resident = server.resident();
    Figure {
        case: case.to_owned(),
        unit: "MB",
        rounds: vec![resident.total_mb],
        target,
        beside: format!("{} MB without mapped files", number(resident.anonymous_mb)),
    }
}
