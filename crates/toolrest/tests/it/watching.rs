//! What members watch a workspace by: its processes and their output, its metrics, and answers as data and as text.

use std::time::Duration;

use serde_json::{Value, json};
use toolrest_testkit::{Account, Request, Workspace, eventually, unique_email};

use crate::on::{On, list_at, text_at};
use crate::processes::{start, stop};
use crate::toolset::SYSTEM;

on_every_backend![
    a_folder_is_listed_without_records,
    processes_and_their_output_are_watched_without_records,
    the_metrics_of_a_workspace_count_its_calls_and_its_storage,
    a_person_gets_an_answer_as_data_and_as_text,
];

const SOON: Duration = Duration::from_secs(20);

async fn a_folder_is_listed_without_records(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/docs/a.md", "text").await;
    workspace.write("/docs/.hidden", "").await;
    let root = workspace.get("/list").await.success();
    let names = |listed: &Value| {
        list_at(listed, "/entries").iter().map(|entry| text_at(entry, "/path").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&root), &root["entries"][0]["file_type"]), (vec!["/docs".to_owned()], &json!("Folder")));
    let docs = workspace.get("/list?path=/docs").await.success();
    assert_eq!(names(&docs), ["/docs/.hidden", "/docs/a.md"]);
    assert_eq!((&docs["entries"][1]["size"], &docs["entries"][1]["is_link"]), (&json!(4), &json!(false)), "{docs}");
    for (path, status) in [("/missing", 404), ("/docs/a.md", 400), ("/../x", 400), ("/a%00b", 400)] {
        assert_eq!(workspace.get(&format!("/list?path={path}")).await.status, status, "{path}");
    }
    let recorded = async || workspace.get("/calls?tool=write").await.success();
    eventually("the writes are recorded", SOON, async || {
        (list_at(&recorded().await, "/calls").len() == 2).then_some(())
    })
    .await;
    let calls = workspace.get("/calls").await.success();
    assert_eq!(list_at(&calls, "/calls").len(), 2, "only the writes: {calls}");

    let viewer = member(&workspace, "viewer").await;
    assert_eq!(names(&viewer.get("/list").await.success()), ["/docs"]);
    let stranger = on.account().await.through(&workspace.account.client);
    assert_eq!(stranger.in_workspace(&workspace.id).get("/list?path=/missing").await.status, 403);
}

async fn processes_and_their_output_are_watched_without_records(on: On) {
    let workspace = on.workspace().await;
    let id = start(&workspace, "echo one; sleep 100").await;
    let output = async |offset: u64| workspace.get(&format!("/processes/{id}/output?offset={offset}")).await.success();
    let first = eventually("it prints", SOON, async || Some(output(0).await).filter(|read| read["output"] != "")).await;
    assert_eq!((&first["output"], &first["next_offset"]), (&json!("one\n"), &json!(4)), "{first}");
    assert_eq!(output(4).await["output"], "");
    let listed = workspace.get("/processes").await.success();
    let process = &listed["processes"][0];
    assert_eq!((text_at(process, "/id"), &process["is_running"]), (&*id, &json!(true)), "{listed}");
    assert_eq!(text_at(process, "/user_id"), workspace.account.id, "{listed}");
    assert!(process["key_id"].is_null() && process["exit_code"].is_null(), "{listed}");
    stop(&workspace, &id).await;
    let ended = output(0).await;
    assert_eq!((&ended["process"]["is_running"], &ended["process"]["exit_code"]), (&json!(false), &json!(137)));
    let stopped = async || workspace.get("/calls?tool=stop_process").await.success();
    eventually("the stop is recorded", SOON, async || (!list_at(&stopped().await, "/calls").is_empty()).then_some(()))
        .await;
    let calls = workspace.get("/calls").await.success();
    assert_eq!(list_at(&calls, "/calls").len(), 2, "only the start and the stop: {calls}");

    assert_eq!(workspace.get("/processes/nothing/output").await.status, 404);
    assert_eq!(workspace.get(&format!("/processes/{id}/output?offset=x")).await.status, 400);
    let viewer = member(&workspace, "viewer").await;
    assert_eq!(viewer.get("/processes").await.status, 403);
}

