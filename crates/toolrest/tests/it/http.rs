//! The HTTP interface: formats of answers, invalid bodies, limits, and the catalogue.

use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use toolrest_testkit::{Request, Workspace, eventually};

use crate::on::{On, list_at, text_at};

/// One byte more than the 32 MB that a body may have by default.
const TOO_LONG: usize = 32 * 1024 * 1024 + 1;

on_both_databases![
    the_server_is_alive_and_ready,
    a_body_that_is_no_json_is_refused_in_shape,
    a_call_without_tool_or_args_is_refused_in_shape,
    a_wrong_content_type_is_refused_in_shape,
    a_content_type_with_a_charset_is_accepted,
    an_over_long_body_is_refused_in_shape,
    a_large_body_within_the_limit_is_accepted,
    deeply_nested_json_is_refused,
    an_unknown_route_answers_in_shape,
    a_wrong_method_answers_in_shape,
    all_routes_check_bodies_in_the_same_way,
    the_toolset_route_is_the_tools_route,
    an_unknown_toolset_is_not_found,
    an_unknown_query_parameter_is_refused_with_the_nearest_name,
    the_catalogue_lists_every_tool_in_every_format,
    names_for_models_have_no_dots_and_every_route_takes_both_spellings,
    a_request_cut_off_midway_does_no_harm,
    a_slow_request_does_not_hold_up_others,
];

async fn send(workspace: &Workspace, content_type: Option<&str>, body: impl Into<Vec<u8>>) -> toolrest_testkit::Reply {
    let path = format!("/api/v1/workspaces/{}/tools", workspace.id);
    let mut request = Request::new("POST", &path).bearer(&workspace.account.access_token);
    if let Some(content_type) = content_type {
        request = request.header("Content-Type", content_type);
    }
    workspace.account.client.send(request.body(body)).await
}

async fn the_server_is_alive_and_ready(on: On) {
    let client = on.shared().client();
    let health = client.send(Request::new("GET", "/health")).await;
    assert_eq!(health.success()["status"], "ok");
    client.send(Request::new("GET", "/ready")).await.success();
}

async fn a_body_that_is_no_json_is_refused_in_shape(on: On) {
    let workspace = on.workspace().await;
    for body in [
        b"".as_slice(),
        b"not json",
        b"{\"tool\": \"ls\", \"args\": {}",
        b"{\"tool\": \"ls\", \"args\": {}} trailing",
        b"{'tool': 'ls', 'args': {}}",
        b"{\"tool\": \"ls\", \"args\": {\"path\": \"\xff\xfe\"}}",
        b"\0",
        b"{\"tool\": \"ls\", \"args\": {\"path\": \"\\ud800\"}}",
    ] {
        let reply = send(&workspace, Some("application/json"), body).await;
        reply.refused(400, "VALIDATION_ERROR");
    }
}

async fn a_call_without_tool_or_args_is_refused_in_shape(on: On) {
    let workspace = on.workspace().await;
    for (body, missing) in [
        (json!({"args": {}}), "tool"),
        (json!({"tool": "ls"}), "args"),
        (json!({}), "tool"),
        (json!({"tool": 5, "args": {}}), "tool"),
        (json!({"tool": "ls", "args": []}), "args"),
        (json!({"tool": "ls", "args": "path"}), "args"),
        (json!({"tool": "ls", "args": null}), "args"),
    ] {
        let reply = workspace.post("/tools", &body).await;
        reply.refused(400, "VALIDATION_ERROR");
        assert!(reply.text.contains(missing), "{missing}: {reply}");
    }
    for body in [json!([]), json!("ls"), json!(null), json!(1)] {
        let reply = workspace.post("/tools", &body).await;
        reply.refused(400, "VALIDATION_ERROR");
    }
}

