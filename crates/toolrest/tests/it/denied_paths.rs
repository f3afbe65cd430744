//! No sequence of calls reads or changes what the rules deny: random rules and random calls of all toolsets by an agent key,
//! in databases and in folders with symbolic links.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolrest_testkit::{Account, Reply, Request, Workspace, unique_email};

use crate::approvals::{key, set_rules};
use crate::on::On;

on_both_databases![
    no_sequence_of_calls_reaches_a_denied_path,
    no_sequence_of_calls_reaches_a_denied_path_in_a_folder_with_links,
];

const ROUNDS: u64 = 12;
const CALLS: usize = 60;

const FILES: [&str; 7] = ["docs/a.md", "docs/deep/b.md", "docs/.env", "src/main.rs", "src/.env", "notes.txt", ".env"];
/// Other names that calls use: links to files and folders, folders, and files that do not exist.
const OTHER: [&str; 9] =
    ["alias/a.md", "alias/.env", "link.md", "docs", "alias", "src", "free/new.txt", "docs/new.md", "up/docs/a.md"];

/// A pattern of a rule, with what it matches.
type Pattern = (&'static str, fn(&str) -> bool);

const PATTERNS: [Pattern; 6] = [
    ("docs/**", |path| path == "docs" || path.starts_with("docs/")),
    ("**/.env", |path| path.rsplit('/').next() == Some(".env")),
    ("src/*.rs", |path| path == "src/main.rs"),
    ("notes.txt", |path| path == "notes.txt"),
    ("docs/deep/**", |path| path == "docs/deep" || path.starts_with("docs/deep/")),
    ("**", |_| true),
];

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }
}

/// A text that occurs in one file only, which shows that its content was read.
fn secret(path: &str) -> String {
    format!("secret-of-{}", path.replace(['/', '.'], "-"))
}

fn is_denied(rules: &[(bool, usize)], path: &str) -> bool {
    rules.iter().rev().find(|(_, pattern)| PATTERNS[*pattern].1(path)).is_some_and(|(denies, _)| *denies)
}

/// Makes a random call. Returns its toolset, tool and arguments.
fn random_call(random: &mut Random) -> (&'static str, &'static str, Value) {
    let any = |random: &mut Random| {
        let all: Vec<&str> = FILES.into_iter().chain(OTHER).collect();
        (*random.of(&all)).to_owned()
    };
    let (path, other) = (any(random), any(random));
    let slash = format!("/{path}");
    let old = secret(&path);
    let updating = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+patched\n*** End Patch\n");
    let removal = format!("*** Begin Patch\n*** Delete File: {path}\n*** Add File: {other}\n+moved\n*** End Patch\n");
    let moving =
        format!("*** Begin Patch\n*** Update File: {path}\n*** Move to: {other}\n@@\n-{old}\n+{old}\n*** End Patch\n");
    match random.below(26) {
        0 => ("workspace", "read", json!({"path": slash})),
        1 => ("workspace", "write", json!({"path": slash, "content": "written"})),
        2 => ("workspace", "edit", json!({"path": slash, "old_string": old, "new_string": "edited"})),
        3 => ("workspace", "mv", json!({"source": slash, "destination": format!("/{other}")})),
        4 => ("workspace", "rm", json!({"path": slash})),
        5 => ("workspace", "grep", json!({"pattern": "secret"})),
        6 => ("workspace", "ls", json!({"path": "/", "recursive": true})),
        7 => ("file", "file.read", json!({"path": path})),
        8 => ("file", "file.write", json!({"path": path, "content": "written"})),
        9 => ("file", "file.delete", json!({"path": path})),
        10 => ("file", "file.search", json!({"pattern": "secret", "path": "."})),
        11 => ("file", "file.patch", json!({"path": path, "patches": [{"find": old, "replace": "patched"}]})),
        12 => ("system", "read_file", json!({"path": path})),
        13 => ("system", "write_file", json!({"path": path, "content": "written", "createDirs": true})),
        14 => ("system", "move_file", json!({"from": path, "to": other, "overwrite": true})),
        15 => ("system", "delete_file", json!({"path": path, "recursive": true})),
        16 => ("coding", "read", json!({"filePath": path})),
        17 => ("coding", "write", json!({"filePath": path, "content": "written"})),
        18 => ("coding", "edit", json!({"filePath": path, "oldString": old, "newString": "edited"})),
        19 => ("coding", "apply_patch", json!({"patchText": updating})),
        20 => ("coding", "apply_patch", json!({"patchText": removal})),
        21 => ("coding", "apply_patch", json!({"patchText": moving})),
        22 => ("coding", "glob", json!({"pattern": "**"})),
        23 => ("coding", "edit", json!({"filePath": path, "oldString": "not there", "newString": "x"})),
        24 => ("workspace", "mv", json!({"source": "/docs", "destination": "/free"})),
        _ => ("workspace", "write", json!({"path": slash, "content": "x", "last_read_hash": "0".repeat(64)})),
    }
}

