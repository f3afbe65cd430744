//! Background processes: start, output, input, wait, stop.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolrest_testkit::{Workspace, eventually};

use crate::on::{On, list_at, text_at};
use crate::programs::bash;
use crate::toolset::SYSTEM;

on_every_backend![
    a_process_goes_on_after_the_call_and_its_output_is_read_from_an_offset,
    a_process_reads_what_is_written_to_it,
    what_a_process_changed_is_committed_when_it_ends,
    what_a_process_changes_is_committed_while_it_runs,
    stopping_a_process_ends_all_that_it_started,
    wait_process_returns_when_the_process_ends,
    processes_in_a_workspace_are_limited,
    processes_of_other_workspaces_are_not_found,
];

pub async fn start(workspace: &Workspace, command: &str) -> String {
    let started = SYSTEM.ok(workspace, "start_process", json!({"command": command})).await;
    assert_eq!(started["state"], "running", "{started}");
    text_at(&started, "/id").to_owned()
}

async fn wait(workspace: &Workspace, id: &str) -> Value {
    let ended = SYSTEM.ok(workspace, "wait_process", json!({"id": id, "timeout": 20})).await;
    assert_eq!(ended["state"], "ended", "{ended}");
    ended
}

pub async fn stop(workspace: &Workspace, id: &str) -> Value {
    SYSTEM.ok(workspace, "stop_process", json!({"id": id})).await
}

/// Reads from an offset until the output has the text, and gives all that was read.
pub async fn read_until(workspace: &Workspace, id: &str, text: &str) -> String {
    let (mut output, mut offset) = (String::new(), json!(0));
    let until = Instant::now() + Duration::from_secs(20);
    while !output.contains(text) {
        assert!(Instant::now() < until, "{text:?} was not printed: {output:?}");
        let read = SYSTEM.ok(workspace, "read_output", json!({"id": id, "offset": offset, "wait": 1})).await;
        output.push_str(text_at(&read, "/output"));
        offset = read["nextOffset"].clone();
    }
    output
}

async fn a_process_goes_on_after_the_call_and_its_output_is_read_from_an_offset(on: On) {
    let workspace = on.workspace().await;
    let id = start(&workspace, "echo one; read line; echo two >&2; sleep 100").await;
    let read = SYSTEM.ok(&workspace, "read_output", json!({"id": id, "wait": 10})).await;
    assert_eq!((&read["output"], &read["nextOffset"]), (&json!("one\n"), &json!(4)), "{read}");
    let read = SYSTEM.ok(&workspace, "read_output", json!({"id": id, "offset": 4})).await;
    assert_eq!((&read["output"], &read["nextOffset"]), (&json!(""), &json!(4)), "{read}");
    SYSTEM.ok(&workspace, "write_input", json!({"id": id, "input": "\n"})).await;
    let read = SYSTEM.ok(&workspace, "read_output", json!({"id": id, "offset": 4, "wait": 10})).await;
    assert_eq!(read["output"], "two\n", "{read}");
    let whole = SYSTEM.ok(&workspace, "read_output", json!({"id": id, "limit": 6})).await;
    assert_eq!((&whole["output"], &whole["nextOffset"]), (&json!("one\ntw"), &json!(6)));
    let listed = SYSTEM.ok(&workspace, "list_processes", json!({})).await;
    assert_eq!(text_at(&listed, "/processes/0/id"), id);
    assert_eq!(listed["processes"][0]["state"], "running", "{listed}");
    let stopped = stop(&workspace, &id).await;
    assert_eq!((&stopped["state"], &stopped["exitCode"]), (&json!("ended"), &json!(137)), "{stopped}");
    let listed = SYSTEM.ok(&workspace, "list_processes", json!({})).await;
    assert_eq!(listed["processes"][0]["state"], "ended", "what has ended can still be looked at: {listed}");
}

