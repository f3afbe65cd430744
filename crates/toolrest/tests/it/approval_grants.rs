//! Grants, rules that decisions add, presets, and the waiting calls that they release.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolrest_testkit::{Account, Workspace, eventually, unique_email};

use crate::approvals::{asking, call, decide, key, overwrite, pending, set_rules, waiting};
use crate::on::{On, list_at, text_at};

on_every_backend![
    a_wider_grant_is_given_if_it_is_chosen,
    a_decision_for_the_workspace_adds_a_rule,
    an_editor_cannot_add_rules_by_a_decision,
    a_new_rule_releases_the_calls_that_it_covers,
    a_grant_releases_the_calls_of_its_session_alone,
    a_denial_does_not_release_or_refuse_other_calls,
    a_refusal_can_hold_for_the_session,
    presets_are_rules_for_common_wishes,
    a_rule_that_names_who_decides_is_lifted_by_no_grant,
    several_calls_are_decided_at_once;
    a_command_is_asked_again_if_its_script_changes,
];

on!(operator, Sqlite: an_operators_rule_is_lifted_by_no_rule_of_the_workspace);

async fn state_of(workspace: &Workspace, id: &str) -> Value {
    let shown = workspace.get(&format!("/approvals/{id}?wait=20")).await.success();
    shown["approval"].clone()
}

async fn write(agent: &Workspace, path: &str, session: &str) -> toolrest_testkit::Reply {
    call(agent, "write_file", json!({"path": path, "content": "new\n"}), 0, session).await
}

async fn a_wider_grant_is_given_if_it_is_chosen(on: On) {
    let (workspace, agent) = asking(on).await;
    for path in ["/docs/a.md", "/docs/b.md", "/other.md"] {
        workspace.write(path, "old\n").await;
    }
    waiting(&write(&agent, "docs/a.md", "s").await);
    let approvals = pending(&workspace, 1).await;
    let offers = json!(["write(docs/a.md)", "write(docs/**)", "write(**)"]);
    assert_eq!((&approvals[0]["grants_offered"], &approvals[0]["rules_offered"]), (&offers, &offers));
    let edited = json!({"args": {"path": "other.md", "content": "new\n"}});
    let path = format!("/approvals/{}/preview", text_at(&approvals[0], "/id"));
    let preview = workspace.post(&path, &edited).await.success();
    let offers = json!(["write(other.md)", "write(**)"]);
    assert_eq!((&preview["grants_offered"], &preview["rules_offered"]), (&offers, &offers), "{preview}");
    let unknown = json!({"decision": "approve", "scope": "session", "grant": "exec(**)"});
    decide(&workspace, &approvals[0], unknown).await.refused(400, "VALIDATION_ERROR");
    let without_scope = json!({"decision": "approve", "grant": "write(docs/**)"});
    decide(&workspace, &approvals[0], without_scope).await.refused(400, "VALIDATION_ERROR");
    let wider = json!({"decision": "approve", "scope": "session", "grant": "write(docs/**)"});
    decide(&workspace, &approvals[0], wider).await.success();
    assert_eq!(write(&agent, "docs/b.md", "s").await.status, 200);
    waiting(&write(&agent, "other.md", "s").await);
}

async fn a_decision_for_the_workspace_adds_a_rule(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/docs/a.md", "old\n").await;
    waiting(&write(&agent, "docs/a.md", "one").await);
    let approvals = pending(&workspace, 1).await;
    let always = json!({"decision": "approve", "scope": "workspace", "grant": "write(docs/**)"});
    decide(&workspace, &approvals[0], always).await.success();
    let rules = workspace.get("/rules").await.success();
    assert_eq!(rules["short"], json!(["allow write(docs/**)"]), "{rules}");
    // It holds in other sessions too.
    state_of(&workspace, text_at(&approvals[0], "/id")).await;
    assert_eq!(write(&agent, "docs/a.md", "two").await.status, 200);
}

async fn an_editor_cannot_add_rules_by_a_decision(on: On) {
    let (workspace, agent) = asking(on).await;
    let editor = Account::register(&on.shared().client(), &unique_email("editor")).await;
    workspace.add_member(&editor, "editor").await;
    workspace.write("/a.md", "old\n").await;
    waiting(&write(&agent, "a.md", "").await);
    let approvals = pending(&workspace, 1).await;
    let always = json!({"decision": "approve", "scope": "workspace"});
    decide(&workspace.for_user(&editor), &approvals[0], always).await.refused(403, "FORBIDDEN");
    pending(&workspace, 1).await;
    assert_eq!(workspace.text("/a.md").await, "old\n");
}

