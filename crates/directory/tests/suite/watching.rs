//! Change events.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use toolrest_directory::{Event, Expect, Watch, is_temporary};

use crate::scene::{Scene, hash, remove, write};

fn watch(scene: &Scene) -> (Watch, Receiver<Vec<Event>>) {
    let (send, receive) = mpsc::channel();
    let watch = scene.root.watch(move |events| drop(send.send(events))).unwrap();
    (watch, receive)
}

/// Collects events until the wanted one has come.
fn until(events: &Receiver<Vec<Event>>, wanted: &Event) -> BTreeSet<Event> {
    let mut seen = BTreeSet::new();
    while !seen.contains(wanted) {
        let more = events.recv_timeout(Duration::from_secs(20));
        seen.extend(more.unwrap_or_else(|_| panic!("{wanted:?} did not come, but {seen:?}")));
    }
    seen
}

#[test]
fn changes_of_others_are_told() {
    let scene = Scene::with(&[("file", "text"), ("folder/below", "")]);
    let (_watch, events) = watch(&scene);
    fs::write(scene.path("new"), "").unwrap();
    until(&events, &Event::Created("new".into()));
    fs::write(scene.path("folder/below"), "more").unwrap();
    until(&events, &Event::Changed("folder/below".into()));
    fs::rename(scene.path("file"), scene.path("folder/file")).unwrap();
    let moved = until(&events, &Event::Moved { from: "file".into(), to: "folder/file".into() });
    assert!(!moved.contains(&Event::Removed("file".into())), "{moved:?}");
    fs::remove_file(scene.path("folder/file")).unwrap();
    until(&events, &Event::Removed("folder/file".into()));
}

#[test]
fn commits_are_told_without_their_temporary_files() {
    let scene = Scene::with(&[("updated", "old"), ("removed", "")]);
    let (_watch, events) = watch(&scene);
    scene
        .commit(&[
            write("updated", "new", hash("old")),
            write("added", "new", Expect::Absent),
            remove("removed", Expect::Anything),
        ])
        .unwrap();
    fs::write(scene.path("last"), "").unwrap();
    let seen = until(&events, &Event::Created("last".into()));
    for event in [Event::Changed("updated".into()), Event::Created("added".into()), Event::Removed("removed".into())] {
        assert!(seen.contains(&event), "{event:?} in {seen:?}");
    }
    let hidden = |path: &PathBuf| path.file_name().is_some_and(is_temporary);
    for event in &seen {
        match event {
            Event::Created(path) | Event::Changed(path) | Event::Removed(path) => assert!(!hidden(path), "{event:?}"),
            Event::Moved { from, to } => assert!(!hidden(from) && !hidden(to), "{event:?}"),
            Event::Unknown => {}
        }
    }
}

#[test]
fn a_watch_ends_when_it_is_dropped() {
    let scene = Scene::new();
    let (watch, events) = watch(&scene);
    drop(watch);
    fs::write(scene.path("new"), "").unwrap();
    // The sink is dropped with its thread, and the channel closes.
    assert!(
        events.recv_timeout(Duration::from_secs(20)).is_err_and(|error| error == mpsc::RecvTimeoutError::Disconnected)
    );
}
