//! Calls that wait for a person, and the rules that have them wait.

use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Account, Reply, Request, Workspace, eventually, unique_email};

use crate::on::{On, list_at, text_at};

on_every_backend![
    an_overwriting_write_waits_and_runs_once_approved,
    a_new_file_needs_no_approval,
    a_denied_call_changes_nothing_and_the_agent_learns_why,
    a_person_can_change_the_arguments,
    a_person_can_answer_instead,
    a_repeated_call_attaches_and_never_runs_twice,
    a_key_decides_nothing,
    a_decision_names_the_revision_that_it_saw,
    a_file_that_changed_meanwhile_is_asked_about_again,
    a_change_elsewhere_in_the_file_does_not_ask_again,
    a_grant_for_the_session_is_honoured,
    a_withdrawn_call_does_not_run,
    a_denied_path_is_neither_read_nor_listed_nor_searched_nor_written,
    a_folder_is_not_moved_out_of_a_rule,
    programs_of_keys_are_refused_where_rules_distinguish_paths,
    rules_hold_at_once_and_need_the_current_revision,
    a_rule_that_is_wrong_is_refused_with_its_reason,
    the_policy_says_what_would_happen;
    suspending_a_key_cancels_its_waiting_calls,
];

/// A workspace in which calls ask as the specifications say, and an agent key for it.
pub async fn asking(on: On) -> (Workspace, Workspace) {
    let workspace = on.workspace().await;
    set_rules(&workspace, json!({"rules": [], "approvals": "spec"})).await;
    let agent = key(&workspace).await;
    (workspace, agent)
}

pub async fn key(workspace: &Workspace) -> Workspace {
    let made = workspace.post("/keys", &json!({"name": "agent"})).await.success();
    let account = Account { access_token: text_at(&made, "/secret").to_owned(), ..workspace.account.clone() };
    account.in_workspace(&workspace.id)
}

pub async fn set_rules(workspace: &Workspace, body: Value) -> Value {
    workspace.send("PUT", "/rules", Some(&body)).await.success()
}

/// Calls a tool of the system toolset, and waits for a decision for some seconds at most.
pub async fn call(agent: &Workspace, tool: &str, args: Value, wait: u64, session: &str) -> Reply {
    let path = format!("/api/v1/workspaces/{}/toolsets/system", agent.id);
    let request = Request::new("POST", &path)
        .bearer(&agent.account.access_token)
        .header("Prefer", &format!("wait={wait}"))
        .json(&json!({"tool": tool, "args": args}));
    let request = if session.is_empty() { request } else { request.header("X-Toolrest-Session", session) };
    agent.account.client.send(request).await
}

pub async fn overwrite(agent: &Workspace, path: &str, content: &str, wait: u64) -> Reply {
    call(agent, "write_file", json!({"path": path, "content": content}), wait, "").await
}

/// Returns the pending approvals, as soon as there are `count`.
pub async fn pending(workspace: &Workspace, count: usize) -> Vec<Value> {
    eventually("the approvals are pending", Duration::from_secs(20), async || {
        let listed = workspace.get("/approvals?state=pending").await.success();
        let approvals = list_at(&listed, "/approvals").to_vec();
        (approvals.len() == count).then_some(approvals)
    })
    .await
}

pub async fn decide(workspace: &Workspace, approval: &Value, decision: Value) -> Reply {
    let id = text_at(approval, "/id");
    workspace.post(&format!("/approvals/{id}/decision"), &decision).await
}

#[track_caller]
pub fn waiting(reply: &Reply) -> Value {
    assert_eq!(reply.status, 202, "{reply}");
    let body = reply.json();
    assert_eq!(body["ok"], false, "{reply}");
    assert_eq!(body["error"]["code"], "APPROVAL_REQUIRED", "{reply}");
    assert_eq!(reply.header("location"), body["approval"]["url"].as_str(), "{reply}");
    assert!(reply.header("retry-after").is_some(), "{reply}");
    body
}

