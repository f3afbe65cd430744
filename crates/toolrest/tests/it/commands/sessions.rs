//! `toolrest login` and `logout`: stored sign-ins, and sessions that are refreshed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::{Value, json};
use toolrest_testkit::PASSWORD;

use super::{Shell, key, login, registered};
use crate::command::{stderr, stdout};
use crate::on::{On, text_at};

on!(sqlite, Sqlite:
    a_sign_in_is_stored_for_its_user_only,
    a_wrong_password_stores_nothing,
    a_key_is_stored_from_standard_input,
    an_old_token_is_refreshed_once_by_several_processes,
    an_ended_session_is_forgotten,
    stored_tokens_that_others_can_read_are_refused,
    logout_ends_the_session
);

fn stored(shell: &Shell) -> Value {
    serde_json::from_str(&fs::read_to_string(shell.credentials()).unwrap()).unwrap()
}

/// Changes what is stored about the only server.
fn change(shell: &Shell, change: impl FnOnce(&mut Value)) {
    let mut all = stored(shell);
    change(all["servers"].as_object_mut().unwrap().values_mut().next().unwrap());
    fs::write(shell.credentials(), all.to_string()).unwrap();
}

fn session(shell: &Shell) -> Value {
    stored(shell)["servers"].as_object().unwrap().values().next().unwrap().clone()
}

async fn a_sign_in_is_stored_for_its_user_only(on: On) {
    let (account, server, shell) = (registered(on).await, on.shared().url(), Shell::new());
    account.workspace("Mine").await;
    let output = login(&shell, &server, &account.email);
    assert!(output.status.success(), "{output:?}");
    let shown = stdout(&output) + &stderr(&output);
    let session = session(&shell);
    for token in ["/access_token", "/refresh_token"] {
        assert!(!shown.contains(text_at(&session, token)), "{shown}");
    }
    assert!(!shown.contains(PASSWORD) && !session.to_string().contains(PASSWORD), "{shown}");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&shell.credentials()), 0o600);
    assert_eq!(mode(shell.credentials().parent().unwrap()), 0o700);
    // Later commands need no arguments.
    shell.ok(&["call", "coding/write", "filePath=a", "content=x"]);
    assert!(shell.ok(&["log"]).contains(&account.email));
}

async fn a_wrong_password_stores_nothing(on: On) {
    let (account, server, shell) = (registered(on).await, on.shared().url(), Shell::new());
    let output = shell.run_with(&["login", "--server", &server, "--email", &account.email], "wrong password\n");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(!shell.credentials().exists());
    assert_eq!(shell.run(&["login", "--server", &server]).status.code(), Some(2), "no address and no terminal");
    shell.fails(5, &["log", "--server", &server]);
}

async fn a_key_is_stored_from_standard_input(on: On) {
    let (workspace, server, shell) = (on.workspace().await, on.shared().url(), Shell::new());
    let agent = key(&workspace).await;
    let output = shell.run_with(&["login", "--server", &server, "--key", "-"], &agent.account.access_token);
    assert!(output.status.success(), "{output:?}");
    assert!(!stderr(&output).contains("trk_"), "{output:?}");
    // A key has one workspace, which need not be named.
    shell.ok(&["call", "coding/ls", "dirPath=."]);
    let output = shell.run_with(&["login", "--server", &server, "--key", "-"], "trk_wrong");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!(text_at(&session(&shell), "/key"), agent.account.access_token, "the earlier sign-in stays");
}

async fn an_old_token_is_refreshed_once_by_several_processes(on: On) {
    let (account, server, shell) = (registered(on).await, on.shared().url(), Shell::new());
    account.workspace("Mine").await;
    assert!(login(&shell, &server, &account.email).status.success());
    let before = session(&shell);
    change(&shell, |session| session["access_expires"] = json!(1));
    let running: Vec<_> = (0..6)
        .map(|_| {
            let mut command = shell.command(&["workspaces"]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for process in running {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let after = session(&shell);
    assert_ne!(before["refresh_token"], after["refresh_token"]);
    // A token that the server refuses although it is not old is refreshed too.
    change(&shell, |session| session["access_token"] = json!("refused"));
    shell.ok(&["workspaces"]);
    assert_ne!(session(&shell)["refresh_token"], after["refresh_token"]);
    let mode = fs::metadata(shell.credentials()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

async fn an_ended_session_is_forgotten(on: On) {
    let (account, server, shell) = (registered(on).await, on.shared().url(), Shell::new());
    assert!(login(&shell, &server, &account.email).status.success());
    change(&shell, |session| {
        session["access_expires"] = json!(1);
        session["refresh_token"] = json!("spent");
    });
    let message = shell.fails(5, &["workspaces"]);
    assert!(message.contains("has ended") && !message.contains("spent"), "{message}");
    assert_eq!(stored(&shell)["servers"], json!({}));
}

async fn stored_tokens_that_others_can_read_are_refused(on: On) {
    let (account, server, shell) = (registered(on).await, on.shared().url(), Shell::new());
    assert!(login(&shell, &server, &account.email).status.success());
    fs::set_permissions(shell.credentials(), fs::Permissions::from_mode(0o644)).unwrap();
    let message = shell.fails(1, &["workspaces"]);
    assert!(message.contains("644") && message.contains("chmod 600"), "{message}");
}

async fn logout_ends_the_session(on: On) {
    let (account, server, shell) = (registered(on).await, on.shared().url(), Shell::new());
    assert!(login(&shell, &server, &account.email).status.success());
    let session = session(&shell);
    shell.ok(&["logout"]);
    assert_eq!(stored(&shell), json!({"current": null, "servers": {}}));
    let body = json!({"refresh_token": session["refresh_token"]});
    let request = toolrest_testkit::Request::new("POST", "/api/v1/auth/refresh").json(&body);
    assert_eq!(account.client.send(request).await.status, 401);
    assert_eq!(shell.run(&["workspaces"]).status.code(), Some(2), "no server is known any more");
}
