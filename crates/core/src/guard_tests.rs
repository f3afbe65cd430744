use super::*;

fn effect(op: EffectKind, path: &str, file: FileId) -> Effect {
    let path = WsPath::within(path).unwrap();
    let (before, after, version_id, mode_before, mode_after) = Default::default();
    Effect { op, path, from: None, file_id: file, before, after, version_id, mode_before, mode_after }
}

fn moved(from: &str, to: &str, file: FileId) -> Effect {
    Effect { from: Some(WsPath::within(from).unwrap()), ..effect(EffectKind::Move, to, file) }
}

fn net(effects: &[Effect]) -> Vec<(NetChange, String)> {
    net_effects(effects).into_iter().map(|effect| (effect.change, effect.path.to_string())).collect()
}

#[test]
fn steps_are_judged_by_what_they_amount_to() {
    use EffectKind as E;
    use NetChange as N;
    let [a, b] = [FileId::new(), FileId::new()];
    let path = |change, path: &str| (change, path.to_owned());
    assert_eq!(net(&[effect(E::Create, "a", a)]), [path(N::Create, "/a")]);
    assert_eq!(net(&[effect(E::Create, "a", a), effect(E::Remove, "a", a)]), []);
    assert_eq!(net(&[effect(E::Remove, "a", a), effect(E::Create, "a", b)]), [path(N::Overwrite, "/a")]);
    assert_eq!(net(&[moved("a", "b", a)]), [path(N::MoveAway, "/a"), path(N::Move, "/b")]);
    assert_eq!(net(&[moved("a", "b", a), moved("b", "a", a)]), []);
    // A move onto a file replaces it.
    let onto = [effect(E::Remove, "b", b), moved("a", "b", a)];
    assert_eq!(net(&onto), [path(N::MoveAway, "/a"), path(N::Move, "/b"), path(N::Overwrite, "/b")]);
    // Two files swap names.
    let swapped = [moved("a", "c", a), moved("b", "a", b), moved("c", "b", a)];
    let both = |at| [path(N::Move, at), path(N::MoveAway, at)];
    assert_eq!(net(&swapped), [both("/a"), both("/b")].concat());
    // A file that is moved and then removed is removed.
    assert_eq!(net(&[moved("a", "b", a), effect(E::Remove, "b", a)]), [path(N::Delete, "/a")]);
    assert_eq!(net(&[effect(E::Update, "a", a), effect(E::Remove, "a", a)]), [path(N::Delete, "/a")]);
    // A moved file with a new content is moved and changed.
    let moved_and_changed = [moved("a", "b", a), effect(E::Update, "b", a)];
    assert_eq!(net(&moved_and_changed), [path(N::MoveAway, "/a"), path(N::Move, "/b"), path(N::Overwrite, "/b")]);
    let changed_and_moved = [effect(E::Update, "a", a), moved("a", "b", a)];
    assert_eq!(net(&changed_and_moved), [path(N::MoveAway, "/a"), path(N::Move, "/b"), path(N::Overwrite, "/b")]);
}

#[test]
fn a_guard_refuses_what_its_actions_do_not_have() {
    let file = FileId::new();
    let guard = Guard::of_actions(ActionSet::from_iter([Action::Read, Action::Write]));
    let created = net_effects(&[effect(EffectKind::Create, "a", file)]);
    let removed = net_effects(&[effect(EffectKind::Remove, "a", file)]);
    assert_eq!(guard.judge(&created, &[]), Ok(()));
    let refusal = guard.judge(&removed, &[]).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Forbidden);
    assert!(refusal.message.contains("would delete /a"), "{}", refusal.message);
    assert!(refusal.message.contains("the agent key has read, write"), "{}", refusal.message);
    assert_eq!(Guard::UNRESTRICTED.judge(&removed, &[]), Ok(()));
}
