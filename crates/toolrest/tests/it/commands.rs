//! The commands of people, with the real binary: calls, history, undo, keys, rules. The submodules test sign-ins,
//! approvals and folders without a server.

mod approvals;
mod folder;
mod sessions;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolrest_testkit::{Account, PASSWORD, Workspace, unique_email};

use crate::command::{stderr, stdout, toolrest};
use crate::on::{On, list_at, text_at};

on!(sqlite, Sqlite:
    a_person_calls_tools_by_schema_and_sees_text,
    a_deny_rule_holds_for_a_person,
    nothing_asks_a_person_but_a_call_as_an_agent_waits,
    a_key_has_no_own_hand,
    a_server_without_self_approval_judges_persons,
    history_show_diff_and_undo_work_on_a_server,
    a_removed_file_is_restored_by_its_path,
    keys_are_made_suspended_and_revoked,
    rules_are_set_from_a_file_and_checked,
    a_workspace_is_found_by_name_or_must_be_chosen,
    every_failure_has_its_exit_code,
    control_characters_and_colours_reach_no_file
);
on!(postgres, Postgres: history_show_diff_and_undo_work_on_a_server, a_removed_file_is_restored_by_its_path);
on!(folder_on_server, Folder: history_show_diff_and_undo_work_on_a_server, a_removed_file_is_restored_by_its_path);

/// A user of the command line, with a home folder of their own.
pub struct Shell {
    pub home: TempDir,
    env: Vec<(String, String)>,
}

impl Shell {
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), env: Vec::new() }
    }

    /// Returns a shell of somebody who uses a workspace with the token of its account.
    pub fn of(workspace: &Workspace) -> Self {
        let server = format!("http://{}", workspace.account.client.address());
        Self::new()
            .env("TOOLREST_SERVER", &server)
            .env("TOOLREST_TOKEN", &workspace.account.access_token)
            .env("TOOLREST_WORKSPACE", &workspace.id)
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = toolrest(self.home.path(), arguments);
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "VISUAL", "EDITOR", "NO_COLOR"] {
            command.env_remove(name);
        }
        command.env("HOME", self.home.path()).envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command with an input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that does not read its input may have ended already.
        let _ = running.stdin.take().unwrap().write_all(input.as_bytes());
        running.wait_with_output().unwrap()
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, "")
    }

    /// Runs a command that must succeed, and returns what it prints.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        stdout(&output)
    }

    /// Runs a command with `--json` that must succeed.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// Runs a command that must fail with an exit code and print nothing, and returns its message.
    #[track_caller]
    pub fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(code), ""), "{arguments:?}: {output:?}");
        stderr(&output)
    }

    pub fn credentials(&self) -> PathBuf {
        self.home.path().join(".config/toolrest/credentials.json")
    }
}

/// Makes an agent key, and returns the workspace for its requests.
pub async fn key(workspace: &Workspace) -> Workspace {
    let made = workspace.post("/keys", &json!({"name": "agent"})).await.success();
    let account = Account { access_token: text_at(&made, "/secret").to_owned(), ..workspace.account.clone() };
    account.in_workspace(&workspace.id)
}

pub async fn set_rules(workspace: &Workspace, body: Value) {
    workspace.send("PUT", "/rules", Some(&body)).await.success();
}

async fn a_person_calls_tools_by_schema_and_sees_text(on: On) {
    let workspace = on.workspace().await;
    let shell = Shell::of(&workspace);
    let diff = shell.ok(&["call", "coding/write", "filePath=notes.txt", "content=one\ntwo\n"]);
    assert!(diff.contains("+one\n+two\n"), "{diff}");
    let text = shell.ok(&["call", "coding/read", "filePath=notes.txt", "offset=1", "limit=1"]);
    assert!(text.contains("two") && !text.contains("one"), "{text}");
    // The same as one JSON document, from an argument, from standard input and from a file.
    let args = r#"{"filePath": "notes.txt"}"#;
    let by_argument = shell.json(&["call", "coding/read", args]);
    assert!(text_at(&by_argument, "/content").contains("two"), "{by_argument}");
    let by_input = shell.run_with(&["call", "coding/read", "-", "--json"], args);
    assert_eq!(serde_json::from_str::<Value>(&stdout(&by_input)).unwrap(), by_argument);
    let file = shell.home.path().join("args.json");
    fs::write(&file, args).unwrap();
    assert_eq!(shell.json(&["call", "coding/read", &format!("@{}", file.display())]), by_argument);
    // A value from a file, a tool with a dot in its name, and a toolset that needs a correlation id.
    fs::write(&file, "from a file\n").unwrap();
    shell.ok(&["call", "file/file.write", "path=c.txt", &format!("content=@{}", file.display())]);
    assert_eq!(workspace.text("/c.txt").await, "from a file\n");
    let message = shell.fails(2, &["call", "coding/read", "filPath=notes.txt"]);
    assert!(message.contains("'filPath'") && message.contains("filePath"), "{message}");
    let record = &shell.json(&["log", "-n", "1", "--tool", "write"])["calls"][0];
    assert_eq!((&record["toolset"], &record["outcome"]), (&json!("coding"), &json!("ok")));
}

