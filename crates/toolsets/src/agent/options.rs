//! Options of the toolset.

use std::time::Duration;

/// Which of the two editors a model gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditTools {
    /// Both.
    #[default]
    Both,
    /// Only `edit`.
    Edit,
    /// Only `apply_patch`.
    Patch,
}

/// Options of the toolset: which tools there are, and the maximum sizes of their answers.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// The editors.
    pub edit_tools: EditTools,
    /// Whether programs can be run.
    pub has_programs: bool,
    /// Whether the operator allows the web.
    pub has_web: bool,
    /// How long a call waits for a program if it does not say otherwise.
    pub wait: Duration,
    /// Maximum size of an answer of `read`.
    pub read_bytes: usize,
    /// Maximum size of an answer of `web_fetch`.
    pub web_bytes: usize,
    /// Maximum size of an answer of `changes`.
    pub changes_bytes: usize,
    /// Maximum size of an answer of `run` and `job`.
    pub run_bytes: usize,
    /// Maximum size of an answer of `grep`.
    pub grep_bytes: usize,
    /// Maximum size of an answer of `ls`.
    pub ls_bytes: usize,
    /// Maximum size of an answer of a tool that changes files.
    pub edit_bytes: usize,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            edit_tools: EditTools::Both,
            has_programs: true,
            has_web: false,
            wait: Duration::from_secs(45),
            read_bytes: 32_768,
            web_bytes: 16_384,
            changes_bytes: 12_288,
            run_bytes: 10_240,
            grep_bytes: 8_192,
            ls_bytes: 6_144,
            edit_bytes: 3_072,
        }
    }
}
