//! A server with a full disk: which calls are refused, and which still work, also after a restart.

use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolrest_testkit::{Account, Backend, PASSWORD, Port, Postgres, Reply, Request, Server, Workspace};

use crate::on::{On, options_on, text_at, workspace_at};

/// Where the small disk is, for a test that is started once more to run on it.
const SMALL_DISK: &str = "TOOLREST_TEST_SMALL_DISK";

/// A test runs twice: first it starts itself again in a mount namespace with a small disk for temporary files, where it
/// does its work.
fn small_disk(test: &str) -> Option<PathBuf> {
    if let Some(disk) = env::var_os(SMALL_DISK) {
        return Some(PathBuf::from(disk));
    }
    let place = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=12m,nr_inodes=300 none "$1" && shift && exec "$@""#;
    let output = Command::new("unshare")
        .args(["-Urm", "sh", "-c", script, "sh"])
        .arg(place.path())
        .arg(env::current_exe().unwrap())
        .args(["--exact", &format!("full_disk::{test}"), "--nocapture"])
        .env(SMALL_DISK, place.path())
        .env("TMPDIR", place.path())
        .output()
        .expect("unshare (util-linux) is needed for a small disk");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    None
}

/// Takes every free block and every free inode.
fn fill(disk: &Path) -> PathBuf {
    let filler = disk.join("filler");
    fs::create_dir(&filler).unwrap();
    let mut large = File::create(filler.join("large")).unwrap();
    let block = vec![b'x'; 4096];
    while large.write_all(&block).is_ok() {}
    for n in 0.. {
        if File::create(filler.join(n.to_string())).is_err() {
            break;
        }
    }
    filler
}

fn server() -> Server {
    options_on(Backend::Sqlite).env("TOOLREST__RUN__ENABLED", "false").start()
}

