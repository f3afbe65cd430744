//! `toolrest approvals approve`, `deny` and `respond`. A decision always names the revision that was shown.

use super::super::Output;
use super::super::failure::{Failure, Outcome};
use super::super::people::People;
use super::super::target::Client;
use super::super::terminal::{can_ask, confirm, print, print_json, visible};
use super::{edit, path_of, shown};
use clap::Args;
use serde_json::{Value, json};
use std::io;

#[derive(Args)]
pub(super) struct ApproveArgs {
    /// Id of the approval
    id: String,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Change the arguments in the editor of the variable VISUAL or EDITOR first
    #[arg(long)]
    edit: bool,
    /// Reason, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Do not ask for confirmation on a terminal
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    seen: Seen,
}

#[derive(Args)]
pub(super) struct DenyArgs {
    /// Id of the approval
    id: String,
    /// Also refuse the same for the rest of the agent's session, without asking
    #[arg(long)]
    session: bool,
    /// Reason, which the agent gets
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    seen: Seen,
}

#[derive(Args)]
pub(super) struct RespondArgs {
    /// Id of the approval
    id: String,
    /// The answer that the agent gets
    text: String,
    #[command(flatten)]
    seen: Seen,
}

/// How far an approval goes.
#[derive(Args)]
struct ScopeArgs {
    /// Allow this call only (the default)
    #[arg(long, conflicts_with = "session")]
    once: bool,
    /// Also allow the same for the rest of the agent's session, for 8 hours, as `toolrest approvals show` shows it
    #[arg(long)]
    session: bool,
}

/// What the person has seen before the decision.
#[derive(Args)]
struct Seen {
    /// Decide only if this revision is the current one; without it, the one that is there now
    #[arg(long, value_name = "REVISION")]
    revision: Option<i64>,
}

impl ScopeArgs {
    /// Returns the name in the body of a decision.
    fn name(&self) -> &'static str {
        if self.session && !self.once { "session" } else { "once" }
    }
}

pub(super) async fn approve(client: &Client, args: &ApproveArgs, output: Output) -> Outcome {
    let approval = find_pending(client, &args.id).await?;
    show(client, &approval, output).await?;
    let edited = if args.edit { edit::edit(client, &approval, args.yes, output).await? } else { None };
    // The edited call was confirmed already.
    if edited.is_none() && !(args.yes || !can_ask() || confirm("Run this call?")?) {
        return Err(Failure::Failed("nothing was decided".to_owned()));
    }
    let mut decision = json!({ "decision": "approve", "scope": args.scope.name(), "reason": args.reason });
    if let Some(edit::Edited { args, preview }) = edited {
        decision["args"] = args;
        decision["preview"] = json!(preview);
    }
    send(client, &approval, args.seen.revision, decision).await?;
    let ended = wait_for_end(client, &args.id).await?;
    report(&ended, output)
}

pub(super) async fn deny(client: &Client, args: &DenyArgs, output: Output) -> Outcome {
    let approval = find_pending(client, &args.id).await?;
    let decision = json!({ "decision": "deny", "reason": args.reason, "remember": args.session });
    let denied = send(client, &approval, args.seen.revision, decision).await?;
    if output.json {
        return print_json(&denied);
    }
    eprintln!("Denied. Nothing was done.");
    Ok(())
}

pub(super) async fn respond(client: &Client, args: &RespondArgs, output: Output) -> Outcome {
    let approval = find_pending(client, &args.id).await?;
    let decision = json!({ "decision": "respond", "reason": args.text });
    let answered = send(client, &approval, args.seen.revision, decision).await?;
    if output.json {
        return print_json(&answered);
    }
    eprintln!("The agent gets the answer, and the call does not run.");
    Ok(())
}

/// Returns an approval that can be decided.
async fn find_pending(client: &Client, id: &str) -> Outcome<Value> {
    let found = client.get(&path_of(client, id).await?).await?;
    match found["approval"]["state"].as_str() {
        Some("pending") => Ok(found["approval"].clone()),
        state => Err(Failure::Conflict(format!(
            "approval {id} does not wait any more: it is {}",
            state.unwrap_or("unknown")
        ))),
    }
}

/// Shows an approval before the decision, on standard error: standard output is for what came of it.
async fn show(client: &Client, approval: &Value, output: Output) -> Outcome {
    let workspace = client.workspace().await?;
    let people = People::of(client, &workspace).await;
    eprint!("{}", shown::text(approval, &people, output.color, &io::stderr()));
    Ok(())
}

/// Sends a decision about the revision that was shown, or that the person names.
pub(super) async fn send(
    client: &Client,
    approval: &Value,
    revision: Option<i64>,
    mut decision: Value,
) -> Outcome<Value> {
    decision["revision"] = revision.map_or_else(|| approval["revision"].clone(), Value::from);
    let path = path_of(client, approval["id"].as_str().unwrap_or_default()).await?;
    client.post(&format!("{path}/decision"), &decision).await
}

/// Waits until an approved call has run, or asks again. Returns the approval.
pub(super) async fn wait_for_end(client: &Client, id: &str) -> Outcome<Value> {
    /// Number of requests to a server, which wait for ten seconds each.
    const TRIES: usize = 6;
    let path = path_of(client, id).await?;
    let mut tries = 0;
    loop {
        let found = client.get(&format!("{path}?wait=10")).await?;
        tries += 1;
        let goes_on = matches!(found["approval"]["state"].as_str(), Some("approved" | "executing"));
        // A call that this process runs would be left behind.
        if !goes_on || (tries == TRIES && !client.is_in_process()) {
            return Ok(found["approval"].clone());
        }
    }
}

/// Prints what came of an approved call.
pub(super) fn report(approval: &Value, output: Output) -> Outcome {
    if output.json {
        print_json(&json!({ "approval": approval }))?;
    }
    let text = |name: &str| visible(approval[name].as_str().unwrap_or_default()).into_owned();
    match approval["state"].as_str().unwrap_or_default() {
        "done" => {
            if !output.json && !text("commit_id").is_empty() {
                print(&format!("{}\n", text("commit_id")))?;
            }
            eprintln!("Approved, and it has run: {}.", text("outcome"));
            Ok(())
        }
        "pending" => Err(Failure::Waits(format!(
            "the call asks again as revision {}, because it would now do something else; look at it with `toolrest approvals show {}`",
            approval["revision"],
            text("id")
        ))),
        "approved" | "executing" => {
            eprintln!("Approved. The call still runs, or a server that has its folder will run it.");
            Ok(())
        }
        state => {
            let message = text("error");
            Err(Failure::Failed(format!("the call was approved, but it is {state} now: {message}")))
        }
    }
}
