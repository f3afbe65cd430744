//! Commits.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, chown, symlink},
    },
    path::Path,
};

use rustix::fs::XattrFlags;
use toolrest_directory::{
    Change, CommitOptions, Contents, Effect, ErrorKind, Expect, HardLinks, Outcome, Parents, Record, Replace, Root,
};

use crate::fixture::{Fixture, Node, hash, links_of, make_folder, moving, remove, remove_folder, write, write_deep};

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn replacing(from: &str, to: &str) -> Change {
    Change::Move { from: from.into(), to: to.into(), replace: Replace::File, parents: Parents::Required }
}

#[test]
fn a_new_file_gets_the_default_or_the_given_mode() {
    let fixture = Fixture::new();
    fs::write(fixture.path("usual"), "").unwrap();
    let script = Change::Write {
        path: "run".into(),
        bytes: vec![],
        expect: Expect::Absent,
        mode: Some(0o755),
        parents: Parents::Make,
    };
    let applied = fixture.commit(&[write("new", "text", Expect::Absent), script]).unwrap();
    assert_eq!(mode_of(&fixture.path("new")), mode_of(&fixture.path("usual")));
    assert_eq!(mode_of(&fixture.path("run")), 0o755);
    let metadata = applied.changes[0].metadata.unwrap();
    assert_eq!((applied.changes[0].effect, metadata.size_bytes, metadata.links), (Effect::Created, 4, 1));
    assert_eq!(
        metadata.identity,
        fixture.root.stat(Path::new("new"), toolrest_directory::Links::Keep).unwrap().identity
    );
}

#[test]
fn an_updated_file_keeps_mode_owner_and_attributes() {
    let fixture = Fixture::with(&[("file", "old")]);
    let path = fixture.path("file");
    set_mode(&path, 0o751);
    let foreign = chown(&path, Some(12345), Some(54321)).is_ok();
    let attribute = rustix::fs::setxattr(&path, "user.colour", b"blue", XattrFlags::empty()).is_ok();
    let applied = fixture.commit(&[write("file", "new", hash("old"))]).unwrap();
    assert_eq!(applied.changes[0].effect, Effect::Replaced);
    assert_eq!(fixture.text("file"), "new");
    assert_eq!(mode_of(&path), 0o751);
    if foreign {
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (12345, 54321));
    }
    if attribute {
        let mut value = [0; 10];
        let length = rustix::fs::getxattr(&path, "user.colour", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"blue");
    }
}

#[test]
fn the_executable_bit_alone_can_be_changed() {
    let fixture = Fixture::with(&[("file", "same")]);
    let change = Change::Write {
        path: "file".into(),
        bytes: b"same".to_vec(),
        expect: hash("same"),
        mode: Some(0o755),
        parents: Parents::Required,
    };
    fixture.commit(&[change]).unwrap();
    assert_eq!((fixture.text("file").as_str(), mode_of(&fixture.path("file"))), ("same", 0o755));
}

#[test]
fn a_file_with_hard_links_is_rewritten_in_place() {
    let fixture = Fixture::with(&[("one", "long old text")]);
    fs::hard_link(fixture.path("one"), fixture.path("two")).unwrap();
    let inode = fs::metadata(fixture.path("two")).unwrap().ino();
    let applied = fixture.commit(&[write("one", "new", hash("long old text"))]).unwrap();
    assert_eq!(applied.changes[0].effect, Effect::RewrittenInPlace);
    assert_eq!((fixture.text("one").as_str(), fixture.text("two").as_str()), ("new", "new"));
    assert_eq!(links_of(&fixture.path("one")), 2);
    assert_eq!(fs::metadata(fixture.path("one")).unwrap().ino(), inode);
    assert!(matches!(fixture.refused(&[write("two", "x", hash("old"))]), ErrorKind::Changed { actual: Some(_) }));
}

