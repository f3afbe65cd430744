use super::*;

#[test]
fn every_action_has_a_name_and_a_bit_of_its_own() {
    for action in Action::ALL {
        assert_eq!(Action::from_name(action.name()), Some(action));
        let only: ActionSet = [action].into_iter().collect();
        assert_eq!(only.iter().collect::<Vec<_>>(), [action]);
        assert_eq!(ActionSet::from_bits(only.bits()), only);
    }
    assert_eq!(Action::from_name("Read"), None);
    assert_eq!(ActionSet::from_bits(u16::MAX), ActionSet::all());
}

#[test]
fn a_set_that_changes_nothing_needs_a_viewer() {
    let reading: ActionSet = [Action::Read, Action::Fetch].into_iter().collect();
    assert_eq!((reading.needs(), reading.to_string().as_str()), (Role::Viewer, "read, fetch"));
    assert_eq!(ActionSet::all().needs(), Role::Editor);
    assert_eq!(ActionSet::default().needs(), Role::Viewer);
}
