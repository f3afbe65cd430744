//! Agent keys: scope, revocation, and what they cannot do.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use toolrest_testkit::{Account, Backend, Postgres, Reply, Request, Workspace, eventually, unique_email};

use crate::access::hmac_sha256;
use crate::on::{On, list_at, options_on, text_at, workspace_at};
use crate::processes::{read_until, start};
use crate::toolset::SYSTEM;
use crate::user_command::OperatedServer;

on_every_backend![
    every_tool_needs_its_action,
    a_key_has_its_toolsets_only,
    a_key_is_a_stranger_in_other_workspaces,
    a_key_cannot_manage_anything,
    the_routes_of_files_need_an_action,
    what_a_call_amounts_to_needs_its_actions,
    what_a_program_changed_needs_its_actions,
    a_key_writes_in_the_name_of_its_person,
    a_suspended_key_is_refused_until_it_is_resumed,
    a_revoked_key_is_refused,
    a_key_has_at_most_the_role_of_its_person,
    keys_go_with_their_person,
    members_manage_their_keys_and_owners_all,
    the_last_use_of_a_key_is_shown,
    processes_take_input_from_their_starter_and_owners_only,
    processes_of_a_key_end_with_it;
    what_is_wrong_with_a_new_key_is_named,
    a_secret_that_is_not_whole_is_refused,
    keys_of_a_disabled_account_return_with_it,
    keys_are_suspended_when_sessions_end,
    a_person_has_a_limited_number_of_keys,
];

const ACTIONS: [&str; 8] = ["read", "write", "delete", "move", "exec", "fetch", "github", "memory"];

/// The action of each tool.
const TOOLS: [(&str, &str, &[&str]); 24] = [
    ("workspace", "read", &["ls", "read", "grep"]),
    ("workspace", "write", &["write", "edit", "edit-many", "mkdir", "touch"]),
    ("workspace", "delete", &["rm"]),
    ("workspace", "move", &["mv"]),
    ("file", "read", &["file.read", "file.list", "file.search"]),
    ("file", "write", &["file.write", "file.patch"]),
    ("file", "delete", &["file.delete"]),
    ("agent", "read", &["read", "ls", "grep", "changes", "job"]),
    ("agent", "write", &["edit", "write", "apply_patch", "undo"]),
    ("agent", "exec", &["run"]),
    ("coding", "read", &["read", "ls", "glob"]),
    ("coding", "write", &["write", "edit", "multiedit", "apply_patch"]),
    ("system", "read", &["read_file", "list_directory"]),
    ("system", "write", &["write_file"]),
    ("system", "delete", &["delete_file"]),
    ("system", "move", &["move_file"]),
    (
        "system",
        "exec",
        &["run_code", "start_process", "list_processes", "read_output", "write_input", "wait_process", "stop_process"],
    ),
    ("system", "fetch", &["web_fetch", "web_search"]),
    ("backend", "fetch", &["browse_web"]),
    (
        "backend",
        "github",
        &[
            "github_create_repo",
            "github_get_pr_details",
            "github_post_pr_comment",
            "github_merge_pr",
            "github_create_file_in_repo",
        ],
    ),
    ("backend", "read", &["readFile", "listFiles"]),
    ("backend", "write", &["writeFile"]),
    ("backend", "memory", &["memory_save", "memory_retrieve", "memory_delete", "memory_search", "memory_list"]),
    ("backend", "exec", &["executeShellCommand", "data_analyze", "data_visualize"]),
];

/// A key, as the account that sends its requests.
struct TestKey {
    id: String,
    seen: Workspace,
}

/// Creates a key of the workspace's user.
async fn new_key(workspace: &Workspace, body: Value) -> TestKey {
    let made = workspace.post("/keys", &body).await.success();
    let secret = text_at(&made, "/secret");
    assert!(secret.starts_with("trk_"), "{made}");
    let account = Account { access_token: secret.to_owned(), ..workspace.account.clone() };
    TestKey { id: text_at(&made, "/key/id").to_owned(), seen: account.in_workspace(&workspace.id) }
}

async fn key_with(workspace: &Workspace, actions: &[&str]) -> TestKey {
    new_key(workspace, json!({"name": "agent", "actions": actions})).await
}

async fn full_key(workspace: &Workspace) -> TestKey {
    new_key(workspace, json!({"name": "agent"})).await
}

async fn set_suspended(workspace: &Workspace, key: &TestKey, suspended: bool) -> Reply {
    workspace.patch(&format!("/keys/{}", key.id), &json!({"suspended": suspended})).await
}

async fn revoke(workspace: &Workspace, key: &TestKey) {
    workspace.delete(&format!("/keys/{}", key.id)).await.success();
}

#[track_caller]
fn assert_stranger(reply: &Reply) {
    let body = reply.refused(403, "FORBIDDEN");
    assert_eq!(body["error"], "Access forbidden: User is not a member of this workspace", "{reply}");
}

