//! The Model Context Protocol over HTTP.

use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Client, Reply, Request, Workspace, eventually};

use crate::mcp::{runs, unique_seconds};
use crate::on::{On, list_at, text_at};

on_every_backend![
    a_key_lists_and_calls_the_tools_of_its_workspace,
    a_person_uses_the_address_of_the_workspace,
    strangers_and_pages_of_other_sites_are_refused,
    a_key_is_offered_what_its_scope_allows,
    a_call_that_must_ask_says_that_it_waits_and_runs_once_approved,
];
on!(cancelling, Sqlite: a_running_call_is_cancelled_by_a_request_of_its_session);

const LIMIT: Duration = Duration::from_secs(30);

/// A client with a credential.
struct Agent {
    client: Client,
    path: String,
    token: String,
    session: Option<String>,
}

impl Agent {
    fn of_key(workspace: &Workspace, secret: &str) -> Self {
        let client = workspace.account.client.clone();
        Self { client, path: "/mcp?toolset=coding,system".to_owned(), token: secret.to_owned(), session: None }
    }

    async fn post(&self, message: Value) -> Reply {
        let mut request = Request::new("POST", &self.path).header("Accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("Mcp-Session-Id", session);
        }
        if !self.token.is_empty() {
            request = request.bearer(&self.token);
        }
        self.client.send(request.json(&message)).await
    }

