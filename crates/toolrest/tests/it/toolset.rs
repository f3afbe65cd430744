//! Calls of toolsets, independent of the format of their answers.

use serde_json::Value;
use toolrest_testkit::Workspace;

use crate::on::text_at;

/// A toolset, with JSON pointers to the parts of its answers.
pub struct Toolset {
    name: &'static str,
    result: &'static str,
    code: &'static str,
    message: &'static str,
}

pub const FILE: Toolset = Toolset { name: "file", result: "", code: "/error", message: "/message" };
pub const SYSTEM: Toolset =
    Toolset { name: "system", result: "/value", code: "/error/code", message: "/error/message" };
pub const BACKEND: Toolset =
    Toolset { name: "backend", result: "/result", code: "/error/code", message: "/error/message" };
pub const CODING: Toolset = Toolset { name: "coding", result: "", code: "/error", message: "/message" };

impl Toolset {
    /// Calls a tool that must succeed, and returns its result.
    pub async fn ok(&self, workspace: &Workspace, tool: &str, args: Value) -> Value {
        let mut body = workspace.call_of(self.name, tool, &args).await.success();
        body.pointer_mut(self.result).unwrap_or_else(|| panic!("{tool} gave no result")).take()
    }

    /// Calls a tool that must be refused with this status and code, and returns the message.
    pub async fn refused(&self, workspace: &Workspace, status: u16, code: &str, tool: &str, args: Value) -> String {
        let reply = workspace.call_of(self.name, tool, &args).await;
        assert_eq!(reply.status, status, "{reply}");
        let body = reply.json();
        assert_eq!(text_at(&body, self.code), code, "{reply}");
        text_at(&body, self.message).to_owned()
    }
}
