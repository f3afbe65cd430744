//! Change events.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use std::os::unix::fs::symlink;

use toolrest_directory::{Event, Expect, Watch, is_temporary};

use crate::fixture::{Fixture, hash, remove, write};

fn watch(fixture: &Fixture) -> (Watch, Receiver<Vec<Event>>) {
    let (send, receive) = mpsc::channel();
    let watch = fixture.root.watch(move |events| drop(send.send(events))).unwrap();
    (watch, receive)
}

/// Collects events until the wanted one arrives.
fn until(events: &Receiver<Vec<Event>>, wanted: &Event) -> BTreeSet<Event> {
    let mut received = BTreeSet::new();
    while !received.contains(wanted) {
        let more = events.recv_timeout(Duration::from_secs(20));
        received.extend(more.unwrap_or_else(|_| panic!("{wanted:?} did not come, but {received:?}")));
    }
    received
}

#[test]
fn changes_of_others_are_reported() {
    let fixture = Fixture::with(&[("file", "text"), ("folder/below", "")]);
    let (_watch, events) = watch(&fixture);
    fs::write(fixture.path("new"), "").unwrap();
    until(&events, &Event::Created("new".into()));
    fs::write(fixture.path("folder/below"), "more").unwrap();
    until(&events, &Event::Changed("folder/below".into()));
    fs::rename(fixture.path("file"), fixture.path("folder/file")).unwrap();
    let moved = until(&events, &Event::Moved { from: "file".into(), to: "folder/file".into() });
    assert!(!moved.contains(&Event::Removed("file".into())), "{moved:?}");
    fs::remove_file(fixture.path("folder/file")).unwrap();
    until(&events, &Event::Removed("folder/file".into()));
}

#[test]
fn commits_are_reported_without_temporary_files() {
    let fixture = Fixture::with(&[("updated", "old"), ("removed", "")]);
    let (_watch, events) = watch(&fixture);
    fixture
        .commit(&[
            write("updated", "new", hash("old")),
            write("added", "new", Expect::Absent),
            remove("removed", Expect::Anything),
        ])
        .unwrap();
    fs::write(fixture.path("last"), "").unwrap();
    let received = until(&events, &Event::Created("last".into()));
    for event in [Event::Changed("updated".into()), Event::Created("added".into()), Event::Removed("removed".into())] {
        assert!(received.contains(&event), "{event:?} in {received:?}");
    }
    let hidden = |path: &PathBuf| path.file_name().is_some_and(is_temporary);
    for event in &received {
        match event {
            Event::Created(path) | Event::Changed(path) | Event::Removed(path) => assert!(!hidden(path), "{event:?}"),
            Event::Moved { from, to } => assert!(!hidden(from) && !hidden(to), "{event:?}"),
            Event::Unknown => {}
        }
    }
}

#[test]
fn a_watch_ends_when_it_is_dropped() {
    let fixture = Fixture::new();
    let (watch, events) = watch(&fixture);
    drop(watch);
    fs::write(fixture.path("new"), "").unwrap();
    // The sink is dropped with its thread, and the channel closes.
    assert!(
        events.recv_timeout(Duration::from_secs(20)).is_err_and(|error| error == mpsc::RecvTimeoutError::Disconnected)
    );
}

/// Returns all events up to that of a file created now.
fn events_until_now(fixture: &Fixture, events: &Receiver<Vec<Event>>) -> Vec<Event> {
    let last = Event::Created("last".into());
    fs::write(fixture.path("last"), "").unwrap();
    let mut received = Vec::new();
    while !received.contains(&last) {
        let more = events.recv_timeout(Duration::from_secs(20));
        received.extend(more.unwrap_or_else(|_| panic!("the last event did not come, but {received:?}")));
    }
    fs::remove_file(fixture.path("last")).unwrap();
    until(events, &Event::Removed("last".into()));
    received.retain(|event| *event != last);
    received
}

