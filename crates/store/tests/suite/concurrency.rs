//! What many do at once.

use crate::room::{Room, new_user, on_both_stores, path, put};
use std::collections::BTreeSet;
use tokio::task::JoinSet;
use toolrest_core::{Access, Change, Depth, Destination, ErrorKind, Removal, Role};
use toolrest_store::Place;

on_both_stores!(
    writers_movers_and_removers_leave_no_orphan,
    versions_of_one_file_are_numbered_without_a_gap,
    messages_of_one_chat_are_all_kept,
    a_commit_that_is_given_up_leaves_the_store_well,
    a_listing_shows_a_folder_whole_while_it_moves,
    a_deleted_workspace_lets_nobody_in,
);

/// Every file must stand in a folder that is there, and every path be unique.
async fn is_whole(room: &Room) {
    let paths = room.paths().await;
    let known: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    assert_eq!(known.len(), paths.len(), "a path stands twice");
    for at in &paths {
        let folder = path(at).parent().unwrap();
        assert!(folder.is_root() || known.contains(folder.as_str()), "{at} is an orphan among {paths:?}");
    }
}

async fn writers_movers_and_removers_leave_no_orphan(room: Room) {
    let mut tasks = JoinSet::new();
    for worker in 0..6_usize {
        let room = room.clone();
        tasks.spawn(async move {
            for turn in 0..40_usize {
                let (here, there) = if (turn + worker) % 2 == 0 { ("/a", "/b") } else { ("/b", "/a") };
                let change = match (worker + turn) % 5 {
                    0 | 1 => put(&format!("{here}/deep/{worker}-{turn}"), "text"),
                    2 => Change::Move { from: path(here), to: Destination::Exactly(path(there)) },
                    3 => Change::Move { from: path(&format!("{here}/deep")), to: Destination::Into(path(there)) },
                    _ => Change::Remove { path: path(&format!("{here}/deep")), removal: Removal::Single },
                };
                if let Err(error) = room.all(vec![change]).await {
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
    is_whole(&room).await;
}

async fn versions_of_one_file_are_numbered_without_a_gap(room: Room) {
    let mut tasks = JoinSet::new();
    for writer in 0..60 {
        let room = room.clone();
        tasks.spawn(async move { room.put("/new/file", &format!("writer {writer}")).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let file = room.read("/new/file").await.unwrap().entry.id;
    let page = toolrest_store::Page { before: None, limit: 100 };
    let versions = room.store.versions(room.access(), file, page).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.seq).collect::<Vec<_>>(), (1..=60).rev().collect::<Vec<_>>());
}

async fn messages_of_one_chat_are_all_kept(room: Room) {
    let chat = room.store.create_chat(room.access(), "many voices".into()).await.unwrap().id;
    let mut tasks = JoinSet::new();
    for voice in 0..30 {
        let room = room.clone();
        tasks.spawn(async move {
            room.store.add_message(room.access(), chat, "user".into(), format!("voice {voice}")).await.unwrap()
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let said: BTreeSet<String> =
        room.store.chat(room.access(), chat).await.unwrap().messages.into_iter().map(|m| m.content).collect();
    assert_eq!(said.len(), 30);
}

async fn a_commit_that_is_given_up_leaves_the_store_well(room: Room) {
    for turn in 0..50_u64 {
        let doomed = {
            let room = room.clone();
            tokio::spawn(async move { room.all(vec![put(&format!("/x/{turn}/y"), "text")]).await })
        };
        // Given up at a different point each time, from before the first step to after the last.
        for _ in 0..turn {
            tokio::task::yield_now().await;
        }
        doomed.abort();
        let _ = doomed.await;
    }
    room.put("/x/after", "well").await;
    assert_eq!(room.text("/x/after").await, "well");
    is_whole(&room).await;
}

async fn a_listing_shows_a_folder_whole_while_it_moves(room: Room) {
    for n in 0..5 {
        room.put(&format!("/a/{n}"), "text").await;
    }
    let mover = {
        let room = room.clone();
        tokio::spawn(async move {
            for turn in 0..60 {
                let (from, to) = if turn % 2 == 0 { ("/a", "/b") } else { ("/b", "/a") };
                let to = Destination::Exactly(path(to));
                room.all(vec![Change::Move { from: path(from), to }]).await.unwrap();
            }
        })
    };
    while !mover.is_finished() {
        match room.store.list(room.access(), &path("/a"), Depth::Children, 100).await {
            Ok(listing) => assert_eq!(listing.entries.len(), 5),
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
        }
    }
    mover.await.unwrap();
}

async fn a_deleted_workspace_lets_nobody_in(room: Room) {
    let guest = new_user(&*room.store).await;
    let email = room.store.user(guest).await.unwrap().unwrap().email;
    for _ in 0..20 {
        let workspace = room.store.create_workspace(room.user, "short-lived".into(), Place::Database).await.unwrap().id;
        let owner = Access { workspace, user: room.user, need: Role::Owner };
        let (deleted, _) =
            tokio::join!(room.store.delete_workspace(owner), room.store.add_member(owner, email.clone(), Role::Editor));
        deleted.unwrap();
        let access = Access { workspace, user: guest, need: Role::Viewer };
        assert_eq!(room.store.authorise(access).await.unwrap_err().kind(), ErrorKind::Forbidden);
    }
}
