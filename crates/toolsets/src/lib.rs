//! The published toolsets. A toolset translates arguments and answers and does nothing else; each tool has one file.

mod agent;
mod arguments;
mod backend;
mod coding;
mod error_text;
pub mod errors;
mod file;
mod memory_item;
mod not_listed;
mod plain;
mod program_result;
mod system;
mod text;
pub mod workspace;

pub use agent::{AgentOptions, EditTools};

use std::sync::Arc;
use toolrest_core::{
    Memories, NoMemories, NoSecrets, NoSessions, NoWaitingCalls, Secrets, Sessions, Toolsets, WaitingCalls,
};
use toolrest_ops::exec::{ExecOptions, Executor, ProcessOptions, Processes};
use toolrest_ops::github::{GitHub, GitHubOptions, NoTokens};
use toolrest_ops::outside::http_client::HttpClient;
use toolrest_ops::web::Web;

/// The services that tools use in addition to the workspace.
#[derive(Clone)]
pub struct Services {
    /// Runs programs.
    pub executor: Arc<Executor>,
    /// Runs programs in the background.
    pub processes: Arc<Processes>,
    /// Stores memories.
    pub memories: Arc<dyn Memories>,
    /// Reads the secrets of workspaces; see [`toolrest_core::secret_of_call`].
    pub secrets: Arc<dyn Secrets>,
    /// Reaches the web.
    pub web: Arc<Web>,
    /// Reaches GitHub.
    pub github: Arc<GitHub>,
    /// Keeps long results, and which commits belong to a session.
    pub sessions: Arc<dyn Sessions>,
    /// Finds calls that wait for a person.
    pub waiting_calls: Arc<dyn WaitingCalls>,
    /// Options of the toolset `agent`.
    pub agent: AgentOptions,
}

impl Services {
    /// Returns services that refuse every program, for reading the tools' schemas without calling the tools.
    pub fn none() -> Self {
        let executor = Arc::new(Executor::refusing(ExecOptions::default(), "this server runs no programs"));
        let processes = Arc::new(Processes::new(Arc::clone(&executor), ProcessOptions::default()));
        let github = GitHub::new(&HttpClient::default(), GitHubOptions::default(), Arc::new(NoTokens));
        let (memories, secrets) = (Arc::new(NoMemories), Arc::new(NoSecrets));
        let (sessions, waiting_calls) = (Arc::new(NoSessions), Arc::new(NoWaitingCalls));
        let (web, github) = (Arc::default(), Arc::new(github));
        let agent = AgentOptions { has_web: true, ..AgentOptions::default() };
        Self { executor, processes, memories, secrets, web, github, sessions, waiting_calls, agent }
    }
}

/// Returns all toolsets.
pub fn all(services: &Services) -> Toolsets {
    Toolsets::default()
        .with(workspace::toolset())
        .with(file::toolset())
        .with(system::toolset(services))
        .with(backend::toolset(services))
        .with(coding::toolset())
        .with(agent::toolset(services))
}

/// Returns a count for an answer, which leaves out a count of zero.
fn counted(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}
