//! Approvers, with which a program decides about the calls that it makes through [`Runtime::call`](crate::Runtime::call).

use crate::approvals::{MAX_RACES, Shown, is_race};
use crate::runtime::Runtime;
use async_trait::async_trait;
use serde_json::Value;
use toolrest_core::{Ask, Call, CallOutcome, ErrorKind, JsonText, Permission, Result, ToolError, WorkspaceId};

/// Decides about calls that must ask, instead of a stored approval that waits for a person.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Decides about a call. The call waits, and holds nothing meanwhile. If what the call would do changes before it
    /// runs, because somebody changed a file, the approver is asked again with the next revision.
    async fn decide(&self, request: &ApprovalRequest) -> ApproverDecision;
}

/// A call that must ask, and what it would do.
#[derive(Clone, Debug)]
pub struct ApprovalRequest {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The toolset.
    pub toolset: String,
    /// The tool.
    pub tool: String,
    /// The arguments, as JSON.
    pub args: Value,
    /// What must be allowed, with the rule that asks.
    pub asks: Vec<Ask>,
    /// A unified diff of every file that it would change. Control characters are visible in it.
    pub diff: String,
    /// The whole command or code that it would run.
    pub command: Option<String>,
    /// Counts how often something else was shown, from 1.
    pub revision: u32,
}

/// What an approver decides.
#[derive(Clone, Debug, PartialEq)]
pub enum ApproverDecision {
    /// The call runs.
    Approve,
    /// The call runs with other arguments. `deny` still refuses it; what these arguments would ask about is allowed.
    ApproveWith(Value),
    /// The call is refused, with a reason for the agent.
    Deny(String),
    /// The call does not run, and the agent gets this answer.
    Respond(String),
}

/// Makes a call, and asks the approver if it must ask.
pub(crate) async fn call(runtime: &Runtime, mut call: Call, approver: &dyn Approver) -> Result<CallOutcome> {
    match runtime.engine.call(&call, &Permission::Ask, Ok).await {
        Err(error) if !error.asks().is_empty() => {}
        ended => return ended,
    }
    let first = Shown::of(runtime, &call).await?;
    let (mut accepted, mut revision) = (first.preview.shown.clone(), 1);
    let mut edited = None;
    if let Some(args) = allowed(approver.decide(&request(&call, &first, revision)?).await)? {
        let args = JsonText::of(&args)?;
        if !args.is_object() {
            return Err(ToolError::argument("args", "The approver's arguments must be a JSON object"));
        }
        edited = Some(args.as_str().to_owned());
        call.args = args;
        accepted = Shown::of(runtime, &call).await?.preview.shown;
    }
    for _ in 0..MAX_RACES {
        // A person may take long to decide, so the conditions are those of now.
        let shown = Shown::of(runtime, &call).await?;
        if shown.preview.shown != accepted {
            revision += 1;
            if allowed(approver.decide(&request(&call, &shown, revision)?).await)?.is_some() {
                let message = "The files changed meanwhile; the approver can only approve or refuse what is shown now";
                return Err(ToolError::new(ErrorKind::Conflict, message));
            }
            accepted = shown.preview.shown;
            continue;
        }
        let has_conditions = !shown.conditions.is_empty();
        let permission = Permission::ApprovedHere(shown.conditions);
        let ended = runtime.engine.call(&call, &permission, |mut outcome| {
            if let Some(args) = &edited {
                outcome.warnings.push(format!("The arguments were changed before the approval: {args}").into());
            }
            Ok(outcome)
        });
        match ended.await {
            Err(error) if has_conditions && is_race(error.kind) => {}
            ended => return ended,
        }
    }
    Err(ToolError::new(ErrorKind::Conflict, "The files change all the time, so the approved call was not run"))
}

/// Returns the arguments that an approver chose instead, if it did. A refusal and an answer are errors for the agent.
fn allowed(decision: ApproverDecision) -> Result<Option<Value>> {
    match decision {
        ApproverDecision::Approve => Ok(None),
        ApproverDecision::ApproveWith(args) => Ok(Some(args)),
        ApproverDecision::Deny(reason) => {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            Err(ToolError::new(ErrorKind::ApprovalDenied, format!("This call was refused{why}. Nothing was done")))
        }
        ApproverDecision::Respond(text) => {
            Err(ToolError::new(ErrorKind::ApprovalDenied, format!("The call was not run. The answer to it: {text}")))
        }
    }
}

fn request(call: &Call, shown: &Shown, revision: u32) -> Result<ApprovalRequest> {
    Ok(ApprovalRequest {
        workspace: call.workspace,
        toolset: call.toolset.clone(),
        tool: call.tool.clone(),
        args: serde_json::from_str(call.args.as_str()).map_err(ToolError::internal)?,
        asks: shown.asks.clone(),
        diff: shown.preview.diff.clone(),
        command: shown.preview.command.clone(),
        revision,
    })
}
