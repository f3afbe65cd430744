//! Programs, tools and people that change one folder at the same time.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};
use toolrest_testkit::Workspace;

use crate::on::{On, list_at, text_at};
use crate::toolset::{CODING, FILE, SYSTEM};

on!(folder, Folder: a_build_that_links_what_it_made_leaves_nothing_stale, no_tool_and_no_route_changes_a_repository, undo_of_changes_during_a_process_needs_force);
on!(folder_of_user, FolderOfUser: a_build_that_links_what_it_made_leaves_nothing_stale, no_tool_and_no_route_changes_a_repository, undo_of_changes_during_a_process_needs_force);
on!(folder_on_postgres, FolderOnPostgres: a_build_that_links_what_it_made_leaves_nothing_stale, no_tool_and_no_route_changes_a_repository, undo_of_changes_during_a_process_needs_force);

async fn folder(on: On) -> (Workspace, PathBuf) {
    let folder = on.shared().new_folder();
    (on.account().await.folder_workspace("Guarded", &folder).await, folder)
}

async fn bash(workspace: &Workspace, code: &str) -> Value {
    let ran = SYSTEM.ok(workspace, "run_code", json!({"language": "bash", "code": code})).await;
    assert_eq!(ran["exitCode"], 0, "{ran}");
    ran
}

async fn a_build_that_links_what_it_made_leaves_nothing_stale(on: On) {
    let (workspace, folder) = folder(on).await;
    workspace.write("/.gitignore", "target\n").await;
    let build = "mkdir -p target/debug/deps; rm -f target/debug/deps/app-1f target/debug/app; cp src target/debug/deps/app-1f; \
                 ln target/debug/deps/app-1f target/debug/app; rm -f one two; cp src one; ln one two";
    for round in ["first\n", "second\n", "third\n"] {
        workspace.write("/src", round).await;
        let ran = bash(&workspace, build).await;
        assert!(ran.get("conflicts").is_none_or(|conflicts| conflicts == &json!([])), "{ran}");
        for name in ["target/debug/app", "target/debug/deps/app-1f", "one", "two"] {
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), round, "{name}");
        }
    }
    let inode = |name: &str| fs::metadata(folder.join(name)).unwrap().ino();
    assert_eq!(inode("one"), inode("two"));
    assert_eq!(inode("target/debug/app"), inode("target/debug/deps/app-1f"));
}

async fn no_tool_and_no_route_changes_a_repository(on: On) {
    let (workspace, folder) = folder(on).await;
    fs::create_dir_all(folder.join(".git/hooks")).unwrap();
    fs::write(folder.join(".git/config"), "[core]\n").unwrap();
    fs::write(folder.join("plain"), "plain\n").unwrap();
    symlink(".git/hooks", folder.join("scripts")).unwrap();
    on.shared().hand_over(&folder);
    let patch = "*** Begin Patch\n*** Add File: .git/hooks/pre-commit\n+touch pwned\n*** End Patch\n";
    let diff = "--- a/.git/config\n+++ b/.git/config\n@@ -1 +1,2 @@\n [core]\n+fsmonitor = evil\n";
    let coding = [
        ("write", json!({"filePath": ".git/hooks/pre-commit", "content": "touch pwned"})),
        ("write", json!({"filePath": "scripts/pre-commit", "content": "touch pwned"})),
        ("write", json!({"filePath": "nested/.GIT/config", "content": "x"})),
        ("edit", json!({"filePath": ".git/config", "oldString": "[core]", "newString": "[evil]"})),
        ("apply_patch", json!({"patchText": patch})),
        ("apply_patch", json!({"patchText": diff})),
    ];
    for (tool, args) in coding {
        let reply = workspace.call_of("coding", tool, &args).await;
        assert_eq!(reply.status, 403, "{tool} {args}: {reply}");
        assert!(reply.to_string().contains("folders.git_writable"), "{reply}");
    }
    for (tool, args) in [
        ("file.write", json!({"path": ".git/config", "content": "x"})),
        ("file.delete", json!({"path": ".git/config"})),
    ] {
        let reply = workspace.call_of("file", tool, &args).await;
        assert_eq!(reply.status, 403, "{tool} {args}: {reply}");
    }
    for (tool, args) in [
        ("move_file", json!({"from": "plain", "to": ".git/hooks/pre-commit"})),
        ("move_file", json!({"from": ".git/config", "to": "config"})),
        ("delete_file", json!({"path": ".git", "recursive": true})),
    ] {
        let reply = workspace.call_of("system", tool, &args).await;
        assert_eq!(reply.status, 403, "{tool} {args}: {reply}");
    }
    for (tool, args) in [
        ("write", json!({"path": "/.git/hooks/x", "content": "x"})),
        ("mkdir", json!({"path": "/new/.git"})),
        ("mv", json!({"source": "/plain", "destination": "/.git/plain"})),
        ("touch", json!({"path": "/.git/config"})),
    ] {
        let reply = workspace.call(tool, &args).await;
        assert_eq!(reply.status, 403, "{tool} {args}: {reply}");
    }
    assert_eq!(fs::read_to_string(folder.join(".git/config")).unwrap(), "[core]\n");
    assert_eq!(fs::read_dir(folder.join(".git/hooks")).unwrap().count(), 0);
    // To read it is no harm.
    assert_eq!(workspace.text("/.git/config").await, "[core]\n");
    let read = FILE.ok(&workspace, "file.read", json!({"path": "plain"})).await;
    assert!(read.to_string().contains("plain"), "{read}");
    CODING.ok(&workspace, "write", json!({"filePath": ".github/x", "content": "x"})).await;
}