async fn a_deny_rule_holds_for_a_person(on: On) {
    let workspace = on.workspace().await;
    set_rules(&workspace, json!({"rules": ["deny write(secret/**)"]})).await;
    let shell = Shell::of(&workspace);
    let message = shell.fails(4, &["call", "coding/write", "filePath=secret/a", "content=x"]);
    assert!(message.contains("deny write(secret/**)"), "{message}");
    shell.ok(&["call", "coding/write", "filePath=open/a", "content=x"]);
    assert_eq!(workspace.paths_below("/").await, ["/open", "/open/a"]);
}

async fn nothing_asks_a_person_but_a_call_as_an_agent_waits(on: On) {
    let workspace = on.workspace().await;
    set_rules(&workspace, json!({"rules": ["ask write(docs/**)"], "approvals": "spec"})).await;
    let shell = Shell::of(&workspace);
    shell.ok(&["call", "coding/write", "filePath=docs/a", "content=one"]);
    let write = ["call", "coding/write", "filePath=docs/a", "content=two"];
    let message = shell.fails(3, &[&write[..], &["--as-agent", "--reason", "a try", "--session", "s1"]].concat());
    let waiting = shell.json(&["approvals"]);
    let approval = &waiting["approvals"][0];
    assert!(message.contains(text_at(approval, "/id")) && message.contains("toolrest approvals approve"), "{message}");
    assert_eq!((&approval["reason"], &approval["session"]), (&json!("a try"), &json!("s1")));
    assert_eq!(workspace.text("/docs/a").await, "one");
    let output = shell.run(&[&write[..], &["--as-agent", "--session", "s1", "--json"]].concat());
    assert_eq!(output.status.code(), Some(3));
    let body: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(body["approval"]["id"], approval["id"], "a repetition attaches: {body}");
}

async fn a_key_has_no_own_hand(on: On) {
    let workspace = on.workspace().await;
    set_rules(&workspace, json!({"rules": ["ask write(docs/**)"], "approvals": "spec"})).await;
    let agent = key(&workspace).await;
    let shell = Shell::of(&agent);
    shell.fails(3, &["call", "coding/write", "filePath=docs/a", "content=x"]);
    // Nor by the header.
    let path = format!("/api/v1/workspaces/{}/toolsets/coding", agent.id);
    let request = toolrest_testkit::Request::new("POST", &path)
        .bearer(&agent.account.access_token)
        .header("X-Toolrest-Own-Hand", "true")
        .json(&json!({"tool": "write", "args": {"filePath": "docs/b", "content": "x"}}));
    let reply = agent.account.client.send(request.clone()).await;
    assert_eq!(reply.status, 403, "{reply}");
    assert!(workspace.paths_below("/").await.is_empty());
    // A stranger learns nothing about the workspace.
    let stranger = on.account().await;
    let stranger = stranger.client.send(request.header("Cookie", "x=y").bearer(&stranger.access_token)).await;
    assert!([401, 403].contains(&stranger.status), "{stranger}");
}

async fn a_server_without_self_approval_judges_persons(on: On) {
    let server = on.options().env("TOOLREST__POLICY__SELF_APPROVAL", "false").start();
    let workspace = on.workspace_at(&server).await;
    let shell = Shell::of(&workspace);
    let message = shell.fails(4, &["call", "coding/write", "filePath=a", "content=x"]);
    assert!(message.contains("policy.self_approval") && message.contains("--as-agent"), "{message}");
    shell.ok(&["call", "coding/write", "filePath=a", "content=x", "--as-agent"]);
    assert_eq!(workspace.text("/a").await, "x");
}

