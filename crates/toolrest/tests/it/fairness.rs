//! Fairness: limits per account and per workspace for programs and processes.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolrest_testkit::{Account, Server, Workspace, unique_email};

use crate::on::{On, text_at};
use crate::processes::{running, wait_until_true};
use crate::programs::bash;
use crate::toolset::SYSTEM;

on_every_backend![
    processes_of_a_removed_editor_end_at_once_and_commit_nothing_more,
    processes_of_an_editor_who_becomes_a_viewer_end_at_once;
    the_setting_limits_the_programs_at_once_in_a_workspace
];

const PATIENCE: Duration = Duration::from_secs(30);

async fn account_at(server: &Server) -> Account {
    Account::register(&server.client(), &unique_email("someone")).await
}

async fn the_setting_limits_the_programs_at_once_in_a_workspace(on: On) {
    let server = on.options().env("TOOLREST__RUN__AT_ONCE_PER_WORKSPACE", "6").start();
    let workspace = on.workspace_at(&server).await;
    let seconds = if on == On::Sqlite { "61.0101" } else { "61.0102" };
    let mut programs = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let workspace = workspace.through(&server.client());
        let code = format!("exec sleep {seconds}");
        programs.spawn(async move { bash(&workspace, &code).await });
    }
    wait_until_true("six of them run", || running(seconds) == 6).await;
    programs.abort_all();
}

#[tokio::test]
async fn an_account_without_programs_gets_the_next_free_slot() {
    let server = On::Sqlite.options().env("TOOLREST__RUN__AT_ONCE", "2").start();
    let (busy, newcomer) = (account_at(&server).await, On::Sqlite.workspace_at(&server).await);
    let finished = Arc::new(AtomicUsize::new(0));
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let workspace = busy.workspace("one of many").await;
        for _ in 0..4 {
            let (workspace, finished) = (workspace.through(&server.client()), Arc::clone(&finished));
            crowd.spawn(async move {
                bash(&workspace, "exec sleep 2.0103").await;
                finished.fetch_add(1, Ordering::Relaxed);
            });
        }
    }
    wait_until_true("both places are taken", || running("2.0103") == 2).await;
    bash(&newcomer, "echo hi").await;
    let before = finished.load(Ordering::Relaxed);
    assert!(before <= 4, "{before} of 20 programs of another account went first");
    crowd.abort_all();
}

#[tokio::test]
async fn one_account_cannot_use_all_program_slots() {
    let options = On::Sqlite.options().env("TOOLREST__RUN__AT_ONCE", "3");
    let server = options.env("TOOLREST__RUN__AT_ONCE_PER_ACCOUNT", "2").start();
    let (busy, other) = (account_at(&server).await, On::Sqlite.workspace_at(&server).await);
    let mut long = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let workspace = busy.workspace("one of many").await.through(&server.client());
        long.spawn(async move { bash(&workspace, "exec sleep 61.0104").await });
    }
    wait_until_true("two of them run", || running("61.0104") == 2).await;
    tokio::time::timeout(PATIENCE, bash(&other, "echo hi")).await.expect("the other account had to wait");
    assert_eq!(running("61.0104"), 2);
    long.abort_all();
}

#[tokio::test]
async fn a_stranger_does_not_wait_for_the_programs_of_a_workspace() {
    let server = On::Sqlite.options().env("TOOLREST__RUN__AT_ONCE_PER_WORKSPACE", "1").start();
    let (busy, other) = (On::Sqlite.workspace_at(&server).await, On::Sqlite.workspace_at(&server).await);
    let owners = busy.through(&server.client());
    let long = tokio::spawn(async move { bash(&owners, "exec sleep 61.0105").await });
    wait_until_true("it runs", || running("61.0105") == 1).await;
    let args = json!({"language": "bash", "code": "true"});
    let seen = busy.for_user(&other.account);
    let refused = SYSTEM.refused(&seen, 403, "PERMISSION_DENIED", "run_code", args);
    tokio::time::timeout(PATIENCE, refused).await.expect("the stranger had to wait");
    long.abort();
}

async fn start(workspace: &Workspace, command: &str) -> String {
    let started = SYSTEM.ok(workspace, "start_process", json!({"command": command})).await;
    text_at(&started, "/id").to_owned()
}