#[test]
fn two_hard_links_of_one_file_can_be_written_in_one_commit() {
    let fixture = Fixture::with(&[("one", "old")]);
    fs::hard_link(fixture.path("one"), fixture.path("two")).unwrap();
    let applied = fixture.commit(&[write("one", "new", hash("old")), write("two", "new", hash("old"))]).unwrap();
    assert!(applied.changes.iter().all(|change| change.effect == Effect::RewrittenInPlace));
    assert_eq!((fixture.text("one"), links_of(&fixture.path("two"))), ("new".into(), 2));
    // One file cannot have two contents.
    let applied = fixture.commit(&[write("one", "a", hash("new")), write("two", "b", hash("new"))]).unwrap();
    assert!(applied.changes.iter().all(|change| change.effect == Effect::Replaced));
    assert_eq!((fixture.text("one").as_str(), fixture.text("two").as_str()), ("a", "b"));
    fs::hard_link(fixture.path("one"), fixture.path("three")).unwrap();
    let both = [write("one", "x", hash("a")), write("three", "y", hash("b"))];
    assert!(matches!(fixture.refused(&both), ErrorKind::Changed { .. }));
    fixture.commit(&[remove("three", hash("a")), write("one", "c", hash("a"))]).unwrap();
    assert_eq!((fixture.text("one").as_str(), fixture.path("three").exists()), ("c", false));
}

#[test]
fn a_hard_link_can_be_replaced_by_a_new_file() {
    let fixture = Fixture::with(&[("one", "old")]);
    fs::hard_link(fixture.path("one"), fixture.path("two")).unwrap();
    let options = CommitOptions { hard_links: HardLinks::Break, ..CommitOptions::default() };
    let commit = |changes: &[Change]| fixture.root.commit(changes, &fixture.journal(), &options).unwrap();
    commit(&[write("one", "new", hash("old"))]);
    assert_eq!((fixture.text("one").as_str(), fixture.text("two").as_str()), ("new", "old"));
    assert_eq!((links_of(&fixture.path("one")), links_of(&fixture.path("two"))), (1, 1));
}

#[test]
fn writing_through_a_link_keeps_the_link() {
    let fixture = Fixture::with(&[("folder/file", "old")]);
    symlink("folder/file", fixture.path("link")).unwrap();
    symlink("link", fixture.path("chain")).unwrap();
    symlink("folder", fixture.path("way")).unwrap();
    symlink("folder/missing", fixture.path("dangling")).unwrap();
    let applied = fixture.commit(&[write("chain", "new", hash("old"))]).unwrap();
    assert_eq!(applied.changes[0].path, Path::new("folder/file"));
    assert_eq!(fixture.text("folder/file"), "new");
    fixture.commit(&[write("way/other", "other", Expect::Absent), write("dangling", "made", Expect::Absent)]).unwrap();
    assert_eq!((fixture.text("folder/other").as_str(), fixture.text("folder/missing").as_str()), ("other", "made"));
    for link in ["link", "chain", "way", "dangling"] {
        assert!(matches!(fixture.tree()[Path::new(link)], Node::Link(_)), "{link}");
    }
    // Through two names it is the same file.
    assert!(matches!(
        fixture.refused(&[write("link", "1", Expect::Anything), write("way/file", "2", Expect::Anything)]),
        ErrorKind::Overlap
    ));
}

#[test]
fn a_moved_file_can_be_moved_again() {
    let fixture = Fixture::with(&[("a", "A"), ("b", "B"), ("d/d", "D")]);
    let swap = [moving("a", "aside"), moving("b", "a"), moving("aside", "b")];
    fixture.commit(&swap).unwrap();
    assert_eq!((fixture.text("a").as_str(), fixture.text("b").as_str()), ("B", "A"));
    // A file moves below a folder with its own name, and a file gets the name of its folder.
    let below = [moving("a", "aside"), make_folder("a"), moving("aside", "a/a"), write("a/a", "new", hash("B"))];
    fixture.commit(&below).unwrap();
    assert_eq!(fixture.text("a/a"), "new");
    let above = [
        moving("d/d", "aside"),
        Change::RemoveFolder { path: "d".into(), contents: Contents::Nothing },
        moving("aside", "d"),
    ];
    fixture.commit(&above).unwrap();
    assert_eq!(fixture.text("d"), "D");
    assert_eq!(fixture.tree().len(), 4, "nothing is left behind: {:?}", fixture.tree());
}

