//! Records of calls, running calls and server processes.

use crate::test_workspace::{TestWorkspace, call_of, new_user, on_both_stores, path, put};
use std::{borrow::Cow, sync::Arc, time::Duration};
use toolrest_core::{
    Access, CallDetails, CallId, CallRecord, Changeset, CommitId, ErrorKind, RecordPermit, Recorder, Redactor, Role,
    now,
};
use toolrest_store::{CallFilter, CallInfo, CallState, Instance, Page, RecordPlace, WriteBehind};
use uuid::Uuid;

on_both_stores!(
    a_record_is_read_as_it_was_written,
    filters_choose_calls_and_pages_go_on,
    a_commit_records_its_call_with_all_details,
    a_failure_after_the_commit_corrects_the_outcome,
    a_call_with_outside_effects_is_recorded_at_its_end,
    strangers_leave_no_running_call,
    the_calls_of_a_dead_instance_are_interrupted,
    an_instance_that_ends_leaves_nothing,
    a_flushed_record_is_stored,
);

/// A record of a successful call in a workspace.
pub(crate) fn record_of(ws: &TestWorkspace) -> CallRecord {
    CallRecord {
        workspace: ws.workspace,
        id: CallId::new(),
        correlation_id: "correlation".into(),
        user: ws.user,
        key: None,
        toolset: "test".into(),
        tool: "look".into(),
        path: None,
        args: Some("{}".into()),
        outcome: Some("ok".into()),
        message: None,
        started_at: now(),
        duration_us: Some(1),
        commit_id: None,
        has_running_row: false,
    }
}

fn running(ws: &TestWorkspace) -> CallRecord {
    CallRecord { outcome: None, duration_us: None, ..record_of(ws) }
}

async fn listed(ws: &TestWorkspace, filter: CallFilter) -> Vec<CallRecord> {
    ws.store.calls(ws.access(), filter, Page { before: None, limit: 100 }).await.unwrap()
}

async fn ids(ws: &TestWorkspace, filter: CallFilter) -> Vec<CallId> {
    listed(ws, filter).await.into_iter().map(|call| call.id).collect()
}

fn running_only() -> CallFilter {
    CallFilter { state: CallState::Running, ..CallFilter::default() }
}

