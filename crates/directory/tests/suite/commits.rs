//! What commits do.

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

use crate::scene::{Node, Scene, hash, links_of, make_folder, moving, remove, remove_folder, write, write_deep};

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
fn a_new_file_gets_the_usual_mode_or_the_one_given() {
    let scene = Scene::new();
    fs::write(scene.path("usual"), "").unwrap();
    let script = Change::Write {
        path: "run".into(),
        bytes: vec![],
        expect: Expect::Absent,
        mode: Some(0o755),
        parents: Parents::Make,
    };
    let applied = scene.commit(&[write("new", "text", Expect::Absent), script]).unwrap();
    assert_eq!(mode_of(&scene.path("new")), mode_of(&scene.path("usual")));
    assert_eq!(mode_of(&scene.path("run")), 0o755);
    let metadata = applied.changes[0].metadata.unwrap();
    assert_eq!((applied.changes[0].effect, metadata.size_bytes, metadata.links), (Effect::Created, 4, 1));
    assert_eq!(metadata.identity, scene.root.stat(Path::new("new"), toolrest_directory::Links::Keep).unwrap().identity);
}

#[test]
fn an_updated_file_keeps_mode_owner_and_attributes() {
    let scene = Scene::with(&[("file", "old")]);
    let path = scene.path("file");
    set_mode(&path, 0o751);
    let foreign = chown(&path, Some(12345), Some(54321)).is_ok();
    let attribute = rustix::fs::setxattr(&path, "user.colour", b"blue", XattrFlags::empty()).is_ok();
    let applied = scene.commit(&[write("file", "new", hash("old"))]).unwrap();
    assert_eq!(applied.changes[0].effect, Effect::Replaced);
    assert_eq!(scene.text("file"), "new");
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
    let scene = Scene::with(&[("file", "same")]);
    let change = Change::Write {
        path: "file".into(),
        bytes: b"same".to_vec(),
        expect: hash("same"),
        mode: Some(0o755),
        parents: Parents::Required,
    };
    scene.commit(&[change]).unwrap();
    assert_eq!((scene.text("file").as_str(), mode_of(&scene.path("file"))), ("same", 0o755));
}

#[test]
fn a_file_with_several_names_keeps_them_and_says_so() {
    let scene = Scene::with(&[("one", "long old text")]);
    fs::hard_link(scene.path("one"), scene.path("two")).unwrap();
    let inode = fs::metadata(scene.path("two")).unwrap().ino();
    let applied = scene.commit(&[write("one", "new", hash("long old text"))]).unwrap();
    assert_eq!(applied.changes[0].effect, Effect::RewrittenInPlace);
    assert_eq!((scene.text("one").as_str(), scene.text("two").as_str()), ("new", "new"));
    assert_eq!(links_of(&scene.path("one")), 2);
    assert_eq!(fs::metadata(scene.path("one")).unwrap().ino(), inode);
    assert!(matches!(scene.refused(&[write("two", "x", hash("old"))]), ErrorKind::Changed { actual: Some(_) }));
}

#[test]
fn two_names_of_one_file_are_written_in_one_commit() {
    let scene = Scene::with(&[("one", "old")]);
    fs::hard_link(scene.path("one"), scene.path("two")).unwrap();
    let applied = scene.commit(&[write("one", "new", hash("old")), write("two", "new", hash("old"))]).unwrap();
    assert!(applied.changes.iter().all(|change| change.effect == Effect::RewrittenInPlace));
    assert_eq!((scene.text("one"), links_of(&scene.path("two"))), ("new".into(), 2));
    // One file cannot hold two contents.
    let applied = scene.commit(&[write("one", "a", hash("new")), write("two", "b", hash("new"))]).unwrap();
    assert!(applied.changes.iter().all(|change| change.effect == Effect::Replaced));
    assert_eq!((scene.text("one").as_str(), scene.text("two").as_str()), ("a", "b"));
    fs::hard_link(scene.path("one"), scene.path("three")).unwrap();
    let both = [write("one", "x", hash("a")), write("three", "y", hash("b"))];
    assert!(matches!(scene.refused(&both), ErrorKind::Changed { .. }));
    scene.commit(&[remove("three", hash("a")), write("one", "c", hash("a"))]).unwrap();
    assert_eq!((scene.text("one").as_str(), scene.path("three").exists()), ("c", false));
}

#[test]
fn a_name_can_be_given_a_file_of_its_own() {
    let scene = Scene::with(&[("one", "old")]);
    fs::hard_link(scene.path("one"), scene.path("two")).unwrap();
    let options = CommitOptions { hard_links: HardLinks::Break, ..CommitOptions::default() };
    let commit = |changes: &[Change]| scene.root.commit(changes, &scene.journal(), &options).unwrap();
    commit(&[write("one", "new", hash("old"))]);
    assert_eq!((scene.text("one").as_str(), scene.text("two").as_str()), ("new", "old"));
    assert_eq!((links_of(&scene.path("one")), links_of(&scene.path("two"))), (1, 1));
}

