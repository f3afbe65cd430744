//! Agent keys: memberships under concurrency, expiry and purging.

use crate::test_workspace::{TestWorkspace, call_of, new_user, on_both_stores, put};
use std::time::Duration;
use tokio::task::JoinSet;
use toolrest_core::{Access, Action, ActionSet, Caller, Changeset, KeyId, Role, Timestamp, UserId, now};
use toolrest_store::{CallFilter, KeyState, KeyUse, MAX_LIVE_KEYS, NewKey, Page, Purge, StoreError};

on_both_stores!(
    a_key_made_while_its_person_is_demoted_has_the_lower_role,
    no_key_survives_the_removal_of_its_person,
    no_key_survives_the_deletion_of_its_workspace,
    keys_made_at_once_do_not_exceed_the_limit,
    an_expired_key_loses_its_membership,
    ended_keys_are_purged_with_the_records_of_their_calls,
    a_key_cannot_make_keys,
    the_author_of_a_keys_change_is_the_person,
    only_later_uses_of_usable_keys_are_stored,
);

fn new_key(lifetime: Duration) -> NewKey {
    NewKey {
        name: "key".to_owned(),
        toolsets: vec!["file".to_owned()],
        actions: ActionSet::all(),
        expires_at: now().checked_add(lifetime).unwrap(),
    }
}

const HOUR: Duration = Duration::from_secs(3600);

impl TestWorkspace {
    fn access_of(&self, user: UserId, need: Role) -> Access {
        Caller::person(user).access(self.workspace, need)
    }

    /// Makes a key of a person.
    async fn key(&self, person: UserId, lifetime: Duration) -> Result<KeyId, StoreError> {
        Ok(self.store.create_key(self.access_of(person, Role::Editor), new_key(lifetime)).await?.id)
    }

    /// The access of a key.
    fn by_key(&self, key: KeyId, need: Role) -> Access {
        Access { workspace: self.workspace, user: UserId(key.0), person: self.user, need, rules: None }
    }

    async fn editor(&self) -> UserId {
        let user = new_user(&*self.store).await;
        let email = self.store.user(user).await.unwrap().unwrap().email;
        self.store.add_member(self.access_of(self.user, Role::Owner), email, Role::Editor).await.unwrap();
        user
    }

    /// Makes keys of a person while something else is done.
    async fn keys_during(&self, person: UserId, change: impl Future<Output = Result<(), StoreError>>) -> Vec<KeyId> {
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let ws = self.clone();
            tasks.spawn(async move { ws.key(person, HOUR).await.ok() });
        }
        change.await.unwrap();
        tasks.join_all().await.into_iter().flatten().collect()
    }
}

async fn a_key_made_while_its_person_is_demoted_has_the_lower_role(ws: TestWorkspace) {
    for _ in 0..10 {
        let editor = ws.editor().await;
        let demote =
            async { ws.store.set_role(ws.access_of(ws.user, Role::Owner), editor, Role::Viewer).await.map(drop) };
        for key in ws.keys_during(editor, demote).await {
            let refusal = ws.store.authorise(ws.by_key(key, Role::Editor)).await;
            assert!(matches!(refusal, Err(StoreError::RoleTooLow { .. })), "{refusal:?}");
            ws.store.authorise(ws.by_key(key, Role::Viewer)).await.unwrap();
        }
    }
}

async fn no_key_survives_the_removal_of_its_person(ws: TestWorkspace) {
    for _ in 0..10 {
        let editor = ws.editor().await;
        let remove = ws.store.remove_member(ws.access_of(ws.user, Role::Owner), editor);
        for key in ws.keys_during(editor, remove).await {
            let refusal = ws.store.authorise(ws.by_key(key, Role::Viewer)).await;
            assert!(matches!(refusal, Err(StoreError::NotAMember)), "{refusal:?}");
        }
        let keys = ws.store.keys(ws.access_of(ws.user, Role::Owner)).await.unwrap();
        assert!(keys.iter().all(|key| key.revoked_at.is_some()), "{keys:?}");
    }
}

async fn no_key_survives_the_deletion_of_its_workspace(ws: TestWorkspace) {
    let delete = ws.store.delete_workspace(ws.access_of(ws.user, Role::Owner));
    for key in ws.keys_during(ws.user, delete).await {
        let refusal = ws.store.authorise(ws.by_key(key, Role::Viewer)).await;
        assert!(matches!(refusal, Err(StoreError::NotAMember)), "{refusal:?}");
    }
    assert_eq!(ws.store.purge(Purge::default()).await.unwrap().workspaces, 1);
}

async fn keys_made_at_once_do_not_exceed_the_limit(ws: TestWorkspace) {
    let mut tasks = JoinSet::new();
    for _ in 0..MAX_LIVE_KEYS + 20 {
        let ws = ws.clone();
        tasks.spawn(async move { ws.key(ws.user, HOUR).await.is_ok() });
    }
    let made = tasks.join_all().await.into_iter().filter(|made| *made).count();
    assert_eq!(i64::try_from(made).unwrap(), MAX_LIVE_KEYS);
}