async fn every_tool_needs_its_action(on: On) {
    let workspace = on.workspace().await;
    let listed = workspace.account.get("/toolsets").await.success();
    let known: BTreeSet<(String, String)> = list_at(&listed, "/toolsets")
        .iter()
        .flat_map(|set| {
            let name = text_at(set, "/name").to_owned();
            list_at(set, "/tools").iter().map(move |tool| (name.clone(), tool.as_str().unwrap().to_owned()))
        })
        .collect();
    let tested: BTreeSet<(String, String)> = TOOLS
        .iter()
        .flat_map(|(set, _, tools)| tools.iter().map(|tool| ((*set).to_owned(), (*tool).to_owned())))
        .collect();
    assert_eq!(tested, known, "every tool is tested");
    for allowed in ACTIONS {
        let key = key_with(&workspace, &[allowed]).await;
        for (toolset, action, tools) in TOOLS {
            for tool in tools {
                let reply = key.seen.call_of(toolset, tool, &json!({})).await;
                let is_refused = reply.text.contains("agent key");
                assert_eq!(is_refused, action != allowed, "{allowed}: {reply}");
                if is_refused {
                    assert_eq!(reply.status, 403, "{reply}");
                    assert!(reply.text.contains(&format!("'{action}'")), "{reply}");
                    assert!(reply.text.contains(&format!("the key has {allowed}")), "{reply}");
                }
            }
        }
    }
    assert_eq!(list_at(&workspace.get("/commits").await.success(), "/commits").len(), 0, "nothing was done");
}

async fn a_key_has_its_toolsets_only(on: On) {
    let workspace = on.workspace().await;
    let key = new_key(&workspace, json!({"name": "agent", "toolsets": ["file", "coding"]})).await;
    key.seen.call_of("coding", "ls", &json!({"dirPath": "."})).await.success();
    let reply = key.seen.call("ls", &json!({})).await;
    let refusal = reply.refused(403, "FORBIDDEN");
    let said = text_at(&refusal, "/error");
    assert!(said.contains("'workspace'") && said.contains("coding, file"), "{reply}");
    key.seen.call_of("no_such_toolset", "ls", &json!({})).await.error_shape();
}

async fn a_key_is_a_stranger_in_other_workspaces(on: On) {
    let workspace = on.workspace().await;
    let other = on.workspace_of(&workspace.account, on.shared()).await;
    let file = other.write("/a.txt", "secret").await;
    let key = full_key(&workspace).await;
    let outside = key.seen.account.in_workspace(&other.id);
    let id = text_at(&file, "/file_id");
    for (method, path, body) in [
        ("GET", String::new(), None),
        ("PATCH", String::new(), Some(json!({"name": "Mine"}))),
        ("DELETE", String::new(), None),
        ("GET", "/members".into(), None),
        ("GET", "/keys".into(), None),
        ("POST", "/keys".into(), Some(json!({"name": "more"}))),
        ("GET", format!("/files/{id}"), None),
        ("POST", format!("/files/{id}/restore"), Some(json!({}))),
        ("GET", "/content/a.txt".into(), None),
        ("GET", "/commits".into(), None),
        ("GET", "/calls".into(), None),
        ("POST", "/chats".into(), Some(json!({"title": "Mine"}))),
        ("POST", "/tools".into(), Some(json!({"tool": "ls", "args": {}}))),
        ("POST", "/tools".into(), Some(json!({"tool": "no_such_tool", "args": {}}))),
    ] {
        assert_stranger(&outside.send(method, &path, body.as_ref()).await);
    }
    // A key outside its scope learns nothing either.
    let reader = key_with(&workspace, &["exec"]).await;
    assert_stranger(&reader.seen.account.in_workspace(&other.id).call("write", &json!({})).await);
    let listed = key.seen.account.get("/workspaces").await.success();
    assert_eq!((&listed["count"], text_at(&listed, "/workspaces/0/id")), (&json!(1), &*workspace.id), "{listed}");
    assert_eq!(listed["workspaces"][0]["role"], "editor", "{listed}");
}

async fn a_key_cannot_manage_anything(on: On) {
    let workspace = on.workspace().await;
    let guest = on.account().await;
    let key = full_key(&workspace).await;
    let (own, me) = (format!("/keys/{}", key.id), &workspace.account.id);
    for (method, path, body) in [
        ("PATCH", String::new(), Some(json!({"name": "Mine"}))),
        ("DELETE", String::new(), None),
        ("GET", "/members".into(), None),
        ("POST", "/members".into(), Some(json!({"email": guest.email, "role": "owner"}))),
        ("PATCH", format!("/members/{me}"), Some(json!({"role": "viewer"}))),
        ("DELETE", format!("/members/{me}"), None),
        ("DELETE", format!("/members/{}", key.id), None),
        ("GET", "/keys".into(), None),
        ("POST", "/keys".into(), Some(json!({"name": "more"}))),
        ("PATCH", own.clone(), Some(json!({"suspended": false}))),
        ("DELETE", own.clone(), None),
    ] {
        let reply = key.seen.send(method, &path, body.as_ref()).await;
        let refusal = reply.refused(403, "FORBIDDEN");
        assert!(text_at(&refusal, "/error").contains("An agent key cannot use this route"), "{reply}");
    }
    let account = &key.seen.account;
    account.get("/auth/me").await.refused(403, "FORBIDDEN");
    account.post("/workspaces", &json!({"name": "New"})).await.refused(403, "FORBIDDEN");
    account.post("/auth/refresh", &json!({})).await.refused(401, "INVALID_TOKEN");
    // Nor is a key a member that others can change.
    workspace.patch(&format!("/members/{}", key.id), &json!({"role": "owner"})).await.refused(404, "NOT_FOUND");
    workspace.delete(&format!("/members/{}", key.id)).await.refused(404, "NOT_FOUND");
    let members = workspace.get("/members").await.success();
    assert_eq!(members["count"], 1, "{members}");
    key.seen.ok("ls", json!({})).await;
}

