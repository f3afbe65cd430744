//! The revision of rules, which every statement of a call compares.

use crate::calls::record_of;
use crate::test_workspace::{TestWorkspace, call_of, new_user, on_both_stores, path, put, search_for};
use std::time::Duration;
use toolrest_core::{
    Access, ActionSet, CallRecord, Caller, Changeset, Depth, ErrorKind, FeedSources, MemberRules, Role, ToolError,
    UserId, WsPath, now,
};
use toolrest_store::{CallFilter, CallState, KeyState, NewKey, Page, Purge, StoreError};
use uuid::Uuid;

on_both_stores!(
    outdated_rules_refuse_every_statement_of_a_call,
    rules_are_replaced_only_at_the_expected_revision,
    new_rules_raise_the_revision_of_every_member,
    members_and_keys_that_return_have_a_new_revision,
    keys_neither_see_nor_change_rules,
    rules_are_purged_with_their_workspace,
);

const RULES: &str = r#"{"rules":["deny read(**/.env)"]}"#;

impl TestWorkspace {
    pub(crate) fn owner(&self) -> Access {
        Access { need: Role::Owner, ..self.access() }
    }

    async fn member_rules(&self) -> MemberRules {
        self.store.member_rules(self.access()).await.unwrap()
    }

    async fn add_editor(&self, user: UserId) {
        let email = self.store.user(user).await.unwrap().unwrap().email;
        self.store.add_member(self.owner(), email, Role::Editor).await.unwrap();
    }

    async fn revision_of(&self, member: Uuid) -> i64 {
        let access = Access { user: UserId(member), need: Role::Viewer, ..self.access() };
        self.store.member_rules(access).await.unwrap().revision
    }
}

fn new_key() -> NewKey {
    let expires_at = now().checked_add(Duration::from_secs(3600)).unwrap();
    NewKey { name: "key".into(), toolsets: vec!["file".into()], actions: ActionSet::all(), expires_at }
}

async fn outdated_rules_refuse_every_statement_of_a_call(ws: TestWorkspace) {
    let changes = |at: &str, text: &str| Changeset { changes: vec![put(at, text)], ..Changeset::default() };
    ws.put("/a", "needle").await;
    let chat = ws.store.create_chat(ws.access(), "chat".into()).await.unwrap();
    let first = ws.member_rules().await;
    assert_eq!(first, MemberRules::default(), "a workspace without rules has revision 0");
    let judged = ws.access().with_rules(first.revision);
    ws.store.commit(judged, changes("/a", "needle 2"), call_of(ws.user)).await.unwrap();
    ws.store.set_rules(ws.owner(), None, RULES.into()).await.unwrap();
    let before = (ws.paths().await, ws.text("/a").await);

    macro_rules! refused {
        ($result:expr) => {{
            let error = $result.await.map(drop).unwrap_err();
            assert!(matches!(error, StoreError::RulesChanged), "{}: {error:?}", stringify!($result));
        }};
    }
    let (store, root, page) = (&ws.store, WsPath::root(), |limit| Page { before: None, limit });
    refused!(store.authorise(judged));
    refused!(store.stat(judged, &path("/a")));
    refused!(store.read(judged, &path("/a"), i64::MAX));
    refused!(store.list(judged, &root, Depth::Children, 10));
    refused!(store.list(judged, &root, Depth::Descendants, 10));
    refused!(store.search(judged, search_for("needle")));
    refused!(store.listed_since(judged, None));
    refused!(store.commits(judged, Page { before: None, limit: 10 }));
    refused!(store.trash(judged, Page { before: None, limit: 10 }));
    refused!(store.calls(judged, CallFilter::default(), page(10)));
    refused!(store.feed(judged, None, FeedSources::ALL));
    refused!(store.chat(judged, chat.id));
    refused!(store.preview(judged, changes("/a", "x"), call_of(ws.user)));
    // The put of an existing file, of a new file in an existing folder, and the plan.
    refused!(store.commit(judged, changes("/a", "x"), call_of(ws.user)));
    refused!(store.commit(judged, changes("/b", "x"), call_of(ws.user)));
    refused!(store.commit(judged, changes("/deep/b", "x"), call_of(ws.user)));
    refused!(store.recorded(judged, &changes("/a", "x")));
    refused!(store.create_chat(judged, "another".into()));
    refused!(store.add_message(judged, chat.id, "user".into(), "text".into()));
    let running = CallRecord { outcome: None, duration_us: None, ..record_of(&ws) };
    refused!(store.record_running(judged, running.clone(), Uuid::now_v7()));

    assert_eq!((ws.paths().await, ws.text("/a").await), before);
    let only_running = CallFilter { state: CallState::Running, ..CallFilter::default() };
    assert_eq!(ws.store.calls(ws.access(), only_running, page(10)).await.unwrap(), []);
    let error = ToolError::from(store.authorise(judged).await.unwrap_err());
    assert!(error.is_rules_changed() && error.kind == ErrorKind::Conflict);

    // With the new revision everything is done, the role is still checked, and strangers are still strangers.
    let now_judged = ws.access().with_rules(ws.member_rules().await.revision);
    store.commit(now_judged, changes("/a", "x"), call_of(ws.user)).await.unwrap();
    store.commit(now_judged, changes("/c", "x"), call_of(ws.user)).await.unwrap();
    store.record_running(now_judged, running, Uuid::now_v7()).await.unwrap();
    store.create_chat(now_judged, "another".into()).await.unwrap();
    let viewer = new_user(&**store).await;
    let stranger = Access { user: viewer, person: viewer, ..now_judged };
    assert!(matches!(store.authorise(stranger).await, Err(StoreError::NotAMember)));
    ws.add_editor(viewer).await;
    store.set_role(ws.owner(), viewer, Role::Viewer).await.unwrap();
    let low = Access { rules: Some(ws.revision_of(viewer.0).await), ..stranger };
    let error = store.commit(low, changes("/a", "y"), call_of(viewer)).await.unwrap_err();
    assert!(matches!(error, StoreError::RoleTooLow { .. }), "{error:?}");
    let error = store.record_running(low, record_of(&ws), Uuid::now_v7()).await.unwrap_err();
    assert!(matches!(error, StoreError::RoleTooLow { .. }), "{error:?}");
}

