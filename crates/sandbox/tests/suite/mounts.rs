//! What is mounted is what was opened, and programs do not learn where it stands on the host.

use std::{fs, os::unix::fs::symlink, path::Path};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use toolrest_sandbox::{Access, Job, Mount, Place};

use crate::scene::{Scene, source};

/// A place for every kind of mount: the folder itself, an overlay of it, and the folder to be read only.
fn places(scene: &Scene) -> Vec<Place> {
    let home = scene.home.path();
    for folder in ["private", "private/upper", "private/work"] {
        fs::create_dir(home.join(folder)).unwrap();
    }
    let (target, read_only) = ("/workspace".into(), Access::ReadOnly);
    let overlay = Mount::Overlay { lower: vec![source(scene.folder())], private: source(home.join("private")), target };
    let read_only = Mount::Folder {
        source: source(scene.folder()),
        target: "/workspace".into(),
        access: read_only,
        frozen: vec![],
    };
    let place = scene.place();
    vec![Place { mounts: vec![overlay], ..place.clone() }, Place { mounts: vec![read_only], ..place.clone() }, place]
}

/// Puts a link to a folder with a secret in the place of the folder of the scene.
fn replace_by_link(scene: &Scene) {
    let (foreign, link) = (scene.home.path().join("foreign"), scene.home.path().join("link"));
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("file"), "secret").unwrap();
    symlink(&foreign, &link).unwrap();
    exchange(&scene.folder(), &link);
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

fn opened(scene: &Scene) {
    use std::os::unix::fs::PermissionsExt;
    let _ = fs::set_permissions(scene.home.path().join("private/work/work"), fs::Permissions::from_mode(0o700));
}

#[tokio::test]
async fn a_link_in_the_place_of_a_folder_is_not_followed() {
    let scene = Scene::new();
    fs::write(scene.folder().join("file"), "its own").unwrap();
    let places = places(&scene);
    replace_by_link(&scene);
    for place in places {
        let report = scene.run(Job::new(place, ["bash", "-c", "cat file; touch made 2>/dev/null"])).await;
        assert_eq!(report.stdout.text(), "its own", "{}", report.stderr.text());
    }
    assert!(!scene.home.path().join("foreign/made").exists());
    opened(&scene);
}

#[tokio::test]
async fn a_folder_is_found_while_it_is_exchanged_for_a_link() {
    let scene = Scene::new();
    fs::write(scene.folder().join("file"), "its own").unwrap();
    let place = scene.place();
    replace_by_link(&scene);
    let (folder, link) = (scene.folder(), scene.home.path().join("link"));
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let attack = std::thread::spawn(move || {
        while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            exchange(&folder, &link);
        }
    });
    for _ in 0..50 {
        let report = scene.run(Job::new(place.clone(), ["cat", "file"])).await;
        assert_eq!(report.stdout.text(), "its own", "{}", report.stderr.text());
    }
    drop(end);
    attack.join().unwrap();
}

#[tokio::test]
async fn programs_do_not_learn_where_their_folders_stand_on_the_host() {
    let scene = Scene::new();
    fs::create_dir(scene.folder().join(".git")).unwrap();
    let mut places = places(&scene);
    let (source, target) = (source(scene.folder()), "/workspace".into());
    let frozen = Mount::Folder { source, target, access: Access::ReadWrite, frozen: vec![".git".into()] };
    places.push(Place { mounts: vec![frozen], ..scene.place() });
    let code = "for process in /proc/[0-9]* /proc/self /proc/thread-self /proc; do \
                for list in mountinfo mounts mountstats; do cat $process/$list; done; done 2>/dev/null; \
                pwd; cat /proc/self/maps > /dev/null && readlink /proc/self/cwd /proc/self/root";
    for place in places {
        let report = scene.run(Job::new(place, ["bash", "-c", code])).await;
        assert_eq!(report.stdout.text(), "/workspace\n/workspace\n/\n", "{}", report.stderr.text());
    }
    opened(&scene);
}