async fn a_new_rule_releases_the_calls_that_it_covers(on: On) {
    let (workspace, agent) = asking(on).await;
    let mut calls = JoinSet::new();
    for n in 0..50 {
        let folder = if n % 5 == 0 { "kept" } else { "docs" };
        workspace.write(&format!("/{folder}/{n}.md"), "old\n").await;
        let agent = agent.clone();
        let wait = if folder == "docs" { 60 } else { 0 };
        calls.spawn(async move { overwrite(&agent, &format!("{folder}/{n}.md"), "new\n", wait).await });
    }
    let waiting = pending(&workspace, 50).await;
    let answer = set_rules(&workspace, json!({"rules": ["allow write(docs/**)"], "approvals": "spec"})).await;
    assert_eq!(list_at(&answer, "/released").len(), 40, "{answer}");
    for reply in calls.join_all().await {
        assert!(reply.status == 200 || reply.status == 202, "{reply}");
    }
    let left = pending(&workspace, 10).await;
    assert!(left.iter().all(|one| text_at(one, "/args/path").starts_with("kept/")), "{left:?}");
    for n in 0..50 {
        let (folder, text) = if n % 5 == 0 { ("kept", "old\n") } else { ("docs", "new\n") };
        assert_eq!(workspace.text(&format!("/{folder}/{n}.md")).await, text);
    }
    let released = waiting.iter().find(|one| text_at(one, "/args/path").starts_with("docs/")).unwrap();
    assert_eq!(state_of(&workspace, text_at(released, "/id")).await["decided"]["via"], "rule");
}

async fn a_grant_releases_the_calls_of_its_session_alone(on: On) {
    let (workspace, agent) = asking(on).await;
    for path in ["/docs/a.md", "/docs/b.md"] {
        workspace.write(path, "old\n").await;
    }
    waiting(&write(&agent, "docs/a.md", "s").await);
    let first = pending(&workspace, 1).await.remove(0);
    let same = waiting(&write(&agent, "docs/b.md", "s").await);
    waiting(&write(&agent, "docs/b.md", "other").await);
    pending(&workspace, 3).await;
    let grant = json!({"decision": "approve", "scope": "session", "grant": "write(docs/**)"});
    let decided = decide(&workspace, &first, grant).await.success();
    assert_eq!(decided["released"], json!([same["approval"]["id"]]), "{decided}");
    assert_eq!(state_of(&workspace, text_at(&same, "/approval/id")).await["state"], "done");
    pending(&workspace, 1).await;
}

async fn a_denial_does_not_release_or_refuse_other_calls(on: On) {
    let (workspace, agent) = asking(on).await;
    for path in ["/docs/a.md", "/docs/b.md"] {
        workspace.write(path, "old\n").await;
        waiting(&write(&agent, path.trim_start_matches('/'), "s").await);
    }
    let approvals = pending(&workspace, 2).await;
    let refusal = json!({"decision": "deny", "remember": true, "grant": null});
    let decided = decide(&workspace, &approvals[0], refusal).await.success();
    assert_eq!(decided["released"], json!([]), "{decided}");
    pending(&workspace, 1).await;
}

async fn a_refusal_can_hold_for_the_session(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/a.md", "old\n").await;
    waiting(&write(&agent, "a.md", "s").await);
    let approvals = pending(&workspace, 1).await;
    decide(&workspace, &approvals[0], json!({"decision": "deny", "remember": true})).await.success();
    let other_content = json!({"path": "a.md", "content": "another\n"});
    let refused = call(&agent, "write_file", other_content.clone(), 0, "s").await;
    assert_eq!((refused.status, text_at(&refused.json(), "/error/code")), (403, "APPROVAL_DENIED"), "{refused}");
    // A caller chooses the label of its session itself, so another one does not help.
    let elsewhere = call(&agent, "write_file", other_content, 0, "another").await;
    assert_eq!(elsewhere.status, 403, "{elsewhere}");
}

async fn presets_are_rules_for_common_wishes(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/a.md", "old\n").await;
    let preset = async |name: &str| set_rules(&workspace, json!({"preset": name})).await;
    preset("read-only").await;
    let read = call(&agent, "read_file", json!({"path": "a.md"}), 0, "").await;
    assert_eq!(read.status, 200, "{read}");
    let refused = write(&agent, "new.md", "").await;
    assert_eq!(refused.status, 403, "{refused}");
    preset("accept-edits").await;
    assert_eq!(write(&agent, "a.md", "").await.status, 200);
    waiting(&call(&agent, "delete_file", json!({"path": "a.md"}), 0, "").await);
    preset("ask-everything").await;
    waiting(&write(&agent, "new.md", "").await);
    assert_eq!(call(&agent, "read_file", json!({"path": "a.md"}), 0, "").await.status, 200);
    preset("default").await;
    waiting(&write(&agent, "a.md", "again").await);
    let unknown = workspace.send("PUT", "/rules", Some(&json!({"preset": "none"}))).await;
    unknown.refused(400, "VALIDATION_ERROR");
    let both = json!({"preset": "default", "rules": []});
    workspace.send("PUT", "/rules", Some(&both)).await.refused(400, "VALIDATION_ERROR");
}