#[test]
fn a_link_is_written_through_and_stays() {
    let scene = Scene::with(&[("folder/file", "old")]);
    symlink("folder/file", scene.path("link")).unwrap();
    symlink("link", scene.path("chain")).unwrap();
    symlink("folder", scene.path("way")).unwrap();
    symlink("folder/missing", scene.path("dangling")).unwrap();
    let applied = scene.commit(&[write("chain", "new", hash("old"))]).unwrap();
    assert_eq!(applied.changes[0].path, Path::new("folder/file"));
    assert_eq!(scene.text("folder/file"), "new");
    scene.commit(&[write("way/other", "other", Expect::Absent), write("dangling", "made", Expect::Absent)]).unwrap();
    assert_eq!((scene.text("folder/other").as_str(), scene.text("folder/missing").as_str()), ("other", "made"));
    for link in ["link", "chain", "way", "dangling"] {
        assert!(matches!(scene.tree()[Path::new(link)], Node::Link(_)), "{link}");
    }
    // Through two names it is the same file.
    assert!(matches!(
        scene.refused(&[write("link", "1", Expect::Anything), write("way/file", "2", Expect::Anything)]),
        ErrorKind::Overlap
    ));
}

#[test]
fn a_file_that_was_moved_may_be_moved_on() {
    let scene = Scene::with(&[("a", "A"), ("b", "B"), ("d/d", "D")]);
    let swap = [moving("a", "aside"), moving("b", "a"), moving("aside", "b")];
    scene.commit(&swap).unwrap();
    assert_eq!((scene.text("a").as_str(), scene.text("b").as_str()), ("B", "A"));
    // A file goes below a folder of its own name, and one takes the name of its folder.
    let below = [moving("a", "aside"), make_folder("a"), moving("aside", "a/a"), write("a/a", "new", hash("B"))];
    scene.commit(&below).unwrap();
    assert_eq!(scene.text("a/a"), "new");
    let above = [
        moving("d/d", "aside"),
        Change::RemoveFolder { path: "d".into(), contents: Contents::Nothing },
        moving("aside", "d"),
    ];
    scene.commit(&above).unwrap();
    assert_eq!(scene.text("d"), "D");
    assert_eq!(scene.tree().len(), 4, "nothing is left behind: {:?}", scene.tree());
}

#[test]
fn removing_and_moving_a_link_leaves_what_it_names() {
    let scene = Scene::with(&[("file", "text")]);
    symlink("file", scene.path("one")).unwrap();
    symlink("nowhere", scene.path("two")).unwrap();
    scene.commit(&[remove("one", hash("text")), moving("two", "three")]).unwrap();
    assert_eq!(scene.text("file"), "text");
    assert_eq!(scene.tree().len(), 2);
    assert_eq!(scene.tree()[Path::new("three")], Node::Link("nowhere".into()));
}

#[test]
fn files_and_folders_move_with_all_they_have() {
    let scene = Scene::with(&[("file", "text"), ("folder/sub/deep", "deep"), ("taken", "taken")]);
    set_mode(&scene.path("file"), 0o711);
    let applied = scene
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
    assert_eq!((scene.text("taken").as_str(), mode_of(&scene.path("taken"))), ("text", 0o711));
    assert_eq!(scene.text("new/place/sub/deep"), "deeper");
    assert_eq!(scene.tree().len(), 5);
}

#[test]
fn missing_parents_are_made_where_asked_and_gone_after_a_failure() {
    let scene = Scene::with(&[("file", "")]);
    assert!(matches!(scene.refused(&[write("a/b", "", Expect::Absent)]), ErrorKind::NotFound));
    let changes = [write_deep("a/b/c", "text", Expect::Absent), write("file", "", hash("wrong"))];
    assert!(matches!(scene.refused(&changes), ErrorKind::Changed { .. }));
    scene.commit(&changes[..1]).unwrap();
    assert_eq!(scene.text("a/b/c"), "text");
}

#[test]
fn folders_are_removed_empty_or_with_everything() {
    let scene = Scene::with(&[("one/a", "a"), ("one/b", "b"), ("two/sub/c", "c")]);
    symlink("../one", scene.path("two/link")).unwrap();
    assert!(matches!(scene.refused(&[remove_folder("one", Contents::Nothing)]), ErrorKind::NotEmpty));
    let all = [remove("one/a", hash("a")), remove("one/b", hash("b")), remove_folder("one", Contents::Nothing)];
    assert!(matches!(scene.refused(&[all[0].clone(), all[2].clone()]), ErrorKind::NotEmpty));
    scene.commit(&all).unwrap();
    scene.commit(&[remove_folder("two", Contents::Anything)]).unwrap();
    assert!(scene.tree().is_empty());
}

