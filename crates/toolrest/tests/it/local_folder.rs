//! `serve --dir`, and the accounts that may open a folder.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Account, Client, Port, Reply, Request, Server, Workspace, eventually, unique_email};

use crate::command::{stderr, toolrest};
use crate::on::{On, text_at};

/// Returns the word after a label in what a server prints when it starts with `--dir`.
async fn printed(server: &Server, label: &str) -> String {
    let output = eventually("it prints what to do next", Duration::from_secs(10), async || {
        Some(server.output()).filter(|output| output.contains("Stop with"))
    })
    .await;
    let (_, rest) = output.split_once(&format!("  {label} ")).unwrap_or_else(|| panic!("no {label} in {output}"));
    rest.split_whitespace().next().unwrap().to_owned()
}

/// Returns the local workspace of a server, for requests with this token.
async fn local_workspace_with(server: &Server, token: String) -> Workspace {
    let id = printed(server, "folder").await.rsplit('/').next().unwrap().to_owned();
    let account = Account {
        client: server.client(),
        email: "local".to_owned(),
        id: String::new(),
        access_token: token,
        refresh_token: String::new(),
    };
    account.in_workspace(&id)
}

/// Returns the local workspace of a server, for requests with the agent key that it printed.
pub async fn local_workspace(server: &Server) -> Workspace {
    let key = printed(server, "key").await;
    assert!(key.starts_with("trk_"), "{key}");
    local_workspace_with(server, key).await
}

/// Opens the sign-in link that a server printed.
async fn open_link(server: &Server) -> Reply {
    let link = printed(server, "sign in").await;
    let path = link.strip_prefix(&server.url()).unwrap_or_else(|| panic!("{link} leads elsewhere"));
    server.client().send(Request::new("GET", path)).await
}

/// Returns the local workspace of a server, for requests by its owner, who opens the sign-in link.
async fn own_local_workspace(server: &Server) -> Workspace {
    let page = open_link(server).await;
    assert_eq!(page.status, 303, "{page}");
    let token = page.cookies().strip_prefix("access_token=").unwrap().to_owned();
    local_workspace_with(server, token).await
}

async fn open_folder(account: &Account, root: &Path) -> Reply {
    account.post("/workspaces", &json!({"name": "Mine", "kind": "directory", "root": root})).await
}

fn registration(email: &str) -> Value {
    let password = toolrest_testkit::PASSWORD;
    json!({"email": email, "password": password, "confirm_password": password})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_dir_prints_a_key_for_its_folder() {
    let folder = On::Sqlite.shared().new_folder();
    fs::write(folder.join("a.txt"), "text").unwrap();
    let mut server = On::Sqlite.options().env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap()).start();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let workspace = local_workspace(&server).await;
        assert_eq!(workspace.text("/a.txt").await, "text");
        ids.push(workspace.id);
        server.restart(Port::New);
    }
    assert_eq!(ids[0], ids[1], "the workspace of a folder stays the same");
}

/// Runs `toolrest user` on the data of a server, with a password on its standard input.
fn user_command(server: &Server, arguments: &[&str]) -> Output {
    let data = ["--data-dir", server.data_folder().to_str().unwrap()];
    let mut command = toolrest(Path::new("/"), &[&["user"], arguments, &data].concat());
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    writeln!(running.stdin.take().unwrap(), "{}", toolrest_testkit::PASSWORD).unwrap();
    running.wait_with_output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sign_in_link_of_serve_dir_works_once() {
    let folder = On::Sqlite.shared().new_folder();
    let mut server = On::Sqlite.options().env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap()).start();
    let wrong = server.client().send(Request::new("GET", "/sign-in?token=wrong")).await;
    assert_eq!(wrong.status, 401, "{wrong}");
    let page = open_link(&server).await;
    assert_eq!(page.status, 303, "{page}");
    let workspace = local_workspace(&server).await.id;
    assert_eq!(page.header("location"), Some(format!("/w/{workspace}/activity").as_str()), "{page}");
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let again = open_link(&server).await;
    assert_eq!(again.status, 401, "{again}");
    let token = page.cookies().strip_prefix("access_token=").unwrap().to_owned();
    let owner = local_workspace_with(&server, token).await;
    let shown = owner.get("").await.success();
    assert_eq!(shown["workspace"]["role"], "owner", "{shown}");
    let keys = owner.get("/keys").await.success();
    assert_eq!(text_at(&keys, "/keys/0/name"), "toolrest serve --dir");
    server.restart(Port::Same);
    let refused = token_refused(&owner).await.unwrap();
    assert!(refused.contains("another start of `toolrest serve --dir`"), "{refused}");
    let keys = own_local_workspace(&server).await.get("/keys").await.success();
    let live = keys["keys"].as_array().unwrap().iter().filter(|key| key["revoked_at"].is_null()).count();
    assert_eq!(live, 1, "{keys}");
    server.stop();
    server.restart(Port::Same);
    assert_eq!(own_local_workspace(&server).await.get("/keys").await.success()["count"], 3);
}

