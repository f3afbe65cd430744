//! Requests that name another host or come from another site's page.

use serde_json::json;
use toolrest_testkit::{Reply, Request};

use crate::on::On;

on_both_databases![
    a_foreign_host_is_refused_on_loopback,
    a_page_of_another_site_is_refused,
    a_refused_host_is_answered_in_the_shape_of_the_toolset,
    listed_hosts_and_origins_pass,
];

async fn send(on: On, headers: &[(&str, &str)], request: Request) -> Reply {
    let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    on.shared().client().send(request).await
}

fn get(path: &str) -> Request {
    Request::new("GET", path)
}

async fn a_foreign_host_is_refused_on_loopback(on: On) {
    for host in ["evil.example", "evil.example:3000", "localhost.evil.example", "10.1.2.3", "0.0.0.0"] {
        for path in ["/health", "/ready", "/api/v1/toolsets", "/api/v1/nothing"] {
            let refusal = send(on, &[("Host", host)], get(path)).await.refused(403, "FORBIDDEN");
            assert!(refusal["error"].as_str().unwrap().contains("server.allowed_hosts"), "{refusal}");
        }
    }
    for host in ["localhost", "localhost:1234", "127.0.0.1:80", "[::1]:80"] {
        send(on, &[("Host", host)], get("/health")).await.success();
    }
    // The token of a member does not help a page that was rebound.
    let workspace = on.workspace().await;
    let call = Request::new("POST", &format!("/api/v1/workspaces/{}/tools", workspace.id))
        .bearer(&workspace.account.access_token)
        .json(&json!({"tool": "ls", "args": {}}));
    send(on, &[("Host", "evil.example")], call).await.refused(403, "FORBIDDEN");
}

async fn a_page_of_another_site_is_refused(on: On) {
    for origin in ["https://evil.example", "http://localhost:1", "null", "file://"] {
        let refusal = send(on, &[("Origin", origin)], get("/health")).await.refused(403, "FORBIDDEN");
        assert!(refusal["error"].as_str().unwrap().contains("server.allowed_origins"), "{refusal}");
        let register = json!({"email": "a@example.com", "password": "password 1", "confirm_password": "password 1"});
        let request = Request::new("POST", "/api/v1/auth/register").json(&register);
        send(on, &[("Origin", origin)], request).await.refused(403, "FORBIDDEN");
        let ask = Request::new("OPTIONS", "/api/v1/auth/register").header("Access-Control-Request-Method", "POST");
        let refused = send(on, &[("Origin", origin)], ask).await;
        refused.refused(403, "FORBIDDEN");
        assert_eq!(refused.header("access-control-allow-origin"), None);
    }
    let own = on.shared().url();
    send(on, &[("Host", on.shared().address()), ("Origin", &own)], get("/health")).await.success();
}

async fn a_refused_host_is_answered_in_the_shape_of_the_toolset(on: On) {
    let call = |toolset: &str| {
        let path = format!("/api/v1/workspaces/{}/toolsets/{toolset}", "00000000-0000-0000-0000-000000000000");
        let body = json!({"tool": "x", "args": {}});
        send(on, &[("Host", "evil.example"), ("X-Correlation-Id", "mine")], Request::new("POST", &path).json(&body))
    };
    let system = call("system").await;
    assert_eq!((system.status, &system.json()["ok"]), (403, &json!(false)), "{system}");
    assert_eq!(system.header("x-correlation-id"), Some("mine"), "{system}");
    let file = call("file").await;
    assert!(file.status == 403 && file.json()["message"].is_string(), "{file}");
    let backend = call("backend").await;
    assert_eq!((backend.status, &backend.json()["correlationId"]), (403, &json!("mine")), "{backend}");
    call("workspace").await.refused(403, "FORBIDDEN");
}

async fn listed_hosts_and_origins_pass(on: On) {
    let server = on
        .options()
        .env("TOOLREST__SERVER__ALLOWED_HOSTS", "tools.example.com,*.example.org")
        .env("TOOLREST__SERVER__ALLOWED_ORIGINS", "https://console.example.com")
        .start();
    let client = server.client();
    for host in ["tools.example.com", "Tools.Example.com:8443", "a.example.org"] {
        client.send(get("/health").header("Host", host)).await.success();
    }
    client.send(get("/health").header("Host", "other.example.com")).await.refused(403, "FORBIDDEN");
    let origin = "https://console.example.com";
    let reply = client.send(get("/health").header("Origin", origin)).await;
    reply.success();
    assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
    let ask = Request::new("OPTIONS", "/api/v1/auth/login").header("Access-Control-Request-Method", "POST");
    let reply = client.send(ask.header("Origin", origin)).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, Some(origin)));
    assert!(reply.header("access-control-allow-headers").unwrap().contains("authorization"), "{reply}");
    client.send(get("/health").header("Origin", "https://other.example.com")).await.refused(403, "FORBIDDEN");
}
