//! What programs have besides the files of their workspace: a home directory that stays, the folder's own path, tools of the
//! host, and git.

use serde_json::{Value, json};
use toolrest_testkit::Workspace;

use crate::on::{On, list_at, text_at};
use crate::programs::bash;
use crate::toolset::SYSTEM;

on_every_backend![
    the_home_directory_stays_for_the_programs_of_a_workspace,
    a_program_with_a_secret_has_an_empty_home_directory,
    the_home_directory_can_be_emptied_by_one_call,
    a_background_process_has_the_same_home_directory,
    a_folder_is_at_its_own_path,
    git_commits_without_configuration
];

async fn printed(workspace: &Workspace, code: &str) -> String {
    text_at(&bash(workspace, code).await, "/stdout").to_owned()
}

/// The path at which programs see the workspace.
async fn path_of(workspace: &Workspace) -> String {
    let shown = workspace.get("").await.success();
    shown.pointer("/workspace/root").and_then(|root| root.as_str()).unwrap_or("/workspace").to_owned()
}

async fn the_home_directory_stays_for_the_programs_of_a_workspace(on: On) {
    let (workspace, other) = (on.workspace().await, on.workspace().await);
    let code = "mkdir -p ~/.cache/tool && echo kept > ~/.cache/tool/file && printf '#!/bin/sh\\necho found' > \
                ~/.local-tool && mkdir -p ~/.local/bin && install -m 755 ~/.local-tool ~/.local/bin/mine";
    let ran = bash(&workspace, code).await;
    assert_eq!((ran.get("changes"), ran.get("leftOut")), (None, None), "{ran}");
    assert_eq!(printed(&workspace, "cat ~/.cache/tool/file; mine").await, "kept\nfound\n");
    let python = "import pathlib; print((pathlib.Path.home() / '.cache/tool/file').read_text())";
    let ran = SYSTEM.ok(&workspace, "run_code", json!({"language": "python", "code": python})).await;
    assert_eq!(ran["stdout"], "kept\n\n", "{ran}");
    assert_eq!(printed(&other, "ls -A ~").await, "");
    // A program of the home directory does not replace the system's.
    assert_eq!(printed(&workspace, "cp ~/.local/bin/mine ~/.local/bin/id; id -un").await, "sandbox\n");
}

async fn a_program_with_a_secret_has_an_empty_home_directory(on: On) {
    let workspace = on.workspace().await;
    workspace.send("PUT", "/secrets/TOKEN", Some(&json!({"value": "a secret value"}))).await.success();
    bash(&workspace, "echo planted > ~/.npmrc").await;
    let args = json!({"language": "bash", "code": "ls ~/.npmrc 2>/dev/null; echo left > ~/left", "secrets": ["TOKEN"]});
    assert_eq!(SYSTEM.ok(&workspace, "run_code", args).await["stdout"], "");
    assert_eq!(printed(&workspace, "ls -A ~").await, ".npmrc\n");
}

async fn the_home_directory_can_be_emptied_by_one_call(on: On) {
    let workspace = on.workspace().await;
    bash(&workspace, "echo x > ~/file").await;
    let viewer = on.account().await;
    workspace.add_member(&viewer, "viewer").await;
    workspace.for_user(&viewer).delete("/cache").await.refused(403, "FORBIDDEN");
    workspace.delete("/cache").await.success();
    assert_eq!(printed(&workspace, "ls -A ~; echo y > ~/file").await, "");
    let started = SYSTEM.ok(&workspace, "start_process", json!({"command": "sleep 600"})).await;
    workspace.delete("/cache").await.refused(409, "CONFLICT");
    SYSTEM.ok(&workspace, "stop_process", json!({"id": text_at(&started, "/id")})).await;
    workspace.delete("/cache").await.success();
    assert_eq!(printed(&workspace, "ls -A ~").await, "");
}

async fn a_background_process_has_the_same_home_directory(on: On) {
    let workspace = on.workspace().await;
    bash(&workspace, "echo before > ~/file").await;
    let started = SYSTEM.ok(&workspace, "start_process", json!({"command": "cat ~/file; echo after > ~/file"})).await;
    let id = text_at(&started, "/id");
    SYSTEM.ok(&workspace, "wait_process", json!({"id": id})).await;
    let output = SYSTEM.ok(&workspace, "read_output", json!({"id": id})).await;
    assert!(output.to_string().contains("before"), "{output}");
    assert_eq!(printed(&workspace, "cat ~/file").await, "after\n");
}

async fn a_folder_is_at_its_own_path(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/dir/file", "text").await;
    let path = path_of(&workspace).await;
    let code = "pwd; cat /workspace/dir/file; echo > /workspace/dir/new; cd /workspace/dir && pwd -P";
    let ran = bash(&workspace, code).await;
    assert_eq!(ran["stdout"], format!("{path}\ntext{path}/dir\n"), "{ran}");
    assert_eq!(text_at(&ran, "/changes/0/path"), "dir/new");
    let started = SYSTEM.ok(&workspace, "start_process", json!({"command": "pwd"})).await;
    let id = text_at(&started, "/id");
    SYSTEM.ok(&workspace, "wait_process", json!({"id": id})).await;
    let output = SYSTEM.ok(&workspace, "read_output", json!({"id": id})).await;
    assert!(output.to_string().contains(&path), "{output}");
    // What a program prints is accepted by the tools.
    let read = SYSTEM.ok(&workspace, "read_file", json!({"path": format!("{path}/dir/file")})).await;
    assert_eq!(read["content"], "text");
}

async fn git_commits_without_configuration(on: On) {
    let workspace = on.workspace().await;
    let ran =
        bash(&workspace, "git init -q . && echo x > f && git add f && git commit -qm one && git log --format=%s").await;
    assert_eq!(ran["stdout"], "one\n", "{ran}");
    let is_repository =
        |left: &Value| left["reason"] == "ignored" && text_at(left, "/path").trim_start_matches('/') == ".git";
    let reported = list_at(&ran, "/leftOut").iter().any(is_repository);
    // In a folder the repository is kept; in a database workspace it has no versions, which is said.
    assert_eq!(reported, matches!(on, On::Sqlite | On::Postgres), "{ran}");
    // A repository's own name goes first.
    let code = "git config user.name Ada && git config user.email ada@example.com && echo y > f && git commit -qam two && \
                git log -1 --format='%an %ae'";
    assert_eq!(printed(&workspace, code).await, "Ada ada@example.com\n");
}