async fn undo_of_changes_during_a_process_needs_force(on: On) {
    let (workspace, folder) = folder(on).await;
    fs::write(folder.join("notes"), "before\n").unwrap();
    let started = SYSTEM.ok(&workspace, "start_process", json!({"command": "echo up; exec sleep 300"})).await;
    let id = text_at(&started, "/id").to_owned();
    fs::write(folder.join("notes"), "by hand\n").unwrap();
    fs::write(folder.join("draft"), "by hand\n").unwrap();
    on.shared().hand_over(&folder);
    let stopped = SYSTEM.ok(&workspace, "stop_process", json!({"id": id})).await;
    assert_eq!(text_at(&stopped, "/changesBy"), "folder", "{stopped}");
    let commit = text_at(&stopped, "/commitId").to_owned();
    let commits = workspace.get("/commits").await.success();
    let last = &list_at(&commits, "/commits")[0];
    assert_eq!((text_at(last, "/id"), text_at(last, "/toolset")), (&*commit, "folder"), "{last}");
    assert_eq!(text_at(last, "/tool"), format!("while process {id} ran"), "{last}");

    let undo = format!("/commits/{commit}/undo");
    for body in [json!({}), json!({"force": false})] {
        let refused = workspace.post(&undo, &body).await;
        assert_eq!(refused.status, 409, "{refused}");
        let text = refused.to_string();
        assert!(text.contains("/draft") && text.contains("/notes") && text.contains("force"), "{text}");
        assert!(text.contains(&id), "{text}");
    }
    let refused = workspace.post(&undo, &json!({"forced": true})).await;
    assert_eq!(refused.status, 400, "{refused}");
    assert_eq!(fs::read_to_string(folder.join("notes")).unwrap(), "by hand\n");
    workspace.post(&undo, &json!({"force": true})).await.success();
    assert_eq!(fs::read_to_string(folder.join("notes")).unwrap(), "before\n");
    assert!(!folder.join("draft").exists());

    // What a program did on a view of its own is its own.
    let ran = bash(&workspace, "echo program > notes").await;
    assert_eq!(text_at(&ran, "/changesBy"), "program", "{ran}");
    let undo = format!("/commits/{}/undo", text_at(&ran, "/commitId"));
    workspace.post(&undo, &json!({})).await.success();
    assert_eq!(fs::read_to_string(folder.join("notes")).unwrap(), "before\n");
}
