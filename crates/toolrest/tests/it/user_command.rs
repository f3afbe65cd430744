//! `toolrest user` while servers run.

use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Account, Backend, PASSWORD, Postgres, Reply, Request, Server, eventually, unique_email};

use crate::command::{stderr, stdout, toolrest};
use crate::on::{On, options_on, text_at};
use crate::toolset::SYSTEM;

on_both_databases![
    a_disabled_account_is_refused_everywhere_at_once_and_can_be_enabled_again,
    sessions_that_were_ended_stay_ended,
    a_password_that_was_reset_replaces_the_old_one,
    accounts_are_listed_and_added,
    enabling_an_account_does_not_restore_deleted_workspaces,
];

/// As long as running servers may take to learn of a revoked token.
const REVOCATION_LIMIT: Duration = Duration::from_secs(5);

/// A server with the arguments that lead an operator to its data.
pub struct OperatedServer {
    pub server: Server,
    arguments: Vec<String>,
}

impl OperatedServer {
    pub fn new(on: On) -> Self {
        let backend = match on {
            On::Sqlite | On::Folder | On::FolderOfUser => Backend::Sqlite,
            On::Postgres | On::FolderOnPostgres => Backend::Postgres(Postgres::shared().create_database()),
        };
        // What a process changed is not committed meanwhile, so a refused commit does not end it.
        let server = options_on(backend.clone()).env("TOOLREST__RUN__BACKGROUND_COMMIT_MS", "600000").start();
        let arguments = match backend {
            Backend::Sqlite => vec!["--data-dir".to_owned(), server.data_folder().to_str().unwrap().to_owned()],
            Backend::Postgres(url) => vec!["--database-url".to_owned(), url],
        };
        Self { server, arguments }
    }

    fn user(&self, arguments: &[&str], input: &str) -> Output {
        let mut all = vec!["user"];
        all.extend(arguments);
        all.extend(self.arguments.iter().map(String::as_str));
        let mut command = toolrest(Path::new("/"), &all);
        let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        running.wait_with_output().unwrap()
    }

    #[track_caller]
    pub fn done(&self, arguments: &[&str], input: &str) -> String {
        let output = self.user(arguments, input);
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    }

    pub async fn account(&self, name: &str) -> Account {
        Account::register(&self.server.client(), &unique_email(name)).await
    }

    async fn login(&self, email: &str, password: &str) -> Reply {
        let body = json!({"email": email, "password": password});
        self.server.client().send(Request::new("POST", "/api/v1/auth/login").json(&body)).await
    }

    async fn refresh(&self, account: &Account) -> Reply {
        let body = json!({"refresh_token": account.refresh_token});
        self.server.client().send(Request::new("POST", "/api/v1/auth/refresh").json(&body)).await
    }
}

async fn message_of(account: &Account) -> Option<String> {
    let reply = account.get("/workspaces").await;
    (reply.status == 401).then(|| text_at(&reply.json(), "/error").to_owned())
}

async fn a_disabled_account_is_refused_everywhere_at_once_and_can_be_enabled_again(on: On) {
    let operated = OperatedServer::new(on);
    let (ada, grace) = (operated.account("ada").await, operated.account("grace").await);
    let (of_ada, of_grace) = (ada.workspace("Ada's").await, grace.workspace("Grace's").await);
    of_ada.write("/a.txt", "text").await;
    of_ada.add_member(&grace, "editor").await;
    let seen = of_ada.for_user(&grace);
    assert_eq!(seen.text("/a.txt").await, "text");

    operated.done(&["disable", &grace.email.to_uppercase()], "");
    // Not a moment later: the first calls after the command are refused, also before the server has learnt of it.
    for (workspace, tool, args) in [
        (&seen, "read", json!({"path": "/a.txt"})),
        (&seen, "write", json!({"path": "/b.txt", "content": "x"})),
        (&of_grace, "ls", json!({"path": "/"})),
        (&of_grace, "write", json!({"path": "/b.txt", "content": "x"})),
    ] {
        let reply = workspace.call(tool, &args).await;
        assert!([401, 403].contains(&reply.status), "{reply}");
    }
    let reply = grace.post("/workspaces", &json!({"name": "New"})).await;
    assert_eq!(reply.status, 401, "{reply}");
    assert_eq!(operated.refresh(&grace).await.status, 401);
    let body = operated.login(&grace.email, PASSWORD).await.refused(401, "INVALID_TOKEN");
    assert!(text_at(&body, "/error").contains("disabled"), "{body}");
    let body = operated.login(&grace.email, "not the password").await.refused(401, "INVALID_TOKEN");
    assert!(!text_at(&body, "/error").contains("disabled"), "who does not know the password learns nothing: {body}");
    let message = eventually("the server knows", REVOCATION_LIMIT, async || message_of(&grace).await).await;
    assert!(message.contains("disabled"), "{message}");
    let again = of_ada.post("/members", &json!({"email": grace.email, "role": "editor"})).await;
    assert_eq!(again.status, 404, "a disabled account is not added: {again}");
    assert_eq!(of_ada.paths_in("/").await, ["/a.txt"], "others go on");
    operated.done(&["disable", &grace.email], "");

    operated.done(&["enable", &grace.email], "");
    let message = eventually("the server knows", REVOCATION_LIMIT, async || {
        message_of(&grace).await.filter(|message| !message.contains("disabled"))
    })
    .await;
    assert!(message.contains("revoked"), "the token from before stays refused: {message}");
    let grace = Account::login(&operated.server.client(), &grace.email).await;
    of_ada.for_user(&grace).write("/b.txt", "again").await;
    of_grace.for_user(&grace).write("/c.txt", "again").await;
    assert_eq!(grace.get("/workspaces").await.success()["workspaces"].as_array().unwrap().len(), 2);
}

