//! `toolrest approvals`: calls of agents are shown and decided.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolrest_testkit::{Reply, Request, Workspace, eventually};

use super::{Shell, key, set_rules};
use crate::command::{stderr, stdout};
use crate::on::{On, list_at, text_at};

on!(sqlite, Sqlite:
    a_waiting_call_is_listed_shown_and_approved,
    a_denied_call_tells_the_agent_why,
    an_agent_gets_an_answer_instead,
    arguments_are_edited_in_the_editor,
    an_editor_that_fails_decides_nothing,
    a_decision_names_the_revision_that_was_shown,
    a_call_that_changed_meanwhile_asks_again,
    an_approval_for_the_session_lets_the_next_call_through,
    a_key_decides_nothing_on_the_command_line_either,
    watch_prints_calls_as_they_begin_to_wait,
    watch_asks_on_a_terminal,
    serve_on_a_terminal_says_when_a_call_waits
);
on!(postgres, Postgres: a_waiting_call_is_listed_shown_and_approved);

/// A workspace with a file, whose agent asks before it overwrites it.
struct Scene {
    workspace: Workspace,
    agent: Workspace,
    shell: Shell,
}

impl Scene {
    async fn new(on: On) -> Self {
        let workspace = on.workspace().await;
        set_rules(&workspace, json!({"rules": [], "approvals": "spec"})).await;
        workspace.write("/notes.txt", "old\n").await;
        let (agent, shell) = (key(&workspace).await, Shell::of(&workspace));
        Self { workspace, agent, shell }
    }

    /// Has the agent overwrite the file and wait for a decision.
    fn overwrite(&self, content: &str) -> JoinHandle<Reply> {
        let (agent, content) = (self.agent.clone(), content.to_owned());
        tokio::spawn(async move {
            let path = format!("/api/v1/workspaces/{}/toolsets/system", agent.id);
            let request = Request::new("POST", &path)
                .bearer(&agent.account.access_token)
                .header("Prefer", "wait=60")
                .header("X-Toolrest-Session", "s")
                .header("X-Toolrest-Reason", "because")
                .json(&json!({"tool": "write_file", "args": {"path": "notes.txt", "content": content}}));
            agent.account.client.send(request).await
        })
    }

    /// Returns the only approval, as soon as it is pending.
    async fn pending(&self) -> Value {
        eventually("the approval is pending", Duration::from_secs(20), async || {
            let listed = self.workspace.get("/approvals?state=pending").await.success();
            let approvals = list_at(&listed, "/approvals").to_vec();
            (approvals.len() == 1).then(|| approvals[0].clone())
        })
        .await
    }

    async fn asked(&self, content: &str) -> (JoinHandle<Reply>, String) {
        let call = self.overwrite(content);
        let id = text_at(&self.pending().await, "/id").to_owned();
        (call, id)
    }

    async fn text(&self) -> String {
        self.workspace.text("/notes.txt").await
    }

    /// Returns a shell with an editor that is a script.
    fn with_editor(self, script: &str) -> Self {
        let path = self.shell.home.path().join("editor");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let shell = self.shell.env("EDITOR", &format!("{} --flag", path.display()));
        Self { shell, ..self }
    }
}

