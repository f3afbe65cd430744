//! Calls of tools: progress, cancellation and answers.

use super::asking;
use super::cancellations::{CancelReason, Cancelled};
use super::catalogue::OfferedTool;
use super::{Connection, McpServer, Target, answers};
use crate::approvals::{self, Asked, Attempt};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ProgressNotificationParam};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use serde_json::Value;
use std::{convert::Infallible, future, time::Duration};
use tokio::time::{Instant, MissedTickBehavior};
use toolrest_core::{Call, CallId, JsonText, Permission, ToolError};

/// How often a client that asked for it is told that a call still runs.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// How long the reason of a cancellation is waited for.
const REASON_DELAY: Duration = Duration::from_millis(200);

/// Calls a tool. What a tool refuses is an answer too; only what the protocol calls wrong is an error of the protocol.
///
/// The work ends when the client cancels the request, or goes away. A command of a client that has waited long enough goes on.
pub(super) async fn call(
    server: &McpServer,
    params: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let Some(tool) = server.0.tools.find(&params.name) else {
        let known = server.0.tools.names();
        return Err(ErrorData::invalid_params(format!("Unknown tool: {}; there are {known}", params.name), None));
    };
    let cancelled = Cancelled::default();
    let id = CallId::new();
    let work = async {
        let target = server.target(&context).await?;
        let member = target.caller.member();
        let _listed = server.0.cancellations.list(member, &server.0.session, &context.id, cancelled.clone());
        answered(server, &target, id, tool, params, &context).await
    };
    tokio::pin!(work);
    let reason = tokio::select! {
        answered = &mut work => return answered,
        reason = cancelled.reason() => reason,
        // The message with the reason may be handled a moment later.
        () = context.ct.cancelled() => {
            let reason = tokio::time::timeout(REASON_DELAY, cancelled.reason()).await;
            reason.unwrap_or(CancelReason::Other)
        }
        () = server.0.closing.cancelled() => {
            return Err(ErrorData::internal_error("Toolrest is stopping", None));
        }
        never = report_progress(&context) => match never {},
    };
    // A client that only stopped waiting wants its command to go on. All other work ends here, when it is dropped.
    let target = server.0.target.borrow().clone();
    if let (CancelReason::TimedOut, Some(target)) = (reason, target) {
        target.runtime.processes.hand_over(target.workspace, &id.short());
    }
    Err(ErrorData::internal_error("The request was cancelled", None))
}

async fn answered(
    server: &McpServer,
    target: &Target,
    id: CallId,
    tool: &OfferedTool,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let runtime = &target.runtime;
    let dialect = approvals::dialect(runtime, tool.toolset);
    let args = &params.arguments.unwrap_or_default();
    let call = new_call(server, target, id, (tool.toolset, tool.tool), args)?;
    let wants_data = context.meta.get(answers::DATA).and_then(Value::as_bool).unwrap_or(false);
    let render = |outcome| answers::of_outcome(&outcome, dialect, server.0.tools.structured, wants_data);
    let options = asking::options(target);
    match approvals::attempt(runtime, &call, &options, permission(server, context), render).await {
        Ok(Attempt::Answered(result)) => return Ok(result.into()),
        Ok(Attempt::Repeated(asked)) if !matches!(asked, Asked::Pending(_)) => {
            return Ok(asking::result_of(target, tool.toolset, asked).into());
        }
        // A call that waits can still be decided by the user of the client.
        Ok(Attempt::Repeated(_) | Attempt::MustAsk) => {}
        Err(error) => return Ok(answers::of_error(&error, dialect).into()),
    }
    let reply = asking::Reply { responses: params.input_responses, state: params.request_state };
    asking::ask(server, target, call, reply, context).await
}

/// Calls a tool for what is not a call of the client, and returns its answer as JSON. A call that must ask is refused.
pub(super) async fn json(
    server: &McpServer,
    tool: (&str, &str),
    args: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<toolrest_core::Result<Value>, ErrorData> {
    if !server.0.tools.has_files {
        return Err(ErrorData::invalid_request("The agent key may not list or read files", None));
    }
    let work = async {
        let target = server.target(context).await?;
        let call = new_call(server, &target, CallId::new(), tool, args)?;
        let permission = permission(server, context);
        let answer = target
            .runtime
            .engine
            .call(&call, &permission, |outcome| serde_json::from_str(&outcome.json()?).map_err(ToolError::internal));
        Ok(answer.await)
    };
    tokio::select! {
        answer = work => answer,
        () = context.ct.cancelled() => Err(ErrorData::internal_error("The request was cancelled", None)),
        () = server.0.closing.cancelled() => Err(ErrorData::internal_error("Toolrest is stopping", None)),
    }
}

fn new_call(
    server: &McpServer,
    target: &Target,
    id: CallId,
    (toolset, tool): (&str, &str),
    args: &impl Serialize,
) -> Result<Call, ErrorData> {
    let args = JsonText::of(args).map_err(|error| ErrorData::invalid_params(error.message, None))?;
    Ok(Call {
        id,
        correlation: id.to_string(),
        toolset: toolset.to_owned(),
        tool: tool.to_owned(),
        args,
        caller: target.caller,
        workspace: target.workspace,
        session: server.0.session.clone(),
    })
}

/// Returns who allows what the rules ask about. The programs that start Toolrest for their user ask themselves, so without
/// rules, and without a way to ask the user, nothing asks twice.
fn permission(server: &McpServer, context: &RequestContext<RoleServer>) -> Permission {
    if server.0.connection == Connection::Stdio && !asking::can_ask(context) {
        Permission::AskIfConfigured
    } else {
        Permission::Ask
    }
}

/// Tells the client at intervals that the call still runs, if it asked for that.
async fn report_progress(context: &RequestContext<RoleServer>) -> Infallible {
    let Some(token) = context.meta.get_progress_token() else { return future::pending().await };
    let begun = Instant::now();
    let mut ticks = tokio::time::interval_at(begun + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let seconds = begun.elapsed().as_secs();
        #[allow(clippy::cast_precision_loss, reason = "calls take less than 2^52 seconds")]
        let progress = ProgressNotificationParam::new(token.clone(), seconds as f64);
        let progress = progress.with_message(format!("still running after {seconds} s"));
        // A client that went away cancels the call.
        let _ = context.peer.notify_progress(progress).await;
    }
}

/// Returns an answer for an error that is not one of a tool.
pub(super) fn refused(target: &Target, toolset: &str, error: &ToolError) -> CallToolResult {
    error.log_cause();
    answers::of_error(error, approvals::dialect(&target.runtime, toolset))
}
