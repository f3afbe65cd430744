//! The web console as a browser gets it: its page, its files, and what may be done with the cookies of a session.
//! `web/e2e` tests the console itself.

use serde_json::json;
use toolrest_testkit::Request;

use crate::on::On;

on_both_databases![
    every_page_of_the_console_is_served_with_a_strict_policy,
    wrong_paths_are_errors_and_not_the_page,
    files_of_a_workspace_are_sent_with_a_sandbox,
    a_change_with_cookies_from_a_browser_needs_a_header,
];

fn get(path: &str) -> Request {
    Request::new("GET", path)
}

async fn every_page_of_the_console_is_served_with_a_strict_policy(on: On) {
    let client = on.shared().client();
    for path in
        ["/", "/login", "/register", "/welcome", "/workspaces", "/w/01a1/activity?outcome=ok&call=x", "/w/x/files/a/b"]
    {
        let page = client.send(get(path)).await;
        assert_eq!(page.status, 200, "{path}: {page}");
        assert!(page.header("content-type").unwrap().starts_with("text/html"), "{path}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe-"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(page.header("cache-control"), Some("no-store"));
    }
    let page = client.send(get("/")).await;
    let Some((_, rest)) = page.text.split_once("src=\"/assets/") else {
        assert!(page.text.contains("make console"), "the page says how to build the console: {page}");
        return;
    };
    let script = format!("/assets/{}", rest.split('"').next().unwrap());
    for (accepted, encoding) in [("br, gzip", Some("br")), ("gzip", Some("gzip")), ("identity", None)] {
        let request = get(&script).header("Host", client.address()).header("Accept-Encoding", accepted);
        // Compressed bodies are no text.
        let file = client.exchange_bytes(&request.to_bytes()).await.unwrap();
        let header =
            |wanted: &str| file.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        assert_eq!(file.status, 200, "{script}");
        assert_eq!(header("content-type"), Some("text/javascript; charset=utf-8"));
        assert_eq!(header("content-encoding"), encoding);
        assert!(header("cache-control").unwrap().contains("immutable"));
        assert!(!file.body.is_empty());
    }
}

async fn wrong_paths_are_errors_and_not_the_page(on: On) {
    let client = on.shared().client();
    for path in
        ["/api/v1/nothing", "/api/none", "/assets/none.js", "/assets/../index.html", "/w", "/favicon.ico", "/console"]
    {
        client.send(get(path)).await.refused(404, "NOT_FOUND");
    }
    let posted = client.send(Request::new("POST", "/login").json(&json!({}))).await;
    assert_eq!(posted.status, 405, "{posted}");
}

async fn files_of_a_workspace_are_sent_with_a_sandbox(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/page.html", "<script>alert(1)</script>").await;
    let file = workspace.get("/content/page.html").await;
    assert_eq!(file.status, 200, "{file}");
    assert!(file.header("content-security-policy").unwrap().contains("sandbox"));
    assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(file.header("content-type"), Some("application/octet-stream"));
}

async fn a_change_with_cookies_from_a_browser_needs_a_header(on: On) {
    let server = on.shared();
    let account = on.account().await;
    let cookie = format!("access_token={}", account.access_token);
    let own = server.url();
    let create = || {
        let request = Request::new("POST", "/api/v1/workspaces").header("Host", server.address());
        request.header("Cookie", &cookie).json(&json!({"name": "by cookie"}))
    };
    let client = server.client();
    let refused = client.send(create().header("Origin", &own)).await.refused(403, "FORBIDDEN");
    assert!(refused["error"].as_str().unwrap().contains("X-Requested-With"), "{refused}");
    client.send(create().header("Sec-Fetch-Site", "none")).await.refused(403, "FORBIDDEN");
    let foreign = create().header("Origin", "https://evil.example").header("X-Requested-With", "toolrest");
    client.send(foreign).await.refused(403, "FORBIDDEN");
    client.send(create().header("Origin", &own).header("X-Requested-With", "toolrest")).await.success();
    // Programs have no origin, and specification 000 lets them use the cookie.
    client.send(create()).await.success();
    // Reading needs no header, and neither does a token that the page sends itself.
    let me = Request::new("GET", "/api/v1/auth/me").header("Host", server.address()).header("Origin", &own);
    client.send(me.header("Cookie", &cookie)).await.success();
    let by_token = create().header("Origin", &own).bearer(&account.access_token);
    client.send(by_token).await.success();
}
