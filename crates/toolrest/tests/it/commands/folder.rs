//! Commands on a folder without a server (`--dir`).

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::eventually;

use super::Shell;
use crate::command::{stderr, stdout};
use crate::on::{list_at, text_at};

fn in_project<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--dir", "project"]].concat()
}

/// A user with a project folder and no server.
struct Project {
    shell: Shell,
    folder: PathBuf,
}

impl Project {
    fn new() -> Self {
        let shell = Shell::new();
        let folder = shell.home.path().join("project");
        fs::create_dir(&folder).unwrap();
        Self { shell, folder }
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        self.shell.ok(&in_project(arguments))
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        self.shell.json(&in_project(arguments))
    }

    #[track_caller]
    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        self.shell.fails(code, &in_project(arguments))
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap()
    }
}

#[test]
fn a_folder_is_used_without_a_server() {
    let project = Project::new();
    fs::write(project.folder.join("a.txt"), "one\n").unwrap();
    assert!(project.ok(&["call", "coding/read", "filePath=a.txt"]).contains("one"));
    project.ok(&["call", "coding/edit", "filePath=a.txt", "oldString=one", "newString=two"]);
    assert_eq!(project.text("a.txt"), "two\n");
    let diff = project.ok(&["diff"]);
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    assert_eq!(project.ok(&["history", "a.txt"]).lines().count(), 2);
    project.ok(&["undo"]);
    assert_eq!(project.text("a.txt"), "one\n");
    assert_eq!(project.ok(&["log", "--tool", "edit"]).lines().count(), 1);
    // The history is in the user's data folder, and nothing is left in the project.
    assert!(project.shell.home.path().join(".local/share/toolrest/toolrest.db").exists());
    let names: Vec<_> = fs::read_dir(&project.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.txt"]);
}

#[test]
fn a_deny_rule_holds_for_a_person_without_a_server() {
    let project = Project::new();
    fs::write(project.shell.home.path().join("rules"), "deny write(secret/**)\nask write(docs/**)\n").unwrap();
    project.ok(&["rules", "set", "rules"]);
    let message = project.fails(4, &["call", "coding/write", "filePath=secret/a", "content=x"]);
    assert!(message.contains("deny write(secret/**)"), "{message}");
    assert!(!project.folder.join("secret").exists());
    project.ok(&["call", "coding/write", "filePath=docs/a", "content=x"]);
    assert_eq!(project.text("docs/a"), "x");
}

#[test]
fn a_call_as_an_agent_waits_and_is_run_by_the_command_that_approves_it() {
    let project = Project::new();
    fs::write(project.folder.join("a.txt"), "old\n").unwrap();
    let write = ["call", "system/write_file", "path=a.txt", "content=new", "--as-agent"];
    let message = project.fails(3, &write);
    assert!(message.contains("--dir project"), "{message}");
    let id = text_at(&project.json(&["approvals"]), "/approvals/0/id").to_owned();
    assert_eq!(project.text("a.txt"), "old\n");
    let output = project.shell.run(&in_project(&["approvals", "approve", &id]));
    assert!(output.status.success() && stderr(&output).contains("it has run: ok"), "{output:?}");
    assert!(!stdout(&output).is_empty(), "it prints the commit");
    assert_eq!(project.text("a.txt"), "new");
    // The repeated call gets the answer and is not run again.
    fs::write(project.folder.join("a.txt"), "later\n").unwrap();
    let answer: Value = serde_json::from_str(&project.ok(&write)).unwrap();
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(project.text("a.txt"), "later\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_call_in_one_process_is_decided_by_another() {
    let project = Project::new();
    fs::write(project.folder.join("a.txt"), "old\n").unwrap();
    let arguments = ["call", "system/write_file", "path=a.txt", "content=new", "--as-agent", "--wait", "60"];
    let mut command = project.shell.command(&in_project(&arguments));
    let call = command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let id = eventually("the call waits", Duration::from_secs(30), async || {
        let listed = project.json(&["approvals"]);
        list_at(&listed, "/approvals").first().map(|one| text_at(one, "/id").to_owned())
    })
    .await;
    project.ok(&["approvals", "approve", &id]);
    let output = call.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(serde_json::from_str::<Value>(&stdout(&output)).unwrap()["ok"], json!(true));
    assert_eq!(project.text("a.txt"), "new");
}

#[test]
fn programs_run_in_a_folder_without_a_server() {
    let project = Project::new();
    let text =
        project.ok(&["call", "system/run_code", "language=bash", "code=echo hello > made.txt; cat made.txt", "--json"]);
    assert!(text.contains("hello"), "{text}");
    assert_eq!(project.text("made.txt"), "hello\n");
    let message = project.fails(2, &["call", "system/start_process", "command=sleep 1"]);
    assert!(message.contains("toolrest serve"), "{message}");
}

#[test]
fn a_folder_that_does_not_exist_is_refused() {
    let project = Project::new();
    let output = project.shell.run(&["log", "--dir", "missing"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("missing"), "{output:?}");
    project.fails(2, &["log", "--server", "http://127.0.0.1:1"]);
}

#[test]
fn no_folder_with_stored_sign_ins_is_opened() {
    let project = Project::new();
    let data = tempfile::tempdir().unwrap();
    fs::create_dir(project.shell.home.path().join(".config")).unwrap();
    for folder in [".", ".config"] {
        let output = project.shell.run(&["log", "--dir", folder, "--data-dir", data.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains("toolrest login"), "{output:?}");
    }
}
