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

/// All events up to the one of a file that is made now.
fn so_far(scene: &Scene, events: &Receiver<Vec<Event>>) -> Vec<Event> {
    let last = Event::Created("last".into());
    fs::write(scene.path("last"), "").unwrap();
    let mut seen = Vec::new();
    while !seen.contains(&last) {
        let more = events.recv_timeout(Duration::from_secs(20));
        seen.extend(more.unwrap_or_else(|_| panic!("the last event did not come, but {seen:?}")));
    }
    fs::remove_file(scene.path("last")).unwrap();
    until(events, &Event::Removed("last".into()));
    seen.retain(|event| *event != last);
    seen
}

#[test]
fn events_come_in_the_order_in_which_they_happened() {
    let scene = Scene::with(&[("x", "old"), ("gone", "")]);
    let (_watch, events) = watch(&scene);
    fs::write(scene.path("b"), "").unwrap();
    fs::remove_file(scene.path("gone")).unwrap();
    fs::create_dir(scene.path("a")).unwrap();
    fs::remove_file(scene.path("x")).unwrap();
    fs::write(scene.path("x"), "new").unwrap();
    let seen = so_far(&scene, &events);
    let (created, removed) = (|path: &str| Event::Created(path.into()), Event::Removed("gone".into()));
    assert_eq!(seen[..3], [created("b"), removed, created("a")], "{seen:?}");
    // Told together or not.
    let again = [vec![Event::Changed("x".into())], vec![Event::Removed("x".into()), created("x")]];
    assert!(again.contains(&seen[3..].to_vec()), "{seen:?}");
}

#[test]
fn what_git_keeps_is_left_out() {
    let scene = Scene::with(&[(".git/HEAD", ""), ("sub/.git/HEAD", "")]);
    let (_watch, events) = watch(&scene);
    fs::write(scene.path(".git/HEAD"), "more").unwrap();
    fs::write(scene.path("sub/.git/index"), "").unwrap();
    fs::create_dir_all(scene.path("new/.git/objects")).unwrap();
    fs::write(scene.path("new/.git/objects/one"), "").unwrap();
    assert_eq!(so_far(&scene, &events), [Event::Created("new".into())]);
}

#[test]
fn folders_are_followed_wherever_they_go() {
    let scene = Scene::with(&[("d/e/file", "")]);
    let (_watch, events) = watch(&scene);
    fs::rename(scene.path("d"), scene.path("moved")).unwrap();
    until(&events, &Event::Moved { from: "d".into(), to: "moved".into() });
    fs::write(scene.path("moved/e/file"), "more").unwrap();
    assert_eq!(so_far(&scene, &events), [Event::Changed("moved/e/file".into())]);
    // What is put into a new folder before it is watched is told all the same.
    fs::create_dir_all(scene.path("new/deep")).unwrap();
    fs::write(scene.path("new/deep/file"), "").unwrap();
    until(&events, &Event::Created("new/deep/file".into()));
    fs::create_dir(scene.path("other")).unwrap();
    let both = (scene.path("moved"), scene.path("other"));
    let (here, exchange) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
    rustix::fs::renameat_with(here, &both.0, here, &both.1, exchange).unwrap();
    until(&events, &Event::Moved { from: "other".into(), to: "moved".into() });
    fs::write(scene.path("other/e/file"), "again").unwrap();
    fs::write(scene.path("moved/file"), "").unwrap();
    let seen = so_far(&scene, &events);
    assert_eq!(seen, [Event::Changed("other/e/file".into()), Event::Created("moved/file".into())]);
    // Outside of the root, it is nobody's business.
    let outside = scene.place.path().join("outside/other");
    fs::rename(scene.path("other"), &outside).unwrap();
    until(&events, &Event::Removed("other".into()));
    fs::write(outside.join("e/file"), "once more").unwrap();
    assert_eq!(so_far(&scene, &events), []);
}

#[test]
fn a_link_in_the_place_of_a_folder_is_not_watched() {
    let scene = Scene::with(&[("sub/file", "")]);
    let foreign = tempfile::tempdir().unwrap();
    let path = scene.root.real_path().to_owned();
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    symlink(foreign.path(), &path).unwrap();
    let (_watch, events) = watch(&scene);
    fs::write(foreign.path().join("secret"), "").unwrap();
    fs::write(aside.join("own"), "").unwrap();
    assert_eq!(until(&events, &Event::Created("own".into())).len(), 1);
    // The same for a folder below, by the time that it is looked at.
    symlink(foreign.path(), aside.join("link")).unwrap();
    fs::rename(aside.join("sub"), aside.join("other")).unwrap();
    fs::rename(aside.join("link"), aside.join("sub")).unwrap();
    fs::write(foreign.path().join("more"), "").unwrap();
    fs::write(aside.join("end"), "").unwrap();
    let seen = until(&events, &Event::Created("end".into()));
    assert!(!format!("{seen:?}").contains("more") && !format!("{seen:?}").contains("secret"), "{seen:?}");
    fs::remove_file(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
}
