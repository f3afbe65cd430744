use super::*;

fn usage(per_workspace: u64, per_account: u64) -> Arc<Usage> {
    let quotas = Quotas {
        bytes_per_workspace: Some(per_workspace),
        bytes_per_account: Some(per_account),
        workspaces_per_account: Some(1),
    };
    Usage::new(quotas)
}

fn stored(usage: &Usage, owner: UserId, bytes: i64, of_owner: i64) -> WorkspaceId {
    let workspace = WorkspaceId::new();
    usage.read(vec![StoredUse { workspace, owner, bytes, of_owner }]);
    workspace
}

fn is_refused(usage: &Arc<Usage>, workspace: WorkspaceId, bytes: i64) -> bool {
    usage.try_reserve(workspace, bytes).is_err_and(|error| matches!(error, StoreError::QuotaExceeded { .. }))
}

#[test]
fn pending_writes_count_until_they_are_settled_or_dropped() {
    let usage = usage(100, 1000);
    let workspace = stored(&usage, UserId::new(), 40, 40);
    let first = usage.try_reserve(workspace, 60).unwrap();
    assert!(is_refused(&usage, workspace, 1));
    drop(first);
    let second = usage.try_reserve(workspace, 60).unwrap();
    second.count_written(10);
    assert!(is_refused(&usage, workspace, 51));
    assert!(!is_refused(&usage, workspace, 50));
}

#[test]
fn a_change_that_stores_nothing_is_never_refused() {
    let usage = usage(100, 100);
    let workspace = stored(&usage, UserId::new(), 500, 500);
    assert!(is_refused(&usage, workspace, 1));
    assert!(!is_refused(&usage, workspace, 0));
}

#[test]
fn the_workspaces_of_an_owner_count_together() {
    let usage = usage(100, 150);
    let owner = UserId::new();
    let (first, second) = (stored(&usage, owner, 0, 0), stored(&usage, owner, 0, 0));
    usage.try_reserve(first, 100).unwrap().count_written(100);
    assert!(is_refused(&usage, second, 51));
    let error = usage.try_reserve(second, 51).err().unwrap();
    assert!(matches!(error, StoreError::QuotaExceeded { limit: 150, used: 100, .. }), "{error:?}");
    let strangers = stored(&usage, UserId::new(), 0, 0);
    assert!(!is_refused(&usage, strangers, 100));
}

#[test]
fn usage_added_to_the_database_is_counted_once() {
    let usage = usage(100, 100);
    let owner = UserId::new();
    let workspace = stored(&usage, owner, 0, 0);
    usage.try_reserve(workspace, 60).unwrap().count_written(60);
    let added = usage.take_added();
    assert_eq!(added, [(workspace, 60)]);
    assert!(is_refused(&usage, workspace, 41), "while it is added it still counts");
    usage.put_back(&added);
    assert_eq!(usage.take_added(), added, "what could not be added is added the next time");
    usage.read(vec![StoredUse { workspace, owner, bytes: 60, of_owner: 60 }]);
    assert!(is_refused(&usage, workspace, 41));
    assert!(!is_refused(&usage, workspace, 40));
    assert!(usage.take_added().is_empty());
}
