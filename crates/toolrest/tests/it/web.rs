//! `web_fetch`, `web_search` and `browse_web`, against a host that plays the web.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolrest_testkit::{Request, Workspace};

use crate::on::{On, list_at, text_at};
use crate::toolset::{BACKEND, SYSTEM};
use crate::web_host::{WEB_ADDRESS, WebHost};

on_every_backend![
    a_page_is_fetched,
    redirects_are_followed_without_credentials,
    bad_requests_are_refused,
    bad_answers_end_within_the_limits,
    hostile_addresses_are_not_reached,
    the_web_is_searched,
    a_page_is_read_for_a_task,
    strangers_reach_nothing,
];

fn web(path: &str) -> String {
    format!("{}{path}", WebHost::web().url())
}

async fn fetch(workspace: &Workspace, path: &str) -> Value {
    SYSTEM.ok(workspace, "web_fetch", json!({"url": web(path)})).await
}

async fn refused(workspace: &Workspace, status: u16, code: &str, args: Value) -> String {
    SYSTEM.refused(workspace, status, code, "web_fetch", args).await
}

async fn a_page_is_fetched(on: On) {
    let workspace = on.workspace().await;
    let page = fetch(&workspace, "/text").await;
    assert_eq!((&page["status"], &page["body"]), (&json!(200), &json!("plain text\n")));
    assert_eq!(page["headers"]["content-type"], "text/plain");
    assert_eq!(fetch(&workspace, "/latin").await["body"], "grüße");
    let compressed = fetch(&workspace, "/gzip").await;
    assert_eq!(compressed["body"], "was compressed");
    assert!(compressed["headers"].get("content-encoding").is_none(), "{compressed}");
    let image = fetch(&workspace, "/image").await;
    assert_eq!((&image["body"], &image["bodyFormat"]), (&json!("iVBORw0KGgo="), &json!("base64")));
    let missing = fetch(&workspace, "/missing").await;
    assert_eq!(missing["status"], 404);
    let article = json!({"url": web("/article"), "format": "markdown"});
    let article = SYSTEM.ok(&workspace, "web_fetch", article).await;
    let text = text_at(&article, "/body");
    assert!(text.contains("# Tool rests\n") && !text.contains("track()"), "{text}");
    assert_eq!(article["bodyFormat"], "markdown");
    let headers = json!({"Authorization": "Bearer x", "X-Api-Key": "k"});
    let called = json!({"tool": "web_fetch", "args": {"url": web("/echo")}});
    let path = format!("/api/v1/workspaces/{}/toolsets/system", workspace.id);
    let called = Request::new("POST", &path).bearer(&workspace.account.access_token).json(&called);
    let called = workspace.account.client.send(called.header("X-Correlation-ID", "echo me")).await.success();
    let echo: Value = serde_json::from_str(text_at(&called, "/value/body")).unwrap();
    assert_eq!(echo["fields"]["x-correlation-id"], "echo me");
    let posted = json!({"url": web("/echo?q=1#part"), "method": "POST", "headers": headers, "body": "{\"a\": 1}"});
    let posted = SYSTEM.ok(&workspace, "web_fetch", posted).await;
    let echo: Value = serde_json::from_str(text_at(&posted, "/body")).unwrap();
    assert_eq!(
        (&echo["method"], &echo["target"], &echo["body"]),
        (&json!("POST"), &json!("/echo?q=1"), &json!("{\"a\": 1}"))
    );
    assert_eq!(echo["fields"]["content-type"], "application/json");
    assert_eq!((&echo["fields"]["authorization"], &echo["fields"]["x-api-key"]), (&json!("Bearer x"), &json!("k")));
    assert!(text_at(&echo, "/fields/user-agent").starts_with("Toolrest/"), "{echo}");
}

