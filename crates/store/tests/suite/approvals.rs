//! Approvals: every transition, under concurrency, and the commits that spend them.

use crate::test_workspace::{TestWorkspace, call_of, new_user, on_both_stores, path, put};
use std::time::{Duration, Instant as Clock};
use tokio::task::JoinSet;
use toolrest_core::{
    Access, Action, ActionSet, Approval, ApprovalId, ApprovalPreview, ApprovalState, Ask, Call, CallId, Caller,
    Changeset, CommitId, Decided, ErrorKind, Execution, FeedRecord, FeedSources, JsonText, Key, KeyId, NewApproval,
    NewDecision, NewGrant, Role, ToolsetMask, Verdict, now,
};
use toolrest_store::plan::Plan;
use toolrest_store::{
    CallInfo, FolderCommit, Instance, KeyState, Location, MAX_OPEN_APPROVALS, NewKey, Page, Period, Purge, StoreError,
};
use uuid::Uuid;

on_both_stores!(
    an_approval_is_asked_decided_and_executed,
    a_repeated_call_attaches_to_the_open_approval,
    calls_asked_at_once_become_one_approval,
    a_caller_has_a_limited_number_of_open_approvals,
    the_open_approvals_of_a_person_have_a_limited_size,
    what_an_ended_approval_shows_is_shortened,
    decisions_follow_the_table_of_states,
    of_two_deciders_at_once_one_wins,
    edited_arguments_replace_those_of_the_call_and_are_redacted_at_the_end,
    a_changed_preview_asks_again_with_the_next_revision,
    only_one_process_of_the_right_node_claims_a_call,
    an_approval_expires_unless_it_is_executed,
    a_commit_spends_the_approval_once,
    a_process_that_wakes_up_late_commits_nothing,
    an_interrupted_call_with_a_commit_is_done,
    the_commit_of_a_folder_is_recorded_with_its_approval,
    the_result_of_an_ended_call_is_given_to_those_who_repeat_it,
    the_caller_withdraws_and_others_cannot,
    keys_see_only_their_own_approvals_and_decide_nothing,
    approvals_of_ended_keys_and_members_are_cancelled,
    a_grant_is_given_with_the_decision_and_can_be_revoked,
    a_thousand_pending_approvals_are_listed_fast,
    subscribers_are_woken_by_approvals,
    approvals_are_part_of_the_feed,
    the_wait_for_a_decision_is_measured,
    ended_approvals_are_purged_with_the_records_of_calls,
    approvals_are_purged_with_their_workspace,
);

const HOUR: Duration = Duration::from_secs(3600);
const NODE: &str = "here";

fn preview(diff: &str) -> ApprovalPreview {
    ApprovalPreview { diff: diff.into(), command: None, shown: format!("hash of {diff}") }
}

fn asks() -> Vec<Ask> {
    let (rule, because) = (Some("ask write(**)".to_owned()), "it is asked".to_owned());
    let (subject, grant) = ("/a".to_owned(), Some("**".to_owned()));
    vec![Ask { action: Action::Write, subject, rule, because, grant, approvers: Vec::new() }]
}

fn decision(verdict: Verdict) -> Decided {
    let (reason, args, redacted_args, grants) = (Some("because".to_owned()), None, None, Vec::new());
    Decided { verdict, by: None, via: "api".into(), reason, args, redacted_args, preview: None, grants }
}

fn storable(decided: Decided) -> NewDecision {
    NewDecision { revision: None, decided, address: None, rules: None }
}

fn ok() -> Execution {
    Execution { outcome: "ok".into(), result: Some("fine".into()), status: 200, ..Execution::default() }
}

fn page(limit: u32) -> Page<ApprovalId> {
    Page { before: None, limit }
}

/// An approval of a person's call.
fn new(ws: &TestWorkspace, attach_key: &str) -> NewApproval {
    new_of(ws, Caller::person(ws.user), attach_key)
}

