//! Calls that must ask: the person at the client is asked by an elicitation, if the client can do that and that person may
//! decide. Otherwise the call waits for a while, and then the model learns that it waits.

use super::calls::refused;
use super::{Connection, McpServer, Target, answers};
use crate::approvals::{self, AskOptions, Asked, MAX_WAIT};
use crate::http::Scope;
use rmcp::model::{
    CallToolResponse, CallToolResult, CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{ErrorData, RoleServer};
use std::{fmt::Write, future, time::Duration};
use tokio::time::Instant;
use toolrest_core::{Approval, ApprovalState, Call, Decided, NewDecision, Result, Role, Verdict};

/// How often the person is asked about one call, because files changed after the answer.
const MAX_QUESTIONS: usize = 3;
/// Maximum size of the diff or the command in a question.
const MAX_SHOWN_BYTES: usize = 4 << 10;
/// The name of the question in results of the protocol that need input.
const QUESTION: &str = "approval";

/// What the client answered to a result that needed input.
pub(super) struct Reply {
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

/// Whether the client can ask its user with a form.
pub(super) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let capability = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    // Without a mode, the form is meant.
    capability.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Stores the call as an approval, asks, and waits for the decision.
pub(super) async fn ask(
    server: &McpServer,
    target: &Target,
    call: Call,
    reply: Reply,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let toolset = call.toolset.clone();
    let options = options(target);
    let hold = options.wait;
    let approval = match approvals::request(&target.runtime, call, options).await {
        Ok(approval) => approval,
        Err(error) => return Ok(refused(target, &toolset, &error).into()),
    };
    let may_decide =
        approvals::check_decider(&target.runtime, target.caller.user, &approval, &approval.asks).await.is_ok();
    let can_ask = server.0.connection == Connection::Stdio && may_decide && can_ask(context);
    let answered = if !can_ask {
        wait(target, approval, hold).await
    } else if is_without_server_requests(context) {
        match by_result(target, &approval, reply).await? {
            Answered::Question => return Ok(question_result(&approval).into()),
            Answered::Decided => wait(target, approval, MAX_WAIT).await,
            Answered::Nothing => wait(target, approval, Duration::ZERO).await,
            Answered::Failed(error) => Err(error),
        }
    } else {
        by_elicitation(target, approval, context).await
    };
    Ok(result_of(target, &toolset, answered.unwrap_or_else(Asked::Failed)).into())
}

/// Returns how calls over this protocol ask.
pub(super) fn options(target: &Target) -> AskOptions {
    let wait = Duration::from_millis(target.runtime.settings.policy.wait_ms);
    AskOptions { wait, reason: None, correlation: None, room: Scope::default() }
}

/// Returns the result of a call that asked, or that repeats one.
pub(super) fn result_of(target: &Target, toolset: &str, asked: Asked) -> CallToolResult {
    let dialect = approvals::dialect(&target.runtime, toolset);
    match asked {
        Asked::Answer(answer) => answers::of_stored(answer.status, &answer.body, answer.text, dialect),
        Asked::Pending(approval) => answers::of_pending(&approval, dialect),
        Asked::Failed(error) => refused(target, toolset, &error),
    }
}

async fn wait(target: &Target, approval: Approval, time: Duration) -> Result<Asked> {
    approvals::decided(&target.runtime, approval, Instant::now() + time).await
}

/// Whether the protocol has no requests from servers to clients, so that questions are results.
pub(super) fn is_without_server_requests(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Asks with requests to the client, until the call has ended. A decision that is made elsewhere ends the question.
async fn by_elicitation(
    target: &Target,
    mut approval: Approval,
    context: &RequestContext<RoleServer>,
) -> Result<Asked> {
    let runtime = &target.runtime;
    let access = target.caller.access(target.workspace, Role::Viewer);
    let deadline = Instant::now() + MAX_WAIT;
    let mut questions = 0;
    // A call that would do something else by now is pending again.
    while approval.state == ApprovalState::Pending && questions < MAX_QUESTIONS {
        questions += 1;
        let answer = tokio::select! {
            answer = elicit(&approval, context) => answer,
            asked = approvals::decided(runtime, approval.clone(), deadline) => return asked,
        };
        match answer {
            Some(ElicitationAction::Accept) => decide(target, &approval, Verdict::Approve).await?,
            Some(ElicitationAction::Decline) => decide(target, &approval, Verdict::Deny).await?,
            // Closed without an answer: it can still be decided elsewhere.
            _ => return Ok(Asked::Pending(Box::new(approval))),
        }
        approvals::run_if_free(runtime, target.workspace, approval.id).await?;
        (approval, _) = runtime.store.approval(access, approval.id).await?;
    }
    approvals::decided(runtime, approval, deadline).await
}

/// Asks the client once. The question is taken back if nobody waits for the answer any more.
async fn elicit(approval: &Approval, context: &RequestContext<RoleServer>) -> Option<ElicitationAction> {
    let request = ServerRequest::ElicitRequest(question(approval));
    let sent = context.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let Ok(handle) = sent else { return None };
    let mut open = OpenQuestion { context, id: Some(handle.id.clone()) };
    let answer = handle.await_response().await;
    open.id = None;
    match answer {
        Ok(ClientResult::ElicitResult(ElicitResult { action, .. })) => Some(action),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, approval.id = %approval.id, "the client did not answer the question");
            // Nothing will come any more; the decision may be made elsewhere.
            future::pending().await
        }
    }
}

/// A question that the client has not answered; it is taken back when this is dropped.
struct OpenQuestion<'a> {
    context: &'a RequestContext<RoleServer>,
    id: Option<rmcp::model::RequestId>,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.context.peer.clone();
        tokio::spawn(async move {
            let reason = "the call was decided elsewhere, or cancelled".to_owned();
            let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason))).await;
        });
    }
}