#[test]
fn removing_and_moving_a_link_leaves_its_target() {
    let fixture = Fixture::with(&[("file", "text")]);
    symlink("file", fixture.path("one")).unwrap();
    symlink("nowhere", fixture.path("two")).unwrap();
    fixture.commit(&[remove("one", hash("text")), moving("two", "three")]).unwrap();
    assert_eq!(fixture.text("file"), "text");
    assert_eq!(fixture.tree().len(), 2);
    assert_eq!(fixture.tree()[Path::new("three")], Node::Link("nowhere".into()));
}

#[test]
fn files_and_folders_move_with_their_contents_and_metadata() {
    let fixture = Fixture::with(&[("file", "text"), ("folder/sub/deep", "deep"), ("taken", "taken")]);
    set_mode(&fixture.path("file"), 0o711);
    let applied = fixture
        .commit(&[
            replacing("file", "taken"),
            Change::Move {
                from: "folder".into(),
                to: "new/place".into(),
                replace: Replace::Refuse,
                parents: Parents::Make,
            },
            write("new/place/sub/deep", "deeper", hash("deep")),
        ])
        .unwrap();
    assert_eq!(applied.changes[1].path, Path::new("new/place"));
    assert_eq!((fixture.text("taken").as_str(), mode_of(&fixture.path("taken"))), ("text", 0o711));
    assert_eq!(fixture.text("new/place/sub/deep"), "deeper");
    assert_eq!(fixture.tree().len(), 5);
}

#[test]
fn missing_parents_are_created_on_request_and_removed_after_a_failure() {
    let fixture = Fixture::with(&[("file", "")]);
    assert!(matches!(fixture.refused(&[write("a/b", "", Expect::Absent)]), ErrorKind::NotFound));
    let changes = [write_deep("a/b/c", "text", Expect::Absent), write("file", "", hash("wrong"))];
    assert!(matches!(fixture.refused(&changes), ErrorKind::Changed { .. }));
    fixture.commit(&changes[..1]).unwrap();
    assert_eq!(fixture.text("a/b/c"), "text");
}

#[test]
fn folders_are_removed_empty_or_with_everything() {
    let fixture = Fixture::with(&[("one/a", "a"), ("one/b", "b"), ("two/sub/c", "c")]);
    symlink("../one", fixture.path("two/link")).unwrap();
    assert!(matches!(fixture.refused(&[remove_folder("one", Contents::Nothing)]), ErrorKind::NotEmpty));
    let all = [remove("one/a", hash("a")), remove("one/b", hash("b")), remove_folder("one", Contents::Nothing)];
    assert!(matches!(fixture.refused(&[all[0].clone(), all[2].clone()]), ErrorKind::NotEmpty));
    fixture.commit(&all).unwrap();
    fixture.commit(&[remove_folder("two", Contents::Anything)]).unwrap();
    assert!(fixture.tree().is_empty());
}

#[test]
fn a_file_can_become_a_folder_and_back() {
    let fixture = Fixture::with(&[("thing", "file")]);
    fixture.commit(&[remove("thing", hash("file")), write_deep("thing/inside", "text", Expect::Absent)]).unwrap();
    assert_eq!(fixture.text("thing/inside"), "text");
    let back = [
        remove("thing/inside", hash("text")),
        remove_folder("thing", Contents::Nothing),
        write("thing", "file", Expect::Absent),
    ];
    fixture.commit(&back).unwrap();
    assert_eq!(fixture.text("thing"), "file");
}

