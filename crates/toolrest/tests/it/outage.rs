//! A PostgreSQL server that stops and starts again.

use std::time::{Duration, Instant};

use serde_json::json;
use toolrest_testkit::{Account, Backend, PASSWORD, Postgres, Request, eventually, unique_email};

use crate::on::{options_on, workspace_at};
use crate::storm::{OnFailure, Storm, is_unavailable};

const WRITERS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_killed_and_restarted_under_load_is_survived() {
    let mut postgres = Postgres::start();
    let server = options_on(Backend::Postgres(postgres.create_database())).start();
    let workspace = workspace_at(&server).await;
    workspace.write("/before.txt", "before").await;
    let mut storm = Storm::begin(&workspace, "/storm", WRITERS, OnFailure::Continue);
    for _ in 0..3 {
        let before = storm.progress();
        storm.wait_until(|now| now.acknowledged >= before.acknowledged + 100).await;
        postgres.kill();
        storm.wait_until(|now| now.unavailable >= before.unavailable + 2 * WRITERS).await;
        postgres.restart();
        eventually("a call succeeds again", Duration::from_secs(30), async || {
            let args = json!({"path": "/before.txt"});
            let reply = workspace.call("read", &args).await;
            if reply.status == 200 {
                return Some(());
            }
            is_unavailable(&reply);
            None
        })
        .await;
    }
    let account = storm.end().await;
    account.check(&workspace).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgres_is_down_every_route_answers_503_in_its_format() {
    let mut postgres = Postgres::start();
    let server = options_on(Backend::Postgres(postgres.create_database())).start();
    let workspace = workspace_at(&server).await;
    let file = workspace.write("/a.txt", "text").await;
    let client = server.client();
    postgres.kill();
    for (tool, args) in [
        ("ls", json!({})),
        ("read", json!({"path": "/a.txt"})),
        ("write", json!({"path": "/a.txt", "content": "x"})),
        ("rm", json!({"path": "/a.txt"})),
        ("mkdir", json!({"path": "/d"})),
        ("edit", json!({"path": "/a.txt", "old_string": "text", "new_string": "x"})),
    ] {
        let begun = Instant::now();
        is_unavailable(&workspace.call(tool, &args).await);
        assert!(begun.elapsed() < Duration::from_secs(30), "{tool} hung");
    }
    for (toolset, tool, args, code) in [
        ("file", "file.read", json!({"path": "a.txt"}), "unavailable"),
        ("system", "read_file", json!({"path": "a.txt"}), "UNAVAILABLE"),
        ("coding", "read", json!({"filePath": "a.txt"}), "UNAVAILABLE"),
        ("backend", "readFile", json!({"path": "a.txt"}), "INTERNAL"),
    ] {
        let reply = workspace.call_of(toolset, tool, &args).await;
        assert_eq!(reply.status, 503, "{toolset}: {reply}");
        assert!(reply.text.contains(&format!("\"{code}\"")), "{toolset}: {reply}");
    }
    let file = format!("/files/{}", file["file_id"].as_str().unwrap());
    for path in ["", "/members", "/trash", "/commits", &file] {
        is_unavailable(&workspace.get(path).await);
    }
    is_unavailable(&workspace.account.get("/workspaces").await);
    let login = json!({"email": workspace.account.email, "password": PASSWORD});
    let request = Request::new("POST", "/api/v1/auth/login").json(&login);
    is_unavailable(&client.send(request).await);
    client.send(Request::new("GET", "/health")).await.success();
    let ready = client.send(Request::new("GET", "/ready")).await;
    assert_eq!(ready.status, 503, "{ready}");
    postgres.restart();
    eventually("the server is ready again", Duration::from_secs(30), async || {
        let ready = client.send(Request::new("GET", "/ready")).await;
        (ready.status == 200).then_some(())
    })
    .await;
    assert_eq!(workspace.text("/a.txt").await, "text");
    Account::register(&client, &unique_email("after")).await;
}
