//! Concurrent operations.

use crate::test_workspace::{TestWorkspace, new_user, on_both_stores, path, put};
use std::collections::BTreeSet;
use tokio::task::JoinSet;
use toolrest_core::{Access, Change, Depth, Destination, ErrorKind, Removal, Role};
use toolrest_store::Location;

on_both_stores!(
    concurrent_changes_leave_no_orphan,
    versions_of_one_file_are_numbered_without_a_gap,
    concurrent_messages_of_a_chat_are_all_stored,
    an_aborted_commit_leaves_the_store_usable,
    a_listing_is_complete_while_the_folder_moves,
    a_deleted_workspace_gets_no_new_member,
);

/// Checks that every file is in an existing folder and that paths are unique.
async fn check_consistency(ws: &TestWorkspace) {
    let paths = ws.paths().await;
    let known: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    assert_eq!(known.len(), paths.len(), "a path stands twice");
    for at in &paths {
        let folder = path(at).parent().unwrap();
        assert!(folder.is_root() || known.contains(folder.as_str()), "{at} is an orphan among {paths:?}");
    }
}

async fn concurrent_changes_leave_no_orphan(ws: TestWorkspace) {
    let mut tasks = JoinSet::new();
    for worker in 0..6_usize {
        let ws = ws.clone();
        tasks.spawn(async move {
            for turn in 0..40_usize {
                let (here, there) = if (turn + worker) % 2 == 0 { ("/a", "/b") } else { ("/b", "/a") };
                let change = match (worker + turn) % 5 {
                    0 | 1 => put(&format!("{here}/deep/{worker}-{turn}"), "text"),
                    2 => Change::Move { from: path(here), to: Destination::Exactly(path(there)) },
                    3 => Change::Move { from: path(&format!("{here}/deep")), to: Destination::Into(path(there)) },
                    _ => Change::Remove { path: path(&format!("{here}/deep")), removal: Removal::Single },
                };
                if let Err(error) = ws.all(vec![change]).await {
                    let expected = [
                        ErrorKind::NotFound,
                        ErrorKind::AlreadyExists,
                        ErrorKind::NotEmpty,
                        ErrorKind::ThroughFile,
                        ErrorKind::Conflict,
                    ];
                    assert!(expected.contains(&error.kind()), "{error:?}");
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    check_consistency(&ws).await;
}

async fn versions_of_one_file_are_numbered_without_a_gap(ws: TestWorkspace) {
    let mut tasks = JoinSet::new();
    for writer in 0..60 {
        let ws = ws.clone();
        tasks.spawn(async move { ws.put("/new/file", &format!("writer {writer}")).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let file = ws.read("/new/file").await.unwrap().entry.id;
    let page = toolrest_store::Page { before: None, limit: 100 };
    let versions = ws.store.versions(ws.access(), file, page).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.seq).collect::<Vec<_>>(), (1..=60).rev().collect::<Vec<_>>());
}

async fn concurrent_messages_of_a_chat_are_all_stored(ws: TestWorkspace) {
    let chat = ws.store.create_chat(ws.access(), "many voices".into()).await.unwrap().id;
    let mut tasks = JoinSet::new();
    for voice in 0..30 {
        let ws = ws.clone();
        tasks.spawn(async move {
            ws.store.add_message(ws.access(), chat, "user".into(), format!("voice {voice}")).await.unwrap()
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let said: BTreeSet<String> =
        ws.store.chat(ws.access(), chat).await.unwrap().messages.into_iter().map(|m| m.content).collect();
    assert_eq!(said.len(), 30);
}

async fn an_aborted_commit_leaves_the_store_usable(ws: TestWorkspace) {
    for turn in 0..50_u64 {
        let aborted = {
            let ws = ws.clone();
            tokio::spawn(async move { ws.all(vec![put(&format!("/x/{turn}/y"), "text")]).await })
        };
        // Aborted at a different point each time, from before the first step to after the last.
        for _ in 0..turn {
            tokio::task::yield_now().await;
        }
        aborted.abort();
        let _ = aborted.await;
    }
    ws.put("/x/after", "well").await;
    assert_eq!(ws.text("/x/after").await, "well");
    check_consistency(&ws).await;
}

async fn a_listing_is_complete_while_the_folder_moves(ws: TestWorkspace) {
    for n in 0..5 {
        ws.put(&format!("/a/{n}"), "text").await;
    }
    let mover = {
        let ws = ws.clone();
        tokio::spawn(async move {
            for turn in 0..60 {
                let (from, to) = if turn % 2 == 0 { ("/a", "/b") } else { ("/b", "/a") };
                let to = Destination::Exactly(path(to));
                ws.all(vec![Change::Move { from: path(from), to }]).await.unwrap();
            }
        })
    };
    while !mover.is_finished() {
        match ws.store.list(ws.access(), &path("/a"), Depth::Children, 100).await {
            Ok(listing) => assert_eq!(listing.entries.len(), 5),
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
        }
    }
    mover.await.unwrap();
}

async fn a_deleted_workspace_gets_no_new_member(ws: TestWorkspace) {
    let guest = new_user(&*ws.store).await;
    let email = ws.store.user(guest).await.unwrap().unwrap().email;
    for _ in 0..20 {
        let workspace = ws.store.create_workspace(ws.user, "short-lived".into(), Location::Database).await.unwrap().id;
        let owner = Access { workspace, user: ws.user, person: ws.user, need: Role::Owner, rules: None };
        let (deleted, _) =
            tokio::join!(ws.store.delete_workspace(owner), ws.store.add_member(owner, email.clone(), Role::Editor));
        deleted.unwrap();
        let access = Access { workspace, user: guest, person: guest, need: Role::Viewer, rules: None };
        assert_eq!(ws.store.authorise(access).await.unwrap_err().kind(), ErrorKind::Forbidden);
    }
}