async fn redirects_are_followed_without_credentials(on: On) {
    let workspace = on.workspace().await;
    let secrets = json!({"Authorization": "Bearer x", "Cookie": "a=b", "X-Api-Key": "k", "Accept": "text/x"});
    let get = async |url: String| {
        let page = SYSTEM.ok(&workspace, "web_fetch", json!({"url": url, "headers": secrets})).await;
        let echo: Value = serde_json::from_str(text_at(&page, "/body")).unwrap();
        (page, echo["fields"].clone())
    };
    let (page, fields) = get(web("/redirect?to=/echo")).await;
    assert_eq!(page["redirectedTo"], web("/echo"));
    assert_eq!((&fields["authorization"], &fields["cookie"]), (&json!("Bearer x"), &json!("a=b")));
    let other = WebHost::start(WEB_ADDRESS, crate::web_pages::answer);
    let (page, fields) = get(web(&format!("/redirect?to={}/echo", other.url()))).await;
    assert_eq!(page["redirectedTo"], format!("{}/echo", other.url()));
    for name in ["authorization", "cookie", "x-api-key", "x-correlation-id"] {
        assert!(fields.get(name).is_none(), "{name}: {fields}");
    }
    assert_eq!(fields["accept"], "text/x");
    // A form is not sent to another host.
    let form =
        json!({"url": web(&format!("/redirect?status=307&to={}/form", other.url())), "method": "POST", "body": "x"});
    let form = SYSTEM.ok(&workspace, "web_fetch", form).await;
    assert_eq!(form["status"], 307, "{form}");
    assert!(other.received("/form").is_empty());
    refused(&workspace, 502, "NETWORK_ERROR", json!({"url": web("/loop")})).await;
    for target in ["file:///etc/passwd", "ftp://example.com/", "http://user:pass@example.com/"] {
        let message =
            refused(&workspace, 502, "NETWORK_ERROR", json!({"url": web(&format!("/redirect?to={target}"))})).await;
        assert!(message.contains("redirects to an address that is not followed"), "{message}");
    }
}

async fn bad_requests_are_refused(on: On) {
    let workspace = on.workspace().await;
    for args in [
        json!({}),
        json!({"url": "example.com"}),
        json!({"url": "http://a b/"}),
        json!({"url": web("/text"), "method": "DELETE"}),
        json!({"url": web("/text"), "headers": {"Host": "example.com"}}),
        json!({"url": web("/text"), "headers": {"Content-Length": "1"}}),
        json!({"url": web("/text"), "headers": {"X": "a\r\nY: b"}}),
        json!({"url": web("/text"), "body": "x"}),
        json!({"url": web("/text"), "timeout": 0}),
        json!({"url": web("/text"), "format": "pdf"}),
        json!({"url": format!("{}{}", web("/"), "a".repeat(10_000))}),
    ] {
        refused(&workspace, 400, "INVALID_ARGUMENT", args).await;
    }
}