async fn the_routes_of_files_need_an_action(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "first").await;
    workspace.write("/a.txt", "second").await;
    let id = text_at(&file, "/file_id").to_owned();
    let commits = workspace.get("/commits").await.success();
    let commit = text_at(&commits, "/commits/0/id").to_owned();
    let reads = [
        String::new(),
        "/content/a.txt".to_owned(),
        format!("/files/{id}/versions"),
        "/trash".to_owned(),
        "/commits".to_owned(),
        format!("/commits/{commit}"),
        format!("/commits/{commit}/diff"),
        "/history/a.txt".to_owned(),
    ];
    let (reader, writer) = (key_with(&workspace, &["read"]).await, key_with(&workspace, &["write"]).await);
    for path in &reads {
        assert_eq!(reader.seen.get(path).await.status, 200, "{path}");
        let reply = writer.seen.get(path).await;
        let refusal = reply.refused(403, "FORBIDDEN");
        assert!(text_at(&refusal, "/error").contains("'read'"), "{reply}");
    }
    let undo = format!("/commits/{commit}/undo");
    reader.seen.post(&undo, &json!({})).await.refused(403, "FORBIDDEN");
    reader.seen.post("/chats", &json!({"title": "Plans"})).await.refused(403, "FORBIDDEN");
    // They also read: the commit to undo, the restored file.
    writer.seen.post(&undo, &json!({})).await.refused(403, "FORBIDDEN");
    let editor = key_with(&workspace, &["read", "write"]).await;
    editor.seen.post(&undo, &json!({})).await.success();
    assert_eq!(workspace.text("/a.txt").await, "first");
    workspace.ok("rm", json!({"path": "/a.txt"})).await;
    let restore = format!("/files/{id}/restore");
    reader.seen.post(&restore, &json!({})).await.refused(403, "FORBIDDEN");
    writer.seen.post(&restore, &json!({})).await.refused(403, "FORBIDDEN");
    assert_eq!(list_at(&workspace.get("/trash").await.success(), "/files").len(), 1, "nothing was restored");
    editor.seen.post(&restore, &json!({})).await.success();
    assert_eq!(workspace.text("/a.txt").await, "first");
    let chat = writer.seen.post("/chats", &json!({"title": "Plans"})).await.success();
    let chat = format!("/chats/{}", text_at(&chat, "/chat/id"));
    let message = json!({"role": "user", "content": "hello"});
    writer.seen.post(&format!("{chat}/messages"), &message).await.success();
    reader.seen.post(&format!("{chat}/messages"), &message).await.refused(403, "FORBIDDEN");
    reader.seen.get(&chat).await.success();
    reader.seen.call("read", &json!({"path": "/a.txt"})).await.success();
    // A key sees only its own calls.
    let own = eventually("the calls are recorded", Duration::from_secs(5), async || {
        let calls = reader.seen.get("/calls?toolset=workspace").await.success();
        (!list_at(&calls, "/calls").is_empty()).then_some(calls)
    });
    for call in list_at(&own.await, "/calls") {
        assert_eq!((&call["key_id"], &call["tool"]), (&json!(reader.id), &json!("read")), "{call}");
    }
    let of_editor = format!("/calls?principal={}", editor.id);
    let calls = reader.seen.get(&of_editor).await.success();
    assert!(list_at(&calls, "/calls").iter().all(|call| call["key_id"] == json!(reader.id)), "{calls}");
}

/// Calls a tool with a key; the call must be refused because it would need another action, and change nothing.
async fn refused_for(key: &TestKey, action: &str, toolset: &str, tool: &str, args: Value) {
    let reply = key.seen.call_of(toolset, tool, &args).await;
    assert_eq!(reply.status, 403, "{reply}");
    assert!(reply.text.contains(&format!("needs the action '{action}'")), "{reply}");
}