async fn an_overwriting_write_waits_and_runs_once_approved(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    let call = tokio::spawn({
        let agent = agent.clone();
        async move { overwrite(&agent, "notes.txt", "new\n", 30).await }
    });
    let approvals = pending(&workspace, 1).await;
    let approval = &approvals[0];
    assert_eq!(approval["tool"], "write_file");
    assert_eq!(approval["args"]["content"], "new\n");
    let diff = text_at(approval, "/diff");
    assert!(diff.contains("-old") && diff.contains("+new"), "{diff}");
    assert_eq!(workspace.text("/notes.txt").await, "old\n");
    decide(&workspace, approval, json!({"decision": "approve", "revision": 1})).await.success();
    let reply = call.await.unwrap();
    assert_eq!(reply.status, 200, "{reply}");
    assert_eq!(reply.json()["ok"], true, "{reply}");
    assert_eq!(workspace.text("/notes.txt").await, "new\n");
    let shown = workspace.get(&format!("/approvals/{}", text_at(approval, "/id"))).await.success();
    assert_eq!(shown["approval"]["state"], "done", "{shown}");
    let kinds: Vec<&str> = list_at(&shown, "/events").iter().map(|event| text_at(event, "/kind")).collect();
    assert_eq!(kinds.first(), Some(&"asked"), "{shown}");
    assert!(kinds.contains(&"approved") && kinds.contains(&"done"), "{shown}");
    // The same decision again changes nothing; another one is a conflict.
    decide(&workspace, approval, json!({"decision": "approve", "revision": 1})).await.success();
    decide(&workspace, approval, json!({"decision": "deny", "revision": 1})).await.refused(409, "CONFLICT");
    // The call has one record, with its commit.
    let calls = workspace.get("/calls?tool=write_file").await.success();
    let calls = list_at(&calls, "/calls");
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["outcome"], "ok");
    assert!(calls[0]["commit_id"].is_string(), "{calls:?}");
}

async fn a_new_file_needs_no_approval(on: On) {
    let (workspace, agent) = asking(on).await;
    let reply = overwrite(&agent, "new.txt", "text\n", 0).await;
    assert_eq!(reply.status, 200, "{reply}");
    assert_eq!(workspace.text("/new.txt").await, "text\n");
}

async fn a_denied_call_changes_nothing_and_the_agent_learns_why(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    let approvals = pending(&workspace, 1).await;
    let denial = json!({"decision": "deny", "reason": "keep the notes"});
    decide(&workspace, &approvals[0], denial).await.success();
    let reply = overwrite(&agent, "notes.txt", "new\n", 0).await;
    assert_eq!(reply.status, 403, "{reply}");
    let body = reply.json();
    assert_eq!(body["error"]["code"], "APPROVAL_DENIED", "{reply}");
    assert!(text_at(&body, "/error/message").contains("keep the notes"), "{reply}");
    assert_eq!(workspace.text("/notes.txt").await, "old\n");
}

async fn a_person_can_change_the_arguments(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    let approvals = pending(&workspace, 1).await;
    let id = text_at(&approvals[0], "/id");
    let args = json!({"path": "notes.txt", "content": "better\n"});
    let preview = workspace.post(&format!("/approvals/{id}/preview"), &json!({"args": args})).await.success();
    assert!(text_at(&preview, "/diff").contains("+better"), "{preview}");
    let wrong = json!({"decision": "approve", "args": args, "preview": "another"});
    decide(&workspace, &approvals[0], wrong).await.refused(409, "CONFLICT");
    let right = json!({"decision": "approve", "args": args, "preview": preview["preview"]});
    decide(&workspace, &approvals[0], right).await.success();
    let reply = overwrite(&agent, "notes.txt", "new\n", 20).await;
    assert_eq!(reply.status, 200, "{reply}");
    assert!(reply.json().to_string().contains("changed the arguments"), "{reply}");
    assert_eq!(workspace.text("/notes.txt").await, "better\n");
}

async fn a_person_can_answer_instead(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    let approvals = pending(&workspace, 1).await;
    let answer = json!({"decision": "respond", "reason": "write to other.txt"});
    let decided = decide(&workspace, &approvals[0], answer).await.success();
    assert_eq!(decided["approval"]["state"], "done", "{decided}");
    let reply = overwrite(&agent, "notes.txt", "new\n", 0).await;
    assert!(text_at(&reply.json(), "/error/message").contains("write to other.txt"), "{reply}");
    assert_eq!(workspace.text("/notes.txt").await, "old\n");
}

async fn a_repeated_call_attaches_and_never_runs_twice(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    let first = waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    let second = waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    assert_eq!(first["approval"]["id"], second["approval"]["id"]);
    let approvals = pending(&workspace, 1).await;
    // 002's own form of a decision.
    decide(&workspace, &approvals[0], json!({"approved": true})).await.success();
    let url = format!("/approvals/{}?wait=20", text_at(&approvals[0], "/id"));
    let shown = workspace.get(&url).await.success();
    assert_eq!(shown["approval"]["state"], "done", "{shown}");
    // The result was never delivered, so the repetition gets it and does not run.
    let reply = overwrite(&agent, "notes.txt", "new\n", 0).await;
    assert_eq!(reply.status, 200, "{reply}");
    let commits = workspace.get("/commits").await.success();
    let of_agent = list_at(&commits, "/commits").iter().filter(|commit| commit["tool"] == "write_file").count();
    assert_eq!(of_agent, 1, "{commits}");
}