async fn history_show_diff_and_undo_work_on_a_server(on: On) {
    let workspace = on.workspace().await;
    let shell = Shell::of(&workspace);
    for text in ["one\n", "two\n", "three\n"] {
        shell.ok(&["call", "coding/write", "filePath=a b.txt", &format!("content={text}")]);
    }
    let history = shell.ok(&["history", "a b.txt"]);
    let versions: Vec<&str> = history.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(versions, ["3", "2", "1"], "{history}");
    assert!(history.contains(&workspace.account.email), "{history}");
    let diff = shell.ok(&["diff"]);
    assert!(diff.contains("-two\n+three\n"), "{diff}");
    let commits: Vec<String> = history.lines().map(|line| line.rsplit('\t').next().unwrap().to_owned()).collect();
    let shown = shell.ok(&["show", &commits[1]]);
    assert!(shown.starts_with(&format!("commit {}", commits[1])) && shown.contains("-one\n+two\n"), "{shown}");
    // Undo goes back one by one.
    let undo = shell.ok(&["undo"]);
    assert_eq!(workspace.text("/a b.txt").await, "two\n");
    assert_eq!(shell.json(&["show", undo.trim()])["commit"]["undoes"], json!(commits[0]));
    shell.ok(&["undo"]);
    assert_eq!(workspace.text("/a b.txt").await, "one\n");
    let message = shell.fails(8, &["undo", &commits[0]]);
    assert!(message.contains("undone already"), "{message}");
    shell.ok(&["undo"]);
    assert!(workspace.paths_in("/").await.is_empty());
    shell.fails(7, &["undo"]);
    shell.fails(7, &["show", "nothing"]);
    shell.fails(7, &["history", "nothing.txt"]);
}

async fn a_removed_file_is_restored_by_its_path(on: On) {
    let workspace = on.workspace().await;
    let shell = Shell::of(&workspace);
    workspace.write("/d/ä.txt", "text").await;
    workspace.ok("rm", json!({"path": "/d/ä.txt"})).await;
    assert!(shell.ok(&["restore"]).starts_with("/d/ä.txt\t"));
    let output = shell.run(&["history", "d/ä.txt"]);
    assert!(stderr(&output).contains("was removed"), "{output:?}");
    assert_eq!(shell.ok(&["restore", "/d/ä.txt"]), "/d/ä.txt\n");
    assert_eq!(workspace.text("/d/ä.txt").await, "text");
    shell.fails(8, &["restore", "d/ä.txt"]);
}

async fn keys_are_made_suspended_and_revoked(on: On) {
    let workspace = on.workspace().await;
    let shell = Shell::of(&workspace);
    let output = shell.run(&["keys", "create", "reader", "--actions", "read", "--toolsets", "coding,file"]);
    let secret = stdout(&output).trim().to_owned();
    assert!(secret.starts_with("trk_") && !stderr(&output).contains(&secret), "{output:?}");
    let listed = shell.ok(&["keys"]);
    let row: Vec<&str> = listed.trim_end().split('\t').collect();
    assert_eq!((row[1], row[2], row[4], row[5]), ("reader", "active", "read", "coding,file"), "{listed}");
    assert!(!listed.contains("trk_"), "{listed}");
    let agent = Shell::of(&workspace).env("TOOLREST_TOKEN", &secret);
    agent.ok(&["call", "coding/ls", "dirPath=."]);
    shell.ok(&["keys", "suspend", row[0]]);
    agent.fails(4, &["call", "coding/ls", "dirPath=."]);
    shell.ok(&["keys", "resume", row[0]]);
    agent.ok(&["call", "coding/ls", "dirPath=."]);
    shell.ok(&["keys", "revoke", row[0]]);
    agent.fails(4, &["call", "coding/ls", "dirPath=."]);
    assert!(shell.ok(&["keys"]).contains("\trevoked\t"));
    let message = agent.fails(4, &["keys"]);
    assert!(!message.contains("trk_"), "{message}");
}

async fn rules_are_set_from_a_file_and_checked(on: On) {
    let workspace = on.workspace().await;
    let shell = Shell::of(&workspace);
    let file = shell.home.path().join("rules");
    let file = file.to_str().unwrap();
    fs::write(file, "# the docs\nask write(docs/**)\n\ndeny read(**/.env)\n").unwrap();
    let set = shell.ok(&["rules", "set", file, "--approvals", "off"]);
    assert_eq!(set, "ask write(docs/**)\ndeny read(**/.env)\n");
    assert_eq!(shell.ok(&["rules"]), set);
    let stored = shell.json(&["rules"]);
    assert_eq!(stored["approvals"], "off");
    // What `--json` prints can be set again; without --approvals the mode stays.
    let output = shell.run_with(&["rules", "set", "-"], &stored.to_string());
    assert_eq!(stdout(&output), set, "{output:?}");
    assert_eq!(shell.json(&["rules"])["approvals"], "off");
    let message = shell.fails(8, &["rules", "set", file, "--revision", "1"]);
    assert!(!message.is_empty());
    fs::write(file, "perhaps write(x)").unwrap();
    assert!(shell.fails(1, &["rules", "set", file]).contains("perhaps"));
    let checked = shell.ok(&["rules", "check", "coding/read", "filePath=a/.env"]);
    assert!(checked.starts_with("deny\n"), "{checked}");
    set_rules(&workspace, json!({"rules": ["ask write(docs/**)"], "approvals": "spec"})).await;
    let checked = shell.ok(&["rules", "check", "file/file.write", "path=docs/a", "content=x"]);
    assert!(checked.starts_with("ask\n") && checked.contains("+x"), "{checked}");
    assert!(workspace.paths_in("/").await.is_empty(), "a check changes nothing");
}

