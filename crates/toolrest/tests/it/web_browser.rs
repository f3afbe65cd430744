//! `browse_web` with Chromium in the sandbox.

use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};
use toolrest_testkit::{Server, Workspace};

use crate::on::{On, text_at, workspace_at};
use crate::toolset::BACKEND;
use crate::web_host::{Received, WEB_ADDRESS, WebHost, send};

/// Starts a server with the browser.
fn with_browser(env: &[(&str, &str)]) -> Server {
    let options = On::Sqlite.options().env("TOOLREST__WEB__BROWSER", "true");
    env.iter().fold(options, |options, (name, value)| options.env(name, value)).start()
}

/// Starts a host with one page and what the page loads.
fn host_with(page: String) -> WebHost {
    WebHost::start(WEB_ADDRESS, move |request: &Received, stream| match request.path() {
        "/" => send(stream, 200, &[("Content-Type", "text/html")], page.as_bytes()),
        "/data.json" => send(stream, 200, &[("Content-Type", "application/json")], br#"{"price": "45 euros"}"#),
        _ => send(stream, 200, &[("Content-Type", "text/plain"), ("Access-Control-Allow-Origin", "*")], b"reached"),
    })
}

async fn browse(workspace: &Workspace, url: &str) -> Value {
    BACKEND.ok(workspace, "browse_web", json!({"url": url, "task_description": "What does it cost?"})).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_made_by_scripts_is_rendered() {
    assert!(Path::new("/usr/lib/chromium/chromium").is_file(), "install Chromium with `make chromium`");
    let page = "<html><head><title>Prices</title></head><body><article id=a>Loading</article><script>\
        fetch('/data.json').then(answer => answer.json()).then(data => {\
            document.getElementById('a').textContent = 'A tool rest costs ' + data.price + '.';\
        });</script></body></html>";
    let host = host_with(page.to_owned());
    let server = with_browser(&[]);
    let workspace = workspace_at(&server).await;
    let read = browse(&workspace, &host.url()).await;
    assert_eq!((text_at(&read, "/fetchedBy"), &read["untrusted"]), ("chromium", &json!(true)), "{read}");
    assert!(text_at(&read, "/summary").contains("A tool rest costs 45 euros."), "{read}");
    // A page without scripts needs no browser.
    let plain = browse(&workspace, &format!("{}/text", host.url())).await;
    assert_eq!((text_at(&plain, "/fetchedBy"), text_at(&plain, "/summary")), ("http", "reached"), "{plain}");
}

/// A page that reaches for an address in every way that a page has, and says what came of it.
const HOSTILE_PAGE: &str = r#"<html><body><article id=a>The page has run.</article>
<img src="http://127.0.0.1:PORT/image"><img src="http://localhost:PORT/image"><img src="http://[::1]:PORT/image">
<img src="http://2130706433:PORT/image"><img src="http://[::ffff:127.0.0.1]:PORT/image"><img src="//0.0.0.0:PORT/image">
<iframe src="http://127.0.0.1:PORT/frame"></iframe><iframe src="http://169.254.169.254/latest/meta-data/"></iframe>
<iframe src="file:///etc/passwd"></iframe><object data="http://127.0.0.1:PORT/object"></object>
<link rel=stylesheet href="http://127.0.0.1:PORT/style"><script src="http://127.0.0.1:PORT/script"></script>
<link rel=preconnect href="http://127.0.0.1:PORT"><link rel=dns-prefetch href="//localhost:PORT">
<video src="http://127.0.0.1:PORT/video"></video><form id=f action="http://127.0.0.1:PORT/form" target=t></form>
<iframe name=t></iframe><script>
const said = text => { document.getElementById('a').textContent += ' ' + text + '.'; };
const hosts = ['127.0.0.1', '127.1', 'localhost', '[::1]', '0.0.0.0', '0x7f000001', '[::ffff:7f00:1]', '127.0.0.2'];
for (const host of hosts) {
    for (const mode of ['cors', 'no-cors']) {
        fetch(`http://${host}:PORT/fetch`, { mode }).then(() => {}, () => {});
    }
    try { const socket = new WebSocket(`ws://${host}:PORT/socket`); socket.onopen = () => said('SOCKET REACHED'); } catch {}
    try { new EventSource(`http://${host}:PORT/events`); } catch {}
    navigator.sendBeacon(`http://${host}:PORT/beacon`, 'x');
}
try {
    const peer = new RTCPeerConnection({ iceServers: ['stun', 'turn'].map(kind =>
        ({ urls: `${kind}:127.0.0.1:PORT?transport=tcp`, username: 'u', credential: 'c' })) });
    peer.createDataChannel('x');
    peer.createOffer().then(offer => peer.setLocalDescription(offer));
} catch {}
document.getElementById('f').submit();
try { open('http://127.0.0.1:PORT/window'); } catch {}
fetch('file:///etc/passwd').then(answer => answer.text()).then(text => said('FILE ' + text), () => {});
fetch('OTHER/listed').then(answer => answer.text()).then(text => said('LISTED ' + text), () => said('LISTED FAILED'));
fetch('DENIED/denied').then(answer => answer.text()).then(text => said('DENIED ' + text), () => said('DENIED FAILED'));
</script></body></html>"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_reaches_what_tools_reach_and_nothing_else() {
    let canary = TcpListener::bind("[::]:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let port = canary.local_addr().unwrap().port().to_string();
    let (listed, denied) = (host_with(String::new()), host_with(String::new()));
    let page = HOSTILE_PAGE.replace("PORT", &port).replace("OTHER", &listed.url()).replace("DENIED", &denied.url());
    // The replaced word is also in the answers of the scripts.
    let page = page.replace(&format!("said('{} ", denied.url()), "said('DENIED ");
    let host = host_with(page);
    let rule = format!("deny fetch({})", denied.url().trim_start_matches("http://"));
    let server = with_browser(&[("TOOLREST__POLICY__RULES", &rule)]);
    let workspace = workspace_at(&server).await;
    let read = browse(&workspace, &host.url()).await;
    assert_eq!(text_at(&read, "/fetchedBy"), "chromium", "{read}");
    let text = text_at(&read, "/summary");
    assert!(text.contains("The page has run."), "{read}");
    for no in ["REACHED", "FILE", "root:"] {
        assert!(!text.contains(no), "{read}");
    }
    assert!(text.contains("LISTED reached"), "{read}");
    assert!(text.contains("DENIED FAILED") && denied.received("/denied").is_empty(), "{read}");
    let reached = canary.accept().map(|(_, from)| from);
    assert!(reached.is_err(), "the canary was reached by {reached:?}");
    // Nothing of a workspace is there.
    workspace.write("/secret.txt", "a secret of the workspace\n").await;
    let local = json!({"url": "file:///workspace/secret.txt", "task_description": "x"});
    BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "browse_web", local).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_never_ends_is_read_as_it_was_sent() {
    let page = "<html><body><article>The page says something before its script.</article>\
        <script>for (;;) {}</script></body></html>";
    let host = host_with(page.to_owned());
    let server = with_browser(&[("TOOLREST__WEB__TIMEOUT_MS", "4000")]);
    let workspace = workspace_at(&server).await;
    let read = browse(&workspace, &host.url()).await;
    assert_eq!(text_at(&read, "/fetchedBy"), "http", "{read}");
    assert!(text_at(&read, "/summary").contains("before its script"), "{read}");
    assert!(read.to_string().contains("were not run"), "{read}");
}