async fn a_wrong_content_type_is_refused_in_shape(on: On) {
    let workspace = on.workspace().await;
    let body = json!({"tool": "ls", "args": {}}).to_string();
    for content_type in [Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonp"), None]
    {
        let reply = send(&workspace, content_type, body.clone()).await;
        assert_eq!(reply.status, 415, "{content_type:?}: {reply}");
        reply.error_shape();
    }
}

async fn a_content_type_with_a_charset_is_accepted(on: On) {
    let workspace = on.workspace().await;
    let body = json!({"tool": "ls", "args": {}}).to_string();
    for content_type in ["application/json; charset=utf-8", "Application/JSON"] {
        send(&workspace, Some(content_type), body.clone()).await.result();
    }
}

async fn an_over_long_body_is_refused_in_shape(on: On) {
    let workspace = on.workspace().await;
    let body = vec![b' '; TOO_LONG];
    let reply = send(&workspace, Some("application/json"), body.clone()).await;
    reply.refused(413, "PAYLOAD_TOO_LARGE");
    let path = format!("/api/v1/workspaces/{}/tools", workspace.id);
    let request = Request::new("POST", &path)
        .bearer(&workspace.account.access_token)
        .header("Content-Type", "application/json")
        .body(body)
        .chunked();
    let reply = workspace.account.client.send(request).await;
    reply.refused(413, "PAYLOAD_TOO_LARGE");
}

async fn a_large_body_within_the_limit_is_accepted(on: On) {
    let workspace = on.workspace().await;
    let text = "x".repeat(TOO_LONG - 1024);
    workspace.write("/large.txt", &text).await;
    let path = format!("/api/v1/workspaces/{}/tools", workspace.id);
    let call = json!({"tool": "write", "args": {"path": "/chunked.txt", "content": "in chunks"}});
    let request = Request::new("POST", &path).bearer(&workspace.account.access_token).json(&call).chunked();
    workspace.account.client.send(request).await.result();
    assert_eq!(workspace.text("/chunked.txt").await, "in chunks");
}

async fn deeply_nested_json_is_refused(on: On) {
    let workspace = on.workspace().await;
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for body in [
        format!(r#"{{"tool":"ls","args":{deep}}}"#),
        format!(r#"{{"tool":"write","args":{{"path":"/a","content":{{"a":{deep}}},"file_type":"canvas"}}}}"#),
    ] {
        let reply = workspace.call_text(&body).await;
        reply.refused(400, "VALIDATION_ERROR");
    }
    workspace.ok("ls", json!({})).await;
}

async fn an_unknown_route_answers_in_shape(on: On) {
    let workspace = on.workspace().await;
    workspace.account.get("/no/such/route").await.refused(404, "NOT_FOUND");
    workspace.get("/no-such-thing").await.refused(404, "NOT_FOUND");
}

async fn a_wrong_method_answers_in_shape(on: On) {
    let workspace = on.workspace().await;
    for (method, path) in [("GET", "/tools"), ("DELETE", "/commits"), ("PUT", "")] {
        let reply = workspace.send(method, path, None).await;
        reply.error_shape();
        assert!([404, 405].contains(&reply.status), "{reply}");
    }
}

async fn all_routes_check_bodies_in_the_same_way(on: On) {
    let account = on.account().await;
    for path in ["/api/v1/auth/register", "/api/v1/auth/login", "/api/v1/workspaces"] {
        let request = || Request::new("POST", path).bearer(&account.access_token);
        let reply = account.client.send(request().header("Content-Type", "application/json").body("{")).await;
        reply.refused(400, "VALIDATION_ERROR");
        let reply = account.client.send(request().header("Content-Type", "text/plain").body("{}")).await;
        assert_eq!(reply.status, 415, "{reply}");
        reply.error_shape();
        let reply = account.client.send(request().json(&json!({}))).await;
        reply.refused(400, "VALIDATION_ERROR");
    }
}

async fn the_toolset_route_is_the_tools_route(on: On) {
    let workspace = on.workspace().await;
    let call = json!({"tool": "write", "args": {"path": "/a.txt", "content": "text"}});
    let written = workspace.post("/toolsets/workspace", &call).await.result();
    let read = workspace.read("/a.txt").await;
    assert_eq!(read["hash"], written["hash"]);
    let call = json!({"tool": "read", "args": {"path": "/a.txt"}});
    let again = workspace.post("/toolsets/workspace", &call).await.result();
    assert_eq!(again, read);
    let call = json!({"tool": "nothing", "args": {}});
    let refused = workspace.post("/toolsets/workspace", &call).await;
    let refused = refused.refused(404, "NOT_FOUND");
    assert_eq!(refused["error"], "Tool 'nothing' not found");
}

async fn an_unknown_query_parameter_is_refused_with_the_nearest_name(on: On) {
    let workspace = on.workspace().await;
    for (path, nearest) in [("/trash?limt=1", "limit"), ("/commits?befor=1", "before"), ("/calls?Limit=1", "limit")] {
        let refusal = workspace.get(path).await.refused(400, "VALIDATION_ERROR");
        assert!(text_at(&refusal, "/error").contains(&format!("did you mean `{nearest}`")), "{path}: {refusal}");
    }
    for path in ["?verbose=1", "/members?limit=3", "/content/a.txt?download", "/events?since=3"] {
        workspace.get(path).await.refused(400, "VALIDATION_ERROR");
    }
    let call = json!({"tool": "read_file", "args": {"path": "a"}});
    let refused = workspace.post("/toolsets/system?verbose=1", &call).await;
    assert_eq!((refused.status, &refused.json()["ok"]), (400, &json!(false)), "in the toolset's shape: {refused}");
    workspace.account.get("/toolsets/file?fromat=mcp").await.refused(400, "VALIDATION_ERROR");
    workspace.get("/trash?limit=1&limit=2").await.refused(400, "VALIDATION_ERROR");
    workspace.get("/trash?limit=1").await.success();
}

async fn an_unknown_toolset_is_not_found(on: On) {
    let workspace = on.workspace().await;
    let call = json!({"tool": "ls", "args": {}});
    let reply = workspace.post("/toolsets/nothing", &call).await;
    assert_eq!(reply.status, 404, "{reply}");
    let reply = workspace.account.get("/toolsets/nothing").await;
    assert_eq!(reply.status, 404, "{reply}");
}

async fn the_catalogue_lists_every_tool_in_every_format(on: On) {
    let account = on.account().await;
    let tools = ["ls", "read", "write", "rm", "mv", "touch", "mkdir", "edit", "edit-many"];
    for query in ["", "?format=native", "?format=openai", "?format=anthropic", "?format=mcp"] {
        let reply = account.get(&format!("/toolsets/workspace{query}")).await;
        reply.success();
        for tool in tools {
            assert!(reply.text.contains(&format!("\"{tool}\"")), "{tool} is not in {reply}");
        }
        assert!(reply.text.contains("last_read_hash"), "{reply}");
    }
    let reply = account.get("/toolsets/workspace?format=morse").await;
    reply.refused(400, "VALIDATION_ERROR");
}

async fn names_for_models_have_no_dots_and_every_route_takes_both_spellings(on: On) {
    let workspace = on.workspace().await;
    let names = |catalogue: &Value, at: &str| -> Vec<String> {
        let tools = catalogue["tools"].as_array().expect("tools").iter();
        tools.map(|tool| tool.pointer(at).and_then(Value::as_str).expect("a name").to_owned()).collect()
    };
    let native = workspace.account.get("/toolsets/file").await.success();
    assert_eq!(names(&native, "/name")[0], "file.read");
    for (format, at) in [("openai", "/function/name"), ("anthropic", "/name"), ("mcp", "/name")] {
        let catalogue = workspace.account.get(&format!("/toolsets/file?format={format}")).await.success();
        let offered = names(&catalogue, at);
        assert_eq!(offered[0], "file_read", "{format}");
        let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        assert!(offered.iter().all(is_plain), "{format}: {offered:?}");
    }
    workspace.call_of("file", "file_write", &json!({"path": "a.txt", "content": "one"})).await.success();
    for spelling in ["file.read", "file_read"] {
        let read = workspace.call_of("file", spelling, &json!({"path": "a.txt"})).await.success();
        assert!(read["content"].as_str().is_some_and(|text| text.ends_with("one")), "{read}");
    }
    eventually("the calls are recorded under the tool's own name", Duration::from_secs(10), async || {
        let calls = workspace.get("/calls").await.success();
        let recorded = |name: &str| list_at(&calls, "/calls").iter().filter(|call| call["tool"] == name).count();
        (recorded("file.read") == 2 && recorded("file.write") == 1).then_some(())
    })
    .await;
}

async fn a_request_cut_off_midway_does_no_harm(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "whole").await;
    let call = json!({"tool": "write", "args": {"path": "/a.txt", "content": "x".repeat(100_000)}});
    let bytes = Request::new("POST", &format!("/api/v1/workspaces/{}/tools", workspace.id))
        .bearer(&workspace.account.access_token)
        .json(&call)
        .to_bytes();
    for cut in [10, 100, bytes.len() / 2, bytes.len() - 1] {
        for _ in 0..10 {
            let mut stream = TcpStream::connect(on.shared().address()).await.unwrap();
            stream.write_all(&bytes[..cut]).await.unwrap();
        }
    }
    assert_eq!(workspace.text("/a.txt").await, "whole");
    // Sent whole, the answer not waited for: done or not done, and the server well.
    for _ in 0..20 {
        let mut stream = TcpStream::connect(on.shared().address()).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
    }
    workspace.write("/b.txt", "well").await;
    let read = workspace.text("/a.txt").await;
    assert!(read == "whole" || read == "x".repeat(100_000));
    let listing = workspace.ok("ls", json!({})).await;
    let names: Vec<_> = list_at(&listing, "/entries").iter().map(|entry| text_at(entry, "/name")).collect();
    assert_eq!(names, ["a.txt", "b.txt"]);
}

async fn a_slow_request_does_not_hold_up_others(on: On) {
    let workspace = on.workspace().await;
    let bytes = Request::new("POST", &format!("/api/v1/workspaces/{}/tools", workspace.id))
        .bearer(&workspace.account.access_token)
        .json(&json!({"tool": "ls", "args": {}}))
        .to_bytes();
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(on.shared().address()).await.unwrap();
        stream.write_all(&bytes[..bytes.len() - 1]).await.unwrap();
        slow.push(stream);
    }
    for _ in 0..20 {
        workspace.ok("ls", json!({})).await;
    }
}