async fn rules_are_replaced_only_at_the_expected_revision(ws: TestWorkspace) {
    assert_eq!(ws.store.rules(ws.owner()).await.unwrap(), (0, None));
    let error = ws.store.set_rules(ws.owner(), Some(7), RULES.into()).await.unwrap_err();
    assert!(matches!(error, StoreError::RulesRevision { expected: 7, current: 0 }), "{error:?}");
    let first = ws.store.set_rules(ws.owner(), Some(0), RULES.into()).await.unwrap();
    assert_eq!(ws.store.rules(ws.owner()).await.unwrap(), (first, Some(RULES.into())));
    let second = ws.store.set_rules(ws.owner(), Some(first), "{}".into()).await.unwrap();
    assert!(second > first);
    let error = ws.store.set_rules(ws.owner(), Some(first), RULES.into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(ws.member_rules().await.rules.as_deref(), Some("{}"));
    let stranger = new_user(&*ws.store).await;
    let stranger = Caller::person(stranger).access(ws.workspace, Role::Viewer);
    assert!(matches!(ws.store.rules(stranger).await, Err(StoreError::NotAMember)));
    assert!(matches!(ws.store.member_rules(stranger).await, Err(StoreError::NotAMember)));
    assert!(matches!(ws.store.set_rules(stranger, None, "{}".into()).await, Err(StoreError::NotAMember)));
}

async fn new_rules_raise_the_revision_of_every_member(ws: TestWorkspace) {
    let editor = new_user(&*ws.store).await;
    ws.add_editor(editor).await;
    let key = ws.store.create_key(ws.access(), new_key()).await.unwrap().id;
    let members = [ws.user.0, editor.0, key.0];
    let mut before = Vec::new();
    for member in members {
        before.push(ws.revision_of(member).await);
    }
    ws.store.set_rules(ws.owner(), None, RULES.into()).await.unwrap();
    for (member, before) in members.into_iter().zip(before) {
        assert!(ws.revision_of(member).await > before);
    }
}

async fn members_and_keys_that_return_have_a_new_revision(ws: TestWorkspace) {
    ws.store.set_rules(ws.owner(), None, RULES.into()).await.unwrap();
    let editor = new_user(&*ws.store).await;
    ws.add_editor(editor).await;
    let first = ws.revision_of(editor.0).await;
    ws.store.remove_member(ws.owner(), editor).await.unwrap();
    ws.add_editor(editor).await;
    let again = ws.revision_of(editor.0).await;
    assert!(again > first);
    ws.store.disable_user(editor).await.unwrap();
    ws.store.enable_user(editor).await.unwrap();
    assert!(ws.revision_of(editor.0).await > again);
    let key = ws.store.create_key(ws.access(), new_key()).await.unwrap().id;
    let first = ws.revision_of(key.0).await;
    assert!(first > 0);
    ws.store.set_key_state(ws.access(), key, KeyState::Suspended).await.unwrap();
    ws.store.set_key_state(ws.access(), key, KeyState::Active).await.unwrap();
    assert!(ws.revision_of(key.0).await > first);
}

async fn keys_neither_see_nor_change_rules(ws: TestWorkspace) {
    let key = ws.store.create_key(ws.access(), new_key()).await.unwrap().id;
    let by_key = Access { user: UserId(key.0), need: Role::Viewer, ..ws.access() };
    for refused in [
        ws.store.rules(by_key).await.map(drop),
        ws.store.set_rules(by_key, None, "{}".into()).await.map(drop),
        ws.store.revoke_grants(by_key, None).await.map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Forbidden);
    }
    ws.store.member_rules(by_key).await.unwrap();
    assert_eq!(ws.store.grants(by_key).await.unwrap(), []);
}

async fn rules_are_purged_with_their_workspace(ws: TestWorkspace) {
    ws.store.set_rules(ws.owner(), None, RULES.into()).await.unwrap();
    ws.store.delete_workspace(ws.owner()).await.unwrap();
    assert_eq!(ws.store.purge(Purge::default()).await.unwrap().workspaces, 1);
}