async fn sessions_that_were_ended_stay_ended(on: On) {
    let operated = OperatedServer::new(on);
    let account = operated.account("someone").await;
    let other = Account::login(&operated.server.client(), &account.email).await;
    let output = operated.user(&["end-sessions", &account.email], "");
    assert!(stderr(&output).starts_with("Ended 2 sessions"), "{output:?}");
    for account in [&account, &other] {
        assert_eq!(operated.refresh(account).await.status, 401);
        let message = eventually("the server knows", REVOCATION_LIMIT, async || message_of(account).await).await;
        assert!(message.contains("revoked"), "{message}");
    }
    let again = Account::login(&operated.server.client(), &account.email).await;
    again.get("/workspaces").await.success();
    operated.refresh(&again).await.success();
}

async fn a_password_that_was_reset_replaces_the_old_one(on: On) {
    let operated = OperatedServer::new(on);
    let account = operated.account("someone").await;
    let new = "another password 2";
    for bad in ["short\n", "", "\n"] {
        let output = operated.user(&["reset-password", &account.email], bad);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    operated.login(&account.email, PASSWORD).await.success();
    operated.done(&["reset-password", &account.email], &format!("{new}\n"));
    assert_eq!(operated.refresh(&account).await.status, 401);
    operated.login(&account.email, PASSWORD).await.refused(401, "INVALID_TOKEN");
    let session = operated.login(&account.email, new).await.success();
    assert_eq!(session["user"]["id"], Value::from(account.id.as_str()));
    eventually("the server knows", REVOCATION_LIMIT, async || message_of(&account).await).await;
    let argument = operated.user(&["reset-password", &account.email, new], "");
    assert_eq!(argument.status.code(), Some(2), "a password is no argument: {argument:?}");
}

async fn accounts_are_listed_and_added(on: On) {
    let operated = OperatedServer::new(on);
    let first = operated.account("b").await;
    let added = operated.done(&["add", "A@Example.com"], "a fine password\n");
    operated.login("a@example.com", "a fine password").await.success();
    operated.done(&["disable", &first.email], "");
    let listed = operated.done(&["list"], "");
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 2, "{listed}");
    assert_eq!((rows[0][0], rows[0][1], rows[0][3]), ("a@example.com", "enabled", added.trim()));
    assert_eq!((rows[1][0], rows[1][1], rows[1][3]), (&*first.email, "disabled", &*first.id));
    for (arguments, words) in [
        (["disable", "nobody@example.com"], "no account with the email 'nobody@example.com'"),
        (["enable", "nobody@example.com"], "no account"),
        (["end-sessions", "nobody@example.com"], "no account"),
        (["disable", "local"], "email address"),
        (["add", "a@example.com"], "already exists"),
    ] {
        let output = operated.user(&arguments, "a fine password\n");
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(1), ""), "{arguments:?}: {output:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {output:?}");
    }
}

async fn enabling_an_account_does_not_restore_deleted_workspaces(on: On) {
    let operated = OperatedServer::new(on);
    let (ada, grace) = (operated.account("ada").await, operated.account("grace").await);
    let workspace = ada.workspace("Short-lived").await;
    workspace.add_member(&grace, "owner").await;
    operated.done(&["disable", &grace.email], "");
    workspace.delete("").await.success();
    operated.done(&["enable", &grace.email], "");
    let grace = Account::login(&operated.server.client(), &grace.email).await;
    assert_eq!(grace.get("/workspaces").await.success()["workspaces"], json!([]));
    assert_eq!(workspace.for_user(&grace).call("ls", &json!({"path": "/"})).await.status, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn background_processes_of_a_disabled_account_end() {
    let operated = OperatedServer::new(On::Sqlite);
    let (ada, grace) = (operated.account("ada").await, operated.account("grace").await);
    let workspace = On::Folder.workspace_of(&ada, &operated.server).await;
    workspace.add_member(&grace, "editor").await;
    for account in [&ada, &grace] {
        let seen = workspace.for_user(account);
        SYSTEM.ok(&seen, "start_process", json!({"command": "sleep 1000"})).await;
    }
    operated.done(&["disable", &grace.email], "");
    let states = eventually("one process ends", Duration::from_secs(15), async || {
        let listed = SYSTEM.ok(&workspace, "list_processes", json!({})).await;
        let states = [&listed["processes"][0]["state"], &listed["processes"][1]["state"]].map(Value::clone);
        (states[1] == "ended").then_some(states)
    })
    .await;
    assert_eq!(states, ["running", "ended"], "only hers");
}

#[test]
fn a_data_folder_without_a_database_is_refused_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let output = toolrest(place.path(), &["user", "list"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no database"), "{output:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}
