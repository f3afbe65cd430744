//! `toolrest keys`: agent keys of a workspace.

use super::Output;
use super::failure::Outcome;
use super::people::People;
use super::target::{Client, Programs, TargetOptions};
use super::terminal::{Table, one_line, print, print_json};
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

#[derive(Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    action: Option<KeysAction>,
    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Subcommand)]
enum KeysAction {
    /// List the keys, without secrets.
    List,
    /// Make a key and print its secret, which is shown only now.
    Create {
        /// Name of the key, such as the agent's
        name: String,
        /// Toolsets that it may use, separated by commas; without it all
        #[arg(long, value_name = "TOOLSETS", value_delimiter = ',')]
        toolsets: Option<Vec<String>>,
        /// Actions that it may do, separated by commas, such as `read,write`; without it all
        #[arg(long, value_name = "ACTIONS", value_delimiter = ',')]
        actions: Option<Vec<String>>,
        /// Hours until it expires; without it 90 days
        #[arg(long, value_name = "HOURS")]
        expires_in_hours: Option<u32>,
    },
    /// Suspend a key until it is resumed; what waits for it is cancelled, and its programs end.
    Suspend {
        /// Id of the key
        key: String,
    },
    /// Make a suspended key active again.
    Resume {
        /// Id of the key
        key: String,
    },
    /// Revoke a key for good.
    Revoke {
        /// Id of the key
        key: String,
    },
}

pub(super) async fn run(args: KeysArgs, output: Output) -> Outcome {
    let client = args.target.connect(Programs::None).await?;
    let result = act(args.action.unwrap_or(KeysAction::List), &client, output).await;
    client.close().await;
    result
}

async fn act(action: KeysAction, client: &Client, output: Output) -> Outcome {
    let workspace = client.workspace().await?;
    let keys = format!("{workspace}/keys");
    let of_key = |key: &str| format!("{keys}/{}", super::encoded(key));
    let (changed, what) = match action {
        KeysAction::List => return list(client, &workspace, output).await,
        KeysAction::Create { name, toolsets, actions, expires_in_hours } => {
            let mut body = json!({ "name": name });
            for (field, value) in [
                ("toolsets", json!(toolsets)),
                ("actions", json!(actions)),
                ("expires_in_hours", json!(expires_in_hours)),
            ] {
                if !value.is_null() {
                    body[field] = value;
                }
            }
            let made = client.post(&keys, &body).await?;
            if output.json {
                return print_json(&made);
            }
            print(&format!("{}\n", made["secret"].as_str().unwrap_or_default()))?;
            let id = made["key"]["id"].as_str().unwrap_or_default();
            eprintln!(
                "Made the key {id}, valid until {}. This is the only time that its secret is shown.",
                super::time(&made["key"]["expires_at"])
            );
            return Ok(());
        }
        KeysAction::Suspend { key } => {
            let body = json!({ "suspended": true });
            (client.send(Method::PATCH, &of_key(&key), &[], Some(&body)).await?.json()?, "Suspended")
        }
        KeysAction::Resume { key } => {
            let body = json!({ "suspended": false });
            (client.send(Method::PATCH, &of_key(&key), &[], Some(&body)).await?.json()?, "Resumed")
        }
        KeysAction::Revoke { key } => (client.send(Method::DELETE, &of_key(&key), &[], None).await?.json()?, "Revoked"),
    };
    if output.json {
        return print_json(&changed);
    }
    eprintln!("{what} the key {}.", one_line(changed["key"]["name"].as_str().unwrap_or_default(), 100));
    Ok(())
}

async fn list(client: &Client, workspace: &str, output: Output) -> Outcome {
    let listed = client.get(&format!("{workspace}/keys")).await?;
    if output.json {
        return print_json(&listed);
    }
    let people = People::of(client, workspace).await;
    let mut table = Table::new(&["id", "name", "state", "by", "actions", "toolsets", "expires", "last used"]);
    for key in listed["keys"].as_array().into_iter().flatten() {
        let text = |name: &str| key[name].as_str().unwrap_or_default().to_owned();
        let names = |name: &str| {
            let names = key[name].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.collect::<Vec<_>>().join(",")
        };
        let state = match () {
            () if !key["revoked_at"].is_null() => "revoked",
            () if !key["suspended_at"].is_null() => "suspended",
            () => "active",
        };
        table.row(&[
            text("id"),
            text("name"),
            state.to_owned(),
            people.name_of(&key["user_id"]),
            names("actions"),
            names("toolsets"),
            super::time(&key["expires_at"]),
            super::time(&key["last_used_at"]),
        ]);
    }
    table.print(output.color)
}