fn question(approval: &Approval) -> ElicitRequest {
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question_text(approval),
        requested_schema: ElicitationSchema::new(std::collections::BTreeMap::default()),
    })
}

/// Returns the question: what is asked and why, and what the call would do.
fn question_text(approval: &Approval) -> String {
    let mut text = format!("Allow the agent to call {}?", approval.call.tool);
    for ask in &approval.asks {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{} {}: {}", ask.action.name(), ask.subject, ask.because);
    }
    let shown =
        approval.preview.command.iter().chain((!approval.preview.diff.is_empty()).then_some(&approval.preview.diff));
    for shown in shown {
        let end = (0..=MAX_SHOWN_BYTES.min(shown.len())).rev().find(|end| shown.is_char_boundary(*end)).unwrap_or(0);
        let _ = write!(text, "\n\n{}", &shown[..end]);
        if end < shown.len() {
            let _ = write!(text, "\n… {} more bytes", shown.len() - end);
        }
    }
    text
}

/// What the client said about a question in a result.
enum Answered {
    /// It was not asked yet.
    Question,
    /// The person decided.
    Decided,
    /// The person closed the question.
    Nothing,
    Failed(toolrest_core::ToolError),
}

/// Reads the answer that the client sends with the repeated call. It must be about the approval that this call has, in the
/// form in which it was shown.
async fn by_result(target: &Target, approval: &Approval, reply: Reply) -> Result<Answered, ErrorData> {
    let Some(mut responses) = reply.responses else { return Ok(Answered::Question) };
    if approval.state != ApprovalState::Pending {
        return Ok(Answered::Decided);
    }
    if reply.state.as_deref() != Some(&*state(approval)) {
        let message = "`requestState` is not that of the question about this call; call the tool again without it";
        return Err(ErrorData::invalid_params(message, None));
    }
    let answer: Option<ElicitResult> =
        responses.remove(QUESTION).and_then(|answer| serde_json::from_value(answer).ok());
    let Some(answer) = answer else {
        let message = format!("`inputResponses` has no answer to the question `{QUESTION}`");
        return Err(ErrorData::invalid_params(message, None));
    };
    let verdict = match answer.action {
        ElicitationAction::Accept => Verdict::Approve,
        ElicitationAction::Decline => Verdict::Deny,
        _ => return Ok(Answered::Nothing),
    };
    Ok(match decide(target, approval, verdict).await {
        Ok(()) => Answered::Decided,
        Err(error) => Answered::Failed(error),
    })
}

/// Returns the state of a question. It is only compared with that of the call's own approval, so a forged or repeated one
/// has no effect.
fn state(approval: &Approval) -> String {
    format!("{}.{}", approval.id, approval.revision)
}

fn question_result(approval: &Approval) -> InputRequiredResult {
    let questions = InputRequests::from([(QUESTION.to_owned(), InputRequest::Elicitation(question(approval)))]);
    InputRequiredResult::new(Some(questions), Some(state(approval)))
}

async fn decide(target: &Target, approval: &Approval, verdict: Verdict) -> Result<()> {
    let decided = Decided {
        verdict,
        by: Some(target.caller.user),
        via: "elicitation".to_owned(),
        reason: None,
        args: None,
        preview: None,
        redacted_args: None,
        grants: Vec::new(),
    };
    let access = target.caller.access(target.workspace, Role::Editor);
    let decision = NewDecision { revision: Some(approval.revision), decided, address: None, rules: None };
    target.runtime.store.decide(access, approval.id, decision).await?;
    Ok(())
}
