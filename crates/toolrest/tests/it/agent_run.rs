//! The toolset `agent`: commands and jobs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolrest_testkit::{Account, Workspace, eventually, unique_email};

use crate::agent::{refused, text, text_of};
use crate::agent_edits::commit_of;
use crate::on::{On, list_at};

on_every_backend![
    a_long_output_is_shortened_and_kept,
    commands_end_with_their_codes_and_without_input,
    what_a_command_changes_is_a_commit_that_is_undone,
    a_command_that_takes_longer_goes_on_as_a_job,
    a_job_in_the_background_is_read_written_to_and_stopped,
    conflicts_and_ignored_files_are_named,
];

on!(of_one, Sqlite: a_call_that_is_dropped_changes_nothing, a_job_belongs_to_its_caller, arguments_of_commands_are_checked);
on!(of_one_folder, Folder: a_job_in_the_background_sees_later_edits);

async fn run(workspace: &Workspace, command: &str) -> String {
    text(workspace, "run", json!({ "command": command })).await
}

async fn commits(workspace: &Workspace) -> usize {
    list_at(&workspace.get("/commits").await.success(), "/commits").len()
}

async fn a_long_output_is_shortened_and_kept(on: On) {
    let workspace = on.workspace().await;
    let command =
        "for n in $(seq 1 5000); do echo \"this is line $n\"; done; echo 'test seven FAILED'; seq 5002 9000; exit 1";
    let reply = workspace.call_of("agent", "run", &json!({ "command": command })).await;
    let shown = text_of(&reply);
    assert!(shown.len() <= 10_240, "{}", shown.len());
    assert!(shown.starts_with("== exit 1, ") && shown.contains(" s, 9000 lines ("), "{shown}");
    assert!(shown.contains("\nthis is line 1\n") && shown.ends_with("\n9000"), "{shown}");
    assert!(shown.contains(" of 9000 left out; 1 looks like a failure:\n5001: test seven FAILED\n"), "{shown}");
    let out = shown.lines().next().unwrap().rsplit(": ").next().unwrap().to_owned();
    assert!(out.starts_with("out:"), "{shown}");
    let found = text(&workspace, "grep", json!({"pattern": "line 4321$", "path": out})).await;
    assert!(found.contains("4321:this is line 4321"), "{found}");
    let read = text(&workspace, "read", json!({"paths": [format!("{out}:5001")]})).await;
    assert!(read.contains("\n5001\ttest seven FAILED\n"), "{read}");
    assert_eq!(reply.json()["data"]["exit"], 1, "{reply}");
}

async fn commands_end_with_their_codes_and_without_input(on: On) {
    let workspace = on.workspace().await;
    let cat = run(&workspace, "cat").await;
    assert!(cat.starts_with("== exit 0, ") && cat.ends_with(" s, no output"), "{cat}");
    let pipe = run(&workspace, "false | true").await;
    assert!(pipe.starts_with("== exit 0 (pipe: 1 0), "), "{pipe}");
    let failed = run(&workspace, "true | false").await;
    assert!(failed.starts_with("== exit 1, "), "{failed}");
    let fine = run(&workspace, "yes | head -1").await;
    assert!(fine.starts_with("== exit 0, ") && fine.ends_with("\ny"), "{fine}");
    let killed = run(&workspace, "kill -9 $$").await;
    assert!(killed.starts_with("== exit 137 (signal 9), "), "{killed}");
    let both = run(&workspace, "for n in 1 2 3; do echo out $n; echo err $n >&2; done; echo \"$TERM $NO_COLOR\"").await;
    assert!(both.ends_with("\nout 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\ndumb 1"), "{both}");
    let wrong = run(&workspace, "echo before\nif then").await;
    assert!(wrong.contains("syntax error") && !wrong.starts_with("== exit 0"), "{wrong}");
    let heredoc = run(&workspace, "cat <<E | tr a-z A-Z\nabc\nE").await;
    assert!(heredoc.ends_with("\nABC"), "{heredoc}");
    let posing = run(&workspace, "echo '== exit 0'; echo '.. note'").await;
    assert!(posing.ends_with("\n == exit 0\n .. note"), "{posing}");
    assert_eq!(commits(&workspace).await, 0);
}

