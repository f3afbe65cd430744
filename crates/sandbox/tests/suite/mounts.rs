//! A mount shows the folder that was opened, and programs cannot see its path on the host.

use std::{fs, os::unix::fs::symlink, path::Path};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use toolrest_sandbox::{Access, CellSpec, Job, Mount};

use crate::fixture::{Fixture, source};

/// Returns a cell for every kind of mount: an overlay, read-only, and writable.
fn specs(fixture: &Fixture) -> Vec<CellSpec> {
    let home = fixture.home.path();
    for folder in ["private", "private/upper", "private/work"] {
        fs::create_dir(home.join(folder)).unwrap();
    }
    let (target, read_only) = ("/workspace".into(), Access::ReadOnly);
    let overlay =
        Mount::Overlay { lower: vec![source(fixture.folder())], private: source(home.join("private")), target };
    let read_only = Mount::Folder {
        source: source(fixture.folder()),
        target: "/workspace".into(),
        access: read_only,
        frozen: vec![],
    };
    let spec = fixture.spec();
    vec![CellSpec { mounts: vec![overlay], ..spec.clone() }, CellSpec { mounts: vec![read_only], ..spec.clone() }, spec]
}

/// Replaces the fixture's folder by a link to a folder with a secret.
fn replace_by_link(fixture: &Fixture) {
    let (foreign, link) = (fixture.home.path().join("foreign"), fixture.home.path().join("link"));
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("file"), "secret").unwrap();
    symlink(&foreign, &link).unwrap();
    exchange(&fixture.folder(), &link);
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

fn make_removable(fixture: &Fixture) {
    use std::os::unix::fs::PermissionsExt;
    let _ = fs::set_permissions(fixture.home.path().join("private/work/work"), fs::Permissions::from_mode(0o700));
}

#[tokio::test]
async fn a_link_that_replaces_a_folder_is_not_followed() {
    let fixture = Fixture::new();
    fs::write(fixture.folder().join("file"), "its own").unwrap();
    let specs = specs(&fixture);
    replace_by_link(&fixture);
    for spec in specs {
        let report = fixture.run(Job::new(spec, ["bash", "-c", "cat file; touch made 2>/dev/null"])).await;
        assert_eq!(report.stdout.text(), "its own", "{}", report.stderr.text());
    }
    assert!(!fixture.home.path().join("foreign/made").exists());
    make_removable(&fixture);
}

#[tokio::test]
async fn a_folder_is_mounted_while_it_is_swapped_with_a_link() {
    let fixture = Fixture::new();
    fs::write(fixture.folder().join("file"), "its own").unwrap();
    let spec = fixture.spec();
    replace_by_link(&fixture);
    let (folder, link) = (fixture.folder(), fixture.home.path().join("link"));
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let attack = std::thread::spawn(move || {
        while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            exchange(&folder, &link);
        }
    });
    for _ in 0..50 {
        let report = fixture.run(Job::new(spec.clone(), ["cat", "file"])).await;
        assert_eq!(report.stdout.text(), "its own", "{}", report.stderr.text());
    }
    drop(end);
    attack.join().unwrap();
}

#[tokio::test]
async fn programs_cannot_see_host_paths_of_mounts() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.folder().join(".git")).unwrap();
    let mut specs = specs(&fixture);
    let (source, target) = (source(fixture.folder()), "/workspace".into());
    let frozen = Mount::Folder { source, target, access: Access::ReadWrite, frozen: vec![".git".into()] };
    specs.push(CellSpec { mounts: vec![frozen], ..fixture.spec() });
    let code = "for process in /proc/[0-9]* /proc/self /proc/thread-self /proc; do \
                for list in mountinfo mounts mountstats; do cat $process/$list; done; done 2>/dev/null; \
                pwd; cat /proc/self/maps > /dev/null && readlink /proc/self/cwd /proc/self/root";
    for spec in specs {
        let report = fixture.run(Job::new(spec, ["bash", "-c", code])).await;
        assert_eq!(report.stdout.text(), "/workspace\n/workspace\n/\n", "{}", report.stderr.text());
    }
    make_removable(&fixture);
}
