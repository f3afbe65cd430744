//! CPU time that rules add to calls which need no approval.

use std::time::Duration;

use serde_json::json;

use super::{Effort, median_of};
use crate::contents;
use crate::load::{self, Repeated, Round, Updates};
use crate::report::{Figure, Report, Target};
use crate::server::Server;

const CONNECTIONS: usize = 8;
const DOCUMENTS: usize = 500;
const CONTENT_BYTES: usize = 1024;
const RULES: usize = 100;
/// What policy may add to a call.
const TARGET: Target = Target::AtMost(5.0);

#[derive(Clone, Copy)]
enum Case {
    Read,
    Update,
}

impl Case {
    fn load(self, server: &Server, workspace: &str, duration: Duration) -> Round {
        match self {
            Self::Read => {
                let request = server.render_tool(workspace, "read", &json!({"path": "/read.md"}));
                load::run(server, CONNECTIONS, duration, |_| Repeated(request.clone()))
            }
            Self::Update => load::run(server, CONNECTIONS, duration, |connection| {
                Updates::new(server, workspace, DOCUMENTS, CONTENT_BYTES, connection)
            }),
        }
    }
}

pub fn run(server: &Server, effort: Effort, report: &mut Report) {
    let backend = server.backend();
    eprintln!("rules on {}", backend.name());
    report.section(
        format!("Rules, {}", backend.name()),
        format!(
            "CPU time that {RULES} rules, of which none matches, add to a call, in percent of the call in a workspace without \
             rules and approvals. The two are measured in turn."
        ),
    );
    let without = prepare(server, &[], "off");
    let with = prepare(server, &rules(), "spec");
    for (case, name) in [(Case::Read, "read of a 1 KB document"), (Case::Update, "update with 1 KB")] {
        case.load(server, &without, effort.warm_up);
        case.load(server, &with, effort.warm_up);
        let (mut added, mut plain, mut judged) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..effort.rounds {
            plain.push(case.load(server, &without, effort.round));
            judged.push(case.load(server, &with, effort.round));
            let (before, after) = (plain[plain.len() - 1].cpu_ms(), judged[judged.len() - 1].cpu_ms());
            added.push((after / before - 1.0) * 100.0);
        }
        let cpu = |rounds| median_of(rounds, Round::cpu_ms);
        report.add(Figure {
            case: name.to_owned(),
            unit: "%",
            rounds: added,
            target: TARGET,
            notes: format!("CPU {} ms without rules, {} ms with", cpu(&plain), cpu(&judged)),
        });
    }
}

/// Returns rules about paths that no call of the measurement uses.
fn rules() -> Vec<String> {
    let rule = |n| match n % 4 {
        0 => format!("deny write(private-{n}/**)"),
        1 => format!("deny read(**/secret-{n}.key)"),
        2 => format!("ask write(legal/{n}/**)"),
        _ => format!("allow write(drafts-{n}/*.md)"),
    };
    (0..RULES).map(rule).collect()
}

fn prepare(server: &Server, rules: &[String], approvals: &str) -> String {
    let session = server.session();
    let workspace = session.create_workspace("rules");
    session.write(&workspace, "/read.md", &contents::prose(1, CONTENT_BYTES));
    Updates::prepare(server, &workspace, DOCUMENTS, CONTENT_BYTES);
    let body = json!({"rules": rules, "approvals": approvals});
    session.send("PUT", &format!("/workspaces/{workspace}/rules"), Some(&body));
    workspace
}
