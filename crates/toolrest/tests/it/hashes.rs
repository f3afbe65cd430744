//! The expected hash, for every tool that changes files.

use serde_json::{Value, json};
use toolrest_testkit::{Workspace, sha256_hex};

use crate::on::On;

on_both_databases![
    every_tool_that_changes_a_file_refuses_a_stale_hash,
    every_tool_that_changes_a_file_accepts_the_current_hash,
    an_expected_hash_of_a_file_that_is_not_there_is_refused,
    of_forty_writers_with_one_hash_one_wins,
    of_forty_editors_with_one_hash_one_wins,
    of_ten_removers_with_one_hash_one_wins,
    of_ten_movers_with_one_hash_one_wins,
];

/// A call of each tool on `/a.txt`, whose text contains `text`, with an expected hash.
fn calls(hash: &str) -> Vec<(&'static str, Value)> {
    let edit = json!({"path": "/a.txt", "old_string": "text", "new_string": "new text", "last_read_hash": hash});
    vec![
        ("edit", edit.clone()),
        ("edit-many", edit),
        ("write", json!({"path": "/a.txt", "content": "new text", "last_read_hash": hash})),
        ("touch", json!({"path": "/a.txt", "last_read_hash": hash})),
        ("mv", json!({"source": "/a.txt", "destination": "/b.txt", "last_read_hash": hash})),
        ("rm", json!({"path": "/a.txt", "last_read_hash": hash})),
    ]
}

async fn every_tool_that_changes_a_file_refuses_a_stale_hash(on: On) {
    let workspace = on.workspace().await;
    workspace.write("/a.txt", "old text").await;
    workspace.write("/a.txt", "current text").await;
    for stale in [sha256_hex("old text"), sha256_hex("never"), "no hash".into()] {
        for (tool, args) in calls(&stale) {
            workspace.refused(409, "CONFLICT", tool, args).await;
        }
    }
    assert_eq!(workspace.text("/a.txt").await, "current text");
    assert_eq!(workspace.paths_in("/").await, ["/a.txt"]);
}

async fn every_tool_that_changes_a_file_accepts_the_current_hash(on: On) {
    let hash = sha256_hex("text");
    for (tool, args) in calls(&hash) {
        let workspace = on.workspace().await;
        workspace.write("/a.txt", "text").await;
        workspace.ok(tool, args).await;
    }
}

async fn an_expected_hash_of_a_file_that_is_not_there_is_refused(on: On) {
    let workspace = on.workspace().await;
    for (tool, args) in calls(&sha256_hex("text")) {
        let reply = workspace.call(tool, &args).await;
        reply.error_shape();
        assert!([404, 409].contains(&reply.status), "{tool}: {reply}");
    }
    assert!(workspace.paths_in("/").await.is_empty());
}

/// Makes all calls at once; gives the index of the one that succeeded, the others being refused with one of `losers`.
async fn one_winner(workspace: &Workspace, calls: Vec<(&'static str, Value)>, losers: &[u16]) -> usize {
    let running: Vec<_> = calls
        .into_iter()
        .map(|(tool, args)| {
            let workspace = workspace.clone();
            tokio::spawn(async move { workspace.call(tool, &args).await })
        })
        .collect();
    let mut winners = Vec::new();
    for (index, call) in running.into_iter().enumerate() {
        let reply = call.await.unwrap();
        if reply.status == 200 {
            winners.push(index);
        } else {
            assert!(losers.contains(&reply.status), "{reply}");
            reply.error_shape();
        }
    }
    assert_eq!(winners.len(), 1, "winners: {winners:?}");
    winners[0]
}

async fn of_forty_writers_with_one_hash_one_wins(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "text").await;
    let calls = (0..40)
        .map(|n| {
            let args = json!({"path": "/a.txt", "content": format!("writer {n}"), "last_read_hash": file["hash"]});
            ("write", args)
        })
        .collect();
    let winner = one_winner(&workspace, calls, &[409]).await;
    assert_eq!(workspace.text("/a.txt").await, format!("writer {winner}"));
}

async fn of_forty_editors_with_one_hash_one_wins(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "text").await;
    let calls = (0..40)
        .map(|n| {
            let args = json!({
                "path": "/a.txt",
                "old_string": "text",
                "new_string": format!("text {n}"),
                "last_read_hash": file["hash"],
            });
            (if n % 2 == 0 { "edit" } else { "edit-many" }, args)
        })
        .collect();
    let winner = one_winner(&workspace, calls, &[409]).await;
    assert_eq!(workspace.text("/a.txt").await, format!("text {winner}"));
}

async fn of_ten_removers_with_one_hash_one_wins(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "text").await;
    let args = json!({"path": "/a.txt", "last_read_hash": file["hash"]});
    let calls = vec![("rm", args); 10];
    one_winner(&workspace, calls, &[404, 409]).await;
    assert!(workspace.paths_in("/").await.is_empty());
}

async fn of_ten_movers_with_one_hash_one_wins(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "text").await;
    let calls = (0..10)
        .map(|n| {
            let args = json!({"source": "/a.txt", "destination": format!("/{n}.txt"), "last_read_hash": file["hash"]});
            ("mv", args)
        })
        .collect();
    let winner = one_winner(&workspace, calls, &[404, 409]).await;
    assert_eq!(workspace.paths_in("/").await, [format!("/{winner}.txt")]);
}