    async fn exchange(&self, method: &str, params: Value) -> Reply {
        self.post(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await
    }

    async fn request(&self, method: &str, params: Value) -> Value {
        let body = self.exchange(method, params).await.success();
        assert!(body.get("error").is_none(), "{body}");
        body["result"].clone()
    }

    async fn call(&self, tool: &str, args: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": args})).await
    }

    async fn tool_names(&self) -> Vec<String> {
        let listed = self.request("tools/list", json!({})).await;
        list_at(&listed, "/tools").iter().map(|tool| text_at(tool, "/name").to_owned()).collect()
    }
}

fn initialize() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

/// Makes a key; returns its secret.
async fn key(workspace: &Workspace, scope: Value) -> String {
    let mut body = json!({"name": "agent"});
    body.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
    text_at(&workspace.post("/keys", &body).await.success(), "/secret").to_owned()
}

async fn a_key_lists_and_calls_the_tools_of_its_workspace(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\n").await;
    let agent = Agent::of_key(&workspace, &key(&workspace, json!({})).await);
    let begun = agent.exchange("initialize", initialize()).await;
    assert_eq!(begun.success()["result"]["protocolVersion"], "2025-11-25", "{begun}");
    assert!(begun.header("mcp-session-id").is_some(), "{begun}");
    let accepted = agent.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!(accepted.status, 202, "{accepted}");
    let names = agent.tool_names().await;
    assert_eq!(names[..7], ["read", "write", "edit", "multiedit", "apply_patch", "ls", "glob"]);
    let read = agent.call("read", json!({"filePath": "a.txt"})).await;
    assert_eq!(text_at(&read, "/content/0/text"), "     1→one");
    let edited = agent.call("edit", json!({"filePath": "a.txt", "oldString": "one", "newString": "two"})).await;
    assert_eq!(edited["isError"], false, "{edited}");
    assert_eq!(workspace.text("/a.txt").await, "two\n");
    let missing = agent.call("read", json!({"filePath": "b.txt"})).await;
    assert_eq!(missing["isError"], true, "{missing}");
    // The calls are recorded as the key's.
    let calls = workspace.get("/calls?tool=edit").await.success();
    assert_eq!(list_at(&calls, "/calls").len(), 1, "{calls}");
    assert!(calls.pointer("/calls/0/key_id").is_some_and(Value::is_string), "{calls}");
}

async fn a_person_uses_the_address_of_the_workspace(on: On) {
    let workspace = on.workspace().await;
    let path = format!("/api/v1/workspaces/{}/mcp?toolset=workspace&read_only=true", workspace.id);
    let token = workspace.account.access_token.clone();
    let mut person = Agent { client: workspace.account.client.clone(), path, token, session: None };
    assert_eq!(person.tool_names().await, ["ls", "read", "grep"]);
    "/mcp".clone_into(&mut person.path);
    person.exchange("tools/list", json!({})).await.refused(403, "FORBIDDEN");
    person.path = format!("/api/v1/workspaces/{}/mcp?toolset=none", workspace.id);
    let unknown = person.exchange("tools/list", json!({})).await.refused(400, "VALIDATION_ERROR");
    assert!(unknown.to_string().contains("there is no toolset 'none'"), "{unknown}");
}

async fn strangers_and_pages_of_other_sites_are_refused(on: On) {
    let workspace = on.workspace().await;
    let secret = key(&workspace, json!({})).await;
    let nobody = Agent::of_key(&workspace, "");
    let refused = nobody.exchange("initialize", initialize()).await;
    refused.refused(401, "INVALID_TOKEN");
    assert_eq!(refused.header("www-authenticate"), Some("Bearer realm=\"toolrest\""));
    let forged = Agent::of_key(&workspace, &format!("{secret}x"));
    forged.exchange("initialize", initialize()).await.refused(401, "INVALID_TOKEN");

    let other = on.workspace().await;
    let path = format!("/api/v1/workspaces/{}/mcp", other.id);
    let foreign = Agent { path, ..Agent::of_key(&workspace, &secret) };
    foreign.exchange("tools/list", json!({})).await.refused(403, "FORBIDDEN");
    let stranger = Agent { token: workspace.account.access_token.clone(), ..foreign };
    stranger.exchange("tools/list", json!({})).await.refused(403, "FORBIDDEN");

    let request = Request::new("POST", "/mcp").bearer(&secret).header("Origin", "http://evil.example");
    let request = request.header("Accept", "application/json, text/event-stream");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let page = workspace.account.client.send(request.json(&message)).await;
    assert_eq!(page.status, 403, "{page}");
    let listening = workspace.account.client.send(Request::new("GET", "/mcp").bearer(&secret)).await;
    assert_eq!(listening.status, 405, "{listening}");
}

async fn a_key_is_offered_what_its_scope_allows(on: On) {
    let workspace = on.workspace().await;
    let scope = json!({"toolsets": ["coding"], "actions": ["read"]});
    let secret = key(&workspace, scope).await;
    // Without the default toolset, a key gets the tools that it may use instead.
    let agent = Agent { path: "/mcp".to_owned(), ..Agent::of_key(&workspace, &secret) };
    assert_eq!(agent.tool_names().await, ["read", "ls", "glob"]);
    let body = agent.exchange("tools/call", json!({"name": "write", "arguments": {}})).await.success();
    assert_eq!(body["error"]["code"], -32602, "{body}");
}

async fn a_call_that_must_ask_says_that_it_waits_and_runs_once_approved(on: On) {
    let server = on.options().env("TOOLREST__POLICY__WAIT_MS", "0").start();
    let workspace = on.workspace_at(&server).await;
    workspace.write("/docs/a.md", "old\n").await;
    let rules = json!({"rules": ["ask write(docs/**)"], "approvals": "spec"});
    let set = workspace.send("PUT", "/rules", Some(&rules)).await;
    // The server of the tests has asking off, which the workspace makes stricter.
    assert_eq!(set.status, 200, "{set}");
    let agent = Agent::of_key(&workspace, &key(&workspace, json!({})).await);
    let args = json!({"filePath": "docs/a.md", "content": "new\n"});
    let waiting = agent.call("write", args.clone()).await;
    let text = text_at(&waiting, "/content/0/text");
    let id = text.strip_prefix("Waiting for approval ").and_then(|rest| rest.split(':').next()).unwrap();
    assert_eq!(workspace.text("/docs/a.md").await, "old\n");
    workspace.post(&format!("/approvals/{id}/decision"), &json!({"decision": "approve"})).await.success();
    let shown = workspace.get(&format!("/approvals/{id}?wait=20")).await.success();
    assert_eq!(shown["approval"]["state"], "done", "{shown}");
    assert_eq!(workspace.text("/docs/a.md").await, "new\n");
    // The result was not delivered yet, so the same call gets it as text.
    let done = agent.call("write", args).await;
    assert!(text_at(&done, "/content/0/text").contains("-old\n+new"), "{done}");
}

async fn a_running_call_is_cancelled_by_a_request_of_its_session(on: On) {
    let workspace = on.workspace().await;
    let mut agent = Agent::of_key(&workspace, &key(&workspace, json!({})).await);
    let begun = agent.exchange("initialize", initialize()).await;
    agent.session = begun.header("mcp-session-id").map(str::to_owned);
    let seconds = unique_seconds();
    let code = format!("sleep {seconds}");
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "run_code", "arguments": {"language": "bash", "code": code}}});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let cancelling = async {
        eventually("the program runs", LIMIT, async || runs(&seconds).then_some(())).await;
        // Another session with the same key cannot cancel it.
        let other = Agent { session: Some("another".to_owned()), ..Agent::of_key(&workspace, &agent.token) };
        assert_eq!(other.post(cancel.clone()).await.status, 202);
        assert!(runs(&seconds));
        assert_eq!(agent.post(cancel.clone()).await.status, 202);
        eventually("the program has ended", LIMIT, async || (!runs(&seconds)).then_some(())).await;
    };
    let (reply, ()) = tokio::join!(agent.post(call), cancelling);
    let body = reply.json();
    assert!(text_at(&body, "/error/message").contains("cancelled"), "{body}");
}
