//! Concurrent calls: no change is lost, no call is stuck, no change is half done.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use toolrest_testkit::{Request, Workspace};

use crate::on::{On, list_at, text_at};

on_every_backend![
    two_hundred_and_fifty_six_connections_share_a_pool_of_ten,
    a_hundred_and_fifty_concurrent_edits_are_all_present,
    concurrent_writes_of_one_file_are_all_versions,
    six_concurrent_creates_of_one_path_leave_one_good_file,
    concurrent_creates_in_a_new_folder_make_one_folder,
    a_folder_moved_under_concurrent_creates_leaves_no_orphan,
    a_folder_removed_under_concurrent_creates_leaves_no_orphan,
    two_folders_moved_into_each_other_do_not_vanish,
    workspaces_do_not_wait_for_one_another,
];

async fn two_hundred_and_fifty_six_connections_share_a_pool_of_ten(on: On) {
    const CONNECTIONS: usize = 256;
    let server = on.options().env("TOOLREST__DATABASE__POOL_SIZE", "10").start();
    let workspace = on.workspace_at(&server).await;
    workspace.write("/shared.txt", "shared").await;
    let all_are_connected = Arc::new(Barrier::new(CONNECTIONS));
    let mut tasks = JoinSet::new();
    for n in 0..CONNECTIONS {
        let client = server.client();
        let workspace = workspace.through(&client);
        let all_are_connected = all_are_connected.clone();
        tasks.spawn(async move {
            client.send(Request::new("GET", "/health")).await.success();
            all_are_connected.wait().await;
            let path = format!("/{}/{n}.txt", n % 16);
            for round in 0..4 {
                let text = format!("{n} {round}");
                workspace.write(&path, &text).await;
                assert_eq!(workspace.text(&path).await, text);
                assert_eq!(workspace.text("/shared.txt").await, "shared");
                workspace.ok("ls", json!({})).await;
            }
        });
    }
    let all = async {
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("no stall");
    assert_eq!(workspace.paths_below("/").await.len(), CONNECTIONS + 16 + 1);
}

async fn a_hundred_and_fifty_concurrent_edits_are_all_present(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/log.txt", "start\nend\n").await;
    let mut tasks = JoinSet::new();
    for n in 0..150 {
        let workspace = workspace.clone();
        tasks.spawn(async move {
            let args = json!({
                "path": "/log.txt",
                "old_string": "end\n",
                "new_string": format!("marker {n}\nend\n"),
            });
            workspace.ok("edit", args).await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let text = workspace.text("/log.txt").await;
    let markers: BTreeSet<_> =
        text.lines().filter_map(|line| line.strip_prefix("marker ")).map(|n| n.parse::<u32>().unwrap()).collect();
    assert_eq!(markers, (0..150).collect());
    assert_eq!(text.lines().count(), 152, "each once");
    assert_eq!(sequence(&workspace, text_at(&file, "/file_id")).await.len(), 151);
}

/// Gives the numbers of a file's versions, oldest first, having checked that none is missing or doubled.
async fn sequence(workspace: &Workspace, file: &str) -> Vec<i64> {
    let listed = workspace.get(&format!("/files/{file}/versions")).await.success();
    let mut numbers: Vec<_> =
        list_at(&listed, "/versions").iter().map(|version| version["seq"].as_i64().unwrap()).collect();
    numbers.reverse();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    numbers
}

async fn concurrent_writes_of_one_file_are_all_versions(on: On) {
    let workspace = on.workspace().await;
    let file = workspace.write("/a.txt", "first").await;
    let mut tasks = JoinSet::new();
    for n in 0..60 {
        let workspace = workspace.clone();
        tasks.spawn(async move {
            let written = workspace.write("/a.txt", &format!("writer {n}")).await;
            text_at(&written, "/version_id").to_owned()
        });
    }
    let mut ids = BTreeSet::from([text_at(&file, "/version_id").to_owned()]);
    while let Some(id) = tasks.join_next().await {
        ids.insert(id.unwrap());
    }
    let id = text_at(&file, "/file_id");
    assert_eq!(sequence(&workspace, id).await.len(), 61);
    let listed = workspace.get(&format!("/files/{id}/versions")).await.success();
    let kept: BTreeSet<_> =
        list_at(&listed, "/versions").iter().map(|version| text_at(version, "/id").to_owned()).collect();
    assert_eq!(kept, ids);
    let head = text_at(&listed, "/versions/0/hash");
    assert_eq!(workspace.read("/a.txt").await["hash"], head);
}

async fn six_concurrent_creates_of_one_path_leave_one_good_file(on: On) {
    let workspace = on.workspace().await;
    for round in 0..20 {
        let path = format!("/{round}/deep/er.txt");
        let mut tasks = JoinSet::new();
        for n in 0..6 {
            let (workspace, path) = (workspace.clone(), path.clone());
            tasks.spawn(async move {
                let args = json!({"path": path, "content": format!("creator {n}")});
                workspace.call("write", &args).await
            });
        }
        let mut files = BTreeSet::new();
        let mut acknowledged = 0;
        while let Some(reply) = tasks.join_next().await {
            let reply = reply.unwrap();
            if reply.status == 200 {
                acknowledged += 1;
                files.insert(text_at(&reply.result(), "/file_id").to_owned());
            } else {
                reply.refused(409, "CONFLICT");
            }
        }
        assert_eq!(files.len(), 1, "one path, one file: {files:?}");
        let file = files.pop_first().unwrap();
        assert_eq!(sequence(&workspace, &file).await.len(), acknowledged);
        assert!(workspace.text(&path).await.starts_with("creator "));
    }
    assert_eq!(workspace.paths_below("/").await.len(), 60);
}

async fn concurrent_creates_in_a_new_folder_make_one_folder(on: On) {
    let workspace = on.workspace().await;
    let mut tasks = JoinSet::new();
    for n in 0..40 {
        let workspace = workspace.clone();
        tasks.spawn(async move {
            match n % 3 {
                0 => {
                    workspace.write(&format!("/new/folder/{n}"), "text").await;
                }
                1 => {
                    let path = format!("/new/folder/{n}");
                    workspace.ok("touch", json!({"path": path})).await;
                }
                _ => {
                    let path = format!("/new/folder/{n}");
                    workspace.ok("mkdir", json!({"path": path})).await;
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(workspace.paths_in("/").await, ["/new"]);
    assert_eq!(workspace.paths_in("/new").await, ["/new/folder"]);
    assert_eq!(workspace.paths_in("/new/folder").await.len(), 40);
}

/// Asserts that every listed path has its folders listed, and is listed in its folder.
async fn has_no_orphan(workspace: &Workspace) {
    let paths = workspace.paths_below("/").await;
    let known: BTreeSet<_> = paths.iter().map(String::as_str).collect();
    assert_eq!(known.len(), paths.len(), "a path is listed twice: {paths:?}");
    for path in &paths {
        let parent = path.rsplit_once('/').unwrap().0;
        assert!(parent.is_empty() || known.contains(parent), "{path} is an orphan: {paths:?}");
    }
}

async fn a_folder_moved_under_concurrent_creates_leaves_no_orphan(on: On) {
    const WRITERS: usize = 6;
    const FILES: usize = 20;
    let workspace = on.workspace().await;
    workspace.write("/a/sub/first.txt", "first.txt").await;
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let workspace = workspace.clone();
        tasks.spawn(async move {
            let mut acknowledged = Vec::new();
            for n in 0..FILES {
                let name = format!("{writer}-{n}.txt");
                let args = json!({"path": format!("/a/sub/{name}"), "content": name});
                let reply = workspace.call("write", &args).await;
                if reply.status == 200 {
                    acknowledged.push(name);
                } else {
                    reply.refused(409, "CONFLICT");
                }
            }
            acknowledged
        });
    }
    let mover = {
        let workspace = workspace.clone();
        tokio::spawn(async move {
            for n in 0..20 {
                let args = json!({"source": "/a", "destination": format!("/moved-{n}")});
                let reply = workspace.call("mv", &args).await;
                assert!([200, 404, 409].contains(&reply.status), "{reply}");
            }
        })
    };
    let mut acknowledged = vec!["first.txt".to_owned()];
    while let Some(names) = tasks.join_next().await {
        acknowledged.extend(names.unwrap());
    }
    mover.await.unwrap();
    has_no_orphan(&workspace).await;
    let paths = workspace.paths_below("/").await;
    for name in acknowledged {
        let found: Vec<_> = paths.iter().filter(|path| path.ends_with(&format!("/sub/{name}"))).collect();
        assert_eq!(found.len(), 1, "{name} in {paths:?}");
        assert_eq!(workspace.text(found[0]).await, name);
    }
}

async fn a_folder_removed_under_concurrent_creates_leaves_no_orphan(on: On) {
    let workspace = on.workspace().await;
    for round in 0..20 {
        let folder = format!("/{round}");
        workspace.ok("mkdir", json!({"path": folder})).await;
        let mut tasks = JoinSet::new();
        for n in 0..4 {
            let (workspace, folder) = (workspace.clone(), folder.clone());
            tasks.spawn(async move {
                if n == 0 {
                    let args = json!({"path": folder});
                    return workspace.call("rm", &args).await;
                }
                let args = json!({"path": format!("{folder}/{n}.txt"), "content": "text"});
                workspace.call("write", &args).await
            });
        }
        while let Some(reply) = tasks.join_next().await {
            let reply = reply.unwrap();
            assert!([200, 409].contains(&reply.status), "{reply}");
        }
    }
    has_no_orphan(&workspace).await;
}

async fn two_folders_moved_into_each_other_do_not_vanish(on: On) {
    let workspace = on.workspace().await;
    for round in 0..10 {
        let (one, other) = (format!("/{round}/one"), format!("/{round}/other"));
        workspace.write(&format!("{one}/1.txt"), "1").await;
        workspace.write(&format!("{other}/2.txt"), "2").await;
        let there = json!({"source": one, "destination": format!("{other}/")});
        let back = json!({"source": other, "destination": format!("{one}/")});
        let (there, back) = tokio::join!(workspace.call("mv", &there), workspace.call("mv", &back));
        for reply in [&there, &back] {
            assert!([200, 400, 404, 409].contains(&reply.status), "{reply}");
        }
        let left = workspace.paths_below(&format!("/{round}")).await;
        assert_eq!(left.len(), 4, "{left:?}");
    }
    has_no_orphan(&workspace).await;
}

async fn workspaces_do_not_wait_for_one_another(on: On) {
    let account = on.account().await;
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let account = account.clone();
        tasks.spawn(async move {
            let workspace = account.workspace(&format!("Workspace {n}")).await;
            for round in 0..10 {
                workspace.write("/a.txt", &format!("{n} {round}")).await;
            }
            assert_eq!(workspace.text("/a.txt").await, format!("{n} 9"));
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let listed = account.get("/workspaces").await.success();
    assert_eq!(listed["count"], 20);
}