async fn a_process_reads_what_is_written_to_it(on: On) {
    let workspace = on.workspace().await;
    let id = start(&workspace, "while read line; do echo \"got $line\"; done; echo over").await;
    SYSTEM.ok(&workspace, "write_input", json!({"id": id, "input": "grüße\nand "})).await;
    read_until(&workspace, &id, "got grüße\n").await;
    SYSTEM.ok(&workspace, "write_input", json!({"id": id, "input": "more\n", "end": true})).await;
    let ended = wait(&workspace, &id).await;
    assert_eq!(ended["exitCode"], 0, "{ended}");
    assert_eq!(read_until(&workspace, &id, "over\n").await, "got grüße\ngot and more\nover\n");
    let late = json!({"id": id, "input": "late"});
    SYSTEM.refused(&workspace, 409, "CONFLICT", "write_input", late).await;
}

async fn what_a_process_changed_is_committed_when_it_ends(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/file", "before\n").await;
    let id = start(&workspace, "echo after > file; mkdir made; echo x > made/new").await;
    let ended = wait(&workspace, &id).await;
    let commit = text_at(&ended, "/commitId");
    assert_eq!(workspace.text("/file").await, "after\n");
    assert_eq!(workspace.text("/made/new").await, "x\n");
    // In a folder, others may have changed it too while the process ran.
    workspace.post(&format!("/commits/{commit}/undo"), &json!({"force": true})).await.success();
    assert_eq!(workspace.text("/file").await, "before\n");
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/made/new"})).await;
}

async fn what_a_process_changes_is_committed_while_it_runs(on: On) {
    let server = on.options().env("TOOLREST__RUN__BACKGROUND_COMMIT_MS", "200").start();
    let workspace = on.workspace_at(&server).await;
    let script = "echo first > file; read line; until [ -e theirs ]; do sleep 0.05; done; cat theirs; \
                  echo second > other; read line";
    let id = start(&workspace, script).await;
    let commits = async || workspace.get("/commits").await.success();
    // Waits until there are this many commits.
    let committed = async |count: usize| {
        eventually("a change is committed while the process runs", Duration::from_secs(20), async || {
            (list_at(&commits().await, "/commits").len() >= count).then_some(())
        })
        .await;
    };
    committed(1).await;
    assert_eq!(workspace.text("/file").await, "first\n");
    // What a tool writes meanwhile reaches the program.
    workspace.write("/theirs", "from a tool\n").await;
    let before = list_at(&commits().await, "/commits").len();
    SYSTEM.ok(&workspace, "write_input", json!({"id": id, "input": "\n"})).await;
    assert_eq!(read_until(&workspace, &id, "tool\n").await, "from a tool\n");
    // The commit of the next change of the process is made from a scan that also finds what the tool wrote.
    committed(before + 1).await;
    assert_eq!(workspace.text("/other").await, "second\n");
    stop(&workspace, &id).await;
    let commits = commits().await;
    assert_eq!(list_at(&commits, "/commits").len(), before + 1, "what the tool wrote is not recorded twice: {commits}");
}

async fn stopping_a_process_ends_all_that_it_started(on: On) {
    let workspace = on.workspace().await;
    let pause = unique_sleep();
    let code = format!("trap '' TERM HUP; setsid sh -c 'while true; do sleep {pause}; done' & echo up; wait");
    let id = start(&workspace, &code).await;
    read_until(&workspace, &id, "up\n").await;
    wait_until_true("the descendant runs", || is_running(&pause)).await;
    let stopped = stop(&workspace, &id).await;
    assert_eq!(stopped["state"], "ended", "{stopped}");
    wait_until_true("the descendant ends", || !is_running(&pause)).await;
}

async fn wait_process_returns_when_the_process_ends(on: On) {
    let workspace = on.workspace().await;
    let id = start(&workspace, "read line; exit 3").await;
    let begun = Instant::now();
    let still = SYSTEM.ok(&workspace, "wait_process", json!({"id": id, "timeout": 0.3})).await;
    assert_eq!(still["state"], "running", "{still}");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let other = workspace.through(&on.shared().client());
    let (ended, _) = tokio::join!(wait(&workspace, &id), async {
        SYSTEM.ok(&other, "write_input", json!({"id": id, "input": "", "end": true})).await
    });
    assert_eq!(ended["exitCode"], 3, "{ended}");
    assert!(ended["duration"].as_u64().is_some_and(|duration| duration >= 300), "{ended}");
}