async fn a_waiting_call_is_listed_shown_and_approved(on: On) {
    let scene = Scene::new(on).await;
    let (call, id) = scene.asked("new\n").await;
    let listed = scene.shell.ok(&["approvals"]);
    let row: Vec<&str> = listed.trim_end().split('\t').collect();
    assert_eq!((row[0], row[2], row[3], row[4]), (&*id, "key agent", "system/write_file", "/notes.txt"), "{listed}");
    let shown = scene.shell.ok(&["approvals", "show", &id]);
    for part in ["-old\n+new\n", "revision 1", "because", "key agent", "write(notes.txt)"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let colored = scene.shell.ok(&["approvals", "show", &id, "--color", "always"]);
    assert!(colored.contains("\u{1b}[31m-old\u{1b}[0m"), "{colored:?}");
    let output = scene.shell.run(&["approvals", "approve", &id, "--reason", "fine"]);
    assert!(output.status.success() && stderr(&output).contains("+new"), "{output:?}");
    assert_eq!(call.await.unwrap().status, 200);
    assert_eq!(scene.text().await, "new\n");
    let shown = scene.shell.json(&["approvals", "show", &id]);
    assert_eq!(shown["approval"]["commit_id"], json!(stdout(&output).trim()), "it prints the commit: {output:?}");
    assert_eq!(shown["approval"]["decided"]["reason"], "fine");
    assert_eq!(scene.shell.ok(&["approvals"]), "");
    assert!(scene.shell.ok(&["approvals", "list", "--state", "done"]).contains(&id));
    scene.shell.fails(8, &["approvals", "deny", &id]);
    scene.shell.fails(7, &["approvals", "show", "01890000-0000-7000-8000-000000000000"]);
}

async fn a_denied_call_tells_the_agent_why(on: On) {
    let scene = Scene::new(on).await;
    let (call, id) = scene.asked("new\n").await;
    let output = scene.shell.run(&["approvals", "deny", &id, "--reason", "use a branch"]);
    assert!(output.status.success(), "{output:?}");
    let reply = call.await.unwrap();
    assert!(reply.status == 403 && reply.text.contains("use a branch"), "{reply}");
    assert_eq!(scene.text().await, "old\n");
}

async fn an_agent_gets_an_answer_instead(on: On) {
    let scene = Scene::new(on).await;
    let (call, id) = scene.asked("new\n").await;
    let answered = scene.shell.json(&["approvals", "respond", &id, "write to other.txt"]);
    assert_eq!(answered["approval"]["outcome"], "responded", "{answered}");
    let reply = call.await.unwrap();
    assert!(reply.text.contains("write to other.txt"), "{reply}");
    assert_eq!(scene.text().await, "old\n");
}

async fn arguments_are_edited_in_the_editor(on: On) {
    let scene = Scene::new(on).await.with_editor(r#"[ "$1" = --flag ] && sed -i 's/new/edited/' "$2""#);
    let (call, id) = scene.asked("new\n").await;
    let message = scene.shell.fails(2, &["approvals", "approve", &id, "--edit"]);
    assert!(message.contains("--yes"), "nobody can confirm the new diff: {message}");
    assert_eq!(scene.text().await, "old\n");
    let output = scene.shell.run(&["approvals", "approve", &id, "--edit", "--yes"]);
    assert!(output.status.success(), "{output:?}");
    let words = stderr(&output);
    assert!(words.contains("+new") && words.contains("+edited"), "both diffs are shown: {words}");
    let reply = call.await.unwrap();
    assert!(reply.status == 200 && reply.text.contains("changed the arguments"), "{reply}");
    assert_eq!(scene.text().await, "edited\n");
}

async fn an_editor_that_fails_decides_nothing(on: On) {
    let scene = Scene::new(on).await.with_editor("exit 3");
    let (call, id) = scene.asked("new\n").await;
    let approve = ["approvals", "approve", &id, "--edit", "--yes"];
    assert!(scene.shell.fails(1, &approve).contains("nothing was decided"));
    let scene = scene.with_editor(r#"echo '{"path": ' > "$2""#);
    assert!(scene.shell.fails(2, &approve).contains("cannot be used"));
    assert_eq!(text_at(&scene.pending().await, "/id"), id);
    assert_eq!(scene.text().await, "old\n");
    // Arguments that were left as they are approve the call as it is.
    let scene = scene.with_editor("true");
    scene.shell.ok(&approve);
    assert_eq!(call.await.unwrap().status, 200);
    assert_eq!(scene.text().await, "new\n");
}

async fn a_decision_names_the_revision_that_was_shown(on: On) {
    let scene = Scene::new(on).await;
    let (call, id) = scene.asked("new\n").await;
    scene.shell.fails(8, &["approvals", "approve", &id, "--revision", "7"]);
    assert_eq!(scene.text().await, "old\n");
    scene.shell.ok(&["approvals", "approve", &id, "--revision", "1"]);
    assert_eq!(call.await.unwrap().status, 200);
}

async fn a_call_that_changed_meanwhile_asks_again(on: On) {
    let scene = Scene::new(on).await;
    let (call, id) = scene.asked("new\n").await;
    scene.workspace.write("/notes.txt", "somebody else's\n").await;
    let output = scene.shell.run(&["approvals", "approve", &id]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("revision 2"), "{output:?}");
    assert_eq!(scene.text().await, "somebody else's\n");
    let output = scene.shell.run(&["approvals", "approve", &id, "--revision", "1"]);
    assert_eq!(output.status.code(), Some(8), "{output:?}");
    let output = scene.shell.run(&["approvals", "approve", &id]);
    assert!(output.status.success() && stderr(&output).contains("-somebody else's"), "{output:?}");
    assert_eq!(call.await.unwrap().status, 200);
    assert_eq!(scene.text().await, "new\n");
}

async fn an_approval_for_the_session_lets_the_next_call_through(on: On) {
    let scene = Scene::new(on).await;
    let (call, id) = scene.asked("new\n").await;
    scene.shell.ok(&["approvals", "approve", &id, "--session"]);
    assert_eq!(call.await.unwrap().status, 200);
    let next = scene.overwrite("newer\n").await.unwrap();
    assert_eq!(next.status, 200, "{next}");
    assert_eq!(scene.text().await, "newer\n");
    let grants = scene.shell.ok(&["rules", "grants"]);
    let row: Vec<&str> = grants.trim_end().split('\t').collect();
    let email = scene.workspace.account.email.as_str();
    assert_eq!(row[..4], ["allow write(notes.txt)", "agent", "s", email], "{grants}");
    scene.shell.ok(&["rules", "grants", "--reset"]);
    assert_eq!(scene.shell.ok(&["rules", "grants"]), "");
    let (call, id) = scene.asked("newest\n").await;
    scene.shell.ok(&["approvals", "deny", &id, "--session"]);
    assert_eq!(call.await.unwrap().status, 403);
    let refused = scene.overwrite("another\n").await.unwrap();
    assert_eq!(refused.status, 403, "it is refused without asking: {refused}");
}

async fn a_key_decides_nothing_on_the_command_line_either(on: On) {
    let scene = Scene::new(on).await;
    let (call, id) = scene.asked("new\n").await;
    let agent = Shell::of(&scene.agent);
    let output = agent.run(&["approvals", "approve", &id, "--revision", "1"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(!agent.ok(&["approvals", "show", &id]).contains("-old"), "keys see no diffs");
    assert_eq!(scene.text().await, "old\n");
    scene.shell.ok(&["approvals", "approve", &id]);
    assert_eq!(call.await.unwrap().status, 200);
}

async fn watch_prints_calls_as_they_begin_to_wait(on: On) {
    let scene = Scene::new(on).await;
    let (first, id) = scene.asked("new\n").await;
    let mut watch = scene.shell.command(&["approvals", "watch", "--json"]);
    let watch = watch.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let mut watch = watch.spawn().unwrap();
    let output = toolrest_testkit::Output::default();
    output.drain(watch.stdout.take().unwrap(), "");
    let line = |start: String| output.wait_for_line(&start, Duration::from_secs(20)).map(|rest| start + &rest);
    let seen: Value = serde_json::from_str(&line(format!("{{\"id\":\"{id}\"")).expect("the first call")).unwrap();
    assert_eq!(seen["args"]["content"], "new\n");
    scene.shell.ok(&["approvals", "deny", &id]);
    first.await.unwrap();
    let (second, id) = scene.asked("newer\n").await;
    line(format!("{{\"id\":\"{id}\"")).expect("a call that began to wait while it watches");
    scene.shell.ok(&["approvals", "deny", &id]);
    second.await.unwrap();
    watch.kill().unwrap();
    watch.wait().unwrap();
}

/// A command on a terminal of its own, which `script` makes. It types what is written to `input`.
struct OnTerminal {
    process: std::process::Child,
    input: std::process::ChildStdin,
    output: toolrest_testkit::Output,
}

impl OnTerminal {
    fn start(shell: &Shell, arguments: &str) -> Self {
        let command = format!("exec {} {arguments}", crate::command::BINARY);
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).current_dir(shell.home.path());
        for (name, value) in shell.command(&[]).get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        let script = script.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut process = script.spawn().expect("script(1), of Debian's bsdutils");
        let output = toolrest_testkit::Output::default();
        output.drain(process.stdout.take().unwrap(), "");
        let input = process.stdin.take().unwrap();
        Self { process, input, output }
    }

    /// Waits until the command has printed something, and returns the line from there on.
    #[track_caller]
    fn shows(&self, part: &str) -> String {
        let find = |text: &str| text.lines().find_map(|line| Some(line.split_once(part)?.1.to_owned()));
        let found = self.output.wait_for(Duration::from_secs(30), find);
        found.unwrap_or_else(|| panic!("no '{part}': {}", self.output.text()))
    }

    fn types(&mut self, text: &str) {
        std::io::Write::write_all(&mut self.input, text.as_bytes()).unwrap();
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn watch_asks_on_a_terminal(on: On) {
    let scene = Scene::new(on).await;
    let (call, _) = scene.asked("a\u{1b}[2Jb\n").await;
    let mut watch = OnTerminal::start(&scene.shell, "approvals watch");
    watch.shows("+a\\u{1b}[2Jb");
    watch.types("a\n");
    assert_eq!(call.await.unwrap().status, 200, "{}", watch.output.text());
    watch.shows("it has run");
    // The next call is refused with a reason.
    let (call, _) = scene.asked("again\n").await;
    watch.shows("+again");
    watch.types("d\nnot again\n");
    let reply = call.await.unwrap();
    assert!(reply.status == 403 && reply.text.contains("not again"), "{reply}");
}

async fn serve_on_a_terminal_says_when_a_call_waits(_: On) {
    let shell = Shell::new();
    let folder = shell.home.path().join("project");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "old\n").unwrap();
    let serve = OnTerminal::start(&shell, "serve --dir project --listen 127.0.0.1:0");
    let address = serve.shows("Toolrest is listening on http://").trim().to_owned();
    let workspace = serve.shows("/api/v1/workspaces/").trim().to_owned();
    let key = serve.shows("  key     ").split_whitespace().next().unwrap().to_owned();
    serve.shows("Stop with Ctrl-C");
    let request = Request::new("POST", &format!("/api/v1/workspaces/{workspace}/toolsets/system"))
        .bearer(&key)
        .header("Prefer", "wait=0")
        .json(&json!({"tool": "write_file", "args": {"path": "a.txt", "content": "new\n"}}));
    let reply = toolrest_testkit::Client::new(&address).send(request).await;
    assert_eq!(reply.status, 202, "{reply}");
    let rest = serve.shows("system/write_file /a.txt waits for you");
    assert!(rest.contains("toolrest approvals watch --dir"), "{rest}");
    // The command line decides about it in a process of its own, and the call runs.
    let id = text_at(&reply.json(), "/approval/id").to_owned();
    shell.ok(&["approvals", "approve", &id, "--dir", "project"]);
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "new\n");
}