async fn a_workspace_is_found_by_name_or_must_be_chosen(on: On) {
    let account = on.account().await;
    let shell = Shell::of(&account.in_workspace("")).env("TOOLREST_WORKSPACE", "");
    let message = shell.fails(7, &["log"]);
    assert!(message.contains("workspaces create"), "{message}");
    let id = shell.ok(&["workspaces", "create", "First"]);
    shell.ok(&["call", "coding/write", "filePath=a", "content=x"]);
    let second = shell.ok(&["workspaces", "create", "Second"]);
    let message = shell.fails(2, &["call", "coding/ls", "dirPath=."]);
    assert!(message.contains(id.trim()) && message.contains("--workspace"), "{message}");
    assert!(shell.ok(&["call", "coding/ls", "dirPath=.", "--workspace", "First"]).contains('a'));
    assert_eq!(shell.ok(&["log", "--workspace", second.trim(), "--tool", "ls"]), "");
    shell.fails(7, &["log", "--workspace", "Third"]);
    let listed = shell.ok(&["workspaces"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
}

async fn every_failure_has_its_exit_code(on: On) {
    let workspace = on.workspace().await;
    let shell = Shell::of(&workspace);
    shell.fails(7, &["call", "coding/read", "filePath=missing"]);
    shell.fails(7, &["call", "nothing/read", "{}"]);
    shell.fails(2, &["call", "read", "{}"]);
    shell.fails(2, &["call", "coding/read", "{not json"]);
    shell.fails(2, &["log", "--server", "https://example.com"]);
    shell.fails(2, &["doctor", "--json"]);
    shell.fails(6, &["log", "--server", "http://127.0.0.1:1"]);
    let wrong = Shell::of(&workspace).env("TOOLREST_TOKEN", "wrong-token");
    let message = wrong.fails(5, &["log"]);
    assert!(message.contains("toolrest login") && !message.contains("wrong-token"), "{message}");
    let outside = Shell::of(&on.account().await.in_workspace(&workspace.id));
    outside.fails(4, &["log"]);
    let viewer = on.account().await;
    workspace.add_member(&viewer, "viewer").await;
    Shell::of(&workspace.for_user(&viewer)).fails(4, &["call", "coding/write", "filePath=a", "content=x"]);
    let message = Shell::new().fails(2, &["log"]);
    assert!(message.contains("--dir .") && message.contains("toolrest login"), "{message}");
}

async fn control_characters_and_colours_reach_no_file(on: On) {
    let workspace = on.workspace().await;
    let shell = Shell::of(&workspace);
    workspace.write("/a.txt", "x\u{1b}[2J\n").await;
    let diff = shell.ok(&["diff"]);
    assert!(diff.contains("+x\\u{1b}[2J"), "{diff:?}");
    let colored = shell.ok(&["diff", "--color", "always"]);
    assert!(colored.contains("\u{1b}[32m+x\\u{1b}[2J\u{1b}[0m"), "{colored:?}");
    // The contents themselves are data: a pipe gets them as they are.
    let text = shell.ok(&["call", "workspace/read", "path=/a.txt"]);
    assert!(text.contains('\u{1b}') || text.contains("\\u001b"), "{text:?}");
}

#[test]
fn tools_are_shown_without_a_server() {
    let shell = Shell::new();
    let listed = shell.ok(&["tools"]);
    assert!(listed.contains("coding/read\t") && listed.contains("file/file.read\t"), "{listed}");
    let tools = shell.json(&["tools", "file", "--format", "openai"]);
    assert_eq!(tools["tools"][0]["function"]["name"], "file_read", "{tools}");
    let tools = shell.json(&["tools", "coding", "--format", "anthropic"]);
    assert!(list_at(&tools, "/tools").iter().all(|tool| tool["input_schema"].is_object()), "{tools}");
    assert!(shell.fails(7, &["tools", "nothing"]).contains("coding"));
}

#[test]
fn completions_and_manual_pages_name_the_commands() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish"] {
        assert!(shell.ok(&["completions", name]).contains("approvals"));
    }
    let folder = shell.home.path().join("man");
    shell.ok(&["man", "--to", folder.to_str().unwrap()]);
    let page = |name: &str| fs::read_to_string(Path::new(&folder).join(name)).unwrap();
    assert!(page("toolrest.1").contains("approvals") && page("toolrest-approvals-approve.1").contains("edit"));
}

/// Registers an account on the shared server.
async fn registered(on: On) -> Account {
    Account::register(&on.shared().client(), &unique_email("someone")).await
}

/// The arguments and the input with which an account signs in.
fn login(shell: &Shell, server: &str, email: &str) -> Output {
    shell.run_with(&["login", "--server", server, "--email", email], &format!("{PASSWORD}\n"))
}