async fn what_a_call_amounts_to_needs_its_actions(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    workspace.write("/b.txt", "two\n").await;
    let editor = key_with(&workspace, &["read", "write"]).await;
    // A patch is a tool that writes. This one removes a file.
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Delete File: b.txt\n*** End Patch\n";
    for dry_run in [true, false] {
        let args = json!({"patchText": patch, "dryRun": dry_run});
        refused_for(&editor, "delete", "coding", "apply_patch", args).await;
    }
    let renames = "diff --git a/a.txt b/c.txt\nsimilarity index 100%\nrename from a.txt\nrename to c.txt\n";
    refused_for(&editor, "move", "coding", "apply_patch", json!({"patchText": renames})).await;
    // A move onto a file replaces it.
    let mover = key_with(&workspace, &["read", "move"]).await;
    let onto = json!({"from": "a.txt", "to": "b.txt", "overwrite": true});
    refused_for(&mover, "write", "system", "move_file", onto).await;
    // An edit reads the file.
    let blind = key_with(&workspace, &["write"]).await;
    let edit = json!({"filePath": "a.txt", "oldString": "one", "newString": "two"});
    refused_for(&blind, "read", "coding", "edit", edit).await;
    // The undo of a new file removes it.
    let commits = workspace.get("/commits").await.success();
    let commit = text_at(&commits, "/commits/0/id");
    let undo = editor.seen.post(&format!("/commits/{commit}/undo"), &json!({})).await;
    assert!(undo.text.contains("needs the action 'delete'"), "{undo}");
    assert_eq!(list_at(&workspace.get("/commits").await.success(), "/commits").len(), 2, "nothing was done");
    assert_eq!((workspace.text("/a.txt").await, workspace.text("/b.txt").await), ("one\n".into(), "two\n".into()));
    // What the actions allow is done.
    mover.seen.call_of("system", "move_file", &json!({"from": "a.txt", "to": "c.txt"})).await.success();
    blind.seen.call("write", &json!({"path": "/new.txt", "content": "x"})).await.success();
    // A key that may not read does not learn the hash of a content.
    let stale = json!({"path": "/new.txt", "content": "y", "last_read_hash": "0".repeat(64)});
    let refusal = blind.seen.call("write", &stale).await;
    refusal.refused(409, "CONFLICT");
    assert!(!refusal.text.contains("its hash is now"), "{refusal}");
}

async fn what_a_program_changed_needs_its_actions(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    workspace.write("/.gitignore", "ignored\n").await;
    let run = |code: &str| json!({"language": "bash", "code": code});
    let exec = key_with(&workspace, &["exec"]).await;
    refused_for(&exec, "read", "system", "run_code", run("true")).await;
    let reader = key_with(&workspace, &["read", "exec"]).await;
    reader.seen.call_of("system", "run_code", &run("cat a.txt")).await.success();
    refused_for(&reader, "write", "system", "run_code", run("echo two > a.txt")).await;
    let writer = key_with(&workspace, &["read", "write", "exec"]).await;
    refused_for(&writer, "delete", "system", "run_code", run("echo two > b.txt; rm a.txt")).await;
    assert_eq!(workspace.text("/a.txt").await, "one\n");
    let ran = SYSTEM.ok(&workspace, "run_code", run("ls -A; echo three > c.txt")).await;
    assert_eq!(ran["stdout"], ".gitignore\na.txt\n", "what was refused is gone: {ran}");
    writer.seen.call_of("system", "run_code", &run("echo two > a.txt")).await.success();
    assert_eq!(workspace.text("/a.txt").await, "two\n");
    if matches!(on, On::Folder | On::FolderOnPostgres) {
        // Also what gets no version is judged.
        refused_for(&reader, "write", "system", "run_code", run("echo two > ignored")).await;
        // On the folder itself a program's changes cannot be judged before they are made.
        refused_for(&writer, "delete", "system", "start_process", json!({"command": "rm a.txt"})).await;
        // What was removed from an ignored folder has no versions.
        SYSTEM.ok(&workspace, "run_code", run("mkdir ignored; echo keep > ignored/file")).await;
        refused_for(&writer, "delete", "system", "run_code", run("rm ignored/file; echo x > ignored/other")).await;
        let ran = SYSTEM.ok(&workspace, "run_code", run("cat ignored/file")).await;
        assert_eq!(ran["stdout"], "keep\n", "{ran}");
    }
}

async fn a_key_writes_in_the_name_of_its_person(on: On) {
    let workspace = on.workspace().await;
    let key = full_key(&workspace).await;
    let file = key.seen.write("/a.txt", "one").await;
    key.seen.write("/a.txt", "two").await;
    key.seen.ok("mv", json!({"source": "/a.txt", "destination": "/b.txt"})).await;
    key.seen.post("/chats", &json!({"title": "Plans"})).await.success();
    let person = json!(workspace.account.id);
    let commits = workspace.get("/commits").await.success();
    assert!(list_at(&commits, "/commits").len() >= 3, "{commits}");
    for commit in list_at(&commits, "/commits") {
        assert_eq!(commit["author"], person, "{commits}");
    }
    let versions = workspace.get(&format!("/files/{}/versions", text_at(&file, "/file_id"))).await.success();
    for version in list_at(&versions, "/versions") {
        assert_eq!(version["author"], person, "{versions}");
    }
    let calls = eventually("the calls are recorded", Duration::from_secs(5), async || {
        let calls = workspace.get("/calls").await.success();
        (list_at(&calls, "/calls").len() >= 3).then_some(calls)
    })
    .await;
    assert!(list_at(&calls, "/calls").iter().all(|call| call["user_id"] == person), "{calls}");
    // Making the key is a call of the person.
    let by_key = list_at(&calls, "/calls").iter().filter(|call| call["key_id"] == json!(key.id)).count();
    assert!(by_key >= 3, "{calls}");
}