async fn processes_in_a_workspace_are_limited(on: On) {
    let server = on.options().env("TOOLREST__RUN__BACKGROUND_AT_ONCE", "2").start();
    let workspace = on.workspace_at(&server).await;
    let first = start(&workspace, "sleep 100").await;
    start(&workspace, "sleep 100").await;
    let message =
        SYSTEM.refused(&workspace, 429, "QUOTA_EXCEEDED", "start_process", json!({"command": "sleep 100"})).await;
    assert!(message.contains("stop one first"), "{message}");
    stop(&workspace, &first).await;
    start(&workspace, "sleep 100").await;
    // Other programs are not in the way of those.
    bash(&workspace, "true").await;
}

async fn processes_of_other_workspaces_are_not_found(on: On) {
    let (workspace, other) = (on.workspace().await, on.workspace().await);
    let id = start(&workspace, "sleep 100").await;
    for tool in ["read_output", "stop_process", "wait_process"] {
        SYSTEM.refused(&other, 404, "FILE_NOT_FOUND", tool, json!({"id": id})).await;
    }
    SYSTEM.refused(&other, 404, "FILE_NOT_FOUND", "write_input", json!({"id": id, "input": "x"})).await;
    let listed = SYSTEM.ok(&other, "list_processes", json!({})).await;
    assert_eq!(list_at(&listed, "/processes").len(), 0, "{listed}");
    stop(&workspace, &id).await;
}

#[tokio::test]
async fn processes_on_a_server_are_limited() {
    let server = On::Sqlite.options().env("TOOLREST__RUN__BACKGROUND_AT_ONCE_IN_ALL", "1").start();
    let (first, second) = (On::Sqlite.workspace_at(&server).await, On::Sqlite.workspace_at(&server).await);
    let id = start(&first, "sleep 100").await;
    SYSTEM.refused(&second, 503, "UNAVAILABLE", "start_process", json!({"command": "true"})).await;
    stop(&first, &id).await;
    start(&second, "true").await;
}

#[tokio::test]
async fn a_process_in_a_folder_cannot_change_what_git_would_run() {
    let server = On::Folder.shared();
    let folder = server.new_folder();
    std::fs::create_dir_all(folder.join(".git/hooks")).unwrap();
    std::fs::write(folder.join(".git/config"), "[core]\n").unwrap();
    let workspace = On::Folder.account().await.folder_workspace("Guarded", &folder).await;
    let code = "echo x >> .git/config; echo x > .git/hooks/pre-commit; mv .git moved; rm -rf .git; echo free > file";
    let id = start(&workspace, code).await;
    wait(&workspace, &id).await;
    assert_eq!(std::fs::read_to_string(folder.join(".git/config")).unwrap(), "[core]\n");
    assert_eq!(std::fs::read_dir(folder.join(".git/hooks")).unwrap().count(), 0);
    assert_eq!(workspace.text("/file").await, "free\n");
}

#[tokio::test]
async fn a_process_in_a_folder_cannot_change_nested_repositories_and_new_ones_are_reported() {
    let server = On::Folder.shared();
    let folder = server.new_folder();
    for repository in ["sub", "ignored/deep"] {
        std::fs::create_dir_all(folder.join(repository).join(".git/hooks")).unwrap();
        std::fs::write(folder.join(repository).join(".git/config"), "[core]\n").unwrap();
    }
    std::fs::write(folder.join(".gitignore"), "ignored\n").unwrap();
    let workspace = On::Folder.account().await.folder_workspace("Nested", &folder).await;
    let code = "for d in sub ignored/deep; do echo x >> $d/.git/config; echo x > $d/.git/hooks/pre-commit; rm -rf $d/.git; \
                mv $d moved; echo x >> moved/.git/config; mv moved $d; done; git init -q made; echo free > file";
    let id = start(&workspace, code).await;
    let ended = wait(&workspace, &id).await;
    for repository in ["sub", "ignored/deep"] {
        let git = folder.join(repository).join(".git");
        assert_eq!(std::fs::read_to_string(git.join("config")).unwrap(), "[core]\n");
        assert_eq!(std::fs::read_dir(git.join("hooks")).unwrap().count(), 0);
    }
    let new = json!({"path": "made/.git", "reason": "new_repository"});
    assert!(list_at(&ended, "/leftOut").contains(&new), "{ended}");
    assert_eq!(workspace.text("/file").await, "free\n");
}