#[test]
fn a_file_can_become_a_folder_and_back() {
    let scene = Scene::with(&[("thing", "file")]);
    scene.commit(&[remove("thing", hash("file")), write_deep("thing/inside", "text", Expect::Absent)]).unwrap();
    assert_eq!(scene.text("thing/inside"), "text");
    let back = [
        remove("thing/inside", hash("text")),
        remove_folder("thing", Contents::Nothing),
        write("thing", "file", Expect::Absent),
    ];
    scene.commit(&back).unwrap();
    assert_eq!(scene.text("thing"), "file");
}

#[test]
fn names_of_any_bytes_are_written_moved_and_removed() {
    let scene = Scene::new();
    let long = vec![0xfe; 255];
    for name in [&b"line\nbreak"[..], b"\xff\xfe", &long, b"* ?", b".hidden"] {
        let name = Path::new(OsStr::from_bytes(name));
        scene.commit(&[write(name, "text", Expect::Absent)]).unwrap();
        scene.commit(&[write(name, "more", hash("text"))]).unwrap();
        scene.commit(&[moving(name, "plain")]).unwrap();
        scene.commit(&[moving("plain", name)]).unwrap();
        scene.commit(&[remove(name, hash("more"))]).unwrap();
    }
    assert!(scene.tree().is_empty());
}

#[test]
fn a_commit_of_many_files_in_many_folders_holds_few_descriptors() {
    let scene = Scene::new();
    let changes: Vec<_> = (0..3000).map(|n| write_deep(format!("{n}/file"), "text", Expect::Absent)).collect();
    assert_eq!(scene.commit(&changes).unwrap().changes.len(), 3000);
    assert_eq!(scene.tree().len(), 6000);
}

#[test]
fn a_folder_that_somebody_else_has_locked_is_not_waited_for_without_end() {
    let scene = Scene::new();
    let folder = fs::File::open(scene.root.real_path()).unwrap();
    folder.lock().unwrap();
    assert!(matches!(scene.refused(&[make_folder("next")]), ErrorKind::Locked));
    drop(folder);
    scene.commit(&[make_folder("next")]).unwrap();
}

#[test]
fn a_commit_without_changes_changes_nothing() {
    let scene = Scene::new();
    assert!(scene.commit(&[]).unwrap().changes.is_empty());
    assert!(scene.tree().is_empty());
}

#[test]
fn a_commit_that_could_not_be_recorded_is_handed_back() {
    let scene = Scene::new();
    let options = CommitOptions { id: b"seven".to_vec(), payload: b"who and why".to_vec(), ..CommitOptions::default() };
    let change = [write("file", "text", Expect::Absent)];
    scene.root.commit_and_record(&change, &scene.journal(), &options, |_| Record::Failed).unwrap();
    assert!(matches!(scene.refused(&[make_folder("next")]), ErrorKind::Unfinished));
    let recovered = scene.recover().unwrap();
    assert_eq!((recovered.outcome, &recovered.id[..]), (Outcome::Finished, &b"seven"[..]));
    assert_eq!(recovered.payload, b"who and why");
    assert!(scene.recover().is_none());
    scene.commit(&[make_folder("next")]).unwrap();
}

#[test]
fn two_roots_do_not_share_a_journal() {
    let scene = Scene::new();
    let other = Root::open(&scene.outside()).unwrap();
    let options = CommitOptions::default();
    let change = [write("file", "text", Expect::Absent)];
    scene.root.commit_and_record(&change, &scene.journal(), &options, |_| Record::Failed).unwrap();
    other.commit(&change, &scene.journal(), &options).unwrap();
    assert!(other.recover(&scene.journal()).unwrap().is_none());
    assert!(scene.recover().is_some());
}

#[test]
fn a_deep_tree_is_removed_folder_by_folder() {
    const DEPTH: usize = 200;
    let scene = Scene::new();
    let deepest = Path::new("top").join("d/".repeat(DEPTH));
    fs::create_dir_all(scene.path(deepest.to_str().unwrap())).unwrap();
    let folders = deepest.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    let changes: Vec<Change> = folders.map(|folder| remove_folder(folder, Contents::Nothing)).collect();
    scene.commit(&changes).unwrap();
    // Each was set aside in the one above, which makes a path that no system call takes.
    assert_eq!(fs::read_dir(scene.path("")).unwrap().count(), 0);
    scene.commit(&[write("next", "", Expect::Absent)]).unwrap();
}