async fn a_suspended_key_is_refused_until_it_is_resumed(on: On) {
    let workspace = on.workspace().await;
    let (key, other) = (full_key(&workspace).await, full_key(&workspace).await);
    let shown = set_suspended(&workspace, &key, true).await.success();
    assert!(shown["key"]["suspended_at"].is_string(), "{shown}");
    for _ in 0..2 {
        assert_stranger(&key.seen.call("ls", &json!({})).await);
        assert_stranger(&key.seen.call("write", &json!({"path": "/a", "content": "x"})).await);
        assert_stranger(&key.seen.get("/members").await);
        set_suspended(&workspace, &key, true).await.success();
    }
    assert_stranger(&key.seen.account.get("/workspaces").await);
    other.seen.ok("ls", json!({})).await;
    for _ in 0..2 {
        let shown = set_suspended(&workspace, &key, false).await.success();
        assert_eq!(shown["key"]["suspended_at"], Value::Null, "{shown}");
        key.seen.write("/a.txt", "again").await;
    }
}

async fn a_revoked_key_is_refused(on: On) {
    let workspace = on.workspace().await;
    let (key, suspended) = (full_key(&workspace).await, full_key(&workspace).await);
    set_suspended(&workspace, &suspended, true).await.success();
    for key in [&key, &suspended] {
        for _ in 0..2 {
            revoke(&workspace, key).await;
            assert_stranger(&key.seen.call("ls", &json!({})).await);
            set_suspended(&workspace, key, false).await.refused(409, "CONFLICT");
        }
        assert_stranger(&key.seen.call("ls", &json!({})).await);
    }
    let listed = workspace.get("/keys").await.success();
    assert!(list_at(&listed, "/keys").iter().all(|key| key["revoked_at"].is_string()), "{listed}");
}

async fn a_key_has_at_most_the_role_of_its_person(on: On) {
    let workspace = on.workspace().await;
    let editor = Account::register(&workspace.account.client, &unique_email("editor")).await;
    workspace.add_member(&editor, "editor").await;
    let seen = workspace.for_user(&editor);
    let (key, held) = (full_key(&seen).await, full_key(&seen).await);
    let reader = key_with(&seen, &["read"]).await;
    key.seen.write("/a.txt", "text").await;
    set_suspended(&seen, &held, true).await.success();
    let set_role = async |role: &str| {
        workspace.patch(&format!("/members/{}", editor.id), &json!({"role": role})).await.success();
    };
    set_role("viewer").await;
    let reply = key.seen.call("write", &json!({"path": "/a.txt", "content": "x"})).await;
    let refusal = reply.refused(403, "FORBIDDEN");
    assert!(text_at(&refusal, "/error").contains("needs the role editor, yours is viewer"), "{reply}");
    assert_eq!(key.seen.text("/a.txt").await, "text");
    set_suspended(&seen, &held, false).await.success();
    held.seen.refused(403, "FORBIDDEN", "write", json!({"path": "/a.txt", "content": "x"})).await;
    seen.post("/keys", &json!({"name": "more"})).await.refused(403, "FORBIDDEN");
    set_role("owner").await;
    for key in [&key, &held] {
        key.seen.write("/a.txt", "more").await;
        let shown = key.seen.get("").await.success();
        assert_eq!(shown["workspace"]["role"], "editor", "a key is never an owner: {shown}");
    }
    let shown = reader.seen.get("").await.success();
    assert_eq!(shown["workspace"]["role"], "viewer", "{shown}");
}

async fn keys_go_with_their_person(on: On) {
    let workspace = on.workspace().await;
    let editor = Account::register(&workspace.account.client, &unique_email("editor")).await;
    workspace.add_member(&editor, "editor").await;
    let seen = workspace.for_user(&editor);
    let (key, held, own) = (full_key(&seen).await, full_key(&seen).await, full_key(&workspace).await);
    set_suspended(&seen, &held, true).await.success();
    workspace.delete(&format!("/members/{}", editor.id)).await.success();
    assert_stranger(&key.seen.call("ls", &json!({})).await);
    workspace.add_member(&editor, "editor").await;
    assert_stranger(&key.seen.call("ls", &json!({})).await);
    for key in [&key, &held] {
        set_suspended(&seen, key, false).await.refused(409, "CONFLICT");
        assert_stranger(&key.seen.call("ls", &json!({})).await);
    }
    own.seen.ok("ls", json!({})).await;
    workspace.delete("").await.success();
    assert_stranger(&own.seen.call("ls", &json!({})).await);
}