async fn send(agent: &Workspace, toolset: &str, tool: &str, args: &Value) -> Reply {
    let path = format!("/api/v1/workspaces/{}/toolsets/{toolset}", agent.id);
    let request = Request::new("POST", &path).bearer(&agent.account.access_token).header("Prefer", "wait=0");
    agent.account.client.send(request.json(&json!({"tool": tool, "args": args}))).await
}

/// Returns the answers of the REST interface to what a caller could look at.
async fn rest_replies(agent: &Workspace, random: &mut Random) -> Vec<Reply> {
    let mut replies = Vec::new();
    for path in ["/commits", "/trash", "/calls", "/approvals"] {
        replies.push(agent.get(path).await);
    }
    for path in FILES.into_iter().chain(OTHER) {
        replies.push(agent.get(&format!("/content/{path}")).await);
    }
    let commits = replies[0].json();
    let commits = commits["commits"].as_array().cloned().unwrap_or_default();
    if !commits.is_empty() {
        let commit = random.of(&commits)["id"].as_str().unwrap().to_owned();
        replies.push(agent.get(&format!("/commits/{commit}/diff")).await);
        replies.push(agent.post(&format!("/commits/{commit}/undo"), &json!({})).await);
    }
    replies
}

/// Returns the body of a reply, without the arguments of calls: they are what the caller sent itself.
fn without_recorded_args(reply: &Reply) -> String {
    let text = reply.text.clone();
    let Ok(mut body) = serde_json::from_str::<Value>(&text) else { return text };
    for call in body["calls"].as_array_mut().into_iter().flatten() {
        call["args"] = Value::Null;
    }
    body.to_string()
}

/// Runs random calls under random rules. `contents` returns the content of a file as it really is.
async fn attack(workspace: &Workspace, random: &mut Random, contents: impl AsyncFn(&str) -> Option<String>) {
    let rules: Vec<(bool, usize)> =
        (0..=random.below(3)).map(|_| (random.below(3) > 0, random.below(PATTERNS.len()))).collect();
    let texts: Vec<String> = rules
        .iter()
        .map(|(denies, pattern)| format!("{} *({})", if *denies { "deny" } else { "allow" }, PATTERNS[*pattern].0))
        .collect();
    set_rules(workspace, json!({"rules": texts, "approvals": "off"})).await;
    let agent = key(workspace).await;
    let denied: Vec<&str> = FILES.into_iter().filter(|path| is_denied(&rules, path)).collect();
    let check = |reply: &Reply, what: &dyn std::fmt::Display| {
        let shown = without_recorded_args(reply);
        for path in &denied {
            assert!(!shown.contains(&secret(path)), "{what} under {texts:?} shows {path}: {shown}");
        }
        assert!(reply.status < 500, "{what} under {texts:?}: {reply}");
    };
    for _ in 0..CALLS {
        let (toolset, tool, args) = random_call(random);
        let reply = send(&agent, toolset, tool, &args).await;
        // A text that the caller sent itself may come back.
        if !args.to_string().contains("secret-of-") {
            check(&reply, &format_args!("{toolset}/{tool} {args}"));
        }
    }
    for reply in rest_replies(&agent, random).await {
        check(&reply, &"a REST request");
    }
    for path in &denied {
        let content = contents(path).await;
        assert_eq!(content, Some(format!("{}\n", secret(path))), "{path} under {texts:?}");
    }
}

async fn no_sequence_of_calls_reaches_a_denied_path(on: On) {
    for round in 0..ROUNDS {
        let workspace = on.workspace().await;
        for path in FILES {
            workspace.write(&format!("/{path}"), &format!("{}\n", secret(path))).await;
        }
        let owner = workspace.clone();
        let contents = async |path: &str| {
            set_rules(&owner, json!({"rules": []})).await;
            let reply = owner.call("read", &json!({"path": format!("/{path}")})).await;
            (reply.status == 200).then(|| reply.json()["result"]["content"].as_str().unwrap().to_owned())
        };
        attack(&workspace, &mut Random(round), contents).await;
    }
}

fn fill(folder: &Path) {
    for path in FILES {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("{}\n", secret(path))).unwrap();
    }
    symlink("docs", folder.join("alias")).unwrap();
    symlink("docs/a.md", folder.join("link.md")).unwrap();
    symlink(".", folder.join("up")).unwrap();
}

async fn no_sequence_of_calls_reaches_a_denied_path_in_a_folder_with_links(on: On) {
    let server = on.shared();
    for round in 0..ROUNDS {
        let folder: PathBuf = server.new_folder();
        fill(&folder);
        let account = Account::register(&server.client(), &unique_email("someone")).await;
        let workspace = account.folder_workspace("links", &folder).await;
        let contents = async |path: &str| std::fs::read_to_string(folder.join(path)).ok();
        attack(&workspace, &mut Random(1000 + round), contents).await;
    }
}