async fn a_key_decides_nothing(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    let approvals = pending(&workspace, 1).await;
    decide(&agent, &approvals[0], json!({"decision": "approve"})).await.refused(403, "FORBIDDEN");
    agent.send("PUT", "/rules", Some(&json!({"rules": []}))).await.refused(403, "FORBIDDEN");
    agent.get("/rules").await.refused(403, "FORBIDDEN");
    // It sees its own approvals, without the diff.
    let seen = agent.get("/approvals").await.success();
    assert_eq!(list_at(&seen, "/approvals")[0]["diff"], "", "{seen}");
    let other = key(&workspace).await;
    let seen = other.get("/approvals").await.success();
    assert_eq!(list_at(&seen, "/approvals").len(), 0, "{seen}");
    assert_eq!(workspace.text("/notes.txt").await, "old\n");
}

async fn a_decision_names_the_revision_that_it_saw(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    let approvals = pending(&workspace, 1).await;
    decide(&workspace, &approvals[0], json!({"decision": "approve", "revision": 7})).await.refused(409, "CONFLICT");
    let unknown = json!({"id": "0192d5c8-0000-7000-8000-000000000000"});
    decide(&workspace, &unknown, json!({"decision": "approve"})).await.refused(404, "NOT_FOUND");
}

async fn a_file_that_changed_meanwhile_is_asked_about_again(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    let approvals = pending(&workspace, 1).await;
    workspace.write("/notes.txt", "changed by somebody\n").await;
    decide(&workspace, &approvals[0], json!({"decision": "approve", "revision": 1})).await.success();
    let again = eventually("the approvals are pending", Duration::from_secs(20), async || {
        let listed = workspace.get("/approvals?state=pending").await.success();
        list_at(&listed, "/approvals").first().filter(|approval| approval["revision"] == 2).cloned()
    })
    .await;
    assert_eq!(again["id"], approvals[0]["id"]);
    assert!(text_at(&again, "/diff").contains("-changed by somebody"), "{again}");
    assert_eq!(workspace.text("/notes.txt").await, "changed by somebody\n");
    decide(&workspace, &again, json!({"decision": "approve", "revision": 1})).await.refused(409, "CONFLICT");
    decide(&workspace, &again, json!({"decision": "approve", "revision": 2})).await.success();
    let reply = overwrite(&agent, "notes.txt", "new\n", 20).await;
    assert_eq!(reply.status, 200, "{reply}");
    assert_eq!(workspace.text("/notes.txt").await, "new\n");
}

async fn a_change_elsewhere_in_the_file_does_not_ask_again(on: On) {
    let (workspace, _) = asking(on).await;
    let lines: Vec<String> = (1..=40).map(|n| format!("line {n}\n")).collect();
    workspace.write("/notes.txt", &lines.concat()).await;
    let rules = json!({"rules": ["ask write(notes.txt)"], "approvals": "spec"});
    set_rules(&workspace, rules).await;
    let agent = key(&workspace).await;
    for n in [5, 20, 35] {
        let args =
            json!({"path": "/notes.txt", "old_string": format!("line {n}\n"), "new_string": format!("edited {n}\n")});
        let path = format!("/api/v1/workspaces/{}/tools", agent.id);
        let request = Request::new("POST", &path).bearer(&agent.account.access_token).header("Prefer", "wait=0");
        let reply = agent.account.client.send(request.json(&json!({"tool": "edit", "args": args}))).await;
        assert_eq!(reply.status, 202, "{reply}");
        assert_eq!(reply.json()["code"], "APPROVAL_REQUIRED", "{reply}");
        assert_eq!(reply.json()["success"], false, "{reply}");
    }
    for approval in pending(&workspace, 3).await {
        decide(&workspace, &approval, json!({"decision": "approve", "revision": 1})).await.success();
        let url = format!("/approvals/{}?wait=20", text_at(&approval, "/id"));
        let shown = workspace.get(&url).await.success();
        assert_eq!(shown["approval"]["state"], "done", "{shown}");
    }
    let text = workspace.text("/notes.txt").await;
    for n in [5, 20, 35] {
        assert!(text.contains(&format!("edited {n}\n")), "{text}");
    }
}

