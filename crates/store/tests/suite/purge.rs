//! A purge deletes expired data and nothing else.

use crate::test_workspace::{TestWorkspace, new_user, on_both_stores, path, put};
use std::time::{Duration, Instant};
use toolrest_core::{Access, CallRecord, Change, ErrorKind, Removal, Role, Timestamp, VersionId, WorkspaceId, now};
use toolrest_store::{CallFilter, Location, Page, Purge, Purged, Quotas};

on_both_stores!(
    a_purge_deletes_trash_with_its_versions_and_unshared_contents,
    a_purge_keeps_younger_data,
    a_content_that_is_written_again_while_it_is_purged_stays_readable,
    a_purge_deletes_old_records_of_calls,
    records_of_unknown_workspaces_are_dropped,
    a_deleted_workspace_is_closed_at_once_and_emptied_by_the_purge,
);

fn later() -> Timestamp {
    now().checked_add(Duration::from_secs(1)).unwrap()
}

fn trash_before(before: Timestamp) -> Purge {
    Purge { trash_before: Some(before), ..Purge::default() }
}

async fn remove(ws: &TestWorkspace, at: &str) {
    ws.all(vec![Change::Remove { path: path(at), removal: Removal::Single }]).await.unwrap();
}

async fn a_purge_deletes_trash_with_its_versions_and_unshared_contents(ws: TestWorkspace) {
    ws.put("/gone", "only here").await;
    ws.put("/gone", "shared").await;
    ws.put("/kept", "shared").await;
    let gone = ws.read("/gone").await.unwrap().entry;
    remove(&ws, "/gone").await;
    let purged = ws.store.purge(trash_before(later())).await.unwrap();
    assert_eq!((purged.files, purged.blobs), (1, 1));
    assert_eq!(ws.text("/kept").await, "shared");
    let access = ws.access();
    assert_eq!(ws.store.file(access, gone.id, i64::MAX).await.unwrap_err().kind(), ErrorKind::NotFound);
    let version: VersionId = gone.version.unwrap();
    assert_eq!(ws.store.version(access, gone.id, version, i64::MAX).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(ws.all(vec![Change::Restore(gone.id)]).await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Deleted contents count until they are purged.
async fn purged_contents_free_the_quota(ws: TestWorkspace) {
    let text = |letter: &str| letter.repeat(6_000);
    ws.put("/a", &text("a")).await;
    let write = async || ws.all(vec![put("/b", &text("b"))]).await;
    assert_eq!(write().await.unwrap_err().kind(), ErrorKind::QuotaExceeded);
    ws.store.maintain().await.unwrap();
    remove(&ws, "/a").await;
    assert_eq!(write().await.unwrap_err().kind(), ErrorKind::QuotaExceeded, "the trash counts");
    ws.store.purge(trash_before(later())).await.unwrap();
    // The usage is read again when it is older than a second.
    let until = Instant::now() + Duration::from_secs(20);
    while let Err(error) = write().await {
        assert!(Instant::now() < until, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ws.store.maintain().await.unwrap();
    assert_eq!(ws.all(vec![put("/c", &text("c"))]).await.unwrap_err().kind(), ErrorKind::QuotaExceeded);
}

const QUOTA_FOR_ONE_FILE: Quotas =
    Quotas { bytes_per_workspace: Some(10_000), bytes_per_account: Some(10_000), workspaces_per_account: None };

#[tokio::test]
async fn purged_contents_free_the_quota_on_sqlite() {
    purged_contents_free_the_quota(TestWorkspace::on_sqlite_with(QUOTA_FOR_ONE_FILE).await).await;
}

#[tokio::test]
async fn purged_contents_free_the_quota_on_postgres() {
    purged_contents_free_the_quota(TestWorkspace::on_postgres_with(QUOTA_FOR_ONE_FILE).await.0).await;
}

async fn a_purge_keeps_younger_data(ws: TestWorkspace) {
    ws.put("/a", "text").await;
    let file = ws.read("/a").await.unwrap().entry.id;
    remove(&ws, "/a").await;
    let earlier = now().checked_sub(Duration::from_secs(60)).unwrap();
    assert_eq!(ws.store.purge(trash_before(earlier)).await.unwrap(), Purged::default());
    assert_eq!(ws.store.purge(Purge::default()).await.unwrap(), Purged::default());
    ws.all(vec![Change::Restore(file)]).await.unwrap();
    assert_eq!(ws.text("/a").await, "text");
}

async fn a_content_that_is_written_again_while_it_is_purged_stays_readable(ws: TestWorkspace) {
    for turn in 0..20 {
        let (trash, again) = (format!("/trash-{turn}"), format!("/again-{turn}"));
        ws.put(&trash, &format!("content {turn}")).await;
        remove(&ws, &trash).await;
        let content = format!("content {turn}");
        // By the one-statement put, and by the plan, because a folder has to be created.
        let deep = format!("/deep-{turn}/again");
        let (purged, written, written_deep) = tokio::join!(
            ws.store.purge(trash_before(later())),
            ws.all(vec![put(&again, &content)]),
            ws.all(vec![put(&deep, &content)])
        );
        purged.unwrap();
        written.unwrap();
        written_deep.unwrap();
        assert_eq!(ws.text(&again).await, content);
        assert_eq!(ws.text(&deep).await, content);
    }
}

fn record(ws: &TestWorkspace, started_at: Timestamp) -> CallRecord {
    CallRecord { started_at, ..crate::calls::record_of(ws) }
}

async fn a_purge_deletes_old_records_of_calls(ws: TestWorkspace) {
    let old = record(&ws, now().checked_sub(Duration::from_secs(3600)).unwrap());
    let young = record(&ws, now());
    ws.store.record_calls(vec![old, young.clone()]).await.unwrap();
    ws.store.record_calls(vec![young.clone()]).await.unwrap();
    let limit = now().checked_sub(Duration::from_secs(60)).unwrap();
    let purged = ws.store.purge(Purge { calls_before: Some(limit), ..Purge::default() }).await.unwrap();
    assert_eq!(purged.calls, 1);
    assert_eq!(
        ws.store.calls(ws.access(), CallFilter::default(), Page { before: None, limit: 9 }).await.unwrap(),
        [young]
    );
}

async fn records_of_unknown_workspaces_are_dropped(ws: TestWorkspace) {
    let nowhere = CallRecord { workspace: WorkspaceId::new(), ..record(&ws, now()) };
    ws.store.record_calls(vec![nowhere]).await.unwrap();
    assert!(
        ws.store.calls(ws.access(), CallFilter::default(), Page { before: None, limit: 9 }).await.unwrap().is_empty()
    );
}

async fn a_deleted_workspace_is_closed_at_once_and_emptied_by_the_purge(ws: TestWorkspace) {
    ws.put("/a/b", "text").await;
    let other = new_user(&*ws.store).await;
    let other_workspace = ws.store.create_workspace(other, "other".into(), Location::Database).await.unwrap().id;
    let owner = Access { need: Role::Owner, ..ws.access() };
    ws.store.delete_workspace(owner).await.unwrap();
    assert_eq!(ws.read("/a/b").await.unwrap_err().kind(), ErrorKind::Forbidden);
    assert!(ws.store.workspaces_of(ws.user).await.unwrap().is_empty());
    assert_eq!(ws.store.purge(Purge::default()).await.unwrap().workspaces, 1);
    assert_eq!(ws.store.purge(Purge::default()).await.unwrap().workspaces, 0);
    let access = Access { workspace: other_workspace, user: other, person: other, need: Role::Viewer, rules: None };
    assert!(ws.store.stat(access, &path("/")).await.unwrap().is_some(), "the other workspace is untouched");
}
