//! Webhooks: signed messages about approvals and failed calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use toolrest_testkit::eventually;

use crate::on::{On, text_at, workspace_at};
use crate::toolset::SYSTEM;
use crate::web_host::{Received, WEB_ADDRESS, WebHost, send};

const SECRET: &str = "a secret with at least thirty-two characters";

/// Waits for a number of messages of one kind, and returns them.
async fn messages(host: &WebHost, event: &str, count: usize) -> Vec<(Received, Value)> {
    eventually(&format!("{count} times {event}"), Duration::from_secs(20), async || {
        let received = host.received("/hook").into_iter();
        let received: Vec<_> = received.filter(|one| one.field("x-toolrest-event") == Some(event)).collect();
        (received.len() >= count)
            .then(|| received.into_iter().map(|one| (one.clone(), serde_json::from_str(&one.body).unwrap())).collect())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_hear_of_approvals_and_failed_calls() {
    let times = AtomicUsize::new(0);
    // The first message arrives only when it is sent again.
    let host = WebHost::start(WEB_ADDRESS, move |_, stream| {
        let status = if times.fetch_add(1, Ordering::Relaxed) == 0 { 503 } else { 204 };
        send(stream, status, &[], b"");
    });
    let server = On::Sqlite
        .options()
        .env("TOOLREST__POLICY__APPROVALS", "spec")
        .env("TOOLREST__WEBHOOKS__URLS", &format!("{}/hook", host.url()))
        .env("TOOLREST__WEBHOOKS__SECRET", SECRET)
        .start();
    let workspace = workspace_at(&server).await;
    SYSTEM.refused(&workspace, 404, "FILE_NOT_FOUND", "read_file", json!({"path": "missing.txt"})).await;
    let failed = messages(&host, "call.failed", 2).await;
    assert_eq!(failed[0].0.body, failed[1].0.body, "the message was sent again");
    let (message, body) = &failed[1];
    assert_eq!((&body["workspace_id"], &body["call"]["outcome"]), (&json!(workspace.id), &json!("not_found")));
    let signature = message.field("x-toolrest-signature").unwrap();
    let (time, mac) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    assert_eq!(mac, hmac_sha256(SECRET, &format!("{time}.{}", message.body)));

    workspace.write("/a.txt", "x").await;
    let waiting = crate::approvals::call(&workspace, "delete_file", json!({"path": "a.txt"}), 0, "").await;
    let asked = messages(&host, "approval.asked", 1).await;
    let approval = &asked[0].1["approval"];
    assert_eq!((&approval["tool"], &approval["state"]), (&json!("delete_file"), &json!("pending")), "{waiting}");
    let decision = json!({"decision": "deny", "revision": approval["revision"]});
    workspace.post(&format!("/approvals/{}/decision", text_at(approval, "/id")), &decision).await.success();
    let decided = messages(&host, "approval.decided", 1).await;
    assert_eq!(decided[0].1["approval"]["state"], "denied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_leaves_room_for_the_messages_of_others() {
    let (open, is_open) = std::sync::mpsc::channel::<()>();
    let is_open = std::sync::Mutex::new(is_open);
    // Nothing is answered until the test says so.
    let host = WebHost::start(WEB_ADDRESS, move |_, stream| {
        let _ = is_open.lock().unwrap().recv();
        send(stream, 204, &[], b"");
    });
    let server = On::Sqlite
        .options()
        .env("TOOLREST__WEBHOOKS__URLS", &format!("{}/hook", host.url()))
        .env("TOOLREST__WEBHOOKS__SECRET", SECRET)
        .start();
    let (noisy, quiet) = (workspace_at(&server).await, workspace_at(&server).await);
    let missing = json!({"path": "missing.txt"});
    for _ in 0..1_100 {
        SYSTEM.refused(&noisy, 404, "FILE_NOT_FOUND", "read_file", missing.clone()).await;
    }
    SYSTEM.refused(&quiet, 404, "FILE_NOT_FOUND", "read_file", missing).await;
    drop(open);
    eventually("the message about the other account", Duration::from_secs(60), async || {
        host.received("/hook").iter().any(|message| message.body.contains(&quiet.id)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_need_a_secret() {
    let failure = On::Sqlite.options().env("TOOLREST__WEBHOOKS__URLS", "https://example.com/x").try_start();
    assert!(failure.err().unwrap().output.contains("webhooks.secret"));
}

fn hmac_sha256(key: &str, text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(text.as_bytes());
    toolrest::core::hex(&mac.finalize().into_bytes())
}
