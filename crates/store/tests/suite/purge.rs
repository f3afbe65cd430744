//! What is past its time goes for good, and nothing else does.

use crate::room::{Room, new_user, on_both_stores, path, put};
use std::time::{Duration, Instant};
use toolrest_core::{
    Access, CallId, CallRecord, Change, ErrorKind, Removal, Role, Timestamp, VersionId, WorkspaceId, now,
};
use toolrest_store::{Page, Place, Purge, Purged, Quotas};

on_both_stores!(
    trash_goes_with_its_versions_and_the_contents_nobody_else_needs,
    what_is_younger_stays,
    a_content_that_is_written_again_while_it_is_purged_stays_readable,
    records_of_calls_go_by_their_age,
    records_of_strangers_are_not_kept,
    a_deleted_workspace_is_closed_at_once_and_emptied_by_the_purge,
);

fn later() -> Timestamp {
    now().checked_add(Duration::from_secs(1)).unwrap()
}

fn trash_before(before: Timestamp) -> Purge {
    Purge { trash_before: Some(before), ..Purge::default() }
}

async fn remove(room: &Room, at: &str) {
    room.all(vec![Change::Remove { path: path(at), removal: Removal::Single }]).await.unwrap();
}

async fn trash_goes_with_its_versions_and_the_contents_nobody_else_needs(room: Room) {
    room.put("/gone", "only here").await;
    room.put("/gone", "shared").await;
    room.put("/kept", "shared").await;
    let gone = room.read("/gone").await.unwrap().entry;
    remove(&room, "/gone").await;
    let purged = room.store.purge(trash_before(later())).await.unwrap();
    assert_eq!((purged.files, purged.blobs), (1, 1));
    assert_eq!(room.text("/kept").await, "shared");
    let access = room.access();
    assert_eq!(room.store.file(access, gone.id, i64::MAX).await.unwrap_err().kind(), ErrorKind::NotFound);
    let version: VersionId = gone.version.unwrap();
    assert_eq!(room.store.version(access, gone.id, version, i64::MAX).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(room.all(vec![Change::Restore(gone.id)]).await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Storage is counted until it is removed for good, and then it is free.
async fn purged_contents_make_room(room: Room) {
    let text = |letter: &str| letter.repeat(6_000);
    room.put("/a", &text("a")).await;
    let write = async || room.all(vec![put("/b", &text("b"))]).await;
    assert_eq!(write().await.unwrap_err().kind(), ErrorKind::QuotaExceeded);
    room.store.maintain().await.unwrap();
    remove(&room, "/a").await;
    assert_eq!(write().await.unwrap_err().kind(), ErrorKind::QuotaExceeded, "the trash counts");
    room.store.purge(trash_before(later())).await.unwrap();
    // What is known of the storage is read again when it is older than a second.
    let until = Instant::now() + Duration::from_secs(20);
    while let Err(error) = write().await {
        assert!(Instant::now() < until, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    room.store.maintain().await.unwrap();
    assert_eq!(room.all(vec![put("/c", &text("c"))]).await.unwrap_err().kind(), ErrorKind::QuotaExceeded);
}

const ROOM_FOR_ONE: Quotas =
    Quotas { bytes_per_workspace: Some(10_000), bytes_per_account: Some(10_000), workspaces_per_account: None };

#[tokio::test]
async fn purged_contents_make_room_on_sqlite() {
    purged_contents_make_room(Room::on_sqlite_with(ROOM_FOR_ONE).await).await;
}

#[tokio::test]
async fn purged_contents_make_room_on_postgres() {
    purged_contents_make_room(Room::on_postgres_with(ROOM_FOR_ONE).await.0).await;
}

async fn what_is_younger_stays(room: Room) {
    room.put("/a", "text").await;
    let file = room.read("/a").await.unwrap().entry.id;
    remove(&room, "/a").await;
    let earlier = now().checked_sub(Duration::from_secs(60)).unwrap();
    assert_eq!(room.store.purge(trash_before(earlier)).await.unwrap(), Purged::default());
    assert_eq!(room.store.purge(Purge::default()).await.unwrap(), Purged::default());
    room.all(vec![Change::Restore(file)]).await.unwrap();
    assert_eq!(room.text("/a").await, "text");
}

async fn a_content_that_is_written_again_while_it_is_purged_stays_readable(room: Room) {
    for turn in 0..20 {
        let (trash, again) = (format!("/trash-{turn}"), format!("/again-{turn}"));
        room.put(&trash, &format!("content {turn}")).await;
        remove(&room, &trash).await;
        let content = format!("content {turn}");
        // By the short way, and by the longer one, which has a folder to make.
        let deep = format!("/deep-{turn}/again");
        let (purged, written, written_deep) = tokio::join!(
            room.store.purge(trash_before(later())),
            room.all(vec![put(&again, &content)]),
            room.all(vec![put(&deep, &content)])
        );
        purged.unwrap();
        written.unwrap();
        written_deep.unwrap();
        assert_eq!(room.text(&again).await, content);
        assert_eq!(room.text(&deep).await, content);
    }
}

fn record(room: &Room, started_at: Timestamp) -> CallRecord {
    CallRecord {
        workspace: room.workspace,
        id: CallId::new(),
        toolset: "test".into(),
        tool: "look".into(),
        caller: room.user,
        started_at,
        duration_us: 1,
        outcome: "ok".into(),
        commit_id: None,
    }
}

async fn records_of_calls_go_by_their_age(room: Room) {
    let old = record(&room, now().checked_sub(Duration::from_secs(3600)).unwrap());
    let young = record(&room, now());
    room.store.record_calls(vec![old, young.clone()]).await.unwrap();
    room.store.record_calls(vec![young.clone()]).await.unwrap();
    let limit = now().checked_sub(Duration::from_secs(60)).unwrap();
    let purged = room.store.purge(Purge { calls_before: Some(limit), ..Purge::default() }).await.unwrap();
    assert_eq!(purged.calls, 1);
    assert_eq!(room.store.calls(room.access(), Page { before: None, limit: 9 }).await.unwrap(), [young]);
}

async fn records_of_strangers_are_not_kept(room: Room) {
    let nowhere = CallRecord { workspace: WorkspaceId::new(), ..record(&room, now()) };
    room.store.record_calls(vec![nowhere]).await.unwrap();
    assert!(room.store.calls(room.access(), Page { before: None, limit: 9 }).await.unwrap().is_empty());
}

async fn a_deleted_workspace_is_closed_at_once_and_emptied_by_the_purge(room: Room) {
    room.put("/a/b", "text").await;
    let other = new_user(&*room.store).await;
    let other_room = room.store.create_workspace(other, "other".into(), Place::Database).await.unwrap().id;
    let owner = Access { need: Role::Owner, ..room.access() };
    room.store.delete_workspace(owner).await.unwrap();
    assert_eq!(room.read("/a/b").await.unwrap_err().kind(), ErrorKind::Forbidden);
    assert!(room.store.workspaces_of(room.user).await.unwrap().is_empty());
    assert_eq!(room.store.purge(Purge::default()).await.unwrap().workspaces, 1);
    assert_eq!(room.store.purge(Purge::default()).await.unwrap().workspaces, 0);
    let access = Access { workspace: other_room, user: other, need: Role::Viewer };
    assert!(room.store.stat(access, &path("/")).await.unwrap().is_some(), "the other workspace is untouched");
}
