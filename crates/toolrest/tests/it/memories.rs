//! Memories: the tools of the `backend` toolset, on both databases.

use serde_json::{Value, json};
use std::time::Duration;
use toolrest_testkit::{Workspace, eventually};

use crate::on::{On, list_at};
use crate::toolset::BACKEND;

on_both_databases![
    a_search_ranks_and_finds_beginnings_of_words,
    a_search_without_all_words_finds_some,
    a_search_sees_only_its_workspace,
    a_list_is_paged_by_key,
    an_expired_memory_does_not_exist,
    memories_of_a_workspace_are_its_own,
    rules_hide_memories,
    saves_at_once_leave_one_memory,
    a_deleted_workspace_takes_its_memories_with_it,
    the_words_of_a_replaced_memory_are_forgotten,
];

async fn save(workspace: &Workspace, key: &str, value: &str, tags: &[&str]) {
    let args = json!({"key": key, "value": value, "tags": tags});
    let saved = BACKEND.ok(workspace, "memory_save", args).await;
    assert_eq!(saved, json!({"message": "Memory saved"}));
}

async fn found(workspace: &Workspace, args: Value) -> (Vec<String>, Value) {
    let found = BACKEND.ok(workspace, "memory_search", args).await;
    let keys = list_at(&found, "/items").iter().map(|item| item["key"].as_str().unwrap().to_owned()).collect();
    (keys, found)
}

async fn a_search_ranks_and_finds_beginnings_of_words(on: On) {
    let workspace = on.workspace().await;
    save(&workspace, "notes", "the deployment of the web server needs a password from the vault", &["ops"]).await;
    save(&workspace, "deployment", "how to do it", &["ops", "howto"]).await;
    save(&workspace, "lunch", "soup; nothing about servers", &["fun"]).await;
    let (keys, answer) = found(&workspace, json!({"query": "deploy"})).await;
    assert_eq!(keys, ["deployment", "notes"], "a match in the key counts most: {answer}");
    assert_eq!(answer["matched"], "all");
    assert!(answer["items"][0]["updatedAt"].is_string() && answer["items"][0]["userId"].is_string(), "{answer}");
    assert_eq!(found(&workspace, json!({"query": "SERVER, Password!"})).await.0, ["notes"]);
    assert_eq!(found(&workspace, json!({"query": "ops", "tags": ["howto"]})).await.0, ["deployment"]);
    let (keys, answer) = found(&workspace, json!({"query": "deploy", "limit": 1})).await;
    assert_eq!((keys.len(), &answer["truncated"]), (1, &json!(true)));
    for query in ["' OR 1=1 --", "\"deploy\" NEAR(web)", "a:* | 'b", "key: deploy*", "deploy AND (", "\u{0}x"] {
        found(&workspace, json!({"query": query})).await;
    }
    for query in ["", " ", "...", "\"*"] {
        BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "memory_search", json!({"query": query})).await;
    }
}

async fn a_search_without_all_words_finds_some(on: On) {
    let workspace = on.workspace().await;
    save(&workspace, "one", "red green", &[]).await;
    save(&workspace, "two", "green blue", &[]).await;
    let (keys, answer) = found(&workspace, json!({"query": "red blue"})).await;
    assert_eq!((keys.len(), &answer["matched"]), (2, &json!("any")), "{answer}");
    let (keys, answer) = found(&workspace, json!({"query": "yellow purple"})).await;
    assert!(keys.is_empty(), "{answer}");
}

async fn a_search_sees_only_its_workspace(on: On) {
    let (one, other) = (on.workspace().await, on.workspace().await);
    save(&one, "k", "unmistakable words", &["t"]).await;
    assert!(found(&other, json!({"query": "unmistakable"})).await.0.is_empty());
    let retrieved = BACKEND.ok(&other, "memory_retrieve", json!({"tags": ["t"]})).await;
    assert_eq!(retrieved, json!({"items": []}));
    assert_eq!(BACKEND.ok(&other, "memory_list", json!({})).await, json!({"items": []}));
}

async fn a_list_is_paged_by_key(on: On) {
    let workspace = on.workspace().await;
    for n in 0..7 {
        save(&workspace, &format!("key {n}"), "größer", if n % 2 == 0 { &["even"] } else { &[] }).await;
    }
    let (mut keys, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut args = json!({"limit": 3});
        if let Some(after) = &after {
            args["after"] = json!(after);
        }
        let page = BACKEND.ok(&workspace, "memory_list", args).await;
        for item in list_at(&page, "/items") {
            keys.push(item["key"].as_str().unwrap().to_owned());
            assert_eq!(item["bytes"], 8, "{page}");
            assert_eq!(item.get("value"), None, "{page}");
        }
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() {
            break;
        }
    }
    assert_eq!(keys, (0..7).map(|n| format!("key {n}")).collect::<Vec<_>>());
    let even = BACKEND.ok(&workspace, "memory_list", json!({"tags": ["even"], "after": "key 1", "limit": 2})).await;
    assert_eq!(
        (&even["items"][0]["key"], &even["items"][1]["key"], &even["next"]),
        (&json!("key 2"), &json!("key 4"), &json!("key 4"))
    );
}

