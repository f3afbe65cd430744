//! `toolrest backup` and `toolrest restore-backup` while the server runs.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolrest_testkit::{
    Account, Backend, Port, Postgres, Server, Workspace, data_folder, eventually, new_home, postgres_program,
};

use crate::command::{BINARY, stderr, stdout, toolrest};
use crate::on::{On, list_at, options_on, text_at, workspace_at};

fn backup(data: &Path, to: &Path) -> Output {
    let (data, to) = (data.to_str().unwrap(), to.to_str().unwrap());
    toolrest(Path::new("/"), &["backup", to, "--data-dir", data]).output().unwrap()
}

fn restore(from: &Path, data: &Path) -> Output {
    let (data, from) = (data.to_str().unwrap(), from.to_str().unwrap());
    toolrest(Path::new("/"), &["restore-backup", from, "--data-dir", data]).output().unwrap()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    stdout(output).trim_end().to_owned()
}

#[track_caller]
fn refused(output: &Output, words: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(stdout(output), "");
    assert!(stderr(output).contains(words), "{output:?}");
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Writers that each write numbered files, until they are stopped. They tell which writes were acknowledged.
struct Writers {
    acknowledged: Arc<Mutex<Vec<String>>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Writers {
    fn begin(workspace: &Workspace, count: usize) -> Self {
        let acknowledged = Arc::<Mutex<Vec<String>>>::default();
        let write = |writer: usize| {
            let (workspace, acknowledged) = (workspace.clone(), Arc::clone(&acknowledged));
            tokio::spawn(async move {
                for n in 0.. {
                    let path = format!("/load/{writer}-{n}.txt");
                    workspace.write(&path, &path).await;
                    acknowledged.lock().unwrap().push(path);
                }
            })
        };
        Self { tasks: (0..count).map(write).collect(), acknowledged }
    }

    async fn so_far(&self, at_least: usize) -> Vec<String> {
        eventually("the writers have written", Duration::from_secs(60), async || {
            let written = self.acknowledged.lock().unwrap();
            (written.len() >= at_least).then(|| written.clone())
        })
        .await
    }

    async fn end(self) {
        for task in self.tasks {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled(), "a write failed");
        }
    }
}

/// Everything acknowledged before the backup began is there, everything there is whole, and the server goes on from it.
async fn expect_whole(server: &Server, before: &Workspace, acknowledged: &[String]) {
    let workspace = before.through(&server.client());
    // The token of the server that was backed up: the key that signs is in the backup.
    let listed = workspace.paths_below("/load").await;
    let missing: Vec<_> = acknowledged.iter().filter(|path| !listed.contains(path)).collect();
    assert!(missing.is_empty(), "{} of {} are missing", missing.len(), acknowledged.len());
    for path in listed.iter().rev().take(300) {
        assert_eq!(workspace.text(path).await, *path);
    }
    let commits = workspace.get("/commits?limit=10000").await.success();
    let mut written: Vec<_> =
        list_at(&commits, "/commits").iter().flat_map(|commit| list_at(commit, "/changes")).collect();
    written.retain(|change| change["path"].as_str().is_some_and(|path| path.starts_with("/load/")));
    assert_eq!(written.len(), listed.len(), "one commit for each file");
    let account = Account::login(&server.client(), &before.account.email).await;
    let workspace = before.for_user(&account);
    workspace.write("/after.txt", "after").await;
    let newest = workspace.get("/commits?limit=1").await.success();
    let commit = text_at(&newest, "/commits/0/id").to_owned();
    workspace.post(&format!("/commits/{commit}/undo"), &json!({})).await.success();
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/after.txt"})).await;
    let found = workspace.ok("grep", json!({"pattern": "^/load/0-0.txt$"})).await;
    assert!(found.to_string().contains("/load/0-0.txt"), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_under_eight_writers_restore_to_all_that_was_acknowledged() {
    let server = options_on(Backend::Sqlite).start();
    let workspace = workspace_at(&server).await;
    let place = tempfile::tempdir().unwrap();
    let writers = Writers::begin(&workspace, 8);
    let mut backups = Vec::new();
    for n in 1..=3 {
        let acknowledged = writers.so_far(n * 100).await;
        let to = place.path().join(n.to_string());
        assert_eq!(succeeded(&backup(server.data_folder(), &to)), to.to_str().unwrap());
        backups.push((to, acknowledged));
    }
    writers.end().await;
    for (from, acknowledged) in &backups {
        let home = new_home();
        let data = data_folder(home.path());
        let database = data.join("toolrest.db");
        assert_eq!(succeeded(&restore(from, &data)), database.to_str().unwrap());
        assert_eq!(fs::metadata(&database).unwrap().permissions().mode() & 0o777, 0o600);
        let restored = options_on(Backend::Sqlite).start_in(home);
        expect_whole(&restored, &workspace, acknowledged).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_backed_up_under_eight_writers_by_its_own_tools() {
    let postgres = Postgres::shared();
    let url = postgres.create_database();
    let server = options_on(Backend::Postgres(url.clone())).start();
    let workspace = workspace_at(&server).await;
    let place = tempfile::tempdir().unwrap();
    let writers = Writers::begin(&workspace, 8);
    let acknowledged = writers.so_far(200).await;
    let dump = place.path().join("toolrest.dump");
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(postgres_program(program)).args(args).output().unwrap();
        assert!(output.status.success(), "{program}: {}", stderr(&output));
    };
    run("pg_dump", &["--format=custom", "--file", dump.to_str().unwrap(), &url]);
    writers.end().await;
    let other = postgres.create_database();
    run("pg_restore", &["--no-owner", "--exit-on-error", "--dbname", &other, dump.to_str().unwrap()]);
    let restored = options_on(Backend::Postgres(other)).start();
    expect_whole(&restored, &workspace, &acknowledged).await;

    for command in [["backup", "x"], ["restore-backup", "x"]] {
        let output = toolrest(place.path(), &[command[0], command[1], "--database-url", &url]).output().unwrap();
        refused(&output, "pg_dump");
    }
    assert_eq!(names_in(place.path()), ["toolrest.dump"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_for_the_operator_alone_and_has_the_settings_file() {
    let server = options_on(Backend::Sqlite).start();
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("my.toml");
    fs::write(&config, "[log]\nlevel = \"warn\"\n").unwrap();
    let to = place.path().join("backup");
    let data = server.data_folder().to_str().unwrap();
    let arguments = ["backup", "backup", "--data-dir", data, "--config", "my.toml"];
    succeeded(&toolrest(place.path(), &arguments).output().unwrap());
    assert_eq!(names_in(&to), ["backup.json", "toolrest.db", "toolrest.toml"]);
    assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o700);
    for name in names_in(&to) {
        assert_eq!(fs::metadata(to.join(&name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(fs::read(to.join("toolrest.toml")).unwrap(), fs::read(&config).unwrap());
    let manifest: Value = serde_json::from_slice(&fs::read(to.join("backup.json")).unwrap()).unwrap();
    assert_eq!(manifest["format"], 1, "{manifest}");
    refused(&backup(server.data_folder(), &to), "exists already");
    refused(&backup(server.data_folder(), &place.path().join("no/such")), "its parent folder must exist");
    refused(&backup(place.path(), &place.path().join("other")), "there is no database");
    assert_eq!(names_in(place.path()), ["backup", "my.toml"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_backup_leaves_nothing_that_restore_accepts() {
    let server = options_on(Backend::Sqlite).start();
    let workspace = workspace_at(&server).await;
    let text = "a line that takes its time\n".repeat(1 << 19);
    for n in 0..4 {
        workspace.write(&format!("/{n}.txt"), &format!("{n}{text}")).await;
    }
    let place = tempfile::tempdir().unwrap();
    let (to, partial) = (place.path().join("backup"), place.path().join("backup.partial"));
    let data = server.data_folder().to_str().unwrap();
    let mut killed_half_way = 0;
    for pause_ms in [1, 20, 40, 80, 120, 160, 200, 300] {
        let arguments = ["backup", to.to_str().unwrap(), "--data-dir", data];
        let mut running = toolrest(Path::new("/"), &arguments).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        running.kill().unwrap();
        running.wait().unwrap();
        if to.exists() {
            fs::remove_dir_all(&to).unwrap();
        } else if partial.join("toolrest.db").exists() && !partial.join("backup.json").exists() {
            killed_half_way += 1;
            let data = tempfile::tempdir().unwrap();
            refused(&restore(&partial, data.path()), "is not a backup");
            assert_eq!(names_in(data.path()), Vec::<String>::new());
        }
    }
    assert!(killed_half_way > 0, "no backup was killed half-way");
    succeeded(&backup(server.data_folder(), &to));
    assert_eq!(names_in(place.path()), ["backup"], "what the killed one left is gone");
    workspace.write("/still.txt", "writable").await;
    let home = new_home();
    succeeded(&restore(&to, &data_folder(home.path())));
    let restored = options_on(Backend::Sqlite).start_in(home);
    assert_eq!(workspace.through(&restored.client()).text("/3.txt").await.len(), text.len() + 1);
}

/// A backup of a server with one file, and the server.
async fn small_backup(place: &TempDir) -> (Server, Workspace, PathBuf) {
    let server = options_on(Backend::Sqlite).start();
    let workspace = workspace_at(&server).await;
    workspace.write("/a.txt", "text").await;
    let to = place.path().join("backup");
    succeeded(&backup(server.data_folder(), &to));
    (server, workspace, to)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_backup_is_refused_and_leaves_no_database() {
    let place = tempfile::tempdir().unwrap();
    let (_server, _, from) = small_backup(&place).await;
    let (database, manifest) = (from.join("toolrest.db"), from.join("backup.json"));
    let (whole, manifest_text) = (fs::read(&database).unwrap(), fs::read_to_string(&manifest).unwrap());
    let data = tempfile::tempdir().unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for bad in [&whole[..whole.len() / 2], &whole[..whole.len() - 1], &[], &flipped] {
        fs::write(&database, bad).unwrap();
        refused(&restore(&from, data.path()), "is damaged");
    }
    fs::remove_file(&database).unwrap();
    refused(&restore(&from, data.path()), "toolrest.db");
    fs::write(&database, &whole).unwrap();
    for (bad, words) in [
        (manifest_text.replace("\"format\": 1", "\"format\": 2"), "newer"),
        (manifest_text.replace('}', ""), "cannot read"),
        (String::new(), "cannot read"),
    ] {
        fs::write(&manifest, bad).unwrap();
        refused(&restore(&from, data.path()), words);
    }
    fs::remove_file(&manifest).unwrap();
    refused(&restore(&from, data.path()), "is not a backup");
    refused(&restore(&place.path().join("nothing"), data.path()), "is not a backup");
    assert_eq!(names_in(data.path()), Vec::<String>::new());
    fs::write(&manifest, manifest_text).unwrap();
    succeeded(&restore(&from, data.path()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_never_replaces_a_database() {
    let place = tempfile::tempdir().unwrap();
    let (mut server, workspace, from) = small_backup(&place).await;
    workspace.write("/b.txt", "later").await;
    refused(&restore(&from, server.data_folder()), "exists already");
    assert_eq!(workspace.text("/b.txt").await, "later");
    server.stop();
    refused(&restore(&from, server.data_folder()), "exists already");
    let database = server.data_folder().join("toolrest.db");
    fs::rename(&database, place.path().join("away.db")).unwrap();
    // The log of the database that was moved away would be taken for that of the restored one.
    refused(&restore(&from, server.data_folder()), "toolrest.db-wal exists already");
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(server.data_folder().join(format!("toolrest.db{suffix}"))).unwrap();
    }
    succeeded(&restore(&from, server.data_folder()));
    server.restart(Port::Same);
    assert_eq!(workspace.paths_in("/").await, ["/a.txt"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_can_neither_make_nor_restore_a_backup() {
    let place = tempfile::tempdir().unwrap();
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        // Only root can become somebody else.
        return;
    }
    let (server, workspace, from) = small_backup(&place).await;
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // A place for the program that everybody can reach.
    let program = place.path().join("toolrest");
    fs::copy(BINARY, &program).unwrap();
    let (data, to) = (server.data_folder().to_str().unwrap(), place.path().join("stolen"));
    let other = tempfile::tempdir().unwrap();
    for arguments in [
        ["backup", to.to_str().unwrap(), "--data-dir", data],
        ["restore-backup", from.to_str().unwrap(), "--data-dir", other.path().to_str().unwrap()],
        ["user", "list", "--data-dir", data],
    ] {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
            .arg(&program)
            .args(arguments)
            .current_dir("/")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(stdout(&output), "");
    }
    assert!(!to.exists() && names_in(other.path()).is_empty());
    workspace.write("/b.txt", "undisturbed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_commit_during_a_backup_appears_as_a_change_by_others_after_the_restore() {
    let mut server = On::Folder.options().start();
    let workspace = On::Folder.workspace_at(&server).await;
    let id = text_at(&workspace.write("/a.txt", "before").await, "/file_id").to_owned();
    let root = text_at(&workspace.get("").await.success(), "/workspace/root").to_owned();
    // The folder is changed before the database, which somebody else holds up here.
    let blocker = rusqlite::Connection::open(server.data_folder().join("toolrest.db")).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writing = tokio::spawn({
        let workspace = workspace.clone();
        async move { workspace.write("/a.txt", "between").await }
    });
    eventually("the folder is changed", Duration::from_secs(10), async || {
        (fs::read_to_string(format!("{root}/a.txt")).unwrap() == "between").then_some(())
    })
    .await;
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("backup");
    succeeded(&backup(server.data_folder(), &to));
    blocker.execute_batch("ROLLBACK").unwrap();
    drop(blocker);
    writing.await.unwrap();
    server.kill9();
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(server.data_folder().join(format!("toolrest.db{suffix}"))).unwrap();
    }
    succeeded(&restore(&to, server.data_folder()));
    server.restart(Port::Same);
    assert_eq!(workspace.text("/a.txt").await, "between", "files of folders are not in the backup, and stay");
    let versions = workspace.get(&format!("/files/{id}/versions")).await.success();
    assert_eq!(list_at(&versions, "/versions").len(), 1, "{versions}");
    workspace.write("/a.txt", "after").await;
    let versions = workspace.get(&format!("/files/{id}/versions")).await.success();
    assert_eq!(list_at(&versions, "/versions").len(), 3, "what stood there became a version: {versions}");
    let newest = workspace.get("/commits?limit=1").await.success();
    let commit = text_at(&newest, "/commits/0/id").to_owned();
    workspace.post(&format!("/commits/{commit}/undo"), &json!({})).await.success();
    assert_eq!(workspace.text("/a.txt").await, "between");
}
