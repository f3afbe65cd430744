//! Time from a decision to the start of the call.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use toolrest_core::Timestamp;

use super::Effort;
use crate::report::{Figure, Report, Target};
use crate::server::{Backend, Server, Session};

pub fn run(server: &Server, effort: Effort, report: &mut Report) {
    let backend = server.backend();
    eprintln!("decisions on {}", backend.name());
    report.section(
        format!("From decision to start, {}", backend.name()),
        "Time from a person's decision until the approved call is started, as the events of the approval say. The caller \
         holds its connection. Each value is the p50 of its round.",
    );
    let replica = matches!(backend, Backend::Postgres(_)).then(|| server.replica(&[]));
    let mut cases = vec![("decided on the server that holds the call", server, Target::AtMost(20.0))];
    if let Some(replica) = &replica {
        cases.push(("decided on another replica", replica, Target::AtMost(100.0)));
    }
    for (case, decider, target) in cases {
        let workspace = server.session().create_workspace("approvals");
        let rules = json!({"rules": ["ask write"], "approvals": "spec"});
        server.session().send("PUT", &format!("/workspaces/{workspace}/rules"), Some(&rules));
        let mut waits = decisions(&server.session(), &decider.session(), &workspace, effort.decisions);
        waits.sort_by(f64::total_cmp);
        let at = |percent: usize| waits[waits.len() * percent / 100];
        report.add(Figure {
            case: case.to_owned(),
            unit: "ms",
            rounds: vec![at(50)],
            target,
            notes: format!(
                "p50 of {} decisions; p95 {:.1} ms, longest {:.1} ms",
                waits.len(),
                at(95),
                waits[waits.len() - 1]
            ),
        });
    }
}

/// Decides about calls one after the other, and returns the times in milliseconds.
fn decisions(owner: &Session, decider: &Session, workspace: &str, count: usize) -> Vec<f64> {
    let agent = owner.agent(workspace);
    let approvals = format!("/workspaces/{workspace}/approvals");
    (0..count)
        .map(|n| {
            let args = json!({"path": format!("{n}.txt"), "content": "text"});
            let request = agent.render_call(workspace, "system", "write_file", &args);
            thread::scope(|scope| {
                let held = scope.spawn(|| agent.exchange(&request));
                let id = loop {
                    let listed = decider.send("GET", &format!("{approvals}?state=pending"), None);
                    if let Some(approval) = listed["approvals"].as_array().and_then(|all| all.first()) {
                        break approval["id"].as_str().expect("an id").to_owned();
                    }
                    thread::sleep(Duration::from_millis(5));
                };
                decider.send("POST", &format!("{approvals}/{id}/decision"), Some(&json!({"decision": "approve"})));
                assert_eq!(held.join().expect("no panic").status, 200);
                let shown = decider.send("GET", &format!("{approvals}/{id}"), None);
                let at = |kind: &str| time_of(&shown["events"], kind).as_microsecond();
                (at("executing") - at("approved")) as f64 / 1e3
            })
        })
        .collect()
}

fn time_of(events: &Value, kind: &str) -> Timestamp {
    let event = events.as_array().and_then(|events| events.iter().find(|event| event["kind"] == kind));
    let at = event.and_then(|event| event["at"].as_str()).unwrap_or_else(|| panic!("no event {kind} in {events}"));
    at.parse().expect("a time")
}