#[tokio::test]
async fn background_processes_of_an_account_are_limited_over_all_workspaces() {
    let server = On::Sqlite.options().env("TOOLREST__RUN__BACKGROUND_AT_ONCE_PER_ACCOUNT", "2").start();
    let account = account_at(&server).await;
    let first = account.workspace("first").await;
    let id = start(&first, "sleep 100").await;
    start(&account.workspace("second").await, "sleep 100").await;
    let third = account.workspace("third").await;
    let reply = third.call_of("system", "start_process", &json!({"command": "true"})).await;
    let error = reply.json()["error"].take();
    assert_eq!((reply.status, text_at(&error, "/code")), (429, "QUOTA_EXCEEDED"), "{reply}");
    let details = json!({"limit": 2, "used": 2, "setting": "run.background_at_once_per_account"});
    assert_eq!(error["details"], details, "{reply}");
    start(&On::Sqlite.workspace_at(&server).await, "true").await;
    SYSTEM.ok(&first, "stop_process", json!({"id": id})).await;
    start(&third, "true").await;
}

/// A workspace with an editor who runs a process that writes a file all the time.
async fn with_writing_editor(on: On, server: &Server) -> (Workspace, Account, String) {
    let owners = on.workspace_at(server).await;
    let editor = account_at(server).await;
    owners.add_member(&editor, "editor").await;
    let code = "while true; do echo tick >> ticks; sleep 0.05; done";
    let id = start(&owners.for_user(&editor), code).await;
    (owners, editor, id)
}

async fn wait_for_end_without_rights(workspace: &Workspace, id: &str) -> Value {
    let ended = SYSTEM.ok(workspace, "wait_process", json!({"id": id, "timeout": 0.1})).await;
    assert_eq!(ended["state"], "ended", "{ended}");
    assert!(text_at(&ended, "/reason").contains("may not change the workspace any more"), "{ended}");
    ended
}

async fn processes_of_a_removed_editor_end_at_once_and_commit_nothing_more(on: On) {
    // The next look at what it changed is far away.
    let server = on.options().env("TOOLREST__RUN__BACKGROUND_COMMIT_MS", "600000").start();
    let (owners, editor, id) = with_writing_editor(on, &server).await;
    let kept = start(&owners, "exec sleep 100").await;
    owners.delete(&format!("/members/{}", editor.id)).await.success();
    let ended = wait_for_end_without_rights(&owners, &id).await;
    assert_eq!(ended.get("commitId"), None, "{ended}");
    let commits = owners.get("/commits").await.success();
    assert_eq!(commits["commits"].as_array().map(Vec::len), Some(0), "{commits}");
    let others = SYSTEM.ok(&owners, "wait_process", json!({"id": kept, "timeout": 0.1})).await;
    assert_eq!(others["state"], "running", "the owner's own process goes on: {others}");
}

async fn processes_of_an_editor_who_becomes_a_viewer_end_at_once(on: On) {
    let server = on.options().env("TOOLREST__RUN__BACKGROUND_COMMIT_MS", "600000").start();
    let (owners, editor, id) = with_writing_editor(on, &server).await;
    owners.patch(&format!("/members/{}", editor.id), &json!({"role": "viewer"})).await.success();
    wait_for_end_without_rights(&owners, &id).await;
}

on!(folder_meanwhile, Folder: a_process_does_not_start_for_an_editor_who_is_removed_meanwhile);
on!(folder_on_postgres_meanwhile, FolderOnPostgres: a_process_does_not_start_for_an_editor_who_is_removed_meanwhile);

async fn a_process_does_not_start_for_an_editor_who_is_removed_meanwhile(on: On) {
    let server = on.options().env("TOOLREST__RUN__BACKGROUND_COMMIT_MS", "600000").start();
    let folder = server.new_folder();
    // To look at all of it takes some time.
    for number in 0..20_000 {
        fs::write(folder.join(format!("{number}")), "text").unwrap();
    }
    let owners = account_at(&server).await.folder_workspace("Large", &folder).await;
    let editor = account_at(&server).await;
    owners.add_member(&editor, "editor").await;
    let editors = owners.for_user(&editor);
    let args = json!({"command": "echo ran > ran; exec sleep 100"});
    let starting = tokio::spawn(async move { editors.call_of("system", "start_process", &args).await });
    let checkouts = server.data_folder().join("checkouts");
    wait_until_true("the check-out's beginning", || has_file(&checkouts, "pack-0")).await;
    owners.delete(&format!("/members/{}", editor.id)).await.success();
    let reply = starting.await.unwrap();
    assert_eq!(reply.status, 403, "{reply}");
    let list = SYSTEM.ok(&owners, "list_processes", json!({})).await;
    assert!(!list.to_string().contains("running"), "{list}");
}

/// Whether a file of a name is anywhere below a folder.
fn has_file(folder: &Path, name: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        entry.file_name() == name || entry.file_type().is_ok_and(|kind| kind.is_dir()) && has_file(&entry.path(), name)
    })
}
