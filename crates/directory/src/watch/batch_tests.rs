use super::{Batch, Event, MAX_EVENTS};

fn created(path: &str) -> Event {
    Event::Created(path.into())
}

fn changed(path: &str) -> Event {
    Event::Changed(path.into())
}

fn removed(path: &str) -> Event {
    Event::Removed(path.into())
}

fn merged(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let mut batch = Batch::default();
    events.into_iter().for_each(|event| batch.add(event));
    batch.into_events()
}

#[test]
fn events_of_one_path_are_merged() {
    assert_eq!(merged([created("x"), changed("x"), changed("x")]), [created("x")]);
    assert_eq!(merged([removed("x"), created("x"), changed("x")]), [changed("x")]);
    assert_eq!(merged([changed("x"), removed("x")]), [removed("x")]);
    assert_eq!(merged([created("x"), changed("x"), removed("x")]), []);
    assert_eq!(merged([removed("x"), created("x"), removed("x")]), [removed("x")]);
}

#[test]
fn events_of_different_paths_stay_in_order() {
    let events = [removed("b"), created("c"), changed("a")];
    assert_eq!(merged(events.clone()), events);
    assert_eq!(merged([removed("x"), created("a"), created("x")]), [created("a"), changed("x")]);
}

#[test]
fn nothing_is_merged_across_a_move() {
    let moved = Event::Moved { from: "x".into(), to: "y".into() };
    let events = [created("x"), moved, created("x")];
    assert_eq!(merged(events.clone()), events);
}

#[test]
fn source_and_target_of_a_move_are_merged() {
    let mut batch = Batch::default();
    batch.add(created("x"));
    batch.add_moved_from(1, "x".into());
    batch.add(created("other"));
    assert_eq!(batch.take_moved_from(1), Some("x".into()));
    assert_eq!(batch.take_moved_from(1), None);
    assert_eq!(batch.into_events(), [created("x"), created("other")]);
}

#[test]
fn too_many_events_are_reported_as_unknown() {
    assert_eq!(merged((0..=MAX_EVENTS + 5).map(|cookie| created(&cookie.to_string()))), [Event::Unknown]);
}