async fn bad_answers_end_within_the_limits(on: On) {
    let workspace = on.workspace().await;
    let started = Instant::now();
    for path in ["/slow", "/silent"] {
        let message = refused(&workspace, 504, "TIMEOUT", json!({"url": web(path), "timeout": 0.5})).await;
        assert!(message.contains("did not answer completely within"), "{message}");
    }
    for path in ["/endless", "/bomb"] {
        let message = refused(&workspace, 413, "INVALID_ARGUMENT", json!({"url": web(path)})).await;
        assert!(message.contains("larger than 5242880 bytes") && message.contains("web.response_bytes"), "{message}");
    }
    for path in ["/truncated", "/not-http", "/endless-head"] {
        let message = refused(&workspace, 502, "NETWORK_ERROR", json!({"url": web(path)})).await;
        assert!(message.contains("sent no complete response"), "{message}");
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

/// Addresses that must not lead to a listener on this machine. `PORT` is its port.
const HOSTILE: [&str; 66] = [
    "http://127.0.0.1:PORT/",
    "https://127.0.0.1:PORT/",
    "http://127.0.0.2:PORT/",
    "http://127.255.255.254:PORT/",
    "http://127.1:PORT/",
    "http://127.0.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0x7f.0.0.1:PORT/",
    "http://0x7f.1:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://017700000001:PORT/",
    "http://0177.0x0.0.1:PORT/",
    "http://127.0.0.1.:PORT/",
    "http://localhost:PORT/",
    "http://LOCALHOST:PORT/",
    "http://localhost.:PORT/",
    "http://ip6-localhost:PORT/",
    "http://0:PORT/",
    "http://0.0.0.0:PORT/",
    "http://0x0:PORT/",
    "http://[::1]:PORT/",
    "http://[::]:PORT/",
    "http://[0:0:0:0:0:0:0:1]:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://[64:ff9b::127.0.0.1]:PORT/",
    "http://[64:ff9b::7f00:1]:PORT/",
    "http://[2002:7f00:1::]:PORT/",
    "http://[2002:7f00:0001::1]:PORT/",
    "http://[fe80::1]:PORT/",
    "http://[fc00::1]:PORT/",
    "http://[fd00:ec2::254]/",
    "http://[::ffff:169.254.169.254]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://168.63.129.16/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://240.0.0.1/",
    "http://example.com@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT@127.0.0.1:PORT/",
    "http://:@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT\\@example.com/",
    "http://127.0.0.1:PORT#@example.com/",
    "http://127.0.0.1:PORT?@example.com/",
    "http:\\\\127.0.0.1:PORT/",
    "http:127.0.0.1:PORT/",
    "http:/127.0.0.1:PORT/",
    "http:////127.0.0.1:PORT/",
    "http://\u{ff11}27.0.0.1:PORT/",
    "http://127\u{3002}0\u{3002}0\u{3002}1:PORT/",
    "http://%31%32%37.0.0.1:PORT/",
    "http://\u{2460}27.0.0.1:PORT/",
    "http://127.0.0.1:PORT/%0d%0aHost:x",
    "http://127.0.0.1%09:PORT/",
    "http://\t127.0.0.1:PORT/",
];

/// Addresses with other schemes.
const OTHER_SCHEMES: [&str; 10] = [
    "file:///etc/passwd",
    "gopher://127.0.0.1:PORT/_GET",
    "ftp://127.0.0.1:PORT/",
    "dict://127.0.0.1:PORT/",
    "ldap://127.0.0.1:PORT/",
    "ws://127.0.0.1:PORT/",
    "data:text/plain,x",
    "javascript:fetch('http://127.0.0.1:PORT')",
    "unix:///run/docker.sock",
    "jar:http://127.0.0.1:PORT!/",
];

/// A listener on each address of this machine, at one port, that nobody may connect to.
struct Canary(TcpListener);

impl Canary {
    fn new() -> Self {
        let listener = TcpListener::bind("[::]:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn port(&self) -> String {
        self.0.local_addr().unwrap().port().to_string()
    }

    fn assert_not_reached(&self) {
        let reached = self.0.accept().map(|(_, from)| from);
        assert!(reached.is_err(), "the canary was reached by {reached:?}");
    }
}

async fn hostile_addresses_are_not_reached(on: On) {
    let workspace = on.workspace().await;
    let canary = Canary::new();
    let port = canary.port();
    for address in HOSTILE.iter().chain(&OTHER_SCHEMES) {
        let address = address.replace("PORT", &port);
        let browse = json!({"url": address, "task_description": "Summarize the page"});
        let calls = [("system", "web_fetch", json!({"url": address, "timeout": 5})), ("backend", "browse_web", browse)];
        for (toolset, tool, args) in calls {
            let reply = workspace.call_of(toolset, tool, &args).await;
            // A name that nobody knows is a network error.
            assert!(matches!(reply.status, 400 | 502), "{tool} {address}: {reply}");
        }
    }
    for target in
        HOSTILE.iter().filter(|address| address.starts_with("http://") && !address.contains(['\\', '#', '%', '\t']))
    {
        let address = web(&format!("/redirect?to={}", target.replace("PORT", &port)));
        let reply = workspace.call_of("system", "web_fetch", &json!({"url": address, "timeout": 5})).await;
        assert!(matches!(reply.status, 400 | 502), "{target}: {reply}");
    }
    canary.assert_not_reached();
}

/// Sends each address to the proxy of the program, as the target of a tunnel and of a request. Prints the statuses.
const THROUGH_THE_PROXY: &str = r"
import socket
for url in open('addresses.txt', encoding='utf-8', newline='\n').read().split('\n'):
    authority = url.replace('\\', '/').split(':', 1)[-1].lstrip('/').split('/')[0]
    for line in ('CONNECT ' + authority, 'GET ' + url):
        with socket.create_connection(('127.0.0.1', 3128), 10) as proxy:
            proxy.sendall((line + ' HTTP/1.1\r\nHost: example.com\r\n\r\n').encode())
            head = proxy.recv(1000).split(b' ')
            print(head[1].decode() if len(head) > 1 else 'closed', line)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_reach_no_hostile_address_through_their_proxy() {
    let canary = Canary::new();
    // The lists allow everything, so that only the addresses are judged.
    let port = canary.port();
    let hosts = format!(
        "*,*:{port},127.0.0.1:{port},127.0.0.2:{port},0.0.0.0:{port},[::1]:{port},[::]:{port},\
        [::ffff:127.0.0.1]:{port},[64:ff9b::127.0.0.1]:{port},[2002:7f00:1::]:{port},169.254.169.254,10.0.0.1,192.168.0.1,\
        100.64.0.1,224.0.0.1,[fd00:ec2::254]"
    );
    let server = On::Sqlite.options().env("TOOLREST__RUN__NETWORK_HOSTS", &hosts).start();
    let workspace = On::Sqlite.workspace_at(&server).await;
    let listed: Vec<&str> = hosts.split(',').map(str::trim).collect();
    workspace.patch("", &json!({"settings": {"run": {"network": listed}}})).await.success();
    let addresses: Vec<String> = HOSTILE.iter().map(|address| address.replace("PORT", &port)).collect();
    workspace.write("/addresses.txt", &addresses.join("\n")).await;
    let ran = SYSTEM.ok(&workspace, "run_code", json!({"language": "python", "code": THROUGH_THE_PROXY})).await;
    assert_eq!(ran["exitCode"], 0, "{ran}");
    let lines: Vec<&str> = text_at(&ran, "/stdout").lines().collect();
    assert_eq!(lines.len(), 2 * HOSTILE.len(), "{ran}");
    for line in &lines {
        assert!(["400", "403", "405", "502"].iter().any(|status| line.starts_with(status)), "{line}");
    }
    // Addresses that are listed were refused for what they are.
    let refused = lines.iter().filter(|line| line.starts_with("403")).count();
    assert!(refused > HOSTILE.len() / 2, "{lines:?}");
    canary.assert_not_reached();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_pull_request_is_at_a_hostile_address() {
    let canary = Canary::new();
    let workspace = crate::github_host::workspace().await;
    for address in HOSTILE.iter().chain(&OTHER_SCHEMES) {
        let address = address.replace("PORT", &canary.port());
        let args = json!({"pr_url": format!("{}/octo/demo/pull/1", address.trim_end_matches('/'))});
        BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "github_get_pr_details", args).await;
    }
    canary.assert_not_reached();
}

async fn the_web_is_searched(on: On) {
    let workspace = on.workspace().await;
    let found = SYSTEM.ok(&workspace, "web_search", json!({"query": "tool rest"})).await;
    assert_eq!(list_at(&found, "/results").len(), 5);
    let first = json!({"title": "Result 1", "url": "https://example.com/1", "snippet": "text"});
    assert_eq!(found["results"][0], first);
    let more = SYSTEM.ok(&workspace, "web_search", json!({"query": "tool rest", "numResults": 20})).await;
    assert_eq!(list_at(&more, "/results").len(), 9);
    SYSTEM.refused(&workspace, 429, "RATE_LIMITED", "web_search", json!({"query": "limited"})).await;
    SYSTEM.refused(&workspace, 502, "NETWORK_ERROR", "web_search", json!({"query": "broken"})).await;
    for args in [json!({"query": " "}), json!({"query": "x", "numResults": 0}), json!({"query": "x", "numResults": 21})]
    {
        SYSTEM.refused(&workspace, 400, "INVALID_ARGUMENT", "web_search", args).await;
    }
}

async fn a_page_is_read_for_a_task(on: On) {
    let workspace = on.workspace().await;
    let browse = async |path: &str, task: &str| {
        BACKEND.ok(&workspace, "browse_web", json!({"url": web(path), "task_description": task})).await
    };
    let page = browse("/article", "What does a tool rest cost?").await;
    assert!(text_at(&page, "/summary").contains("45 euros"), "{page}");
    assert_eq!(
        (&page["summaryBy"], &page["fetchedBy"], &page["untrusted"]),
        (&json!("extract"), &json!("http"), &json!(true))
    );
    assert_eq!(page["title"], "Tool rests");
    let scripted = workspace
        .call_of("backend", "browse_web", &json!({"url": web("/scripted"), "task_description": "Summarize the page"}))
        .await
        .success();
    assert!(scripted.to_string().contains("made by scripts"), "{scripted}");
    assert_eq!(browse("/missing", "Summarize the page").await["status"], 404);
    assert_eq!(browse("/text", "Summarize the page").await["summary"], "plain text");
    let image = json!({"url": web("/image"), "task_description": "Summarize the page"});
    let message = BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "browse_web", image).await;
    assert!(message.contains("image/png of 8 bytes"), "{message}");
    let empty = json!({"url": web("/text"), "task_description": " "});
    BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "browse_web", empty).await;
}

async fn strangers_reach_nothing(on: On) {
    let (workspace, stranger) = (on.workspace().await, on.account().await);
    let path = format!("/{}", workspace.id);
    let workspace = workspace.for_user(&stranger);
    SYSTEM.refused(&workspace, 403, "PERMISSION_DENIED", "web_fetch", json!({"url": web(&path)})).await;
    let args = json!({"url": web(&path), "task_description": "x"});
    BACKEND.refused(&workspace, 403, "FORBIDDEN", "browse_web", args).await;
    assert!(WebHost::web().received(&path).is_empty());
}
