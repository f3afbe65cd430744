//! `toolrest approvals watch`: shows calls as they begin to wait, and asks what to do about each.

use super::super::Output;
use super::super::failure::{Failure, Outcome};
use super::super::people::People;
use super::super::target::Client;
use super::super::terminal::{ask, can_ask, print};
use super::events::Events;
use super::{decide, edit, path_of, shown};
use http::Method;
use serde_json::{Value, json};
use std::{collections::HashSet, io, time::Duration};

/// Time before a broken stream is opened again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// What the person wants to do next.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Quit,
}

pub(super) async fn run(client: &Client, output: Output) -> Outcome {
    let workspace = client.workspace().await?;
    // What was shown already, by id and revision.
    let mut seen = HashSet::new();
    let mut last_id: Option<String> = None;
    let mut is_first = true;
    loop {
        let header: Vec<_> = last_id.iter().map(|id| ("last-event-id", id.as_str())).collect();
        let path = format!("{workspace}/events?kinds=approval");
        let opened = client.open(Method::GET, &path, &header, None).await;
        let answer = match opened {
            Ok(answer) if answer.status().as_u16() == 200 => answer,
            Ok(answer) => {
                let failure = super::super::http_client::Answer::read(answer).await?.failure();
                if is_first || !matches!(failure, Failure::Unreachable(_)) {
                    return Err(failure);
                }
                retry(&failure).await;
                continue;
            }
            // A server that restarts comes back; one that was never there does not.
            Err(failure) if is_first || !matches!(failure, Failure::Unreachable(_)) => return Err(failure),
            Err(failure) => {
                retry(&failure).await;
                continue;
            }
        };
        if is_first && !output.json {
            eprintln!("Waiting for calls that ask. Stop with Ctrl-C.");
        }
        is_first = false;
        let mut events = Events::new(answer.into_body());
        // The list is read after the stream began, so nothing is missed in between.
        if show_new(client, &workspace, &mut seen, output).await? == Next::Quit {
            return Ok(());
        }
        while let Some(event) = events.next().await? {
            last_id = event.id.or(last_id);
            if event.kind == "approval" && show_new(client, &workspace, &mut seen, output).await? == Next::Quit {
                return Ok(());
            }
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

async fn retry(failure: &Failure) {
    eprintln!("{failure}. Trying again.");
    tokio::time::sleep(RETRY_DELAY).await;
}

/// Shows the waiting calls that were not shown yet.
async fn show_new(
    client: &Client,
    workspace: &str,
    seen: &mut HashSet<(String, i64)>,
    output: Output,
) -> Outcome<Next> {
    let listed = match client.get(&format!("{workspace}/approvals?state=pending")).await {
        Ok(listed) => listed,
        // The next event, or the next stream, reads the list again.
        Err(Failure::Unreachable(_)) => return Ok(Next::GoOn),
        Err(failure) => return Err(failure),
    };
    // The oldest comes first.
    for listed in listed["approvals"].as_array().into_iter().flatten() {
        let id = listed["id"].as_str().unwrap_or_default().to_owned();
        if !seen.insert((id.clone(), listed["revision"].as_i64().unwrap_or_default())) {
            continue;
        }
        // The list cuts long diffs.
        let found = client.get(&path_of(client, &id).await?).await?;
        let approval = &found["approval"];
        if approval["state"] != "pending" {
            continue;
        }
        if output.json {
            print(&format!("{approval}\n"))?;
            continue;
        }
        let people = People::of(client, workspace).await;
        print(&format!("{}\n", shown::text(approval, &people, output.color, &io::stdout())))?;
        if can_ask() && decide(client, approval, output).await? == Next::Quit {
            return Ok(Next::Quit);
        }
    }
    Ok(Next::GoOn)
}

/// Asks what to do about a call, until something was done.
async fn decide(client: &Client, approval: &Value, output: Output) -> Outcome<Next> {
    const QUESTION: &str = "[a]pprove, approve for the [s]ession, [e]dit, [d]eny, [r]espond, s[k]ip or [q]uit?";
    loop {
        let Some(answer) = ask(QUESTION)? else { return Ok(Next::Quit) };
        let decision = match answer.to_lowercase().as_str() {
            "a" | "approve" => json!({ "decision": "approve", "scope": "once" }),
            "s" | "session" => json!({ "decision": "approve", "scope": "session" }),
            "d" | "deny" => {
                let reason = ask("Reason for the agent (may be empty):")?.filter(|text| !text.is_empty());
                json!({ "decision": "deny", "reason": reason })
            }
            "r" | "respond" => match ask("Answer for the agent:")?.filter(|text| !text.is_empty()) {
                Some(text) => json!({ "decision": "respond", "reason": text }),
                None => continue,
            },
            "e" | "edit" => match edit::edit(client, approval, false, output).await {
                Ok(Some(edited)) => {
                    json!({ "decision": "approve", "scope": "once", "args": edited.args, "preview": edited.preview })
                }
                Ok(None) => continue,
                Err(failure) => {
                    eprintln!("{failure}.");
                    continue;
                }
            },
            "k" | "skip" => return Ok(Next::GoOn),
            "q" | "quit" => return Ok(Next::Quit),
            _ => continue,
        };
        let is_approval = decision["decision"] == "approve";
        match decide::send(client, approval, None, decision).await {
            Ok(_) if is_approval => {
                let id = approval["id"].as_str().unwrap_or_default();
                if let Err(failure) = decide::report(&decide::wait_for_end(client, id).await?, output) {
                    eprintln!("{failure}.");
                }
            }
            Ok(_) => eprintln!("Done."),
            // Somebody else has decided, or the call asks again with another diff, which is shown next.
            Err(failure @ Failure::Conflict(_)) => eprintln!("{failure}."),
            Err(failure) => return Err(failure),
        }
        return Ok(Next::GoOn);
    }
}
