//! Dry runs: every tool that changes files can be asked what it would do.

use serde_json::{Value, json};
use toolrest_testkit::Workspace;

use crate::on::{On, list_at};

on_every_backend![a_dry_run_answers_like_the_run_and_changes_nothing, a_dry_run_is_refused_like_the_run];

/// Every tool that changes files, with arguments for the files of [`prepare`].
fn changing_calls() -> Vec<(&'static str, &'static str, Value)> {
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Delete File: old.txt\n*** Add File: \
                 new/deep/c.txt\n+three\n*** End Patch\n";
    vec![
        ("workspace", "write", json!({"path": "/new/a.txt", "content": "x"})),
        ("workspace", "write", json!({"path": "/a.txt", "content": "x"})),
        ("workspace", "edit", json!({"path": "/a.txt", "old_string": "one", "new_string": "two"})),
        ("workspace", "edit-many", json!({"path": "/a.txt", "old_string": "o", "new_string": "0"})),
        ("workspace", "mv", json!({"source": "/folder", "destination": "/moved"})),
        ("workspace", "rm", json!({"path": "/old.txt"})),
        ("workspace", "mkdir", json!({"path": "/made/deep"})),
        ("workspace", "touch", json!({"path": "/touched.txt"})),
        ("file", "file.write", json!({"path": "a.txt", "content": "x\n"})),
        ("file", "file.patch", json!({"path": "a.txt", "patches": [{"find": "one", "replace": "two"}]})),
        ("file", "file.delete", json!({"path": "old.txt"})),
        ("system", "write_file", json!({"path": "new/b.txt", "content": "x", "createDirs": true})),
        ("system", "delete_file", json!({"path": "folder", "recursive": true})),
        ("system", "move_file", json!({"from": "a.txt", "to": "old.txt", "overwrite": true})),
        ("backend", "writeFile", json!({"path": "new/a.txt", "content": "x\n"})),
        ("coding", "write", json!({"filePath": "a.txt", "content": "x\n"})),
        ("coding", "edit", json!({"filePath": "a.txt", "oldString": "one", "newString": "two"})),
        ("coding", "multiedit", json!({"filePath": "a.txt", "edits": [{"oldString": "one", "newString": "two"}]})),
        ("coding", "apply_patch", json!({"patchText": patch})),
    ]
}

async fn prepare(workspace: &Workspace) {
    for (path, content) in [("/a.txt", "one\n"), ("/old.txt", "old\n"), ("/folder/in/it.txt", "it\n")] {
        workspace.write(path, content).await;
    }
}

fn as_dry_run(toolset: &str, args: &Value) -> Value {
    let name = if matches!(toolset, "system" | "coding" | "backend") { "dryRun" } else { "dry_run" };
    let mut args = args.clone();
    args[name] = json!(true);
    args
}

/// The state of a workspace: its files with their times and hashes, its commits and its trash.
async fn state(workspace: &Workspace) -> Value {
    let files = workspace.call("ls", &json!({"path": "/", "recursive": true})).await.success();
    let mut contents = Vec::new();
    for file in list_at(&files, "/result/entries") {
        if file["file_type"] != "Folder" {
            contents.push(workspace.call("read", &json!({"path": file["path"]})).await.success());
        }
    }
    let commits = workspace.get("/commits").await.success();
    json!([files, contents, commits, workspace.get("/trash").await.success()])
}

/// Removes what differs between two runs: ids of new files and versions, and the diff that only a dry run shows.
fn comparable(mut answer: Value) -> Value {
    for result in ["/result", "/value", ""] {
        if let Some(result) = answer.pointer_mut(result).and_then(Value::as_object_mut) {
            for name in ["file_id", "version_id"] {
                result.remove(name);
            }
        }
    }
    if let Some(result) = answer.pointer_mut("/result").and_then(Value::as_object_mut) {
        result.remove("diff");
    }
    answer
}

async fn a_dry_run_answers_like_the_run_and_changes_nothing(on: On) {
    let account = on.account().await;
    for (toolset, tool, args) in changing_calls() {
        let workspace = on.workspace_of(&account, on.shared()).await;
        prepare(&workspace).await;
        let before = state(&workspace).await;
        let shown = workspace.call_of(toolset, tool, &as_dry_run(toolset, &args)).await.success();
        assert_eq!(state(&workspace).await, before, "{toolset}/{tool} changed something");
        let done = workspace.call_of(toolset, tool, &args).await.success();
        assert_eq!(comparable(shown), comparable(done), "{toolset}/{tool}");
        assert_ne!(state(&workspace).await, before, "{toolset}/{tool} changed nothing");
    }
}

async fn a_dry_run_is_refused_like_the_run(on: On) {
    let workspace = on.workspace().await;
    prepare(&workspace).await;
    for (toolset, tool, args) in [
        ("workspace", "rm", json!({"path": "/missing.txt"})),
        ("workspace", "rm", json!({"path": "/folder"})),
        ("workspace", "mv", json!({"source": "/folder", "destination": "/folder/in"})),
        ("workspace", "mkdir", json!({"path": "/a.txt/deep"})),
        ("workspace", "write", json!({"path": "/a.txt", "content": "x", "last_read_hash": "0".repeat(64)})),
        ("file", "file.delete", json!({"path": "folder"})),
        ("system", "write_file", json!({"path": "missing/b.txt", "content": "x"})),
        ("system", "move_file", json!({"from": "a.txt", "to": "old.txt"})),
        ("coding", "edit", json!({"filePath": "a.txt", "oldString": "absent", "newString": "two"})),
    ] {
        let shown = workspace.call_of(toolset, tool, &as_dry_run(toolset, &args)).await;
        let done = workspace.call_of(toolset, tool, &args).await;
        assert!(done.status >= 400, "{toolset}/{tool}: {done}");
        assert_eq!((shown.status, shown.json()), (done.status, done.json()), "{toolset}/{tool}");
    }
}