async fn the_metrics_of_a_workspace_count_its_calls_and_its_storage(on: On) {
    let workspace = on.workspace().await;
    for number in 0..3 {
        workspace.write(&format!("/{number}.txt"), "text").await;
    }
    workspace.refused(404, "NOT_FOUND", "read", json!({"path": "/missing"})).await;
    let read = async || workspace.get("/metrics").await.success();
    let counted = async || Some(read().await).filter(|metrics| list_at(metrics, "/tools").len() == 2);
    let metrics = eventually("the calls are recorded", SOON, counted).await;
    let [write, refused] = list_at(&metrics, "/tools") else { panic!("{metrics}") };
    assert_eq!((text_at(write, "/tool"), &write["calls"], &write["errors"]), ("write", &json!(3), &json!(0)));
    assert_eq!((text_at(refused, "/tool"), &refused["calls"], &refused["errors"]), ("read", &json!(1), &json!(1)));
    assert!(write["p50_us"].as_i64() > Some(0) && write["p95_us"].as_i64() >= write["p50_us"].as_i64(), "{metrics}");
    let calls: i64 = list_at(&metrics, "/parts").iter().filter_map(|part| part["calls"].as_i64()).sum();
    assert_eq!((calls, &metrics["part_seconds"], &metrics["truncated"]), (4, &json!(1440), &json!(false)));
    assert_eq!(metrics["approvals"], json!({"waiting": 0, "decided": 0, "p50_us": null, "p95_us": null}));
    assert!(metrics["storage"]["limit_bytes"].as_i64() > Some(0), "{metrics}");
    let stored = async || (read().await["storage"]["bytes"].as_i64() > Some(0)).then_some(());
    eventually("the storage is counted", SOON, stored).await;

    let viewer = member(&workspace, "viewer").await;
    assert_eq!(viewer.get("/metrics?hours=1").await.success()["part_seconds"], 60);
    for hours in ["0", "745", "x", "-1", ""] {
        assert_eq!(viewer.get(&format!("/metrics?hours={hours}")).await.status, 400, "{hours}");
    }
    let stranger = on.account().await.through(&workspace.account.client);
    assert_eq!(stranger.in_workspace(&workspace.id).get("/metrics?hours=x").await.status, 403);
}

async fn a_person_gets_an_answer_as_data_and_as_text(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "one\ntwo\n").await;
    let request = |args: Value| {
        Request::new("POST", &format!("/api/v1/workspaces/{}/toolsets/system", workspace.id))
            .bearer(&workspace.account.access_token)
            .header("X-Toolrest-Own-Hand", "true")
            .header("Accept", "application/json, text/plain")
            .json(&json!({"tool": "read_file", "args": args}))
    };
    let client = workspace.account.client.clone().without_schema_checks();
    let both = client.send(request(json!({"path": "a.txt"}))).await.success();
    assert_eq!(both["data"]["value"]["content"], "one\ntwo\n", "{both}");
    assert_eq!(both["data"]["value"], SYSTEM.ok(&workspace, "read_file", json!({"path": "a.txt"})).await);
    assert!(text_at(&both, "/text").contains("one\ntwo\n"), "{both}");
    let refused = client.send(request(json!({"path": "missing"}))).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (404, &json!("FILE_NOT_FOUND")));
}

/// Adds a member to the workspace, and returns the workspace as the member sees it.
async fn member(workspace: &Workspace, role: &str) -> Workspace {
    let account = Account::register(&workspace.account.client, &unique_email(role)).await;
    workspace.add_member(&account, role).await;
    account.in_workspace(&workspace.id)
}
