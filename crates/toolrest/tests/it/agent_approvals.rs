//! The toolset `agent`: calls that wait for a person, and pages of the web.

use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Reply, Request, Workspace};

use crate::agent::{refused, text, text_of};
use crate::approvals::{decide, key, pending, set_rules};
use crate::on::{On, text_at, workspace_at};
use crate::web_host::WebHost;

on_every_backend![a_call_that_waits_is_a_job, a_refused_job_says_who_and_why];

on!(of_defaults, Sqlite: the_first_edit_and_command_of_a_session_ask_and_reading_does_not);

/// Calls a tool of an agent in a session, without waiting for a decision.
async fn call(agent: &Workspace, session: &str, tool: &str, args: Value) -> Reply {
    let path = format!("/api/v1/workspaces/{}/toolsets/agent", agent.id);
    let request = Request::new("POST", &path)
        .bearer(&agent.account.access_token)
        .header("Prefer", "wait=0")
        .header("X-Toolrest-Session", session);
    agent.account.client.send(request.json(&json!({"tool": tool, "args": args}))).await
}

#[track_caller]
fn waiting(reply: &Reply) -> String {
    assert_eq!(reply.status, 202, "{reply}");
    text_at(&reply.json(), "/text").to_owned()
}

async fn a_call_that_waits_is_a_job(on: On) {
    let workspace = on.workspace().await;
    set_rules(&workspace, json!({"rules": ["allow write", "ask write(docs/*.md)"], "approvals": "spec"})).await;
    let agent = key(&workspace).await;
    let write = json!({"path": "docs/a.md", "content": "new\n"});
    let shown = waiting(&call(&agent, "s", "write", write.clone()).await);
    assert!(shown.starts_with("== waiting for approval: job j1\nwrite docs/a.md: "), "{shown}");
    let next = ". Nothing is changed yet\n.. do other work, or job {\"id\":\"j1\",\"wait\":600}. Once approved it is carried \
                out without another call";
    assert!(shown.ends_with(next), "{shown}");
    assert_eq!(waiting(&call(&agent, "s", "write", write).await), shown, "the same call is the same job");
    assert_eq!(workspace.paths_below("/").await, Vec::<String>::new());
    let listed = text(&agent, "job", json!({})).await;
    assert!(listed.starts_with("== 1 job\nj1 waiting for approval: write docs/a.md: "), "{listed}");
    assert_eq!(text(&agent, "job", json!({"id": "j1"})).await, shown);
    // It is the agent's; its person has other numbers.
    assert_eq!(text(&workspace, "job", json!({})).await, "== no jobs");
    let waits = tokio::spawn({
        let agent = agent.clone();
        async move { text(&agent, "job", json!({"id": "j1", "wait": 60})).await }
    });
    let approvals = pending(&workspace, 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    decide(&workspace, &approvals[0], json!({"decision": "approve", "revision": 1})).await.success();
    let done = waits.await.unwrap();
    assert!(done.starts_with("== created docs/a.md 1 line #"), "{done}");
    assert!(done.ends_with(&format!("\n.. approved by {}", workspace.account.email)), "{done}");
    assert_eq!(workspace.text("/docs/a.md").await, "new\n");
    let commit = crate::agent_edits::commit_of(&done);
    let undone = waiting(&call(&agent, "s", "undo", json!({"commit": commit})).await);
    assert!(undone.starts_with("== waiting for approval: job j2\n"), "{undone}");
}

async fn a_refused_job_says_who_and_why(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/view.js", "x\n").await;
    set_rules(&workspace, json!({"rules": ["allow write", "deny write(ci/**)"], "approvals": "spec"})).await;
    let agent = key(&workspace).await;
    let patch = json!({"patch": "*** Begin Patch\n*** Delete File: view.js\n*** End Patch\n"});
    let shown = waiting(&call(&agent, "s", "apply_patch", patch).await);
    assert!(shown.starts_with("== waiting for approval: job j1\ndelete view.js: "), "{shown}");
    let approvals = pending(&workspace, 1).await;
    let denial = json!({"decision": "deny", "reason": "view.js is public API"});
    decide(&workspace, &approvals[0], denial).await.success();
    let error = refused(&agent, "denied", "job", json!({"id": "j1", "wait": 5})).await;
    let email = &workspace.account.email;
    assert_eq!(
        error,
        format!(
            "error denied: {email} refused: \"view.js is public API\"\nnext: do not send it again; find another way or ask \
             the user"
        )
    );
    assert_eq!(workspace.text("/view.js").await, "x\n");
    let stopping = refused(&agent, "bad_args", "job", json!({"id": "j1", "stop": true})).await;
    assert!(stopping.contains("j1 waits for a person"), "{stopping}");
    let denied = call(&agent, "s", "write", json!({"path": "ci/a.yml", "content": "x"})).await;
    assert!(text_at(&denied.json(), "/text").starts_with("error denied: "), "{denied}");
}

async fn the_first_edit_and_command_of_a_session_ask_and_reading_does_not(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    set_rules(&workspace, json!({"rules": [], "approvals": "spec"})).await;
    let agent = key(&workspace).await;
    for (tool, args) in [("read", json!({"paths": ["a.txt"]})), ("ls", json!({})), ("changes", json!({}))] {
        text_of(&call(&agent, "s", tool, args).await);
    }
    waiting(&call(&agent, "s", "edit", json!({"path": "a.txt", "old": "one", "new": "two"})).await);
    waiting(&call(&agent, "s", "run", json!({"command": "ls"})).await);
    assert_eq!(workspace.text("/a.txt").await, "one\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_fetched_as_foreign_text() {
    let url = WebHost::web().url();
    let host = url.split('/').nth(2).unwrap().to_owned();
    let server = On::Sqlite.options().env("TOOLREST__WEB__FETCH_HOSTS", &host).start();
    let workspace = workspace_at(&server).await;
    // The catalogue that other tests compare with lists what their server offers, which is without the web.
    let workspace = workspace.through(&server.client().without_schema_checks());
    let page = text(&workspace, "web_fetch", json!({"url": format!("{url}/text")})).await;
    let expected = ".. begin of foreign text\nplain text\n.. end of foreign text";
    assert_eq!(page, format!("== {url}/text 200, 11 bytes\n{expected}"));
    let article = text(&workspace, "web_fetch", json!({"url": format!("{url}/article")})).await;
    assert!(article.contains("\n# Tool rests\n") && !article.contains("track()"), "{article}");
    let image = text(&workspace, "web_fetch", json!({"url": format!("{url}/image")})).await;
    assert!(image.ends_with(" bytes, not text"), "{image}");
    refused(&workspace, "bad_args", "web_fetch", json!({"url": "ftp://example.org"})).await;
}