fn new_of(ws: &TestWorkspace, caller: Caller, attach_key: &str) -> NewApproval {
    let call = Call {
        id: CallId::new(),
        correlation: "mine".into(),
        toolset: "test".into(),
        tool: "write".into(),
        args: JsonText::parse(r#"{"text":"secret"}"#.into()).unwrap(),
        caller,
        workspace: ws.workspace,
        session: String::new(),
    };
    NewApproval {
        call,
        session: "session".into(),
        attach_key: attach_key.into(),
        reason: Some("to help".into()),
        asks: asks(),
        preview: preview("+a\0"),
        node: None,
        redacted_args: r#"{"text":"…"}"#.into(),
        expires_at: now().checked_add(HOUR).unwrap(),
    }
}

impl TestWorkspace {
    async fn ask(&self, attach_key: &str) -> Approval {
        self.store.ask(self.access(), new(self, attach_key)).await.unwrap().0
    }

    async fn decide(&self, id: ApprovalId, verdict: Verdict) -> Result<Approval, StoreError> {
        self.store
            .decide(self.access(), id, NewDecision { address: Some("::1".into()), ..storable(decision(verdict)) })
            .await
    }

    /// Asks, approves and claims.
    async fn executing(&self, attach_key: &str, instance: Uuid) -> Approval {
        let id = self.ask(attach_key).await.id;
        self.decide(id, Verdict::Approve).await.unwrap();
        self.store.claim(self.workspace, id, instance, NODE).await.unwrap().unwrap()
    }

    async fn found(&self, id: ApprovalId) -> Approval {
        self.store.approval(self.access(), id).await.unwrap().0
    }

    async fn state(&self, id: ApprovalId) -> ApprovalState {
        self.found(id).await.state
    }

    async fn kinds(&self, id: ApprovalId) -> Vec<String> {
        self.store.approval(self.access(), id).await.unwrap().1.into_iter().map(|event| event.kind).collect()
    }

    /// Commits for an approved call.
    async fn commit_approved(&self, approval: &Approval, instance: Uuid, at: &str) -> Result<CommitId, StoreError> {
        let call = CallInfo { id: approval.call.id, approval: Some((approval.id, instance)), ..call_of(self.user) };
        let changes = Changeset { changes: vec![put(at, "text")], ..Changeset::default() };
        Ok(self.store.commit(self.access(), changes, call).await?.id.unwrap())
    }

    /// Makes a key, and returns its caller.
    async fn key_caller(&self) -> Caller {
        let expires_at = now().checked_add(HOUR).unwrap();
        let actions = ActionSet::all();
        let new = NewKey { name: "key".into(), toolsets: vec!["file".into()], actions, expires_at };
        let id = self.store.create_key(self.access(), new).await.unwrap().id;
        let key = Key { id, workspace: self.workspace, actions, toolsets: ToolsetMask::default() };
        Caller { user: self.user, key: Some(key) }
    }
}

fn key_of(caller: Caller) -> KeyId {
    caller.key_id().unwrap()
}

fn is_conflict(result: Result<Approval, StoreError>) -> bool {
    result.is_err_and(|error| matches!(error, StoreError::ApprovalConflict { .. }))
}

async fn an_approval_is_asked_decided_and_executed(ws: TestWorkspace) {
    let (asked, is_new) = ws.store.ask(ws.access(), new(&ws, "a")).await.unwrap();
    assert!(is_new);
    let found = ws.found(asked.id).await;
    assert_eq!((found.state, found.revision, found.session.as_str()), (ApprovalState::Pending, 1, "session"));
    assert_eq!((found.asks, found.reason.as_deref()), (asks(), Some("to help")));
    assert_eq!(found.call.args.as_str(), r#"{"text":"secret"}"#);
    assert_eq!((found.preview.diff.as_str(), found.preview.shown.as_str()), ("+a\u{2400}", "hash of +a\0"));
    assert_eq!(
        (found.call.id, found.created_at, found.expires_at),
        (asked.call.id, asked.created_at, asked.expires_at)
    );
    let listed = ws.store.approvals(ws.access(), Some(ApprovalState::Pending), page(10)).await.unwrap();
    assert_eq!(listed.iter().map(|approval| approval.id).collect::<Vec<_>>(), [asked.id]);
    let approved = ws.decide(asked.id, Verdict::Approve).await.unwrap();
    assert_eq!(approved.state, ApprovalState::Approved);
    assert_eq!(ws.store.unclaimed(NODE, Duration::ZERO).await.unwrap(), [(ws.workspace, asked.id)]);
    assert_eq!(ws.store.unclaimed(NODE, HOUR).await.unwrap(), []);
    let instance = Uuid::now_v7();
    ws.store.claim(ws.workspace, asked.id, instance, NODE).await.unwrap().unwrap();
    assert_eq!(ws.store.unclaimed(NODE, Duration::ZERO).await.unwrap(), []);
    ws.store.finish(ws.workspace, asked.id, instance, ok()).await.unwrap().unwrap();
    let done = ws.found(asked.id).await;
    assert_eq!((done.state, done.execution), (ApprovalState::Done, Some(ok())));
    assert_eq!(done.call.args.as_str(), r#"{"text":"…"}"#, "arguments are redacted at the end");
    assert_eq!(done.decided.unwrap().reason.as_deref(), Some("because"));
    let (_, events) = ws.store.approval(ws.access(), asked.id).await.unwrap();
    let kinds: Vec<(i64, &str)> = events.iter().map(|event| (event.seq, event.kind.as_str())).collect();
    assert_eq!(kinds, [(1, "asked"), (2, "approved"), (3, "executing"), (4, "done")]);
    assert_eq!((events[0].by, events[1].address.as_deref()), (Some(ws.user.0), Some("::1")));
    assert!(!serde_json::to_string(&events).unwrap().contains("secret"));
    let missing = ws.store.approval(ws.access(), ApprovalId::new()).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let stranger = Caller::person(new_user(&*ws.store).await).access(ws.workspace, Role::Viewer);
    assert!(matches!(ws.store.approval(stranger, asked.id).await, Err(StoreError::NotAMember)));
    assert!(matches!(ws.store.ask(stranger, new(&ws, "b")).await, Err(StoreError::NotAMember)));
}

async fn a_repeated_call_attaches_to_the_open_approval(ws: TestWorkspace) {
    let instance = Uuid::now_v7();
    let first = ws.ask("a").await;
    let again = async || ws.store.ask(ws.access(), new(&ws, "a")).await.unwrap();
    assert_eq!((again().await.0.id, again().await.1), (first.id, false));
    ws.decide(first.id, Verdict::Approve).await.unwrap();
    assert_eq!(again().await.0.state, ApprovalState::Approved);
    ws.store.claim(ws.workspace, first.id, instance, NODE).await.unwrap().unwrap();
    assert_eq!(again().await.0.state, ApprovalState::Executing);
    ws.store.finish(ws.workspace, first.id, instance, ok()).await.unwrap();
    let (next, is_new) = again().await;
    assert!(is_new && next.id != first.id);
    assert_eq!(ws.kinds(first.id).await[..3], ["asked", "attached", "attached"]);
    // An overdue one does not attach.
    let late = NewApproval { expires_at: now(), ..new(&ws, "late") };
    let late = ws.store.ask(ws.access(), late).await.unwrap().0;
    assert!(ws.store.ask(ws.access(), new(&ws, "late")).await.unwrap().1);
    assert_eq!(ws.state(late.id).await, ApprovalState::Expired);
}

async fn calls_asked_at_once_become_one_approval(ws: TestWorkspace) {
    let other = if ws.file().is_some() { ws.in_another_process() } else { ws.clone() };
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let ws = if n % 2 == 0 { ws.clone() } else { other.clone() };
        tasks.spawn(async move { ws.store.ask(ws.access(), new(&ws, "same")).await.unwrap() });
    }
    let asked = tasks.join_all().await;
    assert_eq!(asked.iter().filter(|(_, is_new)| *is_new).count(), 1);
    assert!(asked.iter().all(|(approval, _)| approval.id == asked[0].0.id));
    assert_eq!(ws.kinds(asked[0].0.id).await.len(), 16);
}

async fn a_caller_has_a_limited_number_of_open_approvals(ws: TestWorkspace) {
    let mut tasks = JoinSet::new();
    for n in 0..MAX_OPEN_APPROVALS + 10 {
        let ws = ws.clone();
        tasks.spawn(async move { ws.store.ask(ws.access(), new(&ws, &n.to_string())).await });
    }
    let asked = tasks.join_all().await;
    let refused: Vec<_> = asked.iter().filter_map(|asked| asked.as_ref().err()).collect();
    assert_eq!(refused.len(), 10);
    assert!(refused.iter().all(|error| error.kind() == ErrorKind::QuotaExceeded), "{refused:?}");
}

/// A text of so many bytes that does not compress.
fn noise(bytes: usize) -> String {
    let digits = (0..bytes.div_ceil(32)).flat_map(|_| Uuid::new_v4().simple().to_string().into_bytes());
    String::from_utf8(digits.take(bytes).collect()).unwrap()
}

async fn the_open_approvals_of_a_person_have_a_limited_size(ws: TestWorkspace) {
    let large = |attach_key: &str| {
        let mut large = new(&ws, attach_key);
        large.call.args = JsonText::parse(format!(r#"{{"text":"{}"}}"#, noise(30 << 20))).unwrap();
        large
    };
    let mut first = None;
    for number in 0..4 {
        let (approval, _) = ws.store.ask(ws.access(), large(&format!("large-{number}"))).await.unwrap();
        first.get_or_insert(approval.id);
    }
    let refused = ws.store.ask(ws.access(), large("one more")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::QuotaExceeded);
    // Those of other workspaces and of keys count too.
    let other = ws.store.create_workspace(ws.user, "other".into(), Location::Database).await.unwrap().id;
    let mut elsewhere = large("elsewhere");
    elsewhere.call.workspace = other;
    let refused = ws.store.ask(Access { workspace: other, ..ws.access() }, elsewhere).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::QuotaExceeded);
    ws.ask("small").await;
    ws.store.withdraw(ws.access(), first.unwrap()).await.unwrap();
    ws.store.ask(ws.access(), large("one more")).await.unwrap();
}

async fn what_an_ended_approval_shows_is_shortened(ws: TestWorkspace) {
    let mut long = new(&ws, "long");
    long.preview =
        ApprovalPreview { diff: "+é\n".repeat(300_000), command: Some(noise(1 << 20)), shown: "hash".into() };
    let (approval, _) = ws.store.ask(ws.access(), long).await.unwrap();
    assert_eq!(approval.preview.diff.len(), 1_200_000);
    ws.store.withdraw(ws.access(), approval.id).await.unwrap();
    let (ended, _) = ws.store.approval(ws.access(), approval.id).await.unwrap();
    for text in [&ended.preview.diff, ended.preview.command.as_ref().unwrap()] {
        assert!(text.len() < 20_000 && text.ends_with("# The rest was not kept\n"), "{} bytes", text.len());
    }
}

async fn decisions_follow_the_table_of_states(ws: TestWorkspace) {
    use Verdict::{Approve, Deny, Respond};
    let instance = Uuid::now_v7();
    let unknown = ws.decide(ApprovalId::new(), Approve).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    // Approved, executing and done: approving again changes nothing, everything else conflicts.
    let id = ws.ask("approved").await.id;
    ws.decide(id, Approve).await.unwrap();
    for step in 0..3 {
        match step {
            0 => {}
            1 => drop(ws.store.claim(ws.workspace, id, instance, NODE).await.unwrap().unwrap()),
            _ => drop(ws.store.finish(ws.workspace, id, instance, ok()).await.unwrap().unwrap()),
        }
        let state = ws.state(id).await;
        assert_eq!(ws.decide(id, Approve).await.unwrap().state, state);
        assert!(is_conflict(ws.decide(id, Deny).await) && is_conflict(ws.decide(id, Respond).await));
        let edited = Decided { args: Some("{}".into()), ..decision(Approve) };
        assert!(is_conflict(ws.store.decide(ws.access(), id, storable(edited)).await));
        let seen = |revision| {
            ws.store.decide(ws.access(), id, NewDecision { revision: Some(revision), ..storable(decision(Approve)) })
        };
        assert!(is_conflict(seen(2).await) && seen(1).await.is_ok());
    }
    assert_eq!(ws.kinds(id).await, ["asked", "approved", "executing", "done"]);
    let denied = ws.ask("denied").await.id;
    assert_eq!(ws.decide(denied, Deny).await.unwrap().state, ApprovalState::Denied);
    assert_eq!(ws.decide(denied, Deny).await.unwrap().state, ApprovalState::Denied);
    assert!(is_conflict(ws.decide(denied, Approve).await));
    assert!(ws.store.claim(ws.workspace, denied, instance, NODE).await.unwrap().is_none());
    let answered = ws.ask("answered").await.id;
    let done = ws.decide(answered, Respond).await.unwrap();
    let execution = done.execution.unwrap();
    assert_eq!((done.state, execution.outcome.as_str()), (ApprovalState::Done, "responded"));
    assert_eq!(execution.message.as_deref(), Some("because"));
    ws.decide(answered, Respond).await.unwrap();
    assert!(is_conflict(ws.decide(answered, Approve).await));
    // What nobody approved is not finished, revised or claimed.
    let pending = ws.ask("pending").await.id;
    assert!(ws.store.claim(ws.workspace, pending, instance, NODE).await.unwrap().is_none());
    assert!(ws.store.finish(ws.workspace, pending, instance, ok()).await.unwrap().is_none());
    assert!(ws.store.revise(ws.workspace, pending, instance, asks(), preview("x")).await.unwrap().is_none());
    // An error is a failure.
    let failed = ws.executing("failed", instance).await.id;
    let execution = Execution { outcome: "not_found".into(), ..Execution::default() };
    ws.store.finish(ws.workspace, failed, instance, execution).await.unwrap().unwrap();
    assert_eq!(ws.state(failed).await, ApprovalState::Failed);
    ws.decide(failed, Approve).await.unwrap();
}

async fn of_two_deciders_at_once_one_wins(ws: TestWorkspace) {
    for n in 0..10 {
        let id = ws.ask(&n.to_string()).await.id;
        let (approved, denied) = tokio::join!(ws.decide(id, Verdict::Approve), ws.decide(id, Verdict::Deny));
        assert!(approved.is_ok() != denied.is_ok());
        assert_eq!(ws.kinds(id).await.len(), 2);
        let (one, two) = tokio::join!(
            ws.store.claim(ws.workspace, id, Uuid::now_v7(), NODE),
            ws.store.claim(ws.workspace, id, Uuid::now_v7(), NODE)
        );
        let claimed = usize::from(one.unwrap().is_some()) + usize::from(two.unwrap().is_some());
        assert_eq!(claimed, usize::from(approved.is_ok()));
    }
}

async fn edited_arguments_replace_those_of_the_call_and_are_redacted_at_the_end(ws: TestWorkspace) {
    let (id, instance) = (ws.ask("a").await.id, Uuid::now_v7());
    let (args, redacted_args) = (Some(r#"{"text":"edited"}"#.into()), Some(r#"{"text":"redacted"}"#.into()));
    let edited = Decided { args, redacted_args, ..decision(Verdict::Approve) };
    ws.store.decide(ws.access(), id, NewDecision { revision: Some(1), ..storable(edited.clone()) }).await.unwrap();
    let claimed = ws.store.claim(ws.workspace, id, instance, NODE).await.unwrap().unwrap();
    assert_eq!(claimed.call.args.as_str(), r#"{"text":"edited"}"#);
    ws.store.finish(ws.workspace, id, instance, ok()).await.unwrap();
    let (done, events) = ws.store.approval(ws.access(), id).await.unwrap();
    assert_eq!(done.call.args.as_str(), r#"{"text":"redacted"}"#);
    assert!(!serde_json::to_string(&(&done, &events)).unwrap().contains("edited"));
    assert_eq!(events[1].detail["original_args"]["text"], "…");
    assert_eq!(events[1].detail["args"]["text"], "redacted");
    ws.store.decide(ws.access(), id, NewDecision { revision: Some(1), ..storable(edited) }).await.unwrap();
    assert!(is_conflict(ws.decide(id, Verdict::Approve).await), "the arguments are others");
}

async fn a_changed_preview_asks_again_with_the_next_revision(ws: TestWorkspace) {
    let instance = Uuid::now_v7();
    let id = ws.executing("a", instance).await.id;
    assert!(ws.store.revise(ws.workspace, id, Uuid::now_v7(), asks(), preview("+b")).await.unwrap().is_none());
    let revised = ws.store.revise(ws.workspace, id, instance, asks(), preview("+b")).await.unwrap().unwrap();
    assert_eq!((revised.state, revised.revision, revised.decided), (ApprovalState::Pending, 2, None));
    assert_eq!(ws.found(id).await.preview, preview("+b"));
    assert!(is_conflict(ws.decide(id, Verdict::Approve).await), "without a revision only the first is decided");
    let seen = |revision| {
        ws.store.decide(
            ws.access(),
            id,
            NewDecision { revision: Some(revision), ..storable(decision(Verdict::Approve)) },
        )
    };
    assert!(is_conflict(seen(1).await));
    assert_eq!(seen(2).await.unwrap().state, ApprovalState::Approved);
    assert!(ws.store.finish(ws.workspace, id, instance, ok()).await.unwrap().is_none(), "it must be claimed again");
    ws.store.claim(ws.workspace, id, instance, NODE).await.unwrap().unwrap();
}

async fn only_one_process_of_the_right_node_claims_a_call(ws: TestWorkspace) {
    let elsewhere = NewApproval { node: Some("elsewhere".into()), ..new(&ws, "a") };
    let id = ws.store.ask(ws.access(), elsewhere).await.unwrap().0.id;
    ws.decide(id, Verdict::Approve).await.unwrap();
    assert_eq!(ws.store.unclaimed(NODE, Duration::ZERO).await.unwrap(), []);
    assert!(ws.store.claim(ws.workspace, id, Uuid::now_v7(), NODE).await.unwrap().is_none());
    assert_eq!(ws.store.unclaimed("elsewhere", Duration::ZERO).await.unwrap().len(), 1);
    assert!(ws.store.claim(ws.workspace, id, Uuid::now_v7(), "elsewhere").await.unwrap().is_some());
    assert!(ws.store.claim(ws.workspace, id, Uuid::now_v7(), "elsewhere").await.unwrap().is_none());
    assert_eq!(ws.store.fail_abandoned(NODE).await.unwrap(), 0, "another node must look at its folder");
    assert_eq!(ws.store.fail_abandoned("elsewhere").await.unwrap(), 1);
}

async fn an_approval_expires_unless_it_is_executed(ws: TestWorkspace) {
    let instance = Uuid::now_v7();
    let (pending, approved) = (ws.ask("pending").await.id, ws.ask("approved").await.id);
    ws.decide(approved, Verdict::Approve).await.unwrap();
    let executing = ws.executing("executing", instance).await.id;
    assert_eq!(ws.store.expire_approvals(now()).await.unwrap(), 0);
    assert_eq!(ws.store.expire_approvals(now().checked_add(HOUR * 2).unwrap()).await.unwrap(), 2);
    for id in [pending, approved] {
        assert_eq!(ws.state(id).await, ApprovalState::Expired);
        assert!(is_conflict(ws.decide(id, Verdict::Deny).await));
        assert!(ws.store.claim(ws.workspace, id, instance, NODE).await.unwrap().is_none());
    }
    ws.decide(approved, Verdict::Approve).await.unwrap();
    assert_eq!(ws.state(executing).await, ApprovalState::Executing);
    let overdue = NewApproval { expires_at: now(), ..new(&ws, "overdue") };
    let overdue = ws.store.ask(ws.access(), overdue).await.unwrap().0.id;
    assert!(is_conflict(ws.decide(overdue, Verdict::Approve).await));
}

async fn a_commit_spends_the_approval_once(ws: TestWorkspace) {
    ws.put("/a", "before").await;
    let instance = Uuid::now_v7();
    let approval = ws.executing("a", instance).await;
    let other = ws.commit_approved(&approval, Uuid::now_v7(), "/a").await.unwrap_err();
    assert!(matches!(other, StoreError::NotExecuting(_)), "{other:?}");
    assert_eq!(ws.text("/a").await, "before");
    let commit = ws.commit_approved(&approval, instance, "/a").await.unwrap();
    let done = ws.found(approval.id).await;
    assert_eq!((done.state, done.execution.unwrap().commit), (ApprovalState::Done, Some(commit)));
    assert_eq!(done.call.args.as_str(), r#"{"text":"…"}"#);
    // Later commits of the same execution follow; the first is named.
    ws.commit_approved(&approval, instance, "/b").await.unwrap();
    let late = Execution { outcome: "timeout".into(), ..Execution::default() };
    ws.store.finish(ws.workspace, approval.id, instance, late.clone()).await.unwrap().unwrap();
    let done = ws.found(approval.id).await;
    assert_eq!(done.execution, Some(Execution { commit: Some(commit), ..late }));
    assert_eq!((done.state, ws.kinds(approval.id).await.len()), (ApprovalState::Done, 5));
    let pending = ws.ask("pending").await;
    assert!(ws.commit_approved(&pending, instance, "/c").await.is_err());
    ws.read("/c").await.unwrap_err();
}

async fn a_process_that_wakes_up_late_commits_nothing(ws: TestWorkspace) {
    let (living, dead) = (Instance { id: Uuid::now_v7(), node: NODE.into() }, Uuid::now_v7());
    ws.store.heartbeat(&living).await.unwrap();
    let of_living = ws.executing("living", living.id).await;
    let of_dead = ws.executing("dead", dead).await;
    ws.store.check_executing(ws.workspace, of_dead.id, dead).await.unwrap();
    assert_eq!(ws.store.fail_abandoned(NODE).await.unwrap(), 1);
    assert_eq!(ws.store.fail_abandoned(NODE).await.unwrap(), 0);
    let failed = ws.found(of_dead.id).await;
    assert_eq!((failed.state, failed.execution.unwrap().outcome.as_str()), (ApprovalState::Failed, "interrupted"));
    for at in ["/a", "/deep/a"] {
        let late = ws.commit_approved(&of_dead, dead, at).await.unwrap_err();
        assert!(matches!(late, StoreError::NotExecuting(_)), "{late:?}");
        assert!(ws.store.stat(ws.access(), &path(at)).await.unwrap().is_none());
    }
    let refused = ws.store.check_executing(ws.workspace, of_dead.id, dead).await;
    assert!(matches!(refused, Err(StoreError::NotExecuting(_))));
    assert!(ws.store.finish(ws.workspace, of_dead.id, dead, ok()).await.unwrap().is_none());
    ws.commit_approved(&of_living, living.id, "/a").await.unwrap();
}

async fn an_interrupted_call_with_a_commit_is_done(ws: TestWorkspace) {
    let dead = Uuid::now_v7();
    let approval = ws.executing("a", dead).await;
    // A commit of the call that did not name the approval.
    let call = CallInfo { id: approval.call.id, ..call_of(ws.user) };
    let changes = Changeset { changes: vec![put("/a", "text")], ..Changeset::default() };
    let commit = ws.store.commit(ws.access(), changes, call).await.unwrap().id;
    ws.store.fail_abandoned(NODE).await.unwrap();
    let done = ws.found(approval.id).await;
    assert_eq!((done.state, done.execution.unwrap().commit), (ApprovalState::Done, commit));
    assert!(ws.commit_approved(&approval, dead, "/b").await.is_err(), "the dead process lost it");
}

async fn the_commit_of_a_folder_is_recorded_with_its_approval(ws: TestWorkspace) {
    let instance = Uuid::now_v7();
    let record = async |approval: &Approval| {
        let call = CallInfo { id: approval.call.id, approval: Some((approval.id, instance)), ..call_of(ws.user) };
        let plan = Plan::default();
        let (id, at, undoes, contents) = (CommitId::new(), now(), None, Vec::new());
        let mut commit = FolderCommit { workspace: ws.workspace, id, at, call, undoes, plan, contents };
        // As it is read from a journal.
        let commit = FolderCommit::decode(&commit.encode().unwrap()).unwrap();
        ws.store.record(commit).await.unwrap();
        let found = ws.found(approval.id).await;
        assert_eq!((found.state, found.execution.unwrap().commit), (ApprovalState::Done, Some(id)));
    };
    record(&ws.executing("alive", instance).await).await;
    // The journal is read after its process was declared dead: the disk was changed, so the call is done.
    let interrupted = ws.executing("dead", instance).await;
    ws.store.fail_abandoned(NODE).await.unwrap();
    assert_eq!(ws.state(interrupted.id).await, ApprovalState::Failed);
    record(&interrupted).await;
    assert_eq!(ws.kinds(interrupted.id).await[3..], ["failed", "done"]);
}

async fn the_result_of_an_ended_call_is_given_to_those_who_repeat_it(ws: TestWorkspace) {
    let ended = async |key: &str, correlation: Option<&str>| {
        let found = ws.store.earlier_call(ws.access(), key, correlation).await.unwrap();
        found.map(|approval| approval.id)
    };
    let id = ws.ask("a").await.id;
    assert_eq!(ended("a", Some("fresh")).await, Some(id), "it is open, and a repetition waits with it");
    ws.decide(id, Verdict::Deny).await.unwrap();
    assert_eq!(ended("b", None).await, None);
    for correlation in [None, Some("mine"), Some("fresh")] {
        assert_eq!(ended("a", correlation).await, Some(id), "it was never delivered");
    }
    ws.store.delivered(ws.workspace, id).await.unwrap();
    assert!(ws.found(id).await.delivered_at.is_some());
    assert_eq!((ended("a", None).await, ended("a", Some("fresh")).await), (None, None));
    assert_eq!(ended("a", Some("mine")).await, Some(id));
    let withdrawn = ws.ask("withdrawn").await.id;
    ws.store.withdraw(ws.access(), withdrawn).await.unwrap();
    assert_eq!(ended("withdrawn", Some("mine")).await, None, "the caller asks anew");
}

async fn the_caller_withdraws_and_others_cannot(ws: TestWorkspace) {
    let (instance, editor) = (Uuid::now_v7(), new_user(&*ws.store).await);
    let email = ws.store.user(editor).await.unwrap().unwrap().email;
    ws.store.add_member(ws.owner(), email, Role::Editor).await.unwrap();
    let by_editor = Caller::person(editor).access(ws.workspace, Role::Editor);
    let pending = ws.ask("pending").await.id;
    assert_eq!(ws.store.withdraw(by_editor, pending).await.unwrap_err().kind(), ErrorKind::Forbidden);
    assert_eq!(ws.store.withdraw(ws.access(), pending).await.unwrap().state, ApprovalState::Cancelled);
    assert_eq!(ws.store.withdraw(ws.access(), pending).await.unwrap().state, ApprovalState::Cancelled);
    assert!(is_conflict(ws.decide(pending, Verdict::Approve).await));
    let executing = ws.executing("executing", instance).await;
    assert_eq!(ws.store.withdraw(ws.access(), executing.id).await.unwrap().state, ApprovalState::Cancelled);
    ws.commit_approved(&executing, instance, "/a").await.unwrap_err();
    ws.store.finish(ws.workspace, executing.id, instance, ok()).await.unwrap().unwrap();
    let told = ws.found(executing.id).await;
    assert_eq!((told.state, told.execution), (ApprovalState::Cancelled, Some(ok())));
    let caller = ws.key_caller().await;
    let by_key = caller.access(ws.workspace, Role::Editor);
    let of_key = ws.store.ask(by_key, new_of(&ws, caller, "key")).await.unwrap().0.id;
    assert_eq!(ws.store.withdraw(ws.access(), of_key).await.unwrap().state, ApprovalState::Cancelled);
}

async fn keys_see_only_their_own_approvals_and_decide_nothing(ws: TestWorkspace) {
    let caller = ws.key_caller().await;
    let by_key = caller.access(ws.workspace, Role::Viewer);
    let (own, other) =
        (ws.store.ask(by_key, new_of(&ws, caller, "key")).await.unwrap().0.id, ws.ask("person").await.id);
    ws.store.approval(by_key, own).await.unwrap();
    assert_eq!(ws.store.approval(by_key, other).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(ws.store.withdraw(by_key, other).await.unwrap_err().kind(), ErrorKind::NotFound);
    for state in [None, Some(ApprovalState::Pending)] {
        let listed = ws.store.approvals(by_key, state, page(10)).await.unwrap();
        assert_eq!(listed.iter().map(|approval| approval.id).collect::<Vec<_>>(), [own]);
        assert_eq!(ws.store.approvals(ws.access(), state, page(10)).await.unwrap().len(), 2);
    }
    let refused = ws.store.decide(by_key, own, storable(decision(Verdict::Approve))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
}

async fn approvals_of_ended_keys_and_members_are_cancelled(ws: TestWorkspace) {
    let ask = async |caller: Caller| {
        let access = caller.access(ws.workspace, Role::Viewer);
        ws.store.ask(access, new_of(&ws, caller, &Uuid::now_v7().to_string())).await.unwrap().0.id
    };
    let callers = [ws.key_caller().await, ws.key_caller().await, ws.key_caller().await];
    let ids = [ask(callers[0]).await, ask(callers[1]).await, ask(callers[2]).await];
    let own = ws.ask("person").await.id;
    ws.store.set_key_state(ws.access(), key_of(callers[0]), KeyState::Suspended).await.unwrap();
    assert_eq!(ws.state(ids[0]).await, ApprovalState::Cancelled);
    ws.store.revoke_key(ws.access(), key_of(callers[1])).await.unwrap();
    assert_eq!(ws.state(ids[1]).await, ApprovalState::Cancelled);
    assert_eq!(ws.state(ids[2]).await, ApprovalState::Pending);
    ws.store.end_sessions(ws.user).await.unwrap();
    assert_eq!((ws.state(ids[2]).await, ws.state(own).await), (ApprovalState::Cancelled, ApprovalState::Pending));
    let editor = new_user(&*ws.store).await;
    let email = ws.store.user(editor).await.unwrap().unwrap().email;
    ws.store.add_member(ws.owner(), email.clone(), Role::Editor).await.unwrap();
    let of_editor = ask(Caller::person(editor)).await;
    ws.store.remove_member(ws.owner(), editor).await.unwrap();
    assert_eq!(ws.state(of_editor).await, ApprovalState::Cancelled);
    ws.store.add_member(ws.owner(), email, Role::Editor).await.unwrap();
    let of_editor = ask(Caller::person(editor)).await;
    ws.store.disable_user(editor).await.unwrap();
    assert_eq!(ws.state(of_editor).await, ApprovalState::Cancelled);
    ws.store.cancel_open_of(ws.workspace, ws.user.0).await.unwrap();
    assert_eq!(
        (ws.state(own).await, ws.kinds(own).await),
        (ApprovalState::Cancelled, vec!["asked".into(), "cancelled".into()])
    );
}

async fn a_grant_is_given_with_the_decision_and_can_be_revoked(ws: TestWorkspace) {
    let caller = ws.key_caller().await;
    let by_key = caller.access(ws.workspace, Role::Viewer);
    let id = ws.store.ask(by_key, new_of(&ws, caller, "key")).await.unwrap().0.id;
    let rules_of = async |access: Access| ws.store.member_rules(access).await.unwrap();
    let (of_key, of_person) = (rules_of(by_key).await, rules_of(ws.access()).await);
    let expires_at = now().checked_add(HOUR).unwrap();
    let grant = NewGrant { action: Action::Write, pattern: "docs/**".into(), is_denial: false, expires_at };
    let decided = Decided { grants: vec![grant.clone()], by: Some(ws.user), ..decision(Verdict::Approve) };
    for _ in 0..2 {
        ws.store.decide(ws.access(), id, storable(decided.clone())).await.unwrap();
    }
    let after = rules_of(by_key).await;
    assert!(after.revision > of_key.revision);
    assert_eq!(rules_of(ws.access()).await, of_person, "the grant is the key's");
    let [given] = &after.grants[..] else { panic!("{after:?}") };
    assert_eq!((&given.grant, given.principal, given.session.as_str()), (&grant, by_key.user.0, "session"));
    assert_eq!((given.approval, given.granted_by), (Some(id), ws.user));
    assert_eq!(ws.store.grants(by_key).await.unwrap(), after.grants);
    assert_eq!(ws.store.grants(ws.access()).await.unwrap(), after.grants);
    let stale = ws.store.authorise(by_key.with_rules(of_key.revision)).await;
    assert!(matches!(stale, Err(StoreError::RulesChanged)));
    let editor = new_user(&*ws.store).await;
    let email = ws.store.user(editor).await.unwrap().unwrap().email;
    ws.store.add_member(ws.owner(), email, Role::Editor).await.unwrap();
    let by_editor = Caller::person(editor).access(ws.workspace, Role::Viewer);
    assert_eq!(ws.store.grants(by_editor).await.unwrap(), []);
    assert_eq!(ws.store.revoke_grants(by_editor, Some(given.id)).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(ws.store.revoke_grants(ws.access(), Some(given.id)).await.unwrap(), 1);
    let revoked = rules_of(by_key).await;
    assert!(revoked.revision > after.revision && revoked.grants.is_empty());
    assert_eq!(ws.store.revoke_grants(ws.access(), None).await.unwrap(), 0);
    // A grant that has ended is not listed.
    let id = ws.ask("again").await.id;
    let over = Decided { grants: vec![NewGrant { expires_at: now(), ..grant }], ..decision(Verdict::Approve) };
    ws.store.decide(ws.access(), id, storable(over)).await.unwrap();
    assert_eq!(rules_of(ws.access()).await.grants, []);
    ws.store.purge(Purge::default()).await.unwrap();
}

async fn a_thousand_pending_approvals_are_listed_fast(ws: TestWorkspace) {
    let mut ids = Vec::new();
    for n in 0..10 {
        let user = new_user(&*ws.store).await;
        let email = ws.store.user(user).await.unwrap().unwrap().email;
        ws.store.add_member(ws.owner(), email, Role::Editor).await.unwrap();
        let caller = Caller::person(user);
        for m in 0..100 {
            let long = "x".repeat(20_000);
            let new = NewApproval { preview: preview(&long), ..new_of(&ws, caller, &format!("{n}.{m}")) };
            ids.push(ws.store.ask(caller.access(ws.workspace, Role::Editor), new).await.unwrap().0.id);
        }
    }
    let start = Clock::now();
    let listed = ws.store.approvals(ws.access(), Some(ApprovalState::Pending), page(1000)).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(listed.iter().map(|approval| approval.id).collect::<Vec<_>>(), ids, "oldest first");
    // One more than is shown, so that what was cut can be marked.
    assert!(listed.iter().all(|approval| approval.preview.diff.len() == 4097));
    let rest = Page { before: Some(ids[997]), limit: 10 };
    let rest = ws.store.approvals(ws.access(), Some(ApprovalState::Pending), rest).await.unwrap();
    assert_eq!(rest.iter().map(|approval| approval.id).collect::<Vec<_>>(), ids[998..]);
    let newest = ws.store.approvals(ws.access(), None, page(1)).await.unwrap();
    assert_eq!(newest[0].id, ids[999]);
}

async fn subscribers_are_woken_by_approvals(ws: TestWorkspace) {
    let mut subscription = ws.store.subscribe(ws.workspace);
    let woken = async |subscription: &mut toolrest_store::Subscription| {
        tokio::time::timeout(Duration::from_secs(10), subscription.signalled()).await.unwrap();
    };
    let id = ws.ask("a").await.id;
    woken(&mut subscription).await;
    ws.decide(id, Verdict::Approve).await.unwrap();
    woken(&mut subscription).await;
}

async fn approvals_are_part_of_the_feed(ws: TestWorkspace) {
    let start = ws.store.feed(ws.access(), None, FeedSources::ALL).await.unwrap().cursor;
    let instance = Uuid::now_v7();
    let caller = ws.key_caller().await;
    let access = caller.access(ws.workspace, Role::Viewer);
    let approval = ws.store.ask(access, new_of(&ws, caller, "a")).await.unwrap().0;
    ws.decide(approval.id, Verdict::Approve).await.unwrap();
    ws.store.claim(ws.workspace, approval.id, instance, NODE).await.unwrap().unwrap();
    let commit = ws.commit_approved(&approval, instance, "/a").await.unwrap();
    ws.store.finish(ws.workspace, approval.id, instance, ok()).await.unwrap().unwrap();
    let events = ws.store.feed(ws.access(), Some(&start), FeedSources::ALL).await.unwrap().events;
    let shown: Vec<String> = events
        .iter()
        .map(|event| match &event.record {
            FeedRecord::Approval(event) => format!("{} {}", event.kind, event.state.name()),
            other => other.name().to_owned(),
        })
        .collect();
    assert_eq!(shown[..3], ["asked pending", "approved approved", "executing executing"]);
    let mut made = shown[3..6].to_vec();
    made.sort();
    assert_eq!(
        (made, shown[6..].to_vec()),
        (vec!["call".to_owned(), "commit".to_owned(), "done done".to_owned()], vec!["finished done".to_owned()],)
    );
    let FeedRecord::Approval(first) = &events[0].record else { panic!("{events:?}") };
    assert_eq!((first.id, first.call_id, first.revision), (approval.id, approval.call.id, 1));
    assert_eq!((first.tool.as_str(), first.user, first.key), ("write", ws.user, caller.key_id()));
    assert!(events.iter().any(|event| matches!(&event.record, FeedRecord::Commit(made) if made.id == commit)));
    // From any of its events, and without the other sources.
    for (n, event) in events.iter().enumerate() {
        let rest = ws.store.feed(ws.access(), Some(&event.cursor), FeedSources::ALL).await.unwrap().events;
        assert_eq!(
            rest.iter().map(|event| &event.record).collect::<Vec<_>>(),
            events[n + 1..].iter().map(|event| &event.record).collect::<Vec<_>>()
        );
    }
    let only = FeedSources { approvals: true, ..FeedSources::NONE };
    assert_eq!(ws.store.feed(ws.access(), Some(&start), only).await.unwrap().events.len(), 5);
    let without = FeedSources { approvals: false, ..FeedSources::ALL };
    assert_eq!(ws.store.feed(ws.access(), Some(&start), without).await.unwrap().events.len(), 2);
}

async fn ended_approvals_are_purged_with_the_records_of_calls(ws: TestWorkspace) {
    let start = ws.store.feed(ws.access(), None, FeedSources::ALL).await.unwrap().cursor;
    let (open, ended) = (ws.ask("open").await.id, ws.ask("ended").await.id);
    ws.decide(ended, Verdict::Deny).await.unwrap();
    let calls_before = Some(now().checked_add(Duration::from_secs(1)).unwrap());
    ws.store.purge(Purge { calls_before, ..Purge::default() }).await.unwrap();
    assert_eq!(ws.state(open).await, ApprovalState::Pending);
    assert_eq!(ws.store.approval(ws.access(), ended).await.unwrap_err().kind(), ErrorKind::NotFound);
    let page = ws.store.feed(ws.access(), Some(&start), FeedSources::ALL).await.unwrap();
    assert!(page.gap.is_some() && page.events.len() == 1);
    let after = ws.store.feed(ws.access(), None, FeedSources::ALL).await.unwrap().cursor;
    ws.decide(open, Verdict::Deny).await.unwrap();
    assert_eq!(ws.store.feed(ws.access(), Some(&after), FeedSources::ALL).await.unwrap().events.len(), 1);
}

async fn approvals_are_purged_with_their_workspace(ws: TestWorkspace) {
    ws.ask("a").await;
    ws.store.delete_workspace(ws.owner()).await.unwrap();
    assert_eq!(ws.store.purge(Purge::default()).await.unwrap().workspaces, 1);
}

async fn the_wait_for_a_decision_is_measured(ws: TestWorkspace) {
    let [first, second, _waiting] = [ws.ask("a").await, ws.ask("b").await, ws.ask("c").await];
    ws.decide(first.id, Verdict::Approve).await.unwrap();
    ws.decide(second.id, Verdict::Deny).await.unwrap();
    let (since, until) = (now().checked_sub(HOUR).unwrap(), now().checked_add(HOUR).unwrap());
    let metrics = ws.store.workspace_metrics(ws.access(), Period { since, until, part: HOUR }).await.unwrap();
    let approvals = metrics.approvals;
    assert_eq!((approvals.waiting, approvals.decided), (1, 2), "{approvals:?}");
    let (Some(p50_us), Some(p95_us)) = (approvals.p50_us, approvals.p95_us) else { panic!("{approvals:?}") };
    assert!((0..=p95_us).contains(&p50_us) && p95_us < 60_000_000, "{approvals:?}");
}