async fn a_grant_for_the_session_is_honoured(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    let args = |content: &str| json!({"path": "notes.txt", "content": content});
    waiting(&call(&agent, "write_file", args("one\n"), 0, "s1").await);
    let approvals = pending(&workspace, 1).await;
    assert_eq!(approvals[0]["grants_offered"], json!(["write(notes.txt)", "write(**)"]));
    let granted = json!({"decision": "approve", "scope": "session", "revision": 1});
    decide(&workspace, &approvals[0], granted).await.success();
    let url = format!("/approvals/{}?wait=20", text_at(&approvals[0], "/id"));
    workspace.get(&url).await.success();
    let reply = call(&agent, "write_file", args("two\n"), 0, "s1").await;
    assert_eq!(reply.status, 200, "{reply}");
    // It holds for this session and this path only.
    waiting(&call(&agent, "write_file", args("three\n"), 0, "s2").await);
    workspace.write("/other.txt", "old\n").await;
    waiting(&call(&agent, "write_file", json!({"path": "other.txt", "content": "x"}), 0, "s1").await);
    let grants = workspace.get("/grants").await.success();
    assert_eq!(list_at(&grants, "/grants").len(), 1, "{grants}");
    workspace.delete("/grants").await.success();
    waiting(&call(&agent, "write_file", args("four\n"), 0, "s1").await);
    assert_eq!(workspace.text("/notes.txt").await, "two\n");
}

async fn a_withdrawn_call_does_not_run(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    let approvals = pending(&workspace, 1).await;
    let id = text_at(&approvals[0], "/id");
    agent.delete(&format!("/approvals/{id}")).await.success();
    decide(&workspace, &approvals[0], json!({"decision": "approve"})).await.refused(409, "CONFLICT");
    assert_eq!(workspace.text("/notes.txt").await, "old\n");
}

async fn suspending_a_key_cancels_its_waiting_calls(on: On) {
    let (workspace, _) = asking(on).await;
    let made = workspace.post("/keys", &json!({"name": "agent"})).await.success();
    let account = Account { access_token: text_at(&made, "/secret").to_owned(), ..workspace.account.clone() };
    let agent = account.in_workspace(&workspace.id);
    workspace.write("/notes.txt", "old\n").await;
    waiting(&overwrite(&agent, "notes.txt", "new\n", 0).await);
    pending(&workspace, 1).await;
    let path = format!("/keys/{}", text_at(&made, "/key/id"));
    workspace.patch(&path, &json!({"suspended": true})).await.success();
    pending(&workspace, 0).await;
    let ended = workspace.get("/approvals?state=cancelled").await.success();
    assert_eq!(list_at(&ended, "/approvals").len(), 1, "{ended}");
}

async fn a_denied_path_is_neither_read_nor_listed_nor_searched_nor_written(on: On) {
    let workspace = on.workspace().await;
    let written = workspace.ok("write", json!({"path": "/app/.env", "content": "TOKEN=secret\n"})).await;
    workspace.write("/app/main.rs", "secret is elsewhere\n").await;
    set_rules(&workspace, json!({"rules": ["deny read(**/.env)", "deny write(**/.env)"]})).await;
    let agent = key(&workspace).await;
    for caller in [&workspace, &agent] {
        caller.refused(403, "APPROVAL_DENIED", "read", json!({"path": "/app/.env"})).await;
        caller.refused(403, "APPROVAL_DENIED", "read", json!({"path": "/missing/.env"})).await;
        assert_eq!(caller.paths_in("/app").await, ["/app/main.rs"]);
        let found = caller.ok("grep", json!({"pattern": "secret"})).await;
        let matches = list_at(&found, "/matches");
        assert!(matches.iter().all(|one| one["path"] == "/app/main.rs"), "{found}");
        caller.refused(403, "APPROVAL_DENIED", "write", json!({"path": "/app/.env", "content": "x"})).await;
        caller.refused(403, "APPROVAL_DENIED", "mv", json!({"source": "/app/.env", "destination": "/app/env"})).await;
        let commits = caller.get("/commits").await.success();
        assert!(!commits.to_string().contains(".env"), "{commits}");
        caller.get("/content/app/.env").await.refused(403, "APPROVAL_DENIED");
    }
    // The content cannot be found through the file's history either.
    let id = text_at(&written, "/file_id");
    agent.get(&format!("/files/{id}")).await.refused(403, "APPROVAL_DENIED");
    agent.get(&format!("/files/{id}/versions")).await.refused(403, "APPROVAL_DENIED");
    agent.get("/history/app/.env").await.refused(403, "APPROVAL_DENIED");
    // Nor does a path that does not exist answer differently.
    agent.get("/history/other/.env").await.refused(403, "APPROVAL_DENIED");
}