async fn members_manage_their_keys_and_owners_all(on: On) {
    let workspace = on.workspace().await;
    let (editor, viewer) = (on.account().await, on.account().await);
    workspace.add_member(&editor, "editor").await;
    workspace.add_member(&viewer, "viewer").await;
    let (by_editor, by_viewer) = (workspace.for_user(&editor), workspace.for_user(&viewer));
    let (owners, editors) = (full_key(&workspace).await, full_key(&by_editor).await);
    by_viewer.post("/keys", &json!({"name": "agent"})).await.refused(403, "FORBIDDEN");
    let ids = async |seen: &Workspace| -> BTreeSet<String> {
        let reply = seen.get("/keys").await;
        assert!(!reply.text.contains("trk_"), "no secrets: {reply}");
        list_at(&reply.success(), "/keys").iter().map(|key| text_at(key, "/id").to_owned()).collect()
    };
    assert_eq!(ids(&workspace).await, BTreeSet::from([owners.id.clone(), editors.id.clone()]));
    assert_eq!(ids(&by_editor).await, BTreeSet::from([editors.id.clone()]));
    assert_eq!(ids(&by_viewer).await, BTreeSet::new());
    for (seen, key) in [(&by_editor, &owners), (&by_viewer, &editors)] {
        set_suspended(seen, key, true).await.refused(404, "NOT_FOUND");
        seen.delete(&format!("/keys/{}", key.id)).await.refused(404, "NOT_FOUND");
        key.seen.ok("ls", json!({})).await;
    }
    workspace.delete("/keys/nonsense").await.refused(404, "NOT_FOUND");
    set_suspended(&workspace, &editors, true).await.success();
    assert_stranger(&editors.seen.call("ls", &json!({})).await);
    set_suspended(&by_editor, &editors, false).await.success();
    revoke(&workspace, &editors).await;
    assert_stranger(&editors.seen.call("ls", &json!({})).await);
    revoke(&by_editor, &editors).await;
}

async fn the_last_use_of_a_key_is_shown(on: On) {
    let workspace = on.workspace().await;
    let (used, unused) = (full_key(&workspace).await, full_key(&workspace).await);
    used.seen.ok("ls", json!({})).await;
    let listed = eventually("the use is stored", Duration::from_secs(10), async || {
        let listed = workspace.get("/keys").await.success();
        let shown = list_at(&listed, "/keys").iter().any(|key| key["last_used_at"].is_string());
        shown.then_some(listed)
    })
    .await;
    for key in list_at(&listed, "/keys") {
        assert_eq!(key["last_used_at"].is_string(), key["id"] == used.id.as_str(), "{} {listed}", unused.id);
    }
}

async fn processes_take_input_from_their_starter_and_owners_only(on: On) {
    let workspace = on.workspace().await;
    let editor = Account::register(&workspace.account.client, &unique_email("editor")).await;
    workspace.add_member(&editor, "editor").await;
    let seen = workspace.for_user(&editor);
    let (key, other) = (full_key(&seen).await, full_key(&seen).await);
    let command = "while read line; do echo \"got $line\"; done";
    let (of_person, of_key) = (start(&seen, command).await, start(&key.seen, command).await);
    let input = |id: &str, text: &str| json!({"id": id, "input": text});
    for (who, id) in [(&key.seen, &of_person), (&other.seen, &of_key), (&seen, &of_key)] {
        let said = SYSTEM.refused(who, 403, "PERMISSION_DENIED", "write_input", input(id, "x\n")).await;
        assert!(said.contains("Only who started"), "{said}");
        SYSTEM.refused(who, 403, "PERMISSION_DENIED", "stop_process", json!({"id": id})).await;
        SYSTEM.ok(who, "read_output", json!({"id": id})).await;
        let listed = SYSTEM.ok(who, "list_processes", json!({})).await;
        assert_eq!(list_at(&listed, "/processes").len(), 2, "{listed}");
    }
    SYSTEM.ok(&key.seen, "write_input", input(&of_key, "mine\n")).await;
    read_until(&other.seen, &of_key, "got mine\n").await;
    // A key of an owner is not an owner.
    let owners_key = full_key(&workspace).await;
    SYSTEM.refused(&owners_key.seen, 403, "PERMISSION_DENIED", "stop_process", json!({"id": of_key})).await;
    SYSTEM.ok(&workspace, "write_input", input(&of_person, "owner\n")).await;
    read_until(&seen, &of_person, "got owner\n").await;
    for id in [of_person, of_key] {
        SYSTEM.ok(&workspace, "stop_process", json!({"id": id})).await;
    }
}

async fn processes_of_a_key_end_with_it(on: On) {
    let workspace = on.workspace().await;
    let command = "sleep 1000";
    let own = start(&workspace, command).await;
    for ends in ["revoked", "suspended"] {
        let key = full_key(&workspace).await;
        let id = start(&key.seen, command).await;
        if ends == "revoked" {
            revoke(&workspace, &key).await;
        } else {
            set_suspended(&workspace, &key, true).await.success();
        }
        let ended = SYSTEM.ok(&workspace, "wait_process", json!({"id": id, "timeout": 9})).await;
        assert_eq!(ended["state"], "ended", "{ends}: {ended}");
        assert!(text_at(&ended, "/reason").contains("may not change the workspace any more"), "{ended}");
    }
    let listed = SYSTEM.ok(&workspace, "list_processes", json!({})).await;
    let running: Vec<_> =
        list_at(&listed, "/processes").iter().filter(|process| process["state"] == "running").collect();
    assert_eq!(running.len(), 1, "{listed}");
    SYSTEM.ok(&workspace, "stop_process", json!({"id": own})).await;
}