#[test]
fn names_of_any_bytes_are_written_moved_and_removed() {
    let fixture = Fixture::new();
    let long = vec![0xfe; 255];
    for name in [&b"line\nbreak"[..], b"\xff\xfe", &long, b"* ?", b".hidden"] {
        let name = Path::new(OsStr::from_bytes(name));
        fixture.commit(&[write(name, "text", Expect::Absent)]).unwrap();
        fixture.commit(&[write(name, "more", hash("text"))]).unwrap();
        fixture.commit(&[moving(name, "plain")]).unwrap();
        fixture.commit(&[moving("plain", name)]).unwrap();
        fixture.commit(&[remove(name, hash("more"))]).unwrap();
    }
    assert!(fixture.tree().is_empty());
}

#[test]
fn a_large_commit_keeps_few_descriptors_open() {
    let fixture = Fixture::new();
    let changes: Vec<_> = (0..3000).map(|n| write_deep(format!("{n}/file"), "text", Expect::Absent)).collect();
    assert_eq!(fixture.commit(&changes).unwrap().changes.len(), 3000);
    assert_eq!(fixture.tree().len(), 6000);
}

#[test]
fn a_folder_locked_by_somebody_else_times_out() {
    let fixture = Fixture::new();
    let folder = fs::File::open(fixture.root.real_path()).unwrap();
    folder.lock().unwrap();
    assert!(matches!(fixture.refused(&[make_folder("next")]), ErrorKind::Locked));
    drop(folder);
    fixture.commit(&[make_folder("next")]).unwrap();
}

#[test]
fn a_commit_without_changes_changes_nothing() {
    let fixture = Fixture::new();
    assert!(fixture.commit(&[]).unwrap().changes.is_empty());
    assert!(fixture.tree().is_empty());
}

#[test]
fn a_commit_that_could_not_be_recorded_is_returned_by_recovery() {
    let fixture = Fixture::new();
    let options = CommitOptions { id: b"seven".to_vec(), payload: b"who and why".to_vec(), ..CommitOptions::default() };
    let change = [write("file", "text", Expect::Absent)];
    fixture.root.commit_and_record(&change, &fixture.journal(), &options, |_| Record::Failed).unwrap();
    assert!(matches!(fixture.refused(&[make_folder("next")]), ErrorKind::Unfinished));
    let recovered = fixture.recover().unwrap();
    assert_eq!((recovered.outcome, &recovered.id[..]), (Outcome::Finished, &b"seven"[..]));
    assert_eq!(recovered.payload, b"who and why");
    assert!(fixture.recover().is_none());
    fixture.commit(&[make_folder("next")]).unwrap();
}

#[test]
fn two_roots_do_not_share_a_journal() {
    let fixture = Fixture::new();
    let other = Root::open(&fixture.outside()).unwrap();
    let options = CommitOptions::default();
    let change = [write("file", "text", Expect::Absent)];
    fixture.root.commit_and_record(&change, &fixture.journal(), &options, |_| Record::Failed).unwrap();
    other.commit(&change, &fixture.journal(), &options).unwrap();
    assert!(other.recover(&fixture.journal()).unwrap().is_none());
    assert!(fixture.recover().is_some());
}

#[test]
fn a_deep_tree_is_removed_folder_by_folder() {
    const DEPTH: usize = 200;
    let fixture = Fixture::new();
    let deepest = Path::new("top").join("d/".repeat(DEPTH));
    fs::create_dir_all(fixture.path(deepest.to_str().unwrap())).unwrap();
    let folders = deepest.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    let changes: Vec<Change> = folders.map(|folder| remove_folder(folder, Contents::Nothing)).collect();
    fixture.commit(&changes).unwrap();
    // Each folder was set aside in the one above, so the whole path is too long for a system call.
    assert_eq!(fs::read_dir(fixture.path("")).unwrap().count(), 0);
    fixture.commit(&[write("next", "", Expect::Absent)]).unwrap();
}
