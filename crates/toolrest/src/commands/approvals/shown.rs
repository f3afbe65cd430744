//! The text of an approval for people.

use super::super::people::People;
use super::super::terminal::{ColorChoice, Paint, visible};
use serde_json::Value;
use std::{fmt::Write, io::IsTerminal};

/// Returns what a person needs to decide: who asks, why, and what the call would do. The texts come from agents, so their
/// control characters are visible.
pub(super) fn text(approval: &Value, people: &People, color: ColorChoice, stream: &impl IsTerminal) -> String {
    let paint = Paint::new(color, stream);
    let field = |name: &str| visible(approval[name].as_str().unwrap_or_default()).into_owned();
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {}", paint.dim(format!("{name:10}")), value.replace('\n', "\n           "));
        }
    };
    line("approval", &paint.bold(field("id")));
    line("state", &format!("{}, revision {}", field("state"), approval["revision"]));
    line("tool", &paint.bold(format!("{}/{}", field("toolset"), field("tool"))));
    line("asked by", &visible(&people.name_of_caller(&approval["requested_by"])));
    line("session", &field("session"));
    line("reason", &field("reason"));
    for ask in approval["asks"].as_array().into_iter().flatten() {
        let part = |name: &str| visible(ask[name].as_str().unwrap_or_default()).into_owned();
        line("asks", &format!("{} {}: {}", part("action"), part("subject"), part("because")));
        line("rule", &part("rule"));
    }
    let grants = approval["grants_offered"].as_array().into_iter().flatten().filter_map(Value::as_str);
    line("--session", &visible(&grants.collect::<Vec<_>>().join(", ")));
    line("expires", &super::super::time(&approval["expires_at"]));
    for name in ["error", "outcome", "commit_id"] {
        line(name, &field(name));
    }
    let command = field("command");
    let diff = approval["diff"].as_str().unwrap_or_default();
    if !command.is_empty() {
        let _ = writeln!(text, "\n{command}");
    }
    if !diff.is_empty() {
        let _ = write!(text, "\n{}", paint.diff(diff));
    }
    if command.is_empty() && diff.is_empty() {
        let args = serde_json::to_string_pretty(&approval["args"]).unwrap_or_default();
        let _ = writeln!(text, "\n{}", visible(&args));
    }
    if approval["diff_truncated"] == Value::Bool(true) {
        text += "… the diff goes on; `toolrest approvals show` has all of it\n";
    }
    text
}

/// Returns what happened to an approval, one line for each event.
pub(super) fn events(events: &Value, people: &People) -> String {
    let mut text = String::new();
    for event in events.as_array().into_iter().flatten() {
        let at = super::super::time(&event["at"]);
        let kind = event["kind"].as_str().unwrap_or_default();
        let by = if event["by"].is_null() { String::new() } else { format!(" by {}", people.name_of(&event["by"])) };
        let via = event["via"].as_str().map(|via| format!(" via {via}")).unwrap_or_default();
        let _ = writeln!(text, "{}", visible(&format!("{at}  {kind}{by}{via}")));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}
