use super::*;
use toolrest_core::{Action, Timestamp};

const SECRET: &str = "a secret of at least thirty-two characters";

fn keys() -> AgentKeys {
    AgentKeys::new(SECRET).unwrap()
}

fn info(seconds_left: i64) -> KeyInfo {
    let now = now();
    KeyInfo {
        id: KeyId::new(),
        user_id: UserId::new(),
        name: "test".to_owned(),
        toolsets: vec!["file".to_owned(), "gone".to_owned()],
        actions: [Action::Read, Action::Memory].into_iter().collect(),
        created_at: now,
        expires_at: Timestamp::from_second(now.as_second() + seconds_left).unwrap(),
        suspended_at: None,
        revoked_at: None,
        last_used_at: None,
    }
}

#[test]
fn a_secret_stands_for_its_key_person_workspace_and_scope() {
    let (key, workspace, toolsets) = (info(60), WorkspaceId::new(), Toolsets::default());
    let secret = keys().issue(workspace, &key);
    assert!(AgentKeys::is_secret(&secret));
    let caller = keys().check(&secret, &toolsets).unwrap();
    assert_eq!((caller.user, caller.member().0), (key.user_id, key.id.0));
    let found = caller.key.unwrap();
    assert_eq!((found.id, found.workspace, found.actions), (key.id, workspace, key.actions));
    assert_eq!(found.toolsets.names(&toolsets).count(), 0, "these toolsets do not exist here");
}

#[test]
fn an_expired_secret_is_refused() {
    let secret = keys().issue(WorkspaceId::new(), &info(0));
    let error = keys().check(&secret, &Toolsets::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthenticated);
    assert!(error.message.contains("expired"), "{error}");
}

#[test]
fn a_secret_with_any_byte_changed_cut_or_added_is_refused() {
    let secret = keys().issue(WorkspaceId::new(), &info(60));
    let bytes = URL_SAFE_NO_PAD.decode(&secret[PREFIX.len()..]).unwrap();
    let encoded = |bytes: &[u8]| format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    let mut bad: Vec<String> = vec![PREFIX.to_owned(), format!("{secret}A"), format!("{secret}=")];
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        bad.push(encoded(&changed));
        bad.push(encoded(&bytes[..at]));
    }
    bad.push(encoded(&[&bytes[..], b"x"].concat()));
    bad.push(AgentKeys::new("another secret of at least thirty-two").unwrap().issue(WorkspaceId::new(), &info(60)));
    bad.push(format!("{PREFIX}{}", "A".repeat(100_000)));
    for secret in bad {
        let error = keys().check(&secret, &Toolsets::default()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unauthenticated, "{secret}");
    }
}