async fn what_is_wrong_with_a_new_key_is_named(on: On) {
    let workspace = on.workspace().await;
    for (body, field, words) in [
        (json!({"name": " "}), "name", "1 to 100"),
        (json!({"name": "x".repeat(101)}), "name", "1 to 100"),
        (json!({"name": "a\nb"}), "name", "control"),
        (json!({"name": "a", "toolsets": []}), "toolsets", "workspace"),
        (json!({"name": "a", "toolsets": ["file", "files"]}), "toolsets", "backend, coding, file, system, workspace"),
        (json!({"name": "a", "actions": []}), "actions", "read, write"),
        (
            json!({"name": "a", "actions": ["Read"]}),
            "actions",
            "read, write, delete, move, exec, fetch, github, memory",
        ),
        (json!({"name": "a", "expires_in_hours": 0}), "expires_in_hours", "1 to 87600"),
        (json!({"name": "a", "expires_in_hours": 87_601}), "expires_in_hours", "1 to 87600"),
    ] {
        let reply = workspace.post("/keys", &body).await;
        let refusal = reply.error_shape();
        assert_eq!(reply.status, 400, "{reply}");
        assert!(text_at(&refusal, "/error").contains(words), "{words}: {reply}");
        assert!(refusal["fields"].get(field).is_some(), "{reply}");
    }
    let body = json!({"name": "a", "rules": []});
    assert_eq!(workspace.post("/keys", &body).await.status, 400);
    let body = json!({"name": "  all  ", "actions": ["exec", "read", "read"], "toolsets": ["system", "file"]});
    let made = workspace.post("/keys", &body).await.success();
    let key = &made["key"];
    assert_eq!(
        (&key["name"], &key["actions"], &key["toolsets"]),
        (&json!("all"), &json!(["read", "exec"]), &json!(["file", "system"]))
    );
    let listed = workspace.get("/keys").await.success();
    assert_eq!(&listed["keys"][0], key, "what is listed is what was made");
}

async fn a_secret_that_is_not_whole_is_refused(on: On) {
    let workspace = on.workspace().await;
    let key = full_key(&workspace).await;
    let secret = &key.seen.account.access_token;
    let mut bytes = BASE64.decode(&secret[4..]).unwrap();
    bytes[60] ^= 1;
    for bad in [
        "trk_".to_owned(),
        secret[..secret.len() - 1].to_owned(),
        secret[..40].to_owned(),
        format!("{secret}A"),
        secret[4..].to_owned(),
        format!("trk_{}", BASE64.encode(&bytes)),
        secret.to_uppercase(),
    ] {
        let request = Request::new("GET", "/api/v1/workspaces").bearer(&bad);
        workspace.account.client.send(request).await.refused(401, "INVALID_TOKEN");
        let account = Account { access_token: bad, ..workspace.account.clone() };
        let reply = account.in_workspace(&workspace.id).call("ls", &json!({})).await;
        reply.refused(401, "INVALID_TOKEN");
    }
    key.seen.ok("ls", json!({})).await;
}

async fn a_person_has_a_limited_number_of_keys(on: On) {
    let workspace = on.workspace().await;
    let first = full_key(&workspace).await;
    for _ in 1..100 {
        full_key(&workspace).await;
    }
    workspace.post("/keys", &json!({"name": "more"})).await.refused(429, "QUOTA_EXCEEDED");
    revoke(&workspace, &first).await;
    full_key(&workspace).await;
    on.workspace_of(&workspace.account, on.shared()).await.post("/keys", &json!({"name": "x"})).await.success();
}

async fn keys_of_a_disabled_account_return_with_it(on: On) {
    let operated = OperatedServer::new(on);
    let (ada, grace) = (operated.account("ada").await, operated.account("grace").await);
    let workspace = ada.workspace("Ada's").await;
    workspace.add_member(&grace, "editor").await;
    let seen = workspace.for_user(&grace);
    let [key, held, released, revoked] =
        [full_key(&seen).await, full_key(&seen).await, full_key(&seen).await, full_key(&seen).await];
    set_suspended(&seen, &held, true).await.success();
    set_suspended(&seen, &released, true).await.success();
    let refused = async |key: &TestKey| assert_stranger(&key.seen.call("ls", &json!({})).await);
    operated.done(&["disable", &grace.email], "");
    refused(&key).await;
    assert_eq!(list_at(&workspace.get("/keys").await.success(), "/keys").len(), 4);
    set_suspended(&workspace, &released, false).await.success();
    refused(&released).await;
    revoke(&workspace, &revoked).await;
    operated.done(&["enable", &grace.email], "");
    key.seen.write("/a.txt", "again").await;
    released.seen.write("/b.txt", "again").await;
    refused(&held).await;
    refused(&revoked).await;
    set_suspended(&workspace, &held, false).await.success();
    held.seen.write("/c.txt", "again").await;
}