async fn a_folder_is_not_moved_out_of_a_rule(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/secrets/key", "k\n").await;
    workspace.write("/docs/a.md", "a\n").await;
    set_rules(&workspace, json!({"rules": ["deny read(secrets/**)"]})).await;
    let agent = key(&workspace).await;
    agent.refused(403, "APPROVAL_DENIED", "mv", json!({"source": "/secrets", "destination": "/open"})).await;
    agent.refused(403, "APPROVAL_DENIED", "mv", json!({"source": "/secrets/key", "destination": "/key"})).await;
    agent.ok("mv", json!({"source": "/docs", "destination": "/papers"})).await;
}

async fn programs_of_keys_are_refused_where_rules_distinguish_paths(on: On) {
    let workspace = on.workspace().await;
    set_rules(&workspace, json!({"rules": ["deny read(secrets/**)"]})).await;
    let agent = key(&workspace).await;
    let args = json!({"language": "bash", "code": "echo hi"});
    let reply = agent.call_of("system", "run_code", &args).await;
    assert_eq!(reply.status, 403, "{reply}");
    assert_eq!(reply.json()["error"]["code"], "APPROVAL_DENIED", "{reply}");
}

async fn rules_hold_at_once_and_need_the_current_revision(on: On) {
    let workspace = on.workspace().await;
    let agent = key(&workspace).await;
    for n in 0..5 {
        let set = set_rules(&workspace, json!({"rules": ["deny write(docs/**)"]})).await;
        agent.refused(403, "APPROVAL_DENIED", "write", json!({"path": "/docs/a", "content": "x"})).await;
        set_rules(&workspace, json!({"rules": []})).await;
        agent.write(&format!("/docs/{n}"), "x").await;
        let path = format!("/api/v1/workspaces/{}/rules", workspace.id);
        let stale = Request::new("PUT", &path)
            .bearer(&workspace.account.access_token)
            .header("If-Match", &format!("\"{}\"", set["revision"]))
            .json(&json!({"rules": []}));
        workspace.account.client.send(stale).await.refused(409, "CONFLICT");
    }
    let editor = Account::register(&on.shared().client(), &unique_email("editor")).await;
    workspace.add_member(&editor, "editor").await;
    let seen = workspace.for_user(&editor);
    seen.send("PUT", "/rules", Some(&json!({"rules": []}))).await.refused(403, "FORBIDDEN");
    set_rules(&workspace, json!({"rules": ["deny write(docs/**)"]})).await;
    seen.refused(403, "APPROVAL_DENIED", "write", json!({"path": "/docs/a", "content": "x"})).await;
}

async fn a_rule_that_is_wrong_is_refused_with_its_reason(on: On) {
    let workspace = on.workspace().await;
    let never_matching = ["deny tool(system/writefile)", "deny tool(sytem/*)", "deny fetch(https://example.com/a)"];
    for rule in ["forbid write(x)", "deny wirte(x)", "deny write(", "deny write([)"].into_iter().chain(never_matching) {
        let reply = workspace.send("PUT", "/rules", Some(&json!({"rules": [rule]}))).await;
        let body = reply.refused(400, "VALIDATION_ERROR");
        assert!(text_at(&body, "/error").len() > 10, "{reply}");
    }
}

async fn the_policy_says_what_would_happen(on: On) {
    let (workspace, _) = asking(on).await;
    workspace.write("/notes.txt", "old\n").await;
    let check = async |args: Value| {
        let body = json!({"toolset": "system", "tool": "write_file", "args": args});
        workspace.post("/policy/check", &body).await.success()
    };
    let new = check(json!({"path": "new.txt", "content": "x"})).await;
    assert_eq!(new["decision"], "allow", "{new}");
    let over = check(json!({"path": "notes.txt", "content": "new\n"})).await;
    assert_eq!(over["decision"], "ask", "{over}");
    assert!(text_at(&over, "/diff").contains("+new"), "{over}");
    set_rules(&workspace, json!({"rules": ["deny write(notes.txt)"]})).await;
    let denied = check(json!({"path": "notes.txt", "content": "new\n"})).await;
    assert_eq!(denied["decision"], "deny", "{denied}");
    assert_eq!(denied["rule"], "deny write(notes.txt)", "{denied}");
    assert_eq!(workspace.text("/notes.txt").await, "old\n");
}
