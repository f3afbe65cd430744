//! `toolrest rules`: the rules of a workspace.

use super::Output;
use super::failure::{Failure, Outcome};
use super::people::People;
use super::target::{Client, Programs, TargetOptions};
use super::terminal::{Paint, Table, print, print_json, visible};
use super::tool_arguments::ToolCallArgs;
use clap::{Args, Subcommand, ValueEnum};
use http::Method;
use serde_json::{Value, json};
use std::{fs, io};

#[derive(Args)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    action: Option<RulesAction>,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Subcommand)]
enum RulesAction {
    /// Show the rules, one on each line.
    Show,
    /// Replace the rules by those of a file.
    Set {
        /// File with a rule on each line, such as `ask write(docs/**)`, or with the JSON of `toolrest rules --json`; `-`
        /// is standard input
        file: String,
        /// When calls ask; without it this stays as it is
        #[arg(long, value_name = "MODE")]
        approvals: Option<Mode>,
        /// Replace only this revision of the rules; without it, the one that is there now
        #[arg(long, value_name = "REVISION")]
        revision: Option<i64>,
    },
    /// List what was allowed or refused for sessions, with `approvals approve --session` and `deny --session`.
    Grants {
        /// End all of them instead
        #[arg(long)]
        reset: bool,
    },
    /// Show what would happen to a call of an agent: allowed, asked or denied, by which rule, with its diff.
    Check(ToolCallArgs),
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// What the rules and the specifications ask
    Spec,
    /// Everything but reading, unless a rule allows it
    All,
    /// Nothing
    Off,
    /// Nothing: what would ask is refused
    Never,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::All => "all",
            Self::Off => "off",
            Self::Never => "never",
        }
    }
}

pub(super) async fn run(args: RulesArgs, output: Output) -> Outcome {
    let client = args.target.connect(Programs::None).await?;
    let result = match args.action.unwrap_or(RulesAction::Show) {
        RulesAction::Show => show(&client, output).await,
        RulesAction::Set { file, approvals, revision } => set(&client, &file, approvals, revision, output).await,
        RulesAction::Grants { reset: false } => grants(&client, output).await,
        RulesAction::Grants { reset: true } => reset_grants(&client, output).await,
        RulesAction::Check(call) => check(&client, &call, output).await,
    };
    client.close().await;
    result
}

async fn show(client: &Client, output: Output) -> Outcome {
    let rules = client.get(&format!("{}/rules", client.workspace().await?)).await?;
    print_rules(&rules, output)
}

fn print_rules(rules: &Value, output: Output) -> Outcome {
    if output.json {
        return print_json(rules);
    }
    let short = rules["short"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let lines: Vec<_> = short.flat_map(|rule| [visible(rule), "\n".into()]).collect();
    print(&lines.concat())?;
    let mode = rules["approvals"].as_str().unwrap_or("the server's default");
    eprintln!("Revision {}; approvals: {mode}.", rules["revision"]);
    Ok(())
}

async fn set(client: &Client, file: &str, mode: Option<Mode>, revision: Option<i64>, output: Output) -> Outcome {
    let text = match file {
        "-" => io::read_to_string(io::stdin()).map_err(Failure::io("cannot read standard input"))?,
        path => fs::read_to_string(path).map_err(Failure::io(format!("cannot read {path}")))?,
    };
    let given = rules_of(&text, file)?;
    let path = format!("{}/rules", client.workspace().await?);
    let current = client.get(&path).await?;
    let mode = mode.map(|mode| json!(mode.name())).or_else(|| given.get("approvals").cloned());
    let mut body = json!({ "rules": given["rules"] });
    match mode.unwrap_or_else(|| current["approvals"].clone()) {
        Value::Null => {}
        mode => body["approvals"] = mode,
    }
    let revision = revision.or_else(|| current["revision"].as_i64()).unwrap_or_default();
    let tag = format!("\"{revision}\"");
    let answer = client.send(Method::PUT, &path, &[("if-match", &tag)], Some(&body)).await?;
    print_rules(&answer.json()?, output)
}

/// Returns the rules of a file: JSON, or a rule on each line.
fn rules_of(text: &str, file: &str) -> Outcome<Value> {
    if text.trim_start().starts_with(['{', '[']) {
        let value: Value =
            serde_json::from_str(text).map_err(|error| Failure::Usage(format!("{file} is not JSON: {error}")))?;
        return match value {
            Value::Array(rules) => Ok(json!({ "rules": rules })),
            value if value["rules"].is_array() => Ok(value),
            _ => Err(Failure::Usage(format!("{file} must have a list of rules, or an object with `rules`"))),
        };
    }
    let rules = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(json!({ "rules": rules.collect::<Vec<_>>() }))
}

async fn grants(client: &Client, output: Output) -> Outcome {
    let workspace = client.workspace().await?;
    let listed = client.get(&format!("{workspace}/grants")).await?;
    if output.json {
        return print_json(&listed);
    }
    let people = People::of(client, &workspace).await;
    let mut table = Table::new(&["grant", "for", "session", "by", "expires"]);
    for grant in listed["grants"].as_array().into_iter().flatten() {
        let text = |name: &str| grant[name].as_str().unwrap_or_default().to_owned();
        let effect = if grant["is_denial"] == Value::Bool(true) { "deny" } else { "allow" };
        table.row(&[
            format!("{effect} {}({})", text("action"), text("pattern")),
            people.name_of(&grant["principal"]),
            text("session"),
            people.name_of(&grant["granted_by"]),
            super::time(&grant["expires_at"]),
        ]);
    }
    table.print(output.color)
}

async fn reset_grants(client: &Client, output: Output) -> Outcome {
    let path = format!("{}/grants", client.workspace().await?);
    let ended = client.send(Method::DELETE, &path, &[], None).await?.json()?;
    if output.json {
        return print_json(&ended);
    }
    eprintln!("Ended {} grants.", ended["revoked"]);
    Ok(())
}

async fn check(client: &Client, call: &ToolCallArgs, output: Output) -> Outcome {
    let (toolset, tool) = call.names()?;
    let body = json!({ "toolset": toolset, "tool": tool, "args": call.read(client).await? });
    let verdict = client.post(&format!("{}/policy/check", client.workspace().await?), &body).await?;
    if output.json {
        return print_json(&verdict);
    }
    let text = |value: &Value| visible(value.as_str().unwrap_or_default()).into_owned();
    let mut shown = format!("{}\n", text(&verdict["decision"]));
    for ask in verdict["asks"].as_array().into_iter().flatten() {
        shown.extend([format!("  {} {}: {}\n", text(&ask["action"]), text(&ask["subject"]), text(&ask["because"]))]);
    }
    for name in ["reason", "rule", "command"] {
        if verdict[name].is_string() {
            shown.extend([format!("  {name}: {}\n", text(&verdict[name]))]);
        }
    }
    let paint = Paint::new(output.color, &io::stdout());
    print(&(shown + &paint.diff(verdict["diff"].as_str().unwrap_or_default())))
}
