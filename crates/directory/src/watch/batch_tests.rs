use super::{Batch, Event, MOST_EVENTS};

fn created(path: &str) -> Event {
    Event::Created(path.into())
}

fn changed(path: &str) -> Event {
    Event::Changed(path.into())
}

fn removed(path: &str) -> Event {
    Event::Removed(path.into())
}

fn told(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let mut batch = Batch::default();
    events.into_iter().for_each(|event| batch.add(event));
    batch.into_events()
}

#[test]
fn several_events_of_one_path_are_told_as_one() {
    assert_eq!(told([created("x"), changed("x"), changed("x")]), [created("x")]);
    assert_eq!(told([removed("x"), created("x"), changed("x")]), [changed("x")]);
    assert_eq!(told([changed("x"), removed("x")]), [removed("x")]);
    assert_eq!(told([created("x"), changed("x"), removed("x")]), []);
    assert_eq!(told([removed("x"), created("x"), removed("x")]), [removed("x")]);
}

#[test]
fn events_of_different_paths_stay_in_order() {
    let events = [removed("b"), created("c"), changed("a")];
    assert_eq!(told(events.clone()), events);
    assert_eq!(told([removed("x"), created("a"), created("x")]), [created("a"), changed("x")]);
}

#[test]
fn nothing_is_merged_across_a_move() {
    let moved = Event::Moved { from: "x".into(), to: "y".into() };
    let events = [created("x"), moved, created("x")];
    assert_eq!(told(events.clone()), events);
}

#[test]
fn the_halves_of_a_move_are_told_as_one() {
    let mut batch = Batch::default();
    batch.add(created("x"));
    batch.add_moved_from(1, "x".into());
    batch.add(created("other"));
    assert_eq!(batch.take_moved_from(1), Some("x".into()));
    assert_eq!(batch.take_moved_from(1), None);
    assert_eq!(batch.into_events(), [created("x"), created("other")]);
}

#[test]
fn too_many_events_are_told_as_unknown() {
    assert_eq!(told((0..=MOST_EVENTS + 5).map(|number| created(&number.to_string()))), [Event::Unknown]);
}
