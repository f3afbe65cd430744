//! The listener of specification 003.

use serde_json::{Value, json};
use std::{fs, time::Duration};
use toolrest_testkit::{Account, Client, Port, Reply, Request, Server, ServerOptions, eventually, unique_email};

use crate::on::{On, list_at, text_at};
use crate::specifications::TOOL_BACKEND_EXAMPLES;

const LISTEN: &str = "TOOLREST__TOOL_BACKEND__LISTEN";

/// Returns options for a server with the listener at a free port.
fn options() -> ServerOptions {
    On::Sqlite.options().env(LISTEN, "127.0.0.1:0")
}

fn call(tool: &str, args: &Value) -> Request {
    Request::new("POST", "/execute-tool").json(&json!({"tool": tool, "args": args, "correlationId": "c-1"}))
}

async fn ok(client: &Client, tool: &str, args: Value) -> Value {
    client.send(call(tool, &args)).await.success()["result"].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_run_at_the_listener_without_a_token() {
    let folder = On::Sqlite.shared().new_folder();
    let server = options()
        .env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap())
        .env("TOOLREST__GITHUB__TOKEN", crate::github_host::TOKEN)
        .start();
    for fixture in TOOL_BACKEND_EXAMPLES.fixtures {
        TOOL_BACKEND_EXAMPLES.run_at_tool_backend(&server.tool_backend(), &folder, fixture).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_the_catalogue_are_as_specified() {
    let server = options().start();
    let client = server.tool_backend();
    let health = client.send(Request::new("GET", "/health").header("X-Correlation-ID", "h-1")).await;
    assert_eq!(health.header("x-correlation-id"), Some("h-1"), "{health}");
    let health = health.success();
    assert_eq!((&health["status"], &health["service"]), (&json!("ok"), &json!("tool-backend")));
    assert!(crate::fixture::fits("$timestamp", text_at(&health, "/timestamp")), "{health}");
    assert_eq!(health.as_object().unwrap().len(), 3, "{health}");
    let catalogue = client.send(Request::new("GET", "/tools")).await.success();
    let tools = list_at(&catalogue, "/tools");
    for tool in tools {
        for schema in ["requestSchema", "responseSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
            assert!(tool[schema]["properties"].is_object(), "{tool}");
        }
        assert!(!text_at(tool, "/description").is_empty(), "{tool}");
    }
    let read = tools.iter().find(|tool| tool["name"] == "readFile").unwrap();
    assert_eq!(read["requestSchema"]["required"], json!(["path"]));
    assert_eq!(read["responseSchema"]["required"], json!(["content"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_echoes_the_correlation_id_in_body_and_header() {
    let server = options().env("TOOLREST__LIMITS__BODY_BYTES", "2000").start();
    let client = server.tool_backend();
    let post = |body: &str| Request::new("POST", "/execute-tool").header("Content-Type", "application/json").body(body);
    let tool = |tool: &str, args: Value| post(&json!({"tool": tool, "args": args}).to_string());
    let long = "x".repeat(3_000);
    let table: [(u16, &str, Request); 11] = [
        (200, "", tool("listFiles", json!({"path": "."}))),
        (400, "INVALID_ARGUMENT", tool("readFile", json!({}))),
        (400, "INVALID_ARGUMENT", post("{")),
        (401, "AUTH_REQUIRED", tool("listFiles", json!({"path": "."})).bearer("not a token")),
        (401, "AUTH_REQUIRED", tool("listFiles", json!({"path": "."})).header("Authorization", "Basic YTpi")),
        (404, "FILE_NOT_FOUND", tool("readFile", json!({"path": "none"}))),
        (404, "UNKNOWN_TOOL", tool("nothing", json!({}))),
        (404, "NOT_FOUND", Request::new("GET", "/nothing")),
        (405, "INVALID_ARGUMENT", Request::new("GET", "/execute-tool")),
        (413, "INVALID_ARGUMENT", tool("writeFile", json!({"path": "a", "content": long}))),
        (
            415,
            "INVALID_ARGUMENT",
            Request::new("POST", "/execute-tool").header("Content-Type", "text/plain").body("{}"),
        ),
    ];
    for (status, code, request) in table {
        let reply = client.send(request.header("X-Correlation-ID", "echo me")).await;
        assert_eq!(reply.status, status, "{reply}");
        let body = reply.json();
        assert_eq!(text_at(&body, "/correlationId"), "echo me", "{reply}");
        assert_eq!(reply.header("x-correlation-id"), Some("echo me"), "{reply}");
        if status != 200 {
            assert_eq!(text_at(&body, "/error/code"), code, "{reply}");
            assert!(
                body["error"]["retryable"].is_boolean() && !text_at(&body, "/error/remediation").is_empty(),
                "{reply}"
            );
        }
    }
    // From the body alone, for an error that is found after it was read.
    let reply = client.send(call("readFile", &json!({"path": "none"}))).await;
    assert_eq!((reply.status, reply.header("x-correlation-id")), (404, Some("c-1")), "{reply}");
    // None can be read: one is made up.
    let reply = client.send(post("{")).await;
    assert_eq!(reply.header("x-correlation-id"), Some(text_at(&reply.json(), "/correlationId")), "{reply}");
    let reply = client.send(tool("listFiles", json!({"path": "."}))).await;
    assert!(text_at(&reply.json(), "/error/message").starts_with("Missing required field: correlationId"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reached_limit_echoes_the_correlation_id() {
    let server = options().env("TOOLREST__QUOTAS__BYTES_PER_WORKSPACE", "1").start();
    let reply = server.tool_backend().send(call("writeFile", &json!({"path": "a", "content": "text"}))).await;
    assert_eq!((reply.status, text_at(&reply.json(), "/correlationId")), (429, "c-1"), "{reply}");
    assert_eq!(reply.header("x-correlation-id"), Some("c-1"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_page_cannot_drive_the_listener() {
    let listed = "https://console.example.com";
    let server = options()
        .env("TOOLREST__SERVER__ALLOWED_HOSTS", "tools.example.com")
        .env("TOOLREST__SERVER__ALLOWED_ORIGINS", listed)
        .start();
    let client = server.tool_backend();
    let write = || call("writeFile", &json!({"path": "a.txt", "content": "x"}));
    for host in
        ["evil.example", "evil.example:3001", "localhost.evil.example", "10.1.2.3", "0.0.0.0", "tools.example.com"]
    {
        for request in [write(), Request::new("GET", "/tools"), Request::new("GET", "/health")] {
            let reply = client.send(request.header("Host", host)).await;
            assert_eq!((reply.status, text_at(&reply.json(), "/error/code")), (403, "FORBIDDEN"), "{host}: {reply}");
        }
    }
    for origin in ["https://evil.example", "http://localhost:1", "null", "file://"] {
        let reply = client.send(write().header("Origin", origin)).await;
        assert_eq!((reply.status, text_at(&reply.json(), "/error/code")), (403, "FORBIDDEN"), "{origin}: {reply}");
        let ask = Request::new("OPTIONS", "/execute-tool").header("Access-Control-Request-Method", "POST");
        let reply = client.send(ask.header("Origin", origin)).await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None), "{origin}: {reply}");
    }
    let files = ok(&client, "listFiles", json!({"path": "."})).await;
    assert_eq!(files, json!({"files": []}), "nothing was written");
    let ask = Request::new("OPTIONS", "/execute-tool").header("Access-Control-Request-Method", "POST");
    let reply = client.send(ask.header("Origin", listed)).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, Some(listed)), "{reply}");
    let reply = client.send(write().header("Origin", listed).header("Host", "localhost:3001")).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some(listed)), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cookie_is_no_token_and_a_wrong_token_is_not_ignored() {
    let server = options().env("TOOLREST__TOOL_BACKEND__REQUIRE_TOKEN", "true").start();
    let account = Account::register(&server.client(), &unique_email("cookie")).await;
    let list = || call("listFiles", &json!({"path": "."}));
    let send = async |request: Request| -> Reply { server.tool_backend().send(request).await };
    for request in
        [list(), list().bearer("wrong"), list().header("Cookie", &format!("access_token={}", account.access_token))]
    {
        let reply = send(request).await;
        assert_eq!((reply.status, text_at(&reply.json(), "/error/code")), (401, "AUTH_REQUIRED"), "{reply}");
    }
    // A valid token of somebody who is no member of the workspace.
    let reply = send(list().bearer(&account.access_token)).await;
    assert_eq!((reply.status, text_at(&reply.json(), "/error/code")), (403, "FORBIDDEN"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_of_the_served_folder_works_where_tokens_are_required() {
    let folder = On::Sqlite.shared().new_folder();
    fs::write(folder.join("a.txt"), "text").unwrap();
    let server = options()
        .env("TOOLREST__TOOL_BACKEND__REQUIRE_TOKEN", "true")
        .env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap())
        .start();
    let key = eventually("the key is printed", Duration::from_secs(10), async || {
        let output = server.output();
        let at = output.find("trk_")?;
        output[at..].split_whitespace().next().map(str::to_owned)
    })
    .await;
    let reply = server.tool_backend().send(call("readFile", &json!({"path": "a.txt"})).bearer(&key)).await;
    assert_eq!(text_at(&reply.success(), "/result/content"), "text");
}

#[test]
fn an_address_that_others_reach_is_refused_without_tokens() {
    let refused = On::Sqlite.options().env(LISTEN, "0.0.0.0:0").try_start();
    let failure = refused.err().expect("the server does not start");
    assert!(failure.output.contains("--require-token"), "{failure:?}");
    On::Sqlite.options().env(LISTEN, "0.0.0.0:0").env("TOOLREST__TOOL_BACKEND__REQUIRE_TOKEN", "true").start();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_an_error_only_if_it_was_asked_for() {
    let taken = options().start();
    let address = taken.tool_backend();
    let refused = On::Sqlite.options().env(LISTEN, address.address()).try_start();
    let failure = refused.err().expect("the server does not start");
    assert!(failure.output.contains("--tool-backend-listen"), "{failure:?}");
    // Whoever has the usual port, both servers start.
    let servers: [Server; 2] = [(); 2].map(|()| On::Sqlite.options().env(LISTEN, "auto").start());
    for server in &servers {
        server.client().send(Request::new("GET", "/health")).await.success();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_memories_stay_after_a_restart() {
    let mut server = options().start();
    let client = server.tool_backend();
    ok(&client, "writeFile", json!({"path": "a.txt", "content": "kept"})).await;
    ok(&client, "memory_save", json!({"key": "k", "value": "kept too"})).await;
    server.restart(Port::New);
    let client = server.tool_backend();
    assert_eq!(ok(&client, "readFile", json!({"path": "a.txt"})).await["content"], "kept");
    assert_eq!(ok(&client, "memory_retrieve", json!({"key": "k"})).await["items"][0]["value"], "kept too");
    let entry = ok(&client, "memory_list", json!({})).await["items"][0].take();
    assert!(entry["keyId"].is_string(), "a call without a token is an agent's: {entry}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_prefixes_of_the_published_client_are_accepted() {
    let server = options().start();
    let client = server.tool_backend();
    ok(&client, "daytona_writeFile", json!({"path": "a.txt", "content": "x"})).await;
    assert_eq!(ok(&client, "codesandbox_readFile", json!({"path": "a.txt"})).await["content"], "x");
    let reply = client.send(call("daytona_daytona_readFile", &json!({"path": "a.txt"}))).await;
    assert_eq!((reply.status, text_at(&reply.json(), "/error/code")), (404, "UNKNOWN_TOOL"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_a_token_asks_like_that_of_an_agent() {
    let server =
        options().env("TOOLREST__POLICY__APPROVALS", "spec").env("TOOLREST__POLICY__RULES", "ask write(**)").start();
    let write = call("writeFile", &json!({"path": "a.txt", "content": "x"})).header("Prefer", "wait=0");
    let reply = server.tool_backend().send(write).await;
    assert_eq!((reply.status, text_at(&reply.json(), "/error/code")), (202, "APPROVAL_REQUIRED"), "{reply}");
    assert_eq!(text_at(&reply.json(), "/correlationId"), "c-1");
}
