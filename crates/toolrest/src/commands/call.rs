//! `toolrest call`: calls a tool.

use super::Output;
use super::failure::{Failure, Outcome};
use super::target::{Programs, TargetOptions};
use super::terminal::{print, print_json, visible};
use super::tool_arguments::ToolCallArgs;
use clap::Args;
use http::{Method, header};
use serde_json::{Value, json};
use std::io::{self, IsTerminal};
use toolrest::core::{Action, CallId};
use toolrest::toolsets::{self, Services};

#[derive(Args)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    call: ToolCallArgs,
    /// Have the call judged like that of an agent: where a rule asks, it waits for approval
    #[arg(long)]
    as_agent: bool,
    /// With --as-agent: seconds to wait for a decision
    #[arg(long, value_name = "SECONDS", default_value_t = 0, requires = "as_agent")]
    wait: u32,
    /// With --as-agent: why the call is made, for the person who decides
    #[arg(long, value_name = "TEXT", requires = "as_agent")]
    reason: Option<String>,
    /// With --as-agent: label of the session, to which grants are limited
    #[arg(long, value_name = "LABEL", requires = "as_agent")]
    session: Option<String>,
    #[command(flatten)]
    target: TargetOptions,
}

pub(super) async fn run(args: CallArgs, output: Output) -> Outcome {
    let (toolset, tool) = args.call.names()?;
    if args.target.is_folder() && tool == "start_process" {
        let message =
            "a background process ends with this command; call start_process on a server (`toolrest serve --dir`)";
        return Err(Failure::Usage(message.to_owned()));
    }
    let client = args.target.clone().connect(programs_of(toolset, tool)).await?;
    let result = call(&args, &client, toolset, tool, output).await;
    client.close().await;
    result
}

/// Whether a tool runs programs. Of tools that this program does not know, it is assumed.
fn programs_of(toolset: &str, tool: &str) -> Programs {
    let toolsets = toolsets::all(&Services::none());
    let action = toolsets.find(toolset).and_then(|toolset| Some(toolset.find(tool)?.action()));
    if action.is_none_or(|action| action == Action::Exec) { Programs::Run } else { Programs::None }
}

async fn call(args: &CallArgs, client: &super::target::Client, toolset: &str, tool: &str, output: Output) -> Outcome {
    let body = json!({ "tool": tool, "args": args.call.read(client).await? });
    let path = format!("{}/toolsets/{}", client.workspace().await?, super::encoded(toolset));
    // A key has no own hand: its calls are judged anyway.
    let is_judged = args.as_agent || client.is_key()?;
    let (wait, correlation) = (format!("wait={}", args.wait), CallId::new().to_string());
    let mut headers = Vec::new();
    if is_judged {
        headers.push(("prefer", wait.as_str()));
        headers.extend(args.reason.as_deref().map(|reason| ("x-toolrest-reason", reason)));
        headers.extend(args.session.as_deref().map(|session| ("x-toolrest-session", session)));
    } else {
        headers.push(("x-toolrest-own-hand", "true"));
        if !output.json {
            headers.push(("accept", "text/plain"));
        }
    }
    if toolset == "backend" {
        headers.push(("x-correlation-id", correlation.as_str()));
    }
    let answer = client.send(Method::POST, &path, &headers, Some(&body)).await?;
    let media = answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if answer.is_success() && media.starts_with("text/plain") {
        print_text(&answer.body)?;
    } else if answer.is_success() || output.json {
        let body: Value = serde_json::from_slice(&answer.body).map_err(|_| answer.failure())?;
        print_json(&body)?;
    }
    if answer.status == 202 {
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let id = body["approval"]["id"].as_str().unwrap_or_default();
        let target = client.arguments(&args.target);
        return Err(Failure::Waits(format!(
            "the call waits for a person, as approval {id}; decide with `toolrest approvals approve {id}{target}` or `deny`, and \
             repeat the call to get its answer"
        )));
    }
    if answer.is_success() { Ok(()) } else { Err(answer.failure()) }
}

/// Prints the text of an answer: as it is to files and pipes, with visible control characters to a terminal.
fn print_text(body: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(body);
    let text = if io::stdout().is_terminal() { visible(&text) } else { text };
    print(&text)?;
    if text.is_empty() || text.ends_with('\n') { Ok(()) } else { print("\n") }
}
