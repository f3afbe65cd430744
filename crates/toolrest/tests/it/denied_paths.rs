//! No sequence of calls reads or changes what the rules deny: random rules, random calls of all toolsets by an agent key, and
//! random decisions of a person about what is asked, in databases and in folders with symbolic links.
//!
//! `PROPTEST_CASES` sets the number of cases.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use toolrest_testkit::{Account, Reply, Request, Workspace, unique_email};

use crate::approvals::{key, set_rules};
use crate::on::On;

on_both_databases![
    no_sequence_of_calls_reaches_a_denied_path,
    no_sequence_of_calls_reaches_a_denied_path_in_a_folder_with_links,
];

const CASES: u32 = 12;
const MAX_STEPS: usize = 60;

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

/// Random numbers that depend on the seed alone.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    pub fn of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }
}

/// A text that occurs in one file only, which shows that its content was read.
fn secret(path: &str) -> String {
    format!("secret-of-{}", path.replace(['/', '.'], "-"))
}

/// A rule: its effect, its action, and the index of its pattern.
type RandomRule = (&'static str, &'static str, usize);

/// Rules, and the seeds of what happens under them.
#[derive(Clone, Debug)]
struct Case {
    rules: Vec<RandomRule>,
    /// Whether calls ask as the specifications say.
    asks: bool,
    steps: Vec<u64>,
}

impl Case {
    fn any() -> impl Strategy<Value = Self> {
        let effect = prop::sample::select(vec!["deny", "deny", "allow", "ask"]);
        let action = prop::sample::select(vec!["*", "*", "read", "write"]);
        let rules = prop::collection::vec((effect, action, 0..PATTERNS.len()), 1..5);
        let steps = prop::collection::vec(any::<u64>(), 1..MAX_STEPS);
        (rules, any::<bool>(), steps).prop_map(|(rules, asks, steps)| Self { rules, asks, steps })
    }

    /// Whether the last rule about an action at a path denies it.
    fn denies(&self, action: &str, path: &str) -> bool {
        let matches = |rule: &&RandomRule| ["*", action].contains(&rule.1) && PATTERNS[rule.2].1(path);
        self.rules.iter().rev().find(matches).is_some_and(|rule| rule.0 == "deny")
    }

    fn body(&self) -> Value {
        let rules =
            self.rules.iter().map(|(effect, action, pattern)| format!("{effect} {action}({})", PATTERNS[*pattern].0));
        json!({"rules": rules.collect::<Vec<_>>(), "approvals": if self.asks { "spec" } else { "off" }})
    }
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
        replies.push(agent.get(&format!("/history/{path}")).await);
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

/// Decides about one of the waiting calls as a person: once, for the session or for the workspace.
async fn decide_randomly(workspace: &Workspace, random: &mut Random) {
    let listed = workspace.get("/approvals?state=pending").await.success();
    let waiting = listed["approvals"].as_array().unwrap();
    if waiting.is_empty() {
        return;
    }
    let approval = random.of(waiting);
    let mut decision = json!({"decision": "approve", "revision": approval["revision"]});
    let offered = approval["grants_offered"].as_array().unwrap();
    match random.below(4) {
        0 => decision["decision"] = json!("deny"),
        scope @ (1 | 2) if !offered.is_empty() => {
            decision["scope"] = json!(if scope == 1 { "session" } else { "workspace" });
            decision["grant"] = random.of(offered).clone();
        }
        _ => {}
    }
    let url = format!("/approvals/{}", approval["id"].as_str().unwrap());
    // It may be refused: a rule for the workspace must not lift a denial.
    let decided = workspace.post(&format!("{url}/decision"), &decision).await;
    assert!(decided.status < 500, "{decided}");
    if decided.status == 200 {
        workspace.get(&format!("{url}?wait=20")).await.success();
    }
}

/// Returns the body of a reply, without the arguments of calls: they are what the caller sent itself.
fn without_recorded_args(reply: &Reply) -> String {
    let text = reply.text.clone();
    let Ok(mut body) = serde_json::from_str::<Value>(&text) else { return text };
    for list in ["calls", "approvals"] {
        for call in body[list].as_array_mut().into_iter().flatten() {
            call["args"] = Value::Null;
        }
    }
    body.to_string()
}

/// Does what a case says. `contents` returns the content of a file as it really is.
async fn attack(case: &Case, workspace: &Workspace, contents: impl AsyncFn(&str) -> Option<String>) {
    set_rules(workspace, case.body()).await;
    let agent = key(workspace).await;
    let hidden: Vec<&str> = FILES.into_iter().filter(|path| case.denies("read", path)).collect();
    let check = |reply: &Reply, what: &dyn std::fmt::Display| {
        let shown = without_recorded_args(reply);
        for path in &hidden {
            assert!(!shown.contains(&secret(path)), "{what} shows {path}: {shown}");
        }
        assert!(reply.status < 500, "{what}: {reply}");
    };
    for (number, seed) in case.steps.iter().enumerate() {
        let mut random = Random(*seed);
        if random.below(4) == 0 {
            decide_randomly(workspace, &mut random).await;
            continue;
        }
        let (toolset, tool, args) = random_call(&mut random);
        let reply = send(&agent, toolset, tool, &args).await;
        // A text that the caller sent itself may come back.
        if !args.to_string().contains("secret-of-") {
            check(&reply, &format_args!("step {number}, {toolset}/{tool} {args}"));
        }
    }
    for reply in rest_replies(&agent, &mut Random(7)).await {
        check(&reply, &reply.request);
    }
    for path in FILES {
        let is_original = |content: &Option<String>| content.as_deref() == Some(&format!("{}\n", secret(path)));
        let content = contents(path).await;
        // Only the denial of everything keeps a file from being deleted.
        let may_be_gone = !["write", "delete", "move", "read"].iter().all(|action| case.denies(action, path));
        if case.denies("write", path) {
            assert!(is_original(&content) || (may_be_gone && content.is_none()), "{path} is {content:?}");
        }
    }
}

/// Runs the property for random cases. They are the same in every run.
fn check_property(run: impl Fn(Case)) {
    let cases = std::env::var_os("PROPTEST_CASES").map_or(CASES, |_| Config::default().cases);
    let config = Config { cases, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let checked = runner.run(&Case::any(), |case| {
        run(case);
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Waits for work on a worker thread of the runtime.
fn wait(work: impl Future<Output = ()>) {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work));
}

async fn no_sequence_of_calls_reaches_a_denied_path(on: On) {
    let account = on.account().await;
    check_property(|case| {
        wait(async {
            let workspace = on.workspace_of(&account, on.shared()).await;
            for path in FILES {
                workspace.write(&format!("/{path}"), &format!("{}\n", secret(path))).await;
            }
            let contents = async |path: &str| {
                set_rules(&workspace, json!({"rules": [], "approvals": "off"})).await;
                let reply = workspace.call("read", &json!({"path": format!("/{path}")})).await;
                (reply.status == 200).then(|| reply.json()["result"]["content"].as_str().unwrap().to_owned())
            };
            attack(&case, &workspace, contents).await;
        });
    });
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
    let account = Account::register(&server.client(), &unique_email("someone")).await;
    check_property(|case| {
        wait(async {
            let folder: PathBuf = server.new_folder();
            fill(&folder);
            let workspace = account.folder_workspace("links", &folder).await;
            let contents = async |path: &str| std::fs::read_to_string(folder.join(path)).ok();
            attack(&case, &workspace, contents).await;
        });
    });
}