async fn a_rule_that_names_who_decides_is_lifted_by_no_grant(on: On) {
    let (workspace, agent) = asking(on).await;
    let editor = Account::register(&on.shared().client(), &unique_email("editor")).await;
    workspace.add_member(&editor, "editor").await;
    let by_editor = workspace.for_user(&editor);
    for path in ["/a.md", "/legal/terms.md"] {
        workspace.write(path, "old\n").await;
    }
    let owner = workspace.get("/members").await.success();
    let members = list_at(&owner, "/members").iter();
    let email = members.filter(|member| member["role"] == "owner").map(|member| text_at(member, "/email")).next();
    let named = json!({"effect": "ask", "action": "write", "match": ["legal/**"], "approvers": [email.unwrap()]});
    set_rules(&workspace, json!({"rules": [named], "approvals": "spec"})).await;
    waiting(&write(&agent, "a.md", "s").await);
    let wide = json!({"decision": "approve", "scope": "session", "grant": "write(**)"});
    decide(&by_editor, &pending(&workspace, 1).await[0], wide).await.success();
    waiting(&write(&agent, "legal/terms.md", "s").await);
    let legal = pending(&workspace, 1).await.remove(0);
    assert_eq!(legal["grants_offered"], json!([]), "{legal}");
    decide(&by_editor, &legal, json!({"decision": "approve"})).await.refused(403, "FORBIDDEN");
    decide(&workspace, &legal, json!({"decision": "approve"})).await.success();
    assert_eq!(state_of(&workspace, text_at(&legal, "/id")).await["state"], "done");
}

async fn several_calls_are_decided_at_once(on: On) {
    let (workspace, agent) = asking(on).await;
    for path in ["a.md", "b.md", "c.md"] {
        workspace.write(&format!("/{path}"), "old\n").await;
        waiting(&write(&agent, path, "").await);
    }
    let ids: Vec<Value> = pending(&workspace, 3).await.iter().map(|one| one["id"].clone()).collect();
    let decisions = json!({"decisions": [
        {"id": ids[0], "decision": "approve"},
        {"id": ids[1], "decision": "deny", "reason": "no"},
        {"id": ids[2], "decision": "approve", "revision": 9},
    ]});
    let results = workspace.post("/approvals/decisions", &decisions).await.success();
    assert_eq!(results["results"][0]["state"], "approved", "{results}");
    assert_eq!(results["results"][1]["state"], "denied", "{results}");
    assert!(results["results"][2]["error"].is_string(), "{results}");
    assert_eq!(state_of(&workspace, ids[0].as_str().unwrap()).await["state"], "done");
    pending(&workspace, 1).await;
}

async fn a_command_is_asked_again_if_its_script_changes(on: On) {
    let (workspace, agent) = asking(on).await;
    workspace.write("/job.sh", "echo shown > result.txt\n").await;
    set_rules(&workspace, json!({"rules": ["ask exec"], "approvals": "spec"})).await;
    let args = json!({"language": "bash", "code": "sh job.sh"});
    waiting(&call(&agent, "run_code", args, 0, "").await);
    let shown = pending(&workspace, 1).await.remove(0);
    assert!(text_at(&shown, "/command").contains("# job.sh sha256 "), "{shown}");
    workspace.write("/job.sh", "echo other > result.txt\n").await;
    decide(&workspace, &shown, json!({"decision": "approve", "revision": 1})).await.success();
    let again = eventually("it is asked again", Duration::from_secs(20), async || {
        let listed = workspace.get("/approvals?state=pending").await.success();
        list_at(&listed, "/approvals").first().filter(|approval| approval["revision"] == 2).cloned()
    })
    .await;
    assert_ne!(again["command"], shown["command"]);
    decide(&workspace, &again, json!({"decision": "approve", "revision": 2})).await.success();
    let done = state_of(&workspace, text_at(&again, "/id")).await;
    assert_eq!((done["state"].as_str(), done["outcome"].as_str()), (Some("done"), Some("ok")), "{done}");
    assert_eq!(workspace.text("/result.txt").await, "other\n");
}

async fn an_operators_rule_is_lifted_by_no_rule_of_the_workspace(on: On) {
    let server =
        on.options().env("TOOLREST__POLICY__APPROVALS", "spec").env("TOOLREST__POLICY__RULES", "ask write(*.md)");
    let server = server.start();
    let workspace = on.workspace_at(&server).await;
    let agent = key(&workspace).await;
    waiting(&write(&agent, "a.md", "s").await);
    let asked = pending(&workspace, 1).await.remove(0);
    assert_eq!(asked["rules_offered"], json!([]), "{asked}");
    assert_eq!(asked["grants_offered"][0], "write(a.md)", "{asked}");
    decide(&workspace, &asked, json!({"decision": "approve", "scope": "workspace"}))
        .await
        .refused(400, "VALIDATION_ERROR");
    decide(&workspace, &asked, json!({"decision": "approve", "scope": "session"})).await.success();
    assert_eq!(state_of(&workspace, text_at(&asked, "/id")).await["state"], "done");
}