async fn what_a_command_changes_is_a_commit_that_is_undone(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/d/a.txt", "one\n").await;
    let ran = text(&workspace, "run", json!({"cmd": "echo two > a.txt; echo new > b.txt", "cwd": "d"})).await;
    let commit = commit_of(ran.rsplit(", ").next().unwrap());
    assert!(ran.contains("\n.. changed: M d/a.txt, A d/b.txt, commit "), "{ran}");
    let listed = text(&workspace, "changes", json!({})).await;
    let line = format!("{commit} ");
    let made = listed.lines().find(|shown| shown.starts_with(&line)).unwrap();
    assert!(made.contains("run `echo two > a.txt; echo new > b.txt`: "), "{listed}");
    let undone = text(&workspace, "undo", json!({"since": "start"})).await;
    assert!(undone.starts_with("== undid 1 commit of this session, commit "), "{undone}");
    assert_eq!(workspace.text("/d/a.txt").await, "one\n");
    assert_eq!(workspace.paths_below("/").await, ["/d", "/d/a.txt"]);
}

async fn a_command_that_takes_longer_goes_on_as_a_job(on: On) {
    let workspace = on.workspace().await;
    let command = "echo begun; until [ -e go.txt ]; do sleep 0.1; [ $((n++)) -gt 30 ] && break; done; echo done > a.txt; echo over";
    let begun = Instant::now();
    let ran = text(&workspace, "run", json!({"command": command, "wait": 1})).await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert!(ran.starts_with("== still running after 1."), "{ran}");
    assert!(ran.contains(" s: job j1; 1 line so far: out:j1\nbegun\n.. job {\"id\":\"j1\",\"wait\":120}"), "{ran}");
    let listed = text(&workspace, "job", json!({})).await;
    assert!(listed.starts_with("== 1 job\nj1 running ") && listed.contains(": echo begun; until "), "{listed}");
    let ended = text(&workspace, "job", json!({"id": "j1", "wait": "60"})).await;
    assert!(ended.starts_with("== j1 exit 0, ") && ended.contains(": out:j1\nbegun\nover\n"), "{ended}");
    assert!(ended.contains("\n.. changed: A a.txt, commit "), "{ended}");
    assert_eq!(workspace.text("/a.txt").await, "done\n");
    eventually("the commit belongs to the session", Duration::from_secs(10), async || {
        let changes = text(&workspace, "changes", json!({"since": "start"})).await;
        changes.starts_with("== 1 file changed since start, by 1 commit of this session").then_some(())
    })
    .await;
    let whole = text(&workspace, "read", json!({"paths": ["out:j1"]})).await;
    assert!(whole.ends_with("\n1\tbegun\n2\tover"), "{whole}");
    let long = text(&workspace, "run", json!({"command": "echo kept > kept.txt; sleep 99", "wait": 1})).await;
    assert!(long.contains(": job j2; no output so far\n"), "{long}");
    let closed = refused(&workspace, "conflict", "job", json!({"id": "j2", "input": "x"})).await;
    assert!(closed.contains("reads no more"), "{closed}");
    let stopped = text(&workspace, "job", json!({"id": "j2", "stop": "true"})).await;
    assert!(
        stopped.starts_with("== j2 stopped, ") && stopped.contains("\n.. changed: A kept.txt, commit "),
        "{stopped}"
    );
}

async fn a_job_in_the_background_is_read_written_to_and_stopped(on: On) {
    let workspace = on.workspace().await;
    let command = "echo listening; while read line; do echo \"got $line\"; echo $line > last.txt; done";
    let ran = text(&workspace, "run", json!({"command": command, "background": "true"})).await;
    assert!(ran.starts_with("== running, 2.") && ran.contains(": job j1; 1 line so far: out:j1\nlistening\n"), "{ran}");
    let answered =
        text(&workspace, "job", json!({"id": "j1", "input": "hello", "until": "got hello", "wait": 20})).await;
    assert!(answered.contains("1 new line (of 2): out:j1\ngot hello\n.. matched: got hello"), "{answered}");
    let nothing = text(&workspace, "job", json!({"id": "out:j1"})).await;
    assert!(nothing.contains(", 0 new lines (of 2): out:j1"), "{nothing}");
    let not_yet = text(&workspace, "job", json!({"id": "j1", "until": "never", "wait": 0.2})).await;
    assert!(not_yet.ends_with("\n.. not seen yet: never"), "{not_yet}");
    let found = text(&workspace, "grep", json!({"pattern": "got", "path": "out:j1"})).await;
    assert!(found.contains("2:got hello"), "{found}");
    let stopped = text(&workspace, "job", json!({"id": "j1", "stop": true})).await;
    assert!(stopped.starts_with("== j1 stopped, "), "{stopped}");
    assert_eq!(workspace.text("/last.txt").await, "hello\n");
    let unknown = refused(&workspace, "not_found", "job", json!({"id": "j9"})).await;
    assert_eq!(unknown, "error not_found: job j9\nnext: jobs: j1 (a server restart ends jobs)");
    let early = text(&workspace, "run", json!({"command": "echo no; exit 3", "background": true})).await;
    assert!(early.starts_with("== j2 exit 3, ") && early.contains("\nno"), "{early}");
}

