//! The runtime as a library, and several processes on one data folder.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolrest::core::ErrorKind;
use toolrest::settings::Settings;
use toolrest::{Local, Runtime};
use toolrest_testkit::{Port, Server, Workspace};

use crate::on::{On, list_at};
use crate::toolset::SYSTEM;

on!(sqlite, Sqlite: two_processes_write_and_run_programs_at_once, a_process_that_stops_does_not_disturb_another);
on!(folder, Folder: two_processes_write_and_run_programs_at_once, a_process_that_stops_does_not_disturb_another);
on!(sqlite_only, Sqlite: a_starting_process_removes_the_working_copies_of_dead_processes_only);

const WRITERS: usize = 4;
const FILES: usize = 25;

/// Writes files from several tasks at once; returns their paths.
async fn write_many(workspace: &Workspace, folder: &str) -> Vec<String> {
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let (workspace, folder) = (workspace.clone(), folder.to_owned());
        tasks.spawn(async move {
            let mut paths = Vec::new();
            for n in 0..FILES {
                let path = format!("/{folder}/{writer}-{n}.txt");
                workspace.write(&path, &path).await;
                paths.push(path);
            }
            paths
        });
    }
    tasks.join_all().await.concat()
}

/// Checks that files are there with their contents, which are their paths.
async fn has_all(workspace: &Workspace, paths: &[String]) {
    let found = workspace.paths_below("/").await;
    for path in paths {
        assert!(found.contains(path), "{path} is missing");
        assert_eq!(workspace.text(path).await, *path);
    }
}

/// Adds lines to a file, each by an edit of the whole file.
async fn add_lines(workspace: &Workspace, name: &str) {
    for n in 0..10 {
        let args = json!({"path": "/log.txt", "old_string": "end\n", "new_string": format!("{name} {n}\nend\n")});
        workspace.ok("edit", args).await;
    }
}

async fn run(workspace: &Workspace, code: &str) -> Value {
    let ran = SYSTEM.ok(workspace, "run_code", json!({"language": "bash", "code": code})).await;
    assert_eq!(ran["exitCode"], 0, "{ran}");
    ran
}

async fn two_processes_write_and_run_programs_at_once(on: On) {
    let first = on.options().start();
    let second = first.replica(&[]);
    let here = on.workspace_at(&first).await;
    let there = here.through(&second.client());
    here.write("/log.txt", "end\n").await;
    let (written, others, _, _, (), ()) = tokio::join!(
        write_many(&here, "here"),
        write_many(&there, "there"),
        run(&here, "echo one > one.txt; sleep 0.3; echo two > two.txt"),
        run(&there, "echo three > three.txt; sleep 0.3; echo four > four.txt"),
        add_lines(&here, "here"),
        add_lines(&there, "there"),
    );
    for seen in [&here, &there] {
        has_all(seen, &[written.clone(), others.clone()].concat()).await;
        for (path, text) in
            [("/one.txt", "one\n"), ("/two.txt", "two\n"), ("/three.txt", "three\n"), ("/four.txt", "four\n")]
        {
            assert_eq!(seen.text(path).await, text);
        }
        let log = seen.text("/log.txt").await;
        assert_eq!(log.lines().count(), 21, "{log}");
    }
    // A program of one process sees what the other one wrote.
    let ran = run(&here, "cat there/0-0.txt three.txt").await;
    assert_eq!(ran["stdout"], "/there/0-0.txtthree\n");
}

