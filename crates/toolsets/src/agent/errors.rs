//! Errors as texts: what is wrong, and the call that helps.

use super::answer::head;
use crate::error_text::{PathForm, describe_error};
use crate::errors::{agent_code, row};
use toolrest_core::{Approval, ErrorKind, ToolError};

/// Maximum size of the text of an error.
const MAX_BYTES: usize = 4_096;
/// Number of things to be approved that are named.
const MAX_ASKS: usize = 5;

/// Returns the text of an error.
pub(super) fn text(error: &ToolError) -> String {
    let described = describe_error(error, PathForm::Relative, "");
    let code = agent_code(error.kind);
    let message = described.message.trim_end();
    let mut text = format!("error {code}: {message}");
    if text.len() > MAX_BYTES {
        let cut = head(&text, MAX_BYTES - 200).trim_end().to_owned();
        text = format!("{cut}\n.. cut");
    }
    let hint = described.hint.filter(|hint| !hint.trim().is_empty());
    let next = hint.or_else(|| default_next(error.kind).map(str::to_owned));
    if let Some(next) = next.filter(|_| !text.contains("\nnext: ")) {
        text.push_str("\nnext: ");
        text.push_str(head(&next.replace('\n', "; "), 1_000));
    }
    text
}

/// Returns what helps, for errors that say nothing more.
fn default_next(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        // The messages of these say it.
        ErrorKind::InvalidArgument | ErrorKind::FindNotFound | ErrorKind::FindNotUnique | ErrorKind::PatchSyntax => {
            None
        }
        ErrorKind::ApprovalDenied => Some("do not send it again; find another way or ask the user"),
        kind => Some(row(kind).remediation),
    }
}

/// Returns what a call that waits for a person would do: `delete lib/old.js: rule "deletes ask"`.
pub(super) fn asked(approval: &Approval) -> String {
    let asks: Vec<String> = approval
        .asks
        .iter()
        .take(MAX_ASKS)
        .map(|ask| format!("{} {}: {}", ask.action.name(), ask.subject.trim_start_matches('/'), ask.because))
        .collect();
    let more = approval.asks.len().saturating_sub(MAX_ASKS);
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    format!("{}{more}", asks.join("; "))
}

/// Returns the text for a call that waits for a person.
pub(super) fn waiting(approval: &Approval, number: u32) -> String {
    format!(
        "== waiting for approval: job j{number}\n{}. Nothing is changed yet\n.. do other work, or job \
         {{\"id\":\"j{number}\",\"wait\":600}}. Once approved it is carried out without another call",
        asked(approval)
    )
}