async fn an_expired_memory_does_not_exist(on: On) {
    let workspace = on.workspace().await;
    let args = json!({"key": "brief", "value": "transient", "tags": ["t"], "expires_in_seconds": 1});
    BACKEND.ok(&workspace, "memory_save", args).await;
    save(&workspace, "lasting", "kept", &["t"]).await;
    eventually("it expires", Duration::from_secs(10), async || {
        let items = BACKEND.ok(&workspace, "memory_retrieve", json!({"key": "brief"})).await;
        (items == json!({"items": []})).then_some(())
    })
    .await;
    let tagged = BACKEND.ok(&workspace, "memory_retrieve", json!({"tags": ["t"]})).await;
    assert_eq!(list_at(&tagged, "/items").len(), 1, "{tagged}");
    assert!(found(&workspace, json!({"query": "transient"})).await.0.is_empty());
    assert_eq!(list_at(&BACKEND.ok(&workspace, "memory_list", json!({})).await, "/items").len(), 1);
    BACKEND.refused(&workspace, 404, "NOT_FOUND", "memory_delete", json!({"key": "brief"})).await;
}

async fn memories_of_a_workspace_are_its_own(on: On) {
    let (workspace, viewer, stranger) = (on.workspace().await, on.account().await, on.account().await);
    workspace.add_member(&viewer, "viewer").await;
    save(&workspace, "k", "v", &["t"]).await;
    let of_viewer = workspace.for_user(&viewer);
    for (tool, args) in [
        ("memory_retrieve", json!({"tags": ["t"]})),
        ("memory_search", json!({"query": "v"})),
        ("memory_list", json!({})),
    ] {
        assert_eq!(list_at(&BACKEND.ok(&of_viewer, tool, args.clone()).await, "/items").len(), 1, "{tool}");
        BACKEND.refused(&workspace.for_user(&stranger), 403, "FORBIDDEN", tool, args).await;
    }
    for (tool, args) in [("memory_save", json!({"key": "k", "value": "w"})), ("memory_delete", json!({"key": "k"}))] {
        BACKEND.refused(&of_viewer, 403, "FORBIDDEN", tool, args.clone()).await;
        BACKEND.refused(&workspace.for_user(&stranger), 403, "FORBIDDEN", tool, args).await;
    }
    let read = BACKEND.ok(&workspace, "memory_retrieve", json!({"key": "k"})).await;
    assert_eq!(read["items"][0]["value"], "v");
    let calls = workspace.get("/calls?tool=memory_save").await.success();
    assert!(list_at(&calls, "/calls").iter().any(|call| call["outcome"] == "ok"), "{calls}");
}

async fn rules_hide_memories(on: On) {
    let workspace = on.workspace().await;
    save(&workspace, "private-1", "hidden words", &["t"]).await;
    save(&workspace, "open", "hidden words", &["t"]).await;
    let rules = json!({"rules": ["deny memory(private-*)"]});
    workspace.send("PUT", "/rules", Some(&rules)).await.success();
    let refused = [
        ("memory_retrieve", json!({"key": "private-1"})),
        ("memory_save", json!({"key": "private-2", "value": "v"})),
        ("memory_delete", json!({"key": "private-1"})),
    ];
    for (tool, args) in refused {
        BACKEND.refused(&workspace, 403, "APPROVAL_DENIED", tool, args).await;
    }
    for (tool, args) in [
        ("memory_retrieve", json!({"tags": ["t"]})),
        ("memory_search", json!({"query": "hidden"})),
        ("memory_list", json!({})),
    ] {
        let shown = BACKEND.ok(&workspace, tool, args).await;
        assert_eq!((list_at(&shown, "/items").len(), &shown["skipped"]), (1, &json!(1)), "{tool}: {shown}");
        assert_eq!(shown["items"][0]["key"], "open");
    }
}

async fn saves_at_once_leave_one_memory(on: On) {
    let workspace = on.workspace().await;
    let saves = (0..16).map(|n| {
        let workspace = workspace.clone();
        tokio::spawn(
            async move { save(&workspace, "contended", &format!("value {n}"), &["a", &format!("t{n}")]).await },
        )
    });
    for save in saves.collect::<Vec<_>>() {
        save.await.unwrap();
    }
    let left = BACKEND.ok(&workspace, "memory_retrieve", json!({"tags": ["a"]})).await;
    let items = list_at(&left, "/items");
    assert_eq!(items.len(), 1, "{left}");
    let n = items[0]["value"].as_str().unwrap().trim_start_matches("value ").to_owned();
    assert_eq!(items[0]["tags"], json!(["a", format!("t{n}")]), "the tags are those of the value");
    assert_eq!(list_at(&BACKEND.ok(&workspace, "memory_list", json!({})).await, "/items").len(), 1);
}

async fn a_deleted_workspace_takes_its_memories_with_it(on: On) {
    let workspace = on.workspace().await;
    save(&workspace, "k", "v", &["t"]).await;
    assert_eq!(workspace.delete("").await.status / 100, 2);
    BACKEND.refused(&workspace, 403, "FORBIDDEN", "memory_retrieve", json!({"key": "k"})).await;
}

async fn the_words_of_a_replaced_memory_are_forgotten(on: On) {
    let workspace = on.workspace().await;
    save(&workspace, "k", "before", &["old"]).await;
    save(&workspace, "k", "after", &["new"]).await;
    assert!(found(&workspace, json!({"query": "before"})).await.0.is_empty());
    assert!(found(&workspace, json!({"query": "old"})).await.0.is_empty());
    assert_eq!(found(&workspace, json!({"query": "after"})).await.0, ["k"]);
    assert_eq!(found(&workspace, json!({"query": "new"})).await.0, ["k"]);
    BACKEND.ok(&workspace, "memory_delete", json!({"key": "k"})).await;
    assert!(found(&workspace, json!({"query": "after"})).await.0.is_empty());
}
