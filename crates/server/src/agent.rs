//! Options of the toolset `agent` from the settings.

use crate::settings::{EditTools, Settings};
use std::time::Duration;
use toolrest_toolsets::AgentOptions;

/// Returns the options of the toolset. Tools that the operator has turned off are not there.
pub(crate) fn options(settings: &Settings) -> AgentOptions {
    let agent = &settings.agent;
    AgentOptions {
        edit_tools: match agent.edit_tools {
            EditTools::Both => toolrest_toolsets::EditTools::Both,
            EditTools::Edit => toolrest_toolsets::EditTools::Edit,
            EditTools::Patch => toolrest_toolsets::EditTools::Patch,
        },
        has_programs: settings.run.enabled,
        has_web: settings.web.enabled && !settings.web.fetch_hosts.is_empty(),
        wait: Duration::from_secs(agent.wait_seconds),
        read_bytes: agent.read_bytes,
        web_bytes: agent.web_bytes,
        changes_bytes: agent.changes_bytes,
        run_bytes: agent.run_bytes,
        grep_bytes: agent.grep_bytes,
        ls_bytes: agent.ls_bytes,
        edit_bytes: agent.edit_bytes,
    }
}
