//! The `agent` toolset: the tools that a model gets by default. Its answers are texts within budgets.

mod answer;
mod apply_patch;
mod arguments;
mod changes;
mod commits;
mod edit;
mod errors;
mod grep;
mod history;
mod job;
mod jobs;
mod locate;
mod ls;
mod options;
mod output;
mod read;
mod results;
mod run;
mod session;
mod tree;
mod undo;
mod web_fetch;
mod write;

pub use options::{AgentOptions, EditTools};

use crate::{Services, errors as error_table};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolrest_core::{Annotations, Dialect, Sessions, Success, ToolError, Toolset, WaitingCall, WaitingCalls};
use toolrest_ops::exec::Processes;

/// What the tools of this toolset share.
pub(crate) struct Kit {
    options: AgentOptions,
    sessions: Arc<dyn Sessions>,
    repeats: session::Repetitions,
    processes: Arc<Processes>,
    jobs: jobs::Jobs,
    waiting_calls: Arc<dyn WaitingCalls>,
}

/// The hints of tools that only read.
const READER: Annotations =
    Annotations { read_only: Some(true), destructive: None, idempotent: None, open_world: Some(false) };
/// The hints of tools that change files: every change can be undone.
const EDITOR: Annotations =
    Annotations { read_only: None, destructive: Some(false), idempotent: None, open_world: Some(false) };

/// Returns the toolset with the tools that can work.
pub(crate) fn toolset(services: &Services) -> Toolset {
    let options = services.agent.clone();
    let kit = Arc::new(Kit {
        options: options.clone(),
        sessions: Arc::clone(&services.sessions),
        repeats: session::Repetitions::default(),
        processes: Arc::clone(&services.processes),
        jobs: jobs::Jobs::default(),
        waiting_calls: Arc::clone(&services.waiting_calls),
    });
    let of = || Arc::clone(&kit);
    let mut toolset = Toolset::new("agent", Arc::new(AgentDialect(of())))
        .with(read::Read(of()))
        .with(ls::Ls(of()))
        .with(grep::Grep(of()));
    if options.edit_tools != EditTools::Patch {
        toolset = toolset.with(edit::Edit(of()));
    }
    toolset = toolset.with(write::Write(of()));
    if options.edit_tools != EditTools::Edit {
        toolset = toolset.with(apply_patch::ApplyPatch(of()));
    }
    if options.has_programs {
        toolset = toolset.with(run::Run(of()));
    }
    toolset = toolset.with(job::Job(of())).with(changes::Changes(of())).with(undo::Undo(of()));
    if options.has_web {
        toolset = toolset.with(web_fetch::WebFetch { kit: of(), web: Arc::clone(&services.web) });
    }
    toolset
}

/// The answer format: `{"text", "data", "blocks"?}`, and `{"error", "text"}` for an error.
struct AgentDialect(Arc<Kit>);

impl Dialect for AgentDialect {
    fn success(&self, success: &Success<'_>) -> Vec<u8> {
        success.result.as_bytes().to_vec()
    }

    fn failure(&self, error: &ToolError, _: &str) -> Vec<u8> {
        #[derive(Serialize)]
        struct Failure {
            error: &'static str,
            text: String,
        }
        let body = Failure { error: error_table::agent_code(error.kind), text: errors::text(error) };
        // Strings always serialise.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn add_pending_fields(&self, body: &mut Map<String, Value>, waiting: &WaitingCall<'_>) {
        body.remove("error");
        body.insert("text".to_owned(), json!(errors::waiting(waiting.approval, self.0.jobs.waiting(waiting.approval))));
    }

    fn status(&self, error: &ToolError) -> u16 {
        error_table::row(error.kind).status
    }

    fn is_text(&self) -> bool {
        true
    }
}