#[test]
fn events_arrive_in_order() {
    let fixture = Fixture::with(&[("x", "old"), ("gone", "")]);
    let (_watch, events) = watch(&fixture);
    fs::write(fixture.path("b"), "").unwrap();
    fs::remove_file(fixture.path("gone")).unwrap();
    fs::create_dir(fixture.path("a")).unwrap();
    fs::remove_file(fixture.path("x")).unwrap();
    fs::write(fixture.path("x"), "new").unwrap();
    let received = events_until_now(&fixture, &events);
    let (created, removed) = (|path: &str| Event::Created(path.into()), Event::Removed("gone".into()));
    assert_eq!(received[..3], [created("b"), removed, created("a")], "{received:?}");
    // Reported together or separately.
    let again = [vec![Event::Changed("x".into())], vec![Event::Removed("x".into()), created("x")]];
    assert!(again.contains(&received[3..].to_vec()), "{received:?}");
}

#[test]
fn changes_in_git_repositories_are_not_reported() {
    let fixture = Fixture::with(&[(".git/HEAD", ""), ("sub/.git/HEAD", "")]);
    let (_watch, events) = watch(&fixture);
    fs::write(fixture.path(".git/HEAD"), "more").unwrap();
    fs::write(fixture.path("sub/.git/index"), "").unwrap();
    fs::create_dir_all(fixture.path("new/.git/objects")).unwrap();
    fs::write(fixture.path("new/.git/objects/one"), "").unwrap();
    assert_eq!(events_until_now(&fixture, &events), [Event::Created("new".into())]);
}

#[test]
fn moved_folders_stay_watched() {
    let fixture = Fixture::with(&[("d/e/file", "")]);
    let (_watch, events) = watch(&fixture);
    fs::rename(fixture.path("d"), fixture.path("moved")).unwrap();
    until(&events, &Event::Moved { from: "d".into(), to: "moved".into() });
    fs::write(fixture.path("moved/e/file"), "more").unwrap();
    assert_eq!(events_until_now(&fixture, &events), [Event::Changed("moved/e/file".into())]);
    // Files created in a new folder before it is watched are reported too.
    fs::create_dir_all(fixture.path("new/deep")).unwrap();
    fs::write(fixture.path("new/deep/file"), "").unwrap();
    until(&events, &Event::Created("new/deep/file".into()));
    fs::create_dir(fixture.path("other")).unwrap();
    let both = (fixture.path("moved"), fixture.path("other"));
    let (here, exchange) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
    rustix::fs::renameat_with(here, &both.0, here, &both.1, exchange).unwrap();
    until(&events, &Event::Moved { from: "other".into(), to: "moved".into() });
    fs::write(fixture.path("other/e/file"), "again").unwrap();
    fs::write(fixture.path("moved/file"), "").unwrap();
    let received = events_until_now(&fixture, &events);
    assert_eq!(received, [Event::Changed("other/e/file".into()), Event::Created("moved/file".into())]);
    // Changes outside of the root are not reported.
    let outside = fixture.home.path().join("outside/other");
    fs::rename(fixture.path("other"), &outside).unwrap();
    until(&events, &Event::Removed("other".into()));
    fs::write(outside.join("e/file"), "once more").unwrap();
    assert_eq!(events_until_now(&fixture, &events), []);
}

#[test]
fn a_link_that_replaces_a_folder_is_not_watched() {
    let fixture = Fixture::with(&[("sub/file", "")]);
    let foreign = tempfile::tempdir().unwrap();
    let path = fixture.root.real_path().to_owned();
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    symlink(foreign.path(), &path).unwrap();
    let (_watch, events) = watch(&fixture);
    fs::write(foreign.path().join("secret"), "").unwrap();
    fs::write(aside.join("own"), "").unwrap();
    assert_eq!(until(&events, &Event::Created("own".into())).len(), 1);
    // The same for a subfolder, when it is read.
    symlink(foreign.path(), aside.join("link")).unwrap();
    fs::rename(aside.join("sub"), aside.join("other")).unwrap();
    fs::rename(aside.join("link"), aside.join("sub")).unwrap();
    fs::write(foreign.path().join("more"), "").unwrap();
    fs::write(aside.join("end"), "").unwrap();
    let received = until(&events, &Event::Created("end".into()));
    assert!(!format!("{received:?}").contains("more") && !format!("{received:?}").contains("secret"), "{received:?}");
    fs::remove_file(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
}