async fn a_process_that_stops_does_not_disturb_another(on: On) {
    let first = on.options().start();
    let mut second = first.replica(&[]);
    let here = on.workspace_at(&first).await;
    let there = here.through(&second.client());
    let theirs = write_many(&there, "theirs").await;
    let stop = async {
        run(&there, "echo stopped > stopped.txt").await;
        let (status, second) = tokio::task::spawn_blocking(move || (second.stop(), second)).await.unwrap();
        assert!(status.success(), "{}", second.output());
        second
    };
    let running = run(&here, "cat theirs/0-0.txt; sleep 1; cat theirs/3-24.txt");
    let (ours, ran, mut second) = tokio::join!(write_many(&here, "ours"), running, stop);
    assert_eq!(ran["stdout"], "/theirs/0-0.txt/theirs/3-24.txt");
    has_all(&here, &[ours, theirs].concat()).await;
    assert_eq!(here.text("/stopped.txt").await, "stopped\n");
    let calls = here.get("/calls").await.success();
    let writes = list_at(&calls, "/calls").iter().filter(|call| call["tool"] == "write").count();
    assert_eq!(writes, 2 * WRITERS * FILES, "the calls of both processes are recorded");
    second.restart(Port::New);
    let there = here.through(&second.client());
    there.write("/again.txt", "again").await;
    assert_eq!(here.text("/again.txt").await, "again");
}

/// Counts the folders with working copies of processes.
fn scratch_folders(server: &Server) -> usize {
    fs::read_dir(server.data_folder().join("checkouts")).unwrap().count()
}

async fn a_starting_process_removes_the_working_copies_of_dead_processes_only(on: On) {
    let first = on.options().start();
    let mut second = first.replica(&[]);
    let here = on.workspace_at(&first).await;
    here.write("/a.txt", "still here").await;
    run(&here.through(&second.client()), "cat a.txt").await;
    assert_eq!(scratch_folders(&first), 2);
    let starting = async {
        second.kill9();
        tokio::task::block_in_place(|| second.restart(Port::New));
    };
    let (ran, ()) = tokio::join!(run(&here, "sleep 2; cat a.txt; echo new > b.txt"), starting);
    assert_eq!(ran["stdout"], "still here");
    assert_eq!(here.text("/b.txt").await, "new\n");
    assert_eq!(scratch_folders(&first), 2, "that of the killed process is gone");
}

fn settings(data: &Path, project: &Path) -> Settings {
    let mut settings = Settings::default();
    data.clone_into(&mut settings.server.data_dir);
    settings.folders.local_dir = Some(project.to_owned());
    // The sandbox would start the program of the tests as its launcher.
    settings.run.enabled = false;
    settings
}

/// Writes a number of files through a runtime.
async fn write_files(runtime: &Runtime, local: &Local, name: &str) {
    for n in 0..50 {
        let args = json!({"filePath": format!("{name}-{n}.txt"), "content": name});
        runtime.call(local.workspace, local.caller, "coding", "write", &args).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runtimes_open_the_same_folder_and_one_closes_while_the_other_writes() {
    let (data, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let open = || async {
        let runtime = Runtime::open(settings(data.path(), project.path())).await.unwrap();
        let local = runtime.open_local(project.path()).await.unwrap();
        (runtime, local)
    };
    let ((first, local), (second, again)) = tokio::join!(open(), open());
    assert_eq!((local.workspace, local.caller), (again.workspace, again.caller), "one account and one workspace");
    let closing = async {
        write_files(&second, &again, "second").await;
        second.close().await;
        drop(second);
    };
    tokio::join!(write_files(&first, &local, "first"), closing);
    write_files(&first, &local, "after").await;
    first.close().await;
    drop(first);
    assert_eq!(fs::read_dir(project.path()).unwrap().count(), 150);
    let database = rusqlite::Connection::open(data.path().join("toolrest.db")).unwrap();
    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM commits"), 150);
    assert_eq!(count("SELECT count(*) FROM calls WHERE tool = 'write' AND outcome = 'ok'"), 150);
    assert_eq!(fs::read_dir(data.path().join("checkouts")).unwrap().count(), 0, "both have removed their folders");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_missing_toolset_and_a_folder_that_is_not_allowed_are_errors() {
    let (data, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let runtime = Runtime::open(settings(data.path(), project.path())).await.unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    runtime.open_local(elsewhere.path()).await.unwrap_err();
    let local = runtime.open_local(project.path()).await.unwrap();
    let error = runtime.call(local.workspace, local.caller, "none", "write", &json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownTool);
    let error = runtime.call(local.workspace, local.caller, "coding", "none", &json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownTool);
    runtime.close().await;
}