async fn a_job_in_the_background_sees_later_edits(on: On) {
    let workspace = on.workspace().await;
    let command = "until [ -e later.txt ]; do sleep 0.1; done; echo seen; sleep 100";
    text(&workspace, "run", json!({"command": command, "background": true})).await;
    text(&workspace, "write", json!({"path": "later.txt", "content": "x\n"})).await;
    let seen = text(&workspace, "job", json!({"id": "j1", "until": "seen", "wait": 20})).await;
    assert!(seen.ends_with("\n.. matched: seen"), "{seen}");
    text(&workspace, "job", json!({"id": "j1", "stop": true})).await;
}

async fn conflicts_and_ignored_files_are_named(on: On) {
    let workspace = on.workspace().await;
    let email = unique_email("ada");
    let ada = Account::register(&on.shared().client(), &email).await;
    workspace.add_member(&ada, "editor").await;
    workspace.write("/a.txt", "one\n").await;
    workspace.write("/.gitignore", "out/\n").await;
    let command = "mkdir out; touch out/1 out/2; echo mine > a.txt; until [ $((n++)) -gt 20 ]; do sleep 0.1; done";
    let begun = text(&workspace, "run", json!({"command": command, "wait": 0.5})).await;
    assert!(begun.starts_with("== still running after "), "{begun}");
    text(&workspace.for_user(&ada), "write", json!({"path": "a.txt", "content": "theirs\n"})).await;
    let ended = text(&workspace, "job", json!({"id": "j1", "wait": 60})).await;
    assert!(ended.contains("\n.. conflict: a.txt: ") && ended.contains("the command's is a.txt.conflict-"), "{ended}");
    assert!(ended.contains("\n.. not in history: out (ignored)"), "{ended}");
    assert_eq!(workspace.text("/a.txt").await, "theirs\n");
}

async fn a_call_that_is_dropped_changes_nothing(on: On) {
    let workspace = on.workspace().await;
    let command = "echo x > a.txt; sleep 3; echo late > b.txt";
    let args = json!({ "command": command });
    let call = workspace.call_of("agent", "run", &args);
    assert!(tokio::time::timeout(Duration::from_secs(2), call).await.is_err());
    // The next command waits for nothing, and the files are as before.
    let ran = run(&workspace, "sleep 3; ls").await;
    assert!(ran.ends_with(" s, no output"), "{ran}");
    assert_eq!(commits(&workspace).await, 0);
    assert_eq!(text(&workspace, "job", json!({})).await, "== no jobs");
}

async fn a_job_belongs_to_its_caller(on: On) {
    let workspace = on.workspace().await;
    let ada = Account::register(&on.shared().client(), &unique_email("ada")).await;
    workspace.add_member(&ada, "editor").await;
    text(&workspace, "run", json!({"command": "sleep 100", "background": true})).await;
    let theirs = workspace.for_user(&ada);
    assert_eq!(text(&theirs, "job", json!({})).await, "== no jobs");
    refused(&theirs, "not_found", "job", json!({"id": "j1", "stop": true})).await;
    refused(&theirs, "expired", "read", json!({"paths": ["out:j1"]})).await;
    text(&workspace, "job", json!({"id": "j1", "stop": true})).await;
}

async fn arguments_of_commands_are_checked(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    let cases: [(&str, Value, &str); 4] = [
        ("bad_args", json!({"command": " "}), "`command` is empty"),
        ("not_found", json!({"command": "ls", "cwd": "missing"}), "missing"),
        ("conflict", json!({"command": "ls", "cwd": "a.txt"}), "`cwd` is a file: a.txt"),
        ("bad_args", json!({"command": "ls", "wait": "soon"}), "expected a number"),
    ];
    for (code, args, message) in cases {
        let error = refused(&workspace, code, "run", args).await;
        assert!(error.contains(message), "{error}");
    }
}