/// A write in each toolset, with the code of a full disk there.
fn writes(content: &str) -> [(&'static str, &'static str, Value, &'static str); 4] {
    [
        ("workspace", "write", json!({"path": "/new.txt", "content": content}), "STORAGE_FULL"),
        ("file", "file.write", json!({"path": "new.txt", "content": content}), "write_failed"),
        ("system", "write_file", json!({"path": "new.txt", "content": content}), "STORAGE_FULL"),
        ("coding", "write", json!({"filePath": "new.txt", "content": content}), "STORAGE_FULL"),
    ]
}

/// Writes are refused for the one reason that there is no room, and reads go on.
async fn expect_full(workspace: &Workspace) {
    for (toolset, tool, args, code) in writes(&"too much\n".repeat(1 << 19)) {
        let reply = workspace.call_of(toolset, tool, &args).await;
        assert_eq!(reply.status, 507, "{toolset}: {reply}");
        assert!(reply.text.contains(&format!("\"{code}\"")), "{toolset}: {reply}");
    }
    assert_eq!(workspace.text("/a.txt").await, "text");
    assert_eq!(workspace.paths_in("/").await, ["/a.txt"]);
    let found = workspace.ok("grep", json!({"pattern": "te.t"})).await;
    assert!(found.to_string().contains("/a.txt"), "{found}");
}

async fn login(server: &Server, account: &Account, password: &str) -> Reply {
    let body = json!({"email": account.email, "password": password});
    server.client().send(Request::new("POST", "/api/v1/auth/login").json(&body)).await
}

async fn refresh(server: &Server, token: &str) -> Reply {
    let body = json!({"refresh_token": token});
    server.client().send(Request::new("POST", "/api/v1/auth/refresh").json(&body)).await
}

/// Those who have an account can sign in and refresh their tokens. Gives the refresh token that is good afterwards.
async fn expect_sign_in(server: &Server, account: &Account, refresh_token: &str) -> String {
    let refreshed = refresh(server, refresh_token).await.success();
    for signed_in in [&login(server, account, PASSWORD).await.success(), &refreshed] {
        let request = Request::new("GET", "/api/v1/workspaces").bearer(text_at(signed_in, "/access_token"));
        server.client().send(request).await.success();
    }
    login(server, account, "not the password").await.refused(401, "INVALID_TOKEN");
    text_at(&refreshed, "/refresh_token").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_a_full_disk_starts_serves_reads_and_reports_the_full_disk() {
    let Some(disk) = small_disk("a_server_on_a_full_disk_starts_serves_reads_and_reports_the_full_disk") else {
        return;
    };
    let mut server = server();
    let in_database = workspace_at(&server).await;
    let in_folder = On::Folder.workspace_of(&in_database.account, &server).await;
    for workspace in [&in_database, &in_folder] {
        workspace.write("/a.txt", "text").await;
    }
    let account = &in_database.account;
    let mut refresh_token = account.refresh_token.clone();
    let filler = fill(&disk);
    for restarts in 0..3 {
        match restarts {
            0 => {}
            1 => drop(server.stop()),
            _ => server.kill9(),
        }
        if restarts > 0 {
            server.restart(Port::Same);
        }
        for workspace in [&in_database, &in_folder] {
            expect_full(workspace).await;
        }
        refresh_token = expect_sign_in(&server, account, &refresh_token).await;
    }
    fs::remove_dir_all(filler).unwrap();
    refresh(&server, &refresh_token).await.success();
    for workspace in [&in_database, &in_folder] {
        for (toolset, tool, args, _) in writes("room again") {
            workspace.call_of(toolset, tool, &args).await.success();
        }
        assert_eq!(workspace.text("/new.txt").await, "room again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sign_in_on_a_full_disk_gives_no_session_and_is_limited() {
    let postgres = Postgres::shared();
    let url = postgres.create_database();
    let server = options_on(Backend::Postgres(url.clone())).start();
    let account = workspace_at(&server).await.account;
    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN RAISE ''No space left on device'' USING ERRCODE = ''53100''; END';
                CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE OR DELETE ON sessions EXECUTE FUNCTION full_disk();
                CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON sign_in_attempts EXECUTE FUNCTION full_disk()";
    postgres.execute(&url, full);
    let before = &account.refresh_token;
    assert_eq!(&expect_sign_in(&server, &account, before).await, before, "it is not spent");
    let signed_in = login(&server, &account, PASSWORD).await.success();
    assert!(signed_in["refresh_token"].is_null() && signed_in["refresh_token_expires_at"].is_null(), "{signed_in}");
    assert!(text_at(&signed_in, "/warnings/0").contains("disk is full"), "{signed_in}");
    refresh(&server, "no such token").await.refused(401, "INVALID_TOKEN");
    // Passwords cannot be guessed without limit either.
    let wrong = async || login(&server, &account, "not the password").await.status;
    let mut tries = 0;
    while wrong().await == 401 {
        tries += 1;
        assert!(tries < 20, "no limit is reached");
    }
    assert_eq!(login(&server, &account, PASSWORD).await.status, 429);
    postgres.execute(&url, "DROP TRIGGER full_disk ON sessions; DROP TRIGGER full_disk ON sign_in_attempts");
    let refreshed = refresh(&server, before).await.success();
    assert_ne!(text_at(&refreshed, "/refresh_token"), before);
    refresh(&server, before).await.refused(401, "INVALID_TOKEN");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_postgres_is_reported_as_storage_full() {
    let postgres = Postgres::shared();
    let url = postgres.create_database();
    let server = options_on(Backend::Postgres(url.clone())).start();
    let workspace = workspace_at(&server).await;
    workspace.write("/a.txt", "text").await;
    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN RAISE ''No space left on device'' USING ERRCODE = ''53100''; END';
                CREATE TRIGGER full_disk BEFORE INSERT ON versions EXECUTE FUNCTION full_disk()";
    postgres.execute(&url, full);
    expect_full(&workspace).await;
    postgres.execute(&url, "DROP TRIGGER full_disk ON versions");
    workspace.write("/new.txt", "room again").await;
}