/// The refusal of a token.
async fn token_refused(workspace: &Workspace) -> Option<String> {
    let reply = workspace.call("ls", &json!({})).await;
    (reply.status == 401).then(|| text_at(&reply.json(), "/error").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_for_a_folder_ends_with_its_server_or_when_the_operator_ends_it() {
    let folder = On::Sqlite.shared().new_folder();
    let mut server = On::Sqlite.options().env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap()).start();
    let earlier = local_workspace(&server).await;
    earlier.ok("ls", json!({})).await;
    server.restart(Port::Same);
    earlier.refused(403, "FORBIDDEN", "ls", json!({})).await;
    let workspace = local_workspace(&server).await;
    workspace.ok("ls", json!({})).await;
    let owner = own_local_workspace(&server).await;
    owner.ok("ls", json!({})).await;

    let output = user_command(&server, &["end-sessions", "local"]);
    assert!(output.status.success() && stderr(&output).contains("Restart `toolrest serve --dir`"), "{output:?}");
    workspace.refused(403, "FORBIDDEN", "ls", json!({})).await;
    let refused = eventually("the server knows", Duration::from_secs(5), async || token_refused(&owner).await).await;
    assert!(refused.contains("revoked") && refused.contains("Restart `toolrest serve --dir`"), "{refused}");
    server.restart(Port::Same);
    local_workspace(&server).await.ok("ls", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_account_roots_lists_gets_an_account_from_the_operator_only() {
    let (folder, ada) = (On::Sqlite.shared().new_folder(), unique_email("ada"));
    let roots = format!("{}={}", ada.to_uppercase(), folder.display());
    let server = On::Sqlite.options().env("TOOLREST__FOLDERS__ACCOUNT_ROOTS", &roots).start();
    let send = async |path: &str, body: Value| server.client().send(Request::new("POST", path).json(&body)).await;
    let register = async |email: &str| send("/api/v1/auth/register", registration(email)).await.success();
    let (reserved, free) = (register(&ada).await, register(&unique_email("bob")).await);
    assert_eq!(reserved, free, "nobody learns which addresses are reserved");
    let sign_in = json!({"email": ada, "password": toolrest_testkit::PASSWORD});
    send("/api/v1/auth/login", sign_in).await.refused(401, "INVALID_TOKEN");
    eventually("the refusal is logged", Duration::from_secs(5), async || {
        server.output().contains("folders.account_roots lists the address").then_some(())
    })
    .await;

    let added = user_command(&server, &["add", &ada]);
    assert!(added.status.success(), "{added:?}");
    let account = Account::login(&server.client(), &ada).await;
    open_folder(&account, &folder).await.success();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registration_is_closed_at_a_server_for_one_folder_unless_asked_for() {
    let folder = On::Sqlite.shared().new_folder();
    let options = On::Sqlite.options().env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap());
    let server = options.clone().start();
    let register = Request::new("POST", "/api/v1/auth/register").json(&registration(&unique_email("late")));
    server.client().send(register).await.refused(403, "FORBIDDEN");
    let server = options.env("TOOLREST__AUTH__REGISTRATION_OPEN", "true").start();
    Account::register(&server.client(), &unique_email("asked")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_local_folder_belongs_to_the_local_user_alone() {
    let home = On::Sqlite.shared().new_folder();
    let (folder, beside) = (home.join("project"), home.join("beside"));
    for folder in [&folder.join("sub"), &beside] {
        fs::create_dir_all(folder).unwrap();
    }
    let server = On::Sqlite
        .options()
        .env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap())
        .env("TOOLREST__AUTH__REGISTRATION_OPEN", "true")
        .start();
    let other = Account::register(&server.client(), &unique_email("other")).await;
    for root in [&folder, &folder.join("sub"), &home] {
        open_folder(&other, root).await.refused(403, "FORBIDDEN");
    }
    let workspace = local_workspace(&server).await;
    workspace.for_user(&other).refused(403, "FORBIDDEN", "ls", json!({})).await;
    // Its owner can still share it.
    own_local_workspace(&server).await.add_member(&other, "viewer").await;
    workspace.for_user(&other).ok("ls", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_another_made_in_the_local_folder_is_closed() {
    let mut server = On::Sqlite.options().start();
    let account = Account::register(&server.client(), &unique_email("earlier")).await;
    let folder = server.new_folder();
    let workspace = account.folder_workspace("Mine", &folder).await;
    workspace.write("/a.txt", "text").await;
    server.set_env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap());
    server.restart(Port::Same);
    assert_eq!(local_workspace(&server).await.text("/a.txt").await, "text");
    workspace.refused(403, "FORBIDDEN", "read", json!({"path": "/a.txt"})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_listed_accounts_can_open_their_root() {
    let mut server = On::Sqlite.options().start();
    let (client, folder) = (server.client(), server.new_folder());
    let ada = Account::register(&client, &unique_email("ada")).await;
    let bob = Account::register(&client, &unique_email("bob")).await;
    let his = bob.folder_workspace("His", &folder).await;
    server.set_env("TOOLREST__FOLDERS__ACCOUNT_ROOTS", &format!("{}={}", ada.email, folder.display()));
    server.restart(Port::Same);
    open_folder(&ada, &folder).await.success();
    let refusal = open_folder(&bob, &folder).await.refused(403, "FORBIDDEN");
    assert!(text_at(&refusal, "/error").contains("folders.account_roots"), "{refusal}");
    his.refused(403, "FORBIDDEN", "ls", json!({})).await;
    open_folder(&bob, &server.new_folder()).await.success();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folders_that_contain_the_servers_own_data_are_refused() {
    let mut server = On::Sqlite.options().start();
    let data = server.data_folder().to_owned();
    let account = Account::register(&server.client(), &unique_email("curious")).await;
    server.set_env(
        "TOOLREST__FOLDERS__ACCOUNT_ROOTS",
        &format!("{}={}", account.email, data.parent().unwrap().display()),
    );
    server.restart(Port::Same);
    let link = server.new_folder().join("link");
    symlink(data.join("checkouts"), &link).unwrap();
    for root in [&data, &data.join("checkouts"), &data.join("journals"), data.parent().unwrap(), &link] {
        let refusal = open_folder(&account, root).await.refused(403, "FORBIDDEN");
        assert!(text_at(&refusal, "/error").contains("server.data_dir"), "{root:?}: {refusal}");
    }
    open_folder(&account, &server.new_folder()).await.success();
    for folder in [&data, data.parent().unwrap(), &data.join("checkouts")] {
        server.set_env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap());
        let refusal = server.try_restart(Port::New).unwrap_err();
        assert!(refusal.output.contains("server.data_dir"), "{}", refusal.output);
    }
}

/// A command that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_dir_on_the_working_directory_keeps_its_data_in_the_users_data_folder() {
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let own = home.path().join("share");
    let mut command = toolrest(project.path(), &["serve", "--dir", ".", "--listen", "127.0.0.1:0"]);
    command.env("XDG_DATA_HOME", &own).env("HOME", home.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let _running = Running(command.spawn().unwrap());
    let database: PathBuf = own.join("toolrest/toolrest.db");
    eventually("the database is made", Duration::from_secs(20), async || database.exists().then_some(())).await;
    assert_eq!(fs::read_dir(project.path()).unwrap().count(), 0, "nothing is left in the project");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_contains_the_default_settings_file_is_refused() {
    let (data, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(project.path().join("sub")).unwrap();
    let data_dir = data.path().to_str().unwrap();
    let arguments = ["serve", "--allow-root", ".", "--data-dir", data_dir, "--listen", "127.0.0.1:0"];
    let mut command = toolrest(project.path(), &arguments);
    let mut running = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut listening = String::new();
    BufReader::new(running.0.stdout.as_mut().unwrap()).read_line(&mut listening).unwrap();
    let client = Client::new(listening.trim().rsplit('/').next().unwrap());
    let account = Account::register(&client, &unique_email("someone")).await;
    let refusal = open_folder(&account, project.path()).await.refused(403, "FORBIDDEN");
    assert!(text_at(&refusal, "/error").contains("--config"), "{refusal}");
    open_folder(&account, &project.path().join("sub")).await.success();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_dir_refuses_a_folder_with_the_settings_file_or_the_python_environment() {
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = project.path().join("toolrest.toml");
    let python = format!("[run]\npython_dir = {:?}\n", project.path().join("later/python"));
    let elsewhere = home.path().join("toolrest.toml");
    for (file, text, word) in [(&file, "", "--config"), (&elsewhere, python.as_str(), "run.python_dir")] {
        fs::write(file, text).unwrap();
        let arguments = ["serve", "--dir", ".", "--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()];
        let mut command = toolrest(project.path(), &arguments);
        command.env("XDG_DATA_HOME", home.path()).env("HOME", home.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        let ended = async || running.0.try_wait().unwrap();
        let ended = eventually("the server refuses to start", Duration::from_secs(20), ended).await;
        let mut refusal = String::new();
        running.0.stderr.take().unwrap().read_to_string(&mut refusal).unwrap();
        assert!(!ended.success() && refusal.contains(word), "{refusal}");
        assert!(!refusal.contains("server.data_dir"), "{refusal}");
        fs::remove_file(file).unwrap();
    }
}
