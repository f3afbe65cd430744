//! When fetching asks a person, and how settings change what the web tools do.

use serde_json::json;
use toolrest_testkit::{Server, Workspace};

use crate::on::{On, text_at, workspace_at};
use crate::toolset::{BACKEND, SYSTEM};
use crate::web_host::{WEB_ADDRESS, WebHost};

fn web(path: &str) -> String {
    format!("{}{path}", WebHost::web().url())
}

fn host_of(url: &str) -> String {
    url.split('/').nth(2).unwrap().to_owned()
}

/// Starts a server whose calls ask as the specifications say.
fn asking(env: &[(&str, &str)]) -> Server {
    let options = On::Sqlite.options().env("TOOLREST__POLICY__APPROVALS", "spec");
    env.iter().fold(options, |options, (name, value)| options.env(name, value)).start()
}

/// Fetches without waiting for a person, and returns the status.
async fn fetch_status(workspace: &Workspace, url: &str) -> u16 {
    crate::approvals::call(workspace, "web_fetch", json!({"url": url}), 0, "").await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_not_listed_asks_and_is_not_reached_before() {
    let server = asking(&[("TOOLREST__WEB__FETCH_HOSTS", &host_of(&web("/")))]);
    let workspace = workspace_at(&server).await;
    assert_eq!(fetch_status(&workspace, &web("/listed")).await, 200);
    let other = WebHost::start(WEB_ADDRESS, crate::web_pages::answer);
    let url = format!("{}/asked", other.url());
    assert_eq!(fetch_status(&workspace, &url).await, 202);
    assert!(other.received("/asked").is_empty(), "the preview of the approval fetched the page");
    // A redirect from a listed host to another one is not followed.
    let page =
        workspace.call_of("system", "web_fetch", &json!({"url": web(&format!("/redirect?to={url}"))})).await.success();
    assert_eq!(page["value"]["status"], 302, "{page}");
    assert!(page.to_string().contains("was not followed"), "{page}");
    assert!(other.received("/asked").is_empty());
    // Searching asks nobody.
    SYSTEM.ok(&workspace, "web_search", json!({"query": "x"})).await;
}

on_both_databases![new_rules_bind_the_next_request];

async fn new_rules_bind_the_next_request(on: On) {
    let workspace = on.workspace().await;
    let agent = crate::approvals::key(&workspace).await;
    let path = format!("/new-rules-{}", workspace.id);
    let url = web(&path);
    let (this, other) = (format!("deny fetch({})", host_of(&url)), "deny fetch(other.example)".to_owned());
    for (rule, status) in [(&this, 403), (&other, 200), (&this, 403), (&other, 200), (&this, 403)] {
        crate::approvals::set_rules(&workspace, json!({"rules": [rule], "approvals": "off"})).await;
        assert_eq!(fetch_status(&agent, &url).await, status, "{rule}");
        let save = json!({"key": "k", "value": "v"});
        assert_eq!(agent.call_of("backend", "memory_save", &save).await.status, 200, "{rule}");
    }
    assert_eq!(WebHost::web().received(&path).len(), 2);
    let calls = workspace.get("/calls?tool=web_fetch").await.success();
    assert_eq!(crate::on::list_at(&calls, "/calls").len(), 5, "{calls}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_about_hosts_bind_redirects_too() {
    let other = WebHost::start(WEB_ADDRESS, crate::web_pages::answer);
    let rule = format!("deny fetch({})", host_of(&other.url()));
    let server = On::Sqlite.options().env("TOOLREST__POLICY__RULES", &rule).start();
    let workspace = workspace_at(&server).await;
    let url = format!("{}/denied", other.url());
    SYSTEM.refused(&workspace, 403, "APPROVAL_DENIED", "web_fetch", json!({"url": url})).await;
    let args = json!({"url": url, "task_description": "x"});
    BACKEND.refused(&workspace, 403, "APPROVAL_DENIED", "browse_web", args).await;
    let page = SYSTEM.ok(&workspace, "web_fetch", json!({"url": web(&format!("/redirect?to={url}"))})).await;
    assert_eq!(page["status"], 302, "{page}");
    assert!(other.received("/denied").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_can_turn_the_web_off_and_respect_robots() {
    let off = On::Sqlite.options().env("TOOLREST__WEB__ENABLED", "false").start();
    let workspace = workspace_at(&off).await;
    let message = SYSTEM.refused(&workspace, 501, "NOT_CONFIGURED", "web_fetch", json!({"url": web("/off")})).await;
    assert!(message.contains("web.enabled"), "{message}");
    assert!(WebHost::web().received("/off").is_empty());
    let polite = On::Sqlite.options().env("TOOLREST__WEB__ROBOTS_TXT", "true").start();
    let workspace = workspace_at(&polite).await;
    SYSTEM.ok(&workspace, "web_fetch", json!({"url": web("/public")})).await;
    let private = json!({"url": web("/private/page")});
    let message = SYSTEM.refused(&workspace, 403, "APPROVAL_DENIED", "web_fetch", private).await;
    assert!(message.contains("robots.txt"), "{message}");
    assert!(WebHost::web().received("/private/page").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_writes_the_summary_if_there_is_one() {
    let apis = [
        ("openai", "/v1/chat/completions", "authorization", "Bearer model-key"),
        ("anthropic", "/v1/messages", "x-api-key", "model-key"),
    ];
    for (api, path, field, key) in apis {
        let server = On::Sqlite
            .options()
            .env("TOOLREST__WEB__MODEL_URL", &web("/v1"))
            .env("TOOLREST__WEB__MODEL_API", api)
            .env("TOOLREST__WEB__MODEL", "small-1")
            .env("TOOLREST__WEB__MODEL_KEY", "model-key")
            .start();
        let workspace = workspace_at(&server).await;
        let args = json!({"url": web("/article"), "task_description": "the task"});
        let page = BACKEND.ok(&workspace, "browse_web", args).await;
        assert_eq!((text_at(&page, "/summary"), text_at(&page, "/summaryBy")), ("summary of small-1", "model"));
        let asked = WebHost::web().received(path).pop().unwrap();
        assert_eq!((asked.field(field), asked.field("x-correlation-id")), (Some(key), Some("test")), "{asked:?}");
        assert!(asked.body.contains("the task") && asked.body.contains("it is data"), "{}", asked.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_provider_needs_its_key() {
    let failure = On::Sqlite.options().env("TOOLREST__WEB__SEARCH_PROVIDER", "brave").try_start().err().unwrap();
    assert!(failure.output.contains("web.search_key"), "{failure:?}");
}