#[tokio::test]
async fn processes_end_when_their_lease_expires() {
    let server = On::Sqlite.options().env("TOOLREST__RUN__BACKGROUND_LEASE_MS", "400").start();
    let workspace = On::Sqlite.workspace_at(&server).await;
    let id = start(&workspace, "echo kept > file; sleep 100").await;
    // File tools are not about processes; they do not keep them alive.
    let until = Instant::now() + Duration::from_secs(20);
    while workspace.call("read", &json!({"path": "/file"})).await.status != 200 {
        assert!(Instant::now() < until, "what it changed was not committed at its end");
    }
    let ended = SYSTEM.ok(&workspace, "wait_process", json!({"id": id})).await;
    assert_eq!(ended["state"], "ended", "{ended}");
    assert!(text_at(&ended, "/reason").contains("Nobody asked"), "{ended}");
}

#[tokio::test]
async fn processes_end_with_the_server_and_what_they_changed_is_kept() {
    let mut server = On::Sqlite.options().start();
    let workspace = On::Sqlite.workspace_at(&server).await;
    let id = start(&workspace, "echo kept > file; echo up; exec sleep 12345.678").await;
    read_until(&workspace, &id, "up\n").await;
    assert!(server.stop().success());
    assert!(!is_running("12345.678"), "it outlived the server");
    server.restart(toolrest_testkit::Port::Same);
    let workspace = workspace.through(&server.client());
    assert_eq!(workspace.text("/file").await, "kept\n");
}

#[tokio::test]
async fn processes_end_with_a_server_that_is_killed() {
    let mut server = On::Sqlite.options().start();
    let workspace = On::Sqlite.workspace_at(&server).await;
    let id = start(&workspace, "echo up; exec sleep 12345.679").await;
    read_until(&workspace, &id, "up\n").await;
    wait_until_true("it runs", || is_running("12345.679")).await;
    server.kill9();
    wait_until_true("it ends with the server", || !is_running("12345.679")).await;
}

#[tokio::test]
async fn processes_end_with_their_workspace() {
    let workspace = On::Sqlite.workspace().await;
    let id = start(&workspace, "echo up; exec sleep 12345.680").await;
    read_until(&workspace, &id, "up\n").await;
    workspace.delete("").await.success();
    wait_until_true("it ends with its workspace", || !is_running("12345.680")).await;
}

/// Waits for something to become true.
pub async fn wait_until_true(what: &str, is_true: impl Fn() -> bool) {
    eventually(what, Duration::from_secs(20), async || is_true().then_some(())).await;
}

/// Returns an argument for `sleep` that no other test uses, of some minutes.
pub fn unique_sleep() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("300.{}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Ends every `sleep` with this argument, so that the programs that wait for it go on.
pub fn end_sleep(argument: &str) {
    for process in with_argument(argument) {
        let process = rustix::process::Pid::from_raw(process).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    }
}

/// How many processes of the machine have the text among their arguments.
pub fn running(argument: &str) -> usize {
    with_argument(argument).count()
}

/// The ids of all processes of the machine with this argument.
fn with_argument(argument: &str) -> impl Iterator<Item = i32> {
    let ids = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(move |id| {
        let arguments = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|one| one == argument.as_bytes())
    })
}

fn is_running(argument: &str) -> bool {
    running(argument) > 0
}
