//! Listing folders.

use std::{fs, os::unix::fs::symlink, path::Path, time::Instant};

use rustix::{fs::Uid, thread::set_thread_res_uid};
use toolrest_directory::{ErrorKind, Kind, ListOptions, Listing, Result};

use crate::fixture::{Fixture, remove, write};

fn list(fixture: &Fixture, folder: &str, depth: usize, limit: usize) -> Result<Listing> {
    fixture.root.list(Path::new(folder), ListOptions { depth, limit })
}

fn paths(listing: &Listing) -> Vec<&str> {
    listing.entries.iter().map(|entry| entry.path.to_str().unwrap()).collect()
}

#[test]
fn entries_are_sorted_by_the_bytes_of_their_paths() {
    let fixture = Fixture::with(&[("a/b", "1"), ("a.txt", "22"), ("a b/c", ""), ("Z", ""), ("a/ü", ""), ("a/z/y", "")]);
    let all = list(&fixture, "", usize::MAX, usize::MAX).unwrap();
    assert_eq!(paths(&all), ["Z", "a", "a b", "a b/c", "a.txt", "a/b", "a/z", "a/z/y", "a/ü"]);
    assert_eq!((all.entries[4].kind, all.entries[4].size_bytes), (Kind::File, 2));
    assert_eq!(all.entries[1].kind, Kind::Folder);
    assert_eq!(all.entries[0].modified, fs::metadata(fixture.path("Z")).unwrap().modified().unwrap());
}

#[test]
fn depth_and_limit_apply_and_all_entries_are_counted() {
    let fixture = Fixture::with(&[("a/b/c/d", ""), ("e", ""), ("f", "")]);
    assert_eq!(paths(&list(&fixture, "", 1, 10).unwrap()), ["a", "e", "f"]);
    assert_eq!(paths(&list(&fixture, "", 2, 10).unwrap()), ["a", "a/b", "e", "f"]);
    assert_eq!(paths(&list(&fixture, "a", 2, 10).unwrap()), ["b", "b/c"]);
    let limited = list(&fixture, "", usize::MAX, 2).unwrap();
    assert_eq!((paths(&limited), limited.total), (vec!["a", "a/b"], 6));
    let nothing = list(&fixture, "", 1, 0).unwrap();
    assert_eq!((nothing.entries.len(), nothing.total), (0, 3));
    assert_eq!(list(&fixture, "", 0, 10).unwrap().total, 0);
}

#[test]
fn links_are_listed_and_not_entered() {
    let fixture = Fixture::with(&[("folder/file", "")]);
    symlink(".", fixture.path("folder/loop")).unwrap();
    symlink(fixture.outside(), fixture.path("out")).unwrap();
    symlink("folder", fixture.path("in")).unwrap();
    fs::write(fixture.outside().join("secret"), "").unwrap();
    let all = list(&fixture, "", usize::MAX, usize::MAX).unwrap();
    assert_eq!(paths(&all), ["folder", "folder/file", "folder/loop", "in", "out"]);
    assert_eq!(all.entries[4].kind, Kind::Symlink);
    // A link in the caller's path is followed if it stays inside.
    assert_eq!(paths(&list(&fixture, "in", 1, 10).unwrap()), ["file", "loop"]);
    assert!(matches!(list(&fixture, "out", 1, 10).unwrap_err().kind, ErrorKind::Outside));
    assert!(matches!(list(&fixture, "missing", 1, 10).unwrap_err().kind, ErrorKind::NotFound));
    assert!(matches!(list(&fixture, "folder/file", 1, 10).unwrap_err().kind, ErrorKind::NotAFolder));
}

#[test]
fn a_deep_tree_is_listed_completely() {
    let fixture = Fixture::new();
    let deep = vec!["d"; 1500].join("/");
    fs::create_dir_all(fixture.path(&deep)).unwrap();
    let all = list(&fixture, "", usize::MAX, usize::MAX).unwrap();
    assert_eq!((all.total, all.skipped.len()), (1500, 0));
    fixture.commit(&[write(format!("{deep}/file"), "", toolrest_directory::Expect::Absent)]).unwrap();
    fixture.commit(&[remove(format!("{deep}/file"), toolrest_directory::Expect::Anything)]).unwrap();
    fixture.commit(&[crate::fixture::remove_folder("d", toolrest_directory::Contents::Anything)]).unwrap();
    assert!(fixture.tree().is_empty());
}

#[test]
fn an_unreadable_folder_is_reported_as_skipped() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::with(&[("closed/file", ""), ("open/file", "")]);
    fs::set_permissions(fixture.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let listing = std::thread::scope(|scope| {
        let listing = scope.spawn(|| {
            // Only this thread drops its privileges, if it has any.
            let nobody = Uid::from_raw(65534);
            let _ = set_thread_res_uid(nobody, nobody, nobody);
            list(&fixture, "", usize::MAX, usize::MAX)
        });
        listing.join().unwrap()
    });
    fs::set_permissions(fixture.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    let listing = listing.unwrap();
    assert_eq!(paths(&listing), ["closed", "open", "open/file"]);
    assert_eq!(listing.skipped[0].path, Path::new("closed"));
    assert!(matches!(listing.skipped[0].error.kind, ErrorKind::Denied));
}

#[test]
fn a_hundred_thousand_files_are_listed_quickly() {
    let fixture = Fixture::with_a_hundred_thousand_files();
    let start = Instant::now();
    let all = list(&fixture, "", usize::MAX, usize::MAX).unwrap();
    let time = start.elapsed();
    println!("{} entries in {time:?}", all.total);
    assert_eq!(all.total, 100_100);
    assert!(all.entries.is_sorted_by_key(|entry| entry.path.as_os_str().as_encoded_bytes().to_vec()));
    // Far more than needed, even without optimisation on a busy machine.
    assert!(time.as_secs() < 5, "{time:?}");
}