async fn keys_are_suspended_when_sessions_end(on: On) {
    let operated = OperatedServer::new(on);
    let account = operated.account("someone").await;
    let workspace = account.workspace("Mine").await;
    for arguments in [["end-sessions", account.email.as_str()], ["reset-password", &account.email]] {
        let workspace = workspace.for_user(&Account::login(&operated.server.client(), &account.email).await);
        let key = full_key(&workspace).await;
        operated.done(&arguments, &format!("{}\n", toolrest_testkit::PASSWORD));
        assert_stranger(&key.seen.call("ls", &json!({})).await);
        let workspace = workspace.for_user(&Account::login(&operated.server.client(), &account.email).await);
        set_suspended(&workspace, &key, false).await.success();
        key.seen.ok("ls", json!({})).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_replica_refuses_a_key_in_the_very_next_call() {
    let backend = Backend::Postgres(Postgres::shared().create_database());
    let (first, second) = (options_on(backend.clone()).start(), options_on(backend).start());
    let workspace = workspace_at(&first).await;
    let editor = Account::register(&first.client(), &unique_email("editor")).await;
    workspace.add_member(&editor, "editor").await;
    let seen = workspace.for_user(&editor);
    let elsewhere = |key: &TestKey| key.seen.through(&second.client());
    let put = json!({"path": "/a.txt", "content": "text"});
    for round in 0..5 {
        let key = full_key(&seen).await;
        elsewhere(&key).ok("write", put.clone()).await;
        set_suspended(&seen, &key, true).await.success();
        assert_stranger(&elsewhere(&key).call("write", &put).await);
        set_suspended(&seen, &key, false).await.success();
        elsewhere(&key).ok("write", put.clone()).await;
        let member = format!("/members/{}", editor.id);
        workspace.patch(&member, &json!({"role": "viewer"})).await.success();
        elsewhere(&key).refused(403, "FORBIDDEN", "write", put.clone()).await;
        elsewhere(&key).ok("read", json!({"path": "/a.txt"})).await;
        workspace.patch(&member, &json!({"role": "editor"})).await.success();
        elsewhere(&key).ok("write", put.clone()).await;
        if round % 2 == 0 {
            revoke(&seen, &key).await;
        } else {
            workspace.delete(&member).await.success();
        }
        assert_stranger(&elsewhere(&key).call("write", &put).await);
        assert_stranger(&elsewhere(&key).call("read", &json!({"path": "/a.txt"})).await);
        if round % 2 == 1 {
            workspace.add_member(&editor, "editor").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_key_is_refused_on_every_replica() {
    let url = Postgres::shared().create_database();
    let backend = Backend::Postgres(url.clone());
    let server_secret = "a secret of at least thirty-two characters";
    options_on(backend.clone()).start().stop();
    Postgres::shared().execute(&url, &format!("UPDATE secrets SET value = '{server_secret}' WHERE name = 'keys'"));
    let (first, second) = (options_on(backend.clone()).start(), options_on(backend).start());
    let workspace = workspace_at(&first).await;
    let key = full_key(&workspace).await;
    key.seen.ok("ls", json!({})).await;
    let secret = &key.seen.account.access_token;
    let bytes = BASE64.decode(&secret[4..]).unwrap();
    let (signed, _) = bytes.split_at(bytes.len() - 32);
    let sign = |signed: &[u8]| {
        let signature = hmac_sha256(server_secret.as_bytes(), signed);
        format!("trk_{}", BASE64.encode([signed, &signature[..]].concat()))
    };
    assert_eq!(&sign(signed), secret, "this is how a secret is signed");
    let mut expired = signed.to_vec();
    // A version byte and three ids come before the expiry.
    expired[49..57].copy_from_slice(&1_700_000_000_i64.to_be_bytes());
    let account = Account { access_token: sign(&expired), ..workspace.account.clone() };
    for server in [&first, &second] {
        let reply = account.through(&server.client()).in_workspace(&workspace.id).call("ls", &json!({})).await;
        let refusal = reply.refused(401, "INVALID_TOKEN");
        assert!(text_at(&refusal, "/error").contains("expired"), "{reply}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_ends_soon_after_another_replica_revokes_its_key() {
    let backend = Backend::Postgres(Postgres::shared().create_database());
    let start_server = || options_on(backend.clone()).env("TOOLREST__RUN__BACKGROUND_COMMIT_MS", "600000").start();
    let (first, second) = (start_server(), start_server());
    let workspace = workspace_at(&first).await;
    let key = full_key(&workspace).await;
    let id = start(&key.seen, "sleep 1000").await;
    revoke(&workspace.through(&second.client()), &key).await;
    let ended = SYSTEM.ok(&workspace, "wait_process", json!({"id": id, "timeout": 9})).await;
    assert_eq!(ended["state"], "ended", "{ended}");
    assert!(text_at(&ended, "/reason").contains("may not change the workspace any more"), "{ended}");
}