async fn a_record_is_read_as_it_was_written(ws: TestWorkspace) {
    let record = CallRecord {
        key: Some(Uuid::now_v7()),
        path: Some(path("/d/e.txt")),
        args: Some(r#"{"text":"a\u0000b"}"#.into()),
        outcome: Some("not_found".into()),
        message: Some("File not found: /d/e.txt".into()),
        commit_id: Some(CommitId::new()),
        ..record_of(&ws)
    };
    ws.store.record_calls(vec![record.clone()]).await.unwrap();
    assert_eq!(listed(&ws, CallFilter::default()).await, [record]);
}

async fn filters_choose_calls_and_pages_go_on(ws: TestWorkspace) {
    let key = Uuid::now_v7();
    let old = now().checked_sub(Duration::from_secs(3600)).unwrap();
    let first = CallRecord { path: Some(path("/d")), started_at: old, ..record_of(&ws) };
    let second = CallRecord { path: Some(path("/d/x")), key: Some(key), ..record_of(&ws) };
    let third = CallRecord { path: Some(path("/dx")), outcome: Some("timeout".into()), ..record_of(&ws) };
    let fourth = CallRecord { tool: "other".into(), toolset: "api".into(), ..record_of(&ws) };
    let all = [&first, &second, &third, &fourth];
    ws.store.record_calls(all.iter().map(|&record| record.clone()).collect()).await.unwrap();
    let any = CallFilter::default;
    let recently = now().checked_sub(Duration::from_secs(60)).ok();
    for (filter, expected) in [
        (any(), vec![&fourth, &third, &second, &first]),
        (CallFilter { tool: Some("other".into()), ..any() }, vec![&fourth]),
        (CallFilter { toolset: Some("test".into()), ..any() }, vec![&third, &second, &first]),
        (CallFilter { outcome: Some("timeout".into()), ..any() }, vec![&third]),
        (CallFilter { principal: Some(key), ..any() }, vec![&second]),
        (CallFilter { principal: Some(ws.user.0), ..any() }, vec![&fourth, &third, &first]),
        (CallFilter { path: Some(path("/d")), ..any() }, vec![&second, &first]),
        (CallFilter { path: Some(path("/")), ..any() }, vec![&third, &second, &first]),
        (CallFilter { since: recently, ..any() }, vec![&fourth, &third, &second]),
        (CallFilter { until: recently, ..any() }, vec![&first]),
        (CallFilter { commit: Some(CommitId::new()), ..any() }, vec![]),
        (running_only(), vec![]),
    ] {
        let expected: Vec<CallId> = expected.into_iter().map(|record| record.id).collect();
        assert_eq!(ids(&ws, filter.clone()).await, expected, "{filter:?}");
    }
    let page = Page { before: Some(third.id), limit: 1 };
    let rest = ws.store.calls(ws.access(), any(), page).await.unwrap();
    assert_eq!(rest, [second]);
    let stranger = Access { user: new_user(&*ws.store).await, ..ws.access() };
    assert_eq!(ws.store.calls(stranger, any(), page).await.unwrap_err().kind(), ErrorKind::Forbidden);
}

async fn a_commit_records_its_call_with_all_details(ws: TestWorkspace) {
    let details = CallDetails {
        correlation: "mine".into(),
        key: Some(Uuid::now_v7()),
        path: Some(path("/a")),
        args: Some(r#"{"path":"/a"}"#.into()),
    };
    // The second put is one statement on PostgreSQL.
    for _ in 0..2 {
        let call = CallInfo { details: details.clone(), ..call_of(ws.user) };
        let changes = Changeset { changes: vec![put("/a", &call.id.to_string())], ..Changeset::default() };
        let commit = ws.store.commit(ws.access(), changes, call.clone()).await.unwrap();
        let found = listed(&ws, CallFilter { commit: commit.id, ..CallFilter::default() }).await;
        let expected = CallRecord {
            id: call.id,
            correlation_id: "mine".into(),
            key: details.key,
            tool: "test".into(),
            path: details.path.clone(),
            args: details.args.clone(),
            started_at: found[0].started_at,
            duration_us: found[0].duration_us,
            commit_id: commit.id,
            ..record_of(&ws)
        };
        assert_eq!(found, [expected]);
    }
}

async fn a_failure_after_the_commit_corrects_the_outcome(ws: TestWorkspace) {
    let call = call_of(ws.user);
    let changes = Changeset { changes: vec![put("/a", "text")], ..Changeset::default() };
    let commit = ws.store.commit(ws.access(), changes, call.clone()).await.unwrap();
    let (outcome, message) = (Some(Cow::Borrowed("timeout")), Some("too late".to_owned()));
    let late = CallRecord { id: call.id, outcome, message, ..record_of(&ws) };
    ws.store.record_calls(vec![late]).await.unwrap();
    let [found] = &listed(&ws, CallFilter::default()).await[..] else { panic!("one record") };
    assert_eq!((found.outcome.as_deref(), found.commit_id), (Some("timeout"), commit.id));
}

async fn a_call_with_outside_effects_is_recorded_at_its_end(ws: TestWorkspace) {
    let instance = Uuid::now_v7();
    let call = running(&ws);
    ws.store.record_running(ws.access(), call.clone(), instance).await.unwrap();
    assert_eq!(listed(&ws, running_only()).await, std::slice::from_ref(&call));
    for content in ["first", "second"] {
        let info = CallInfo { id: call.id, record: RecordPlace::Separately, ..call_of(ws.user) };
        let changes = Changeset { changes: vec![put("/a", content)], ..Changeset::default() };
        ws.store.commit(ws.access(), changes, info).await.unwrap();
    }
    assert_eq!(listed(&ws, CallFilter::default()).await, [], "its commits do not record it");
    let end = CallRecord { has_running_row: true, id: call.id, ..record_of(&ws) };
    ws.store.record_calls(vec![end.clone()]).await.unwrap();
    assert_eq!(ids(&ws, running_only()).await, []);
    assert_eq!(listed(&ws, CallFilter::default()).await, [CallRecord { has_running_row: false, ..end }]);
}

async fn strangers_leave_no_running_call(ws: TestWorkspace) {
    let stranger = Access { user: new_user(&*ws.store).await, ..ws.access() };
    let refused = ws.store.record_running(stranger, running(&ws), Uuid::now_v7()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Forbidden);
    let too_low = ws.store.record_running(Access { need: Role::Owner, ..ws.access() }, running(&ws), Uuid::now_v7());
    let is_owner = too_low.await.is_ok();
    assert_eq!(ids(&ws, running_only()).await.len(), usize::from(is_owner));
}

async fn the_calls_of_a_dead_instance_are_interrupted(ws: TestWorkspace) {
    let (living, unknown) = (Instance { id: Uuid::now_v7(), node: "here".into() }, Uuid::now_v7());
    ws.store.heartbeat(&living).await.unwrap();
    ws.store.heartbeat(&living).await.unwrap();
    let (of_living, of_dead) = (running(&ws), running(&ws));
    ws.store.record_running(ws.access(), of_living.clone(), living.id).await.unwrap();
    ws.store.record_running(ws.access(), of_dead.clone(), unknown).await.unwrap();
    let info = CallInfo { id: of_dead.id, record: RecordPlace::Separately, ..call_of(ws.user) };
    let changes = Changeset { changes: vec![put("/a", "by the dead")], ..Changeset::default() };
    let commit = ws.store.commit(ws.access(), changes, info).await.unwrap();
    assert_eq!(ws.store.interrupt_abandoned_calls().await.unwrap(), 1);
    assert_eq!(ws.store.interrupt_abandoned_calls().await.unwrap(), 0);
    assert_eq!(ids(&ws, running_only()).await, [of_living.id]);
    let [found] = &listed(&ws, CallFilter::default()).await[..] else { panic!("one record") };
    assert_eq!((found.id, found.outcome.as_deref(), found.commit_id), (of_dead.id, Some("interrupted"), commit.id));
    // It was not dead after all.
    let end = CallRecord { id: of_dead.id, has_running_row: true, ..record_of(&ws) };
    ws.store.record_calls(vec![end]).await.unwrap();
    let [found] = &listed(&ws, CallFilter::default()).await[..] else { panic!("one record") };
    assert_eq!((found.outcome.as_deref(), found.commit_id), (Some("ok"), commit.id));
}

async fn an_instance_that_ends_leaves_nothing(ws: TestWorkspace) {
    let instance = Instance { id: Uuid::now_v7(), node: "here".into() };
    ws.store.heartbeat(&instance).await.unwrap();
    let call = running(&ws);
    ws.store.record_running(ws.access(), call.clone(), instance.id).await.unwrap();
    ws.store.end_instance(instance.id).await.unwrap();
    assert_eq!(ids(&ws, running_only()).await, []);
    let interrupted = CallFilter { outcome: Some("interrupted".into()), ..CallFilter::default() };
    assert_eq!(ids(&ws, interrupted).await, [call.id]);
}

async fn a_flushed_record_is_stored(ws: TestWorkspace) {
    let store: Arc<dyn toolrest_store::Store> = Arc::clone(&ws.store);
    let recorder = WriteBehind::start(store, Uuid::now_v7(), Redactor::new(b"key"));
    // PostgreSQL refuses this text; the other records are stored all the same.
    let poisoned = CallRecord { tool: "\0".into(), ..record_of(&ws) };
    let good: Vec<CallRecord> = (0..20).map(|_| record_of(&ws)).collect();
    recorder.record(good[0].clone(), RecordPermit::default());
    recorder.record(poisoned.clone(), RecordPermit::default());
    for record in &good[1..] {
        recorder.record(record.clone(), recorder.reserve().await);
    }
    recorder.flush().await;
    let mut stored = ids(&ws, CallFilter::default()).await;
    stored.retain(|id| *id != poisoned.id);
    assert_eq!(stored, good.iter().rev().map(|record| record.id).collect::<Vec<_>>());
    recorder.close().await;
}