async fn an_expired_key_loses_its_membership(ws: TestWorkspace) {
    let (expired, suspended) = (ws.key(ws.user, Duration::ZERO).await.unwrap(), ws.key(ws.user, HOUR).await.unwrap());
    let live = ws.key(ws.user, HOUR).await.unwrap();
    ws.store.set_key_state(ws.access(), suspended, KeyState::Suspended).await.unwrap();
    let just_before = now().checked_sub(Duration::from_secs(60)).unwrap();
    ws.store.end_expired_keys(now()).await.unwrap();
    ws.store.authorise(ws.by_key(expired, Role::Editor)).await.unwrap();
    ws.store.end_expired_keys(just_before).await.unwrap();
    let refusal = ws.store.authorise(ws.by_key(expired, Role::Viewer)).await;
    assert!(matches!(refusal, Err(StoreError::NotAMember)), "{refusal:?}");
    ws.store.set_key_state(ws.access(), expired, KeyState::Active).await.unwrap_err();
    ws.store.authorise(ws.by_key(live, Role::Editor)).await.unwrap();
    ws.store.set_key_state(ws.access(), suspended, KeyState::Active).await.unwrap();
    ws.store.authorise(ws.by_key(suspended, Role::Editor)).await.unwrap();
}

async fn ended_keys_are_purged_with_the_records_of_their_calls(ws: TestWorkspace) {
    let (expired, revoked) = (ws.key(ws.user, Duration::ZERO).await.unwrap(), ws.key(ws.user, HOUR).await.unwrap());
    let live = ws.key(ws.user, HOUR).await.unwrap();
    ws.store.revoke_key(ws.access(), revoked).await.unwrap();
    let listed =
        async || -> Vec<KeyId> { ws.store.keys(ws.access()).await.unwrap().into_iter().map(|key| key.id).collect() };
    ws.store.purge(Purge::default()).await.unwrap();
    assert_eq!(listed().await, [live, expired, revoked], "records are kept, and so are the keys that they name");
    let refusal = ws.store.authorise(ws.by_key(expired, Role::Viewer)).await;
    assert!(matches!(refusal, Err(StoreError::NotAMember)), "{refusal:?}");
    let calls_before = Some(now().checked_add(Duration::from_secs(1)).unwrap());
    ws.store.purge(Purge { calls_before, ..Purge::default() }).await.unwrap();
    assert_eq!(listed().await, [live]);
    ws.store.authorise(ws.by_key(live, Role::Editor)).await.unwrap();
}

async fn a_key_cannot_make_keys(ws: TestWorkspace) {
    let key = ws.key(ws.user, HOUR).await.unwrap();
    let refusal = ws.store.create_key(ws.by_key(key, Role::Editor), new_key(HOUR)).await;
    assert!(matches!(refusal, Err(StoreError::NotAMember)), "{refusal:?}");
    let owner = ws.access_of(ws.user, Role::Owner);
    ws.store.set_role(owner, UserId(key.0), Role::Owner).await.unwrap_err();
    ws.store.remove_member(owner, UserId(key.0)).await.unwrap_err();
    ws.store.authorise(ws.by_key(key, Role::Editor)).await.unwrap();
    assert_eq!(ws.store.members(owner).await.unwrap().len(), 1);
}

async fn the_author_of_a_keys_change_is_the_person(ws: TestWorkspace) {
    let access = ws.by_key(ws.key(ws.user, HOUR).await.unwrap(), Role::Editor);
    for text in ["created", "updated"] {
        let call = call_of(ws.user);
        let changes = Changeset { changes: vec![put("/a.txt", text)], ..Changeset::default() };
        ws.store.commit(access, changes, call).await.unwrap();
    }
    ws.store.create_chat(access, "Plans".to_owned()).await.unwrap();
    let commits = ws.store.commits(ws.access(), Page { before: None, limit: 10 }).await.unwrap();
    assert_eq!(commits.len(), 3);
    assert!(commits.iter().all(|commit| commit.author == ws.user), "{commits:?}");
    let page = Page { before: None, limit: 10 };
    let calls = ws.store.calls(ws.access(), CallFilter::default(), page).await.unwrap();
    assert!(calls.iter().all(|call| call.user == ws.user), "{calls:?}");
    let file = ws.read("/a.txt").await.unwrap().entry.id;
    let versions = ws.store.versions(ws.access(), file, Page { before: None, limit: 10 }).await.unwrap();
    assert!(versions.iter().all(|version| version.author == ws.user), "{versions:?}");
}

async fn only_later_uses_of_usable_keys_are_stored(ws: TestWorkspace) {
    let (used, revoked) = (ws.key(ws.user, HOUR).await.unwrap(), ws.key(ws.user, HOUR).await.unwrap());
    ws.store.revoke_key(ws.access(), revoked).await.unwrap();
    let at = |second: i64| Timestamp::from_second(second).unwrap();
    for second in [10, 20, 15] {
        let both = [used, revoked].map(|key| KeyUse { workspace: ws.workspace, key, at: at(second) });
        ws.store.record_key_uses(both.to_vec()).await.unwrap();
    }
    for key in ws.store.keys(ws.access()).await.unwrap() {
        assert_eq!(key.last_used_at, (key.id == used).then(|| at(20)));
        assert!(key.actions.contains(Action::Memory) && key.toolsets == ["file"], "{key:?}");
    }
}
