//! Calls of the file tools in the form of specification 000: find the executor of a tool, then execute it.

use serde::Serialize;
use serde_json::Value;
use toolrest_core::{Caller, DynTool, ErrorKind, Result, ToolError, WorkspaceId};
use toolrest_server::Runtime;
use toolrest_toolsets::workspace;

/// Runs one tool of the toolset `workspace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolExecutor {
    tool: &'static str,
}

/// The answer of a tool, in the format of specification 000.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolResponse {
    /// Whether the tool did what was asked.
    pub success: bool,
    /// Its result; null if it failed.
    pub result: Value,
    /// Why it failed.
    pub error: Option<String>,
}

/// Returns the executor of a tool of the toolset `workspace`.
pub fn get_tool_executor(tool_name: &str) -> Result<ToolExecutor> {
    match workspace::toolset().find(tool_name).map(DynTool::name) {
        Some(tool) => Ok(ToolExecutor { tool }),
        None => Err(ToolError::new(ErrorKind::UnknownTool, format!("Tool '{tool_name}' not found"))),
    }
}

impl ToolExecutor {
    /// Returns the name of the tool.
    pub fn name(&self) -> &'static str {
        self.tool
    }

    /// Runs the tool. What the tool refuses is a response; an error is that of Toolrest itself.
    pub async fn execute(
        &self,
        runtime: &Runtime,
        workspace: WorkspaceId,
        caller: Caller,
        args: &(impl Serialize + Sync),
    ) -> Result<ToolResponse> {
        match runtime.call(workspace, caller, "workspace", self.tool, args).await {
            Ok(outcome) => {
                let result = serde_json::from_str(&outcome.json()?).map_err(ToolError::internal)?;
                Ok(ToolResponse { success: true, result, error: None })
            }
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => Ok(ToolResponse { success: false, result: Value::Null, error: Some(error.message) }),
        }
    }
}
