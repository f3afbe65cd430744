//! The files of a workspace in a real folder, for programs.

use crate::folders::NoRecords;
use crate::room::{Room, new_user, on_both_stores, path, put};
use std::fs::{self, Permissions};
use std::future::{Future, poll_fn};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tempfile::TempDir;
use toolrest_core::{
    AllowAll, CallCx, Caller, Change, CheckedIn, Checkout, CheckoutMode, CheckoutOptions, Content, Engine, ErrorKind,
    FileType, Ground, JsonText, KeepLimits, LeftOutReason, Limits, Parents, ProgramChangeKind, Put, Removal, Role,
    Toolsets, UserId,
};
use toolrest_store::{CheckoutsKept, FolderOptions, Scratch, StoredWorkspaces};

on_both_stores!(
    programs_see_each_type_of_file_as_its_text,
    what_a_program_changes_becomes_one_commit_that_can_be_undone,
    a_program_that_changes_nothing_commits_nothing,
    executable_bits_go_both_ways,
    a_renamed_file_keeps_its_history,
    a_renamed_folder_is_one_move,
    a_renamed_folder_with_changes_in_it_keeps_both,
    a_file_becomes_a_folder_and_a_folder_a_file,
    the_folder_stays_warm_and_gets_only_what_changed,
    another_replica_sees_what_this_one_checked_in,
    what_was_not_checked_in_is_forgotten,
    two_programs_at_once_keep_both_their_changes,
    two_programs_that_write_the_same_file_lose_nothing,
    the_same_change_made_twice_is_no_conflict,
    a_file_that_another_changed_is_not_removed,
    a_json_file_must_stay_json,
    other_fields_of_a_document_stay,
    ignored_files_stay_in_the_folder_without_versions,
    a_tracked_file_stays_tracked_whatever_rules_say,
    limits_leave_out_and_tell,
    hostile_entries_are_left_out_and_tracked_files_come_back,
    closed_folders_and_files_are_opened,
    names_that_no_path_can_have_are_left_out,
    a_deep_tree_is_left_out_and_removed,
    a_program_that_still_runs_sees_what_others_did,
    chats_are_not_checked_out,
    strangers_are_refused_before_anything_is_made,
    viewers_cannot_check_in,
    a_fifth_program_waits_for_a_folder,
    folders_that_are_not_used_are_removed,
    a_folder_that_another_filled_is_not_removed,
    files_in_place_of_folders_of_others_go_beside,
    what_was_forgotten_does_not_bring_back_what_others_removed,
    a_file_can_take_the_place_of_a_folder_that_was_moved,
    a_file_that_was_moved_to_a_folder_that_others_removed_is_kept,
    a_file_that_grew_beyond_the_limit_is_not_read,
    a_checkout_that_is_cancelled_anywhere_hides_nothing_from_the_next,
);

pub(crate) struct Scene {
    room: Room,
    engine: Engine,
    scratch: TempDir,
}

impl Scene {
    pub(crate) fn of(room: &Room) -> Self {
        Self::keeping(room, CheckoutsKept::default())
    }

    fn keeping(room: &Room, kept: CheckoutsKept) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let own = Scratch::open(scratch.path()).unwrap();
        let workspaces = StoredWorkspaces::new(Arc::clone(&room.store), FolderOptions::default(), own).keeping(kept);
        let (policy, recorder) = (Arc::new(AllowAll), Arc::new(NoRecords));
        let engine = Engine::new(Toolsets::default(), Arc::new(workspaces), policy, recorder, Limits::default());
        Self { room: room.clone(), engine, scratch }
    }

    async fn cx(&self) -> CallCx {
        self.cx_of(self.room.user, Role::Editor).await
    }

    async fn cx_of(&self, user: UserId, need: Role) -> CallCx {
        self.engine.outside_tools("test", self.room.workspace, Caller { user }, need).await.unwrap()
    }

    pub(crate) async fn check_out(&self) -> Program {
        self.check_out_keeping(KeepLimits::default()).await
    }

    async fn check_out_keeping(&self, keep: KeepLimits) -> Program {
        let cx = self.cx().await;
        let checkout = cx.workspace.check_out(CheckoutOptions { mode: CheckoutMode::Aside, keep }).await.unwrap();
        let Ground::Folder(folder) = checkout.ground() else { panic!("no folder") };
        Program { cx, checkout, folder }
    }

    /// Runs something as a program would, from beginning to end.
    async fn run(&self, program: impl FnOnce(&Path)) -> CheckedIn {
        let running = self.check_out().await;
        program(&running.folder);
        running.finish().await
    }

    /// The folders that were made.
    fn folders(&self) -> usize {
        let own = fs::read_dir(self.scratch.path()).unwrap().map(|entry| entry.unwrap().path());
        own.flat_map(|own| fs::read_dir(own).unwrap()).filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    }
}

pub(crate) struct Program {
    pub(crate) cx: CallCx,
    pub(crate) checkout: Box<dyn Checkout>,
    pub(crate) folder: PathBuf,
}

impl Program {
    async fn finish(self) -> CheckedIn {
        self.checkout.finish(&self.cx).await.unwrap()
    }

    pub(crate) async fn check_in(&mut self) -> CheckedIn {
        self.checkout.check_in(&self.cx).await.unwrap()
    }

    fn write(&self, at: &str, text: &str) {
        fs::write(self.folder.join(at), text).unwrap();
    }

    fn text(&self, at: &str) -> String {
        fs::read_to_string(self.folder.join(at)).unwrap()
    }

    fn has(&self, at: &str) -> bool {
        self.folder.join(at).symlink_metadata().is_ok()
    }
}

/// What was changed, in a few letters.
fn changed(checked_in: &CheckedIn) -> Vec<String> {
    let letter = |change| match change {
        ProgramChangeKind::Created => '+',
        ProgramChangeKind::Changed => '~',
        ProgramChangeKind::Moved => '>',
        ProgramChangeKind::Removed => '-',
    };
    let shown = |from: &Option<toolrest_core::WsPath>| from.as_ref().map_or(String::new(), |from| format!(" <{from}"));
    checked_in.changed.iter().map(|one| format!("{}{}{}", letter(one.change), one.path, shown(&one.from))).collect()
}

fn left_out(checked_in: &CheckedIn) -> Vec<(&str, LeftOutReason)> {
    checked_in.left_out.iter().map(|left| (&*left.path, left.reason)).collect()
}

fn put_as(at: &str, file_type: FileType, content: Content) -> Change {
    Change::Put(Put { path: path(at), file_type, content, parents: Parents::Create, executable: None })
}

fn json(text: &str) -> Content {
    Content::Json(JsonText::parse(text.to_owned()).unwrap())
}

fn mode(at: &Path) -> u32 {
    fs::symlink_metadata(at).unwrap().mode() & 0o7777
}

async fn programs_see_each_type_of_file_as_its_text(room: Room) {
    let changes = vec![
        put("/a.txt", "text\n"),
        put_as("/d/doc", FileType::Document, json(r#"{"text":"inside","more":1}"#)),
        put_as("/board", FileType::Canvas, json(r#"{"b":[1,2],"a":1.50}"#)),
        put_as("/bytes", FileType::File, Content::Bytes(vec![0, 255, 1])),
        Change::MakeDir(path("/empty/deeper")),
    ];
    room.all(changes).await.unwrap();
    let scene = Scene::of(&room);
    let program = scene.check_out().await;
    assert_eq!(program.text("a.txt"), "text\n");
    assert_eq!(program.text("d/doc"), "inside");
    assert_eq!(program.text("board"), "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": 1.50\n}\n");
    assert_eq!(fs::read(program.folder.join("bytes")).unwrap(), [0, 255, 1]);
    assert!(program.folder.join("empty/deeper").is_dir());
    assert_eq!(mode(&program.folder.join("a.txt")), 0o644);
}

async fn what_a_program_changes_becomes_one_commit_that_can_be_undone(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/keep", "k"), put("/change", "old"), put("/remove", "r"), put("/dir/x", "x")]).await.unwrap();
    let before = room.paths().await;
    let checked_in = scene
        .run(|folder| {
            fs::write(folder.join("change"), "new").unwrap();
            fs::remove_file(folder.join("remove")).unwrap();
            fs::remove_dir_all(folder.join("dir")).unwrap();
            fs::create_dir_all(folder.join("made/empty")).unwrap();
            fs::write(folder.join("made/file"), "made").unwrap();
        })
        .await;
    let expected = ["~/change", "-/dir", "-/dir/x", "+/made", "+/made/empty", "+/made/file", "-/remove"];
    assert_eq!(changed(&checked_in), expected);
    assert!(checked_in.commit.is_some() && checked_in.conflicts.is_empty() && checked_in.left_out.is_empty());
    assert_eq!(room.paths().await, ["/change", "/keep", "/made", "/made/empty", "/made/file"]);
    assert_eq!(room.text("/change").await, "new");
    room.undo().await.unwrap();
    assert_eq!(room.paths().await, before);
    assert_eq!(room.text("/change").await, "old");
    let program = scene.check_out().await;
    assert!(program.text("change") == "old" && program.text("dir/x") == "x" && !program.has("made"));
}

async fn a_program_that_changes_nothing_commits_nothing(room: Room) {
    let scene = Scene::of(&room);
    room.put("/a", "a").await;
    let checked_in = scene
        .run(|folder| {
            // The same bytes again are no change.
            fs::write(folder.join("a"), "a").unwrap();
        })
        .await;
    assert_eq!(checked_in, CheckedIn::default());
}

async fn executable_bits_go_both_ways(room: Room) {
    let scene = Scene::of(&room);
    room.put("/tool", "#!/bin/sh\n").await;
    let set = |folder: &Path, mode| fs::set_permissions(folder.join("tool"), Permissions::from_mode(mode)).unwrap();
    assert_eq!(changed(&scene.run(|folder| set(folder, 0o755)).await), ["~/tool"]);
    let another = Scene::of(&room);
    let mut program = another.check_out().await;
    assert_eq!(mode(&program.folder.join("tool")), 0o755);
    program.write("new", "n");
    fs::set_permissions(program.folder.join("new"), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(changed(&program.check_in().await), ["+/new"]);
    assert_eq!(changed(&scene.run(|folder| set(folder, 0o644)).await), ["~/tool"]);
    room.undo().await.unwrap();
    drop(program);
    let again = another.check_out().await.folder;
    assert_eq!((mode(&again.join("tool")) & 0o100, mode(&again.join("new")) & 0o100), (0o100, 0o100));
}

async fn a_renamed_file_keeps_its_history(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/a", "content"), put("/twin", "content")]).await.unwrap();
    let before = room.read("/a").await.unwrap().entry.id;
    let rename = |folder: &Path| {
        fs::create_dir(folder.join("sub")).unwrap();
        fs::rename(folder.join("a"), folder.join("sub/b")).unwrap();
    };
    assert_eq!(changed(&scene.run(rename).await), ["+/sub", ">/sub/b </a"]);
    assert_eq!(room.read("/sub/b").await.unwrap().entry.id, before);
    room.undo().await.unwrap();
    assert_eq!(room.paths().await, ["/a", "/twin"]);
}

async fn a_renamed_folder_is_one_move(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/old/a", "a"), put("/old/deep/b", "b"), Change::MakeDir(path("/old/empty"))]).await.unwrap();
    let before = room.read("/old/deep/b").await.unwrap().entry.id;
    let rename = |folder: &Path| {
        fs::create_dir(folder.join("in")).unwrap();
        fs::rename(folder.join("old"), folder.join("in/new")).unwrap();
    };
    assert_eq!(changed(&scene.run(rename).await), ["+/in", ">/in/new </old"]);
    assert_eq!(room.read("/in/new/deep/b").await.unwrap().entry.id, before);
    let mut program = scene.check_out().await;
    assert!(program.text("in/new/deep/b") == "b" && !program.has("old"));
    assert_eq!(program.check_in().await, CheckedIn::default());
    room.undo().await.unwrap();
    assert_eq!(room.paths().await, ["/old", "/old/a", "/old/deep", "/old/deep/b", "/old/empty"]);
}

async fn a_renamed_folder_with_changes_in_it_keeps_both(room: Room) {
    let scene = Scene::of(&room);
    let files = ["a", "b", "gone", "sub/c"].map(|name| put(&format!("/old/{name}"), name));
    room.all(files.to_vec()).await.unwrap();
    let checked_in = scene
        .run(|folder| {
            fs::rename(folder.join("old"), folder.join("new")).unwrap();
            fs::rename(folder.join("new/sub"), folder.join("new/other")).unwrap();
            fs::write(folder.join("new/b"), "changed").unwrap();
            fs::write(folder.join("new/d"), "d").unwrap();
            fs::remove_file(folder.join("new/gone")).unwrap();
        })
        .await;
    let expected = [">/new </old", "~/new/b", "+/new/d", "-/new/gone", ">/new/other </old/sub"];
    assert_eq!(changed(&checked_in), expected);
    assert_eq!(room.paths().await, ["/new", "/new/a", "/new/b", "/new/d", "/new/other", "/new/other/c"]);
    assert_eq!(room.text("/new/b").await, "changed");
    assert_eq!(scene.run(|_| ()).await, CheckedIn::default());
    room.undo().await.unwrap();
    assert_eq!(room.paths().await, ["/old", "/old/a", "/old/b", "/old/gone", "/old/sub", "/old/sub/c"]);
}

async fn a_file_becomes_a_folder_and_a_folder_a_file(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/file", "f"), put("/folder/x", "x")]).await.unwrap();
    scene
        .run(|folder| {
            fs::remove_file(folder.join("file")).unwrap();
            fs::create_dir(folder.join("file")).unwrap();
            fs::write(folder.join("file/in"), "in").unwrap();
            fs::remove_dir_all(folder.join("folder")).unwrap();
            fs::write(folder.join("folder"), "now a file").unwrap();
        })
        .await;
    assert_eq!(room.paths().await, ["/file", "/file/in", "/folder"]);
    assert_eq!(room.text("/folder").await, "now a file");
    room.undo().await.unwrap();
    let program = scene.check_out().await;
    assert!(program.text("file") == "f" && program.text("folder/x") == "x");
}

async fn the_folder_stays_warm_and_gets_only_what_changed(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/same", "same"), put("/other", "1"), put("/gone/x", "x")]).await.unwrap();
    let first = scene.check_out().await;
    let inode = |program: &Program| fs::metadata(program.folder.join("same")).unwrap().ino();
    let (folder, before) = (first.folder.clone(), inode(&first));
    first.finish().await;
    room.put("/other", "2").await;
    room.put("/new/y", "y").await;
    room.all(vec![
        Change::Remove { path: path("/gone/x"), removal: Removal::File },
        Change::Remove { path: path("/gone"), removal: Removal::Single },
    ])
    .await
    .unwrap();
    let second = scene.check_out().await;
    assert_eq!((second.folder.clone(), inode(&second)), (folder, before));
    assert!(second.text("other") == "2" && second.text("new/y") == "y" && !second.has("gone"));
}

async fn another_replica_sees_what_this_one_checked_in(room: Room) {
    let (one, other) = (Scene::of(&room), Scene::of(&room));
    room.put("/a", "0").await;
    for round in 0..6 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let text = format!("{round}");
        writer.run(|folder| fs::write(folder.join("a"), &text).unwrap()).await;
        writer.run(|folder| fs::rename(folder.join("a"), folder.join("b")).unwrap()).await;
        let mut program = reader.check_out().await;
        assert!(program.text("b") == text && !program.has("a"));
        fs::rename(program.folder.join("b"), program.folder.join("a")).unwrap();
        assert_eq!(changed(&program.check_in().await), [">/a </b"]);
    }
}

async fn what_was_not_checked_in_is_forgotten(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/a", "a"), put("/dir/b", "b"), put("/.gitignore", "cache/\n"), put("/f", "f")]).await.unwrap();
    let program = scene.check_out().await;
    let folder = program.folder.clone();
    program.write("a", "changed");
    program.write("new", "new");
    fs::create_dir_all(folder.join("made/deep")).unwrap();
    program.write("made/deep/x", "x");
    fs::create_dir(folder.join("cache")).unwrap();
    program.write("cache/warm", "warm");
    fs::remove_dir_all(folder.join("dir")).unwrap();
    symlink("/etc", folder.join("dir")).unwrap();
    fs::remove_file(folder.join("f")).unwrap();
    fs::create_dir(folder.join("f")).unwrap();
    drop(program);
    let mut next = scene.check_out().await;
    assert_eq!(next.folder, folder);
    assert!(next.text("a") == "a" && next.text("dir/b") == "b" && next.text("f") == "f");
    assert!(!next.has("new") && !next.has("made") && next.has("cache/warm"));
    assert!(!Path::new("/etc/b").exists());
    assert_eq!(next.check_in().await, CheckedIn::default());
}

async fn two_programs_at_once_keep_both_their_changes(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/a", "a"), put("/b", "b")]).await.unwrap();
    let (mut one, mut other) = (scene.check_out().await, scene.check_out().await);
    assert_ne!(one.folder, other.folder);
    one.write("a", "by one");
    other.write("b", "by other");
    other.write("new", "by other");
    let (first, second) = (one.check_in().await, other.check_in().await);
    assert_eq!((changed(&first), changed(&second)), (vec!["~/a".into()], vec!["~/b".into(), "+/new".into()]));
    assert!(first.conflicts.is_empty() && second.conflicts.is_empty());
    assert_eq!((room.text("/a").await, room.text("/b").await), ("by one".into(), "by other".into()));
    assert_eq!(other.text("a"), "by one", "what others did is brought in");
}

async fn two_programs_that_write_the_same_file_lose_nothing(room: Room) {
    let scene = Scene::of(&room);
    room.put("/dir/a.txt", "0").await;
    let (mut one, mut other) = (scene.check_out().await, scene.check_out().await);
    one.write("dir/a.txt", "one");
    one.write("new", "one");
    other.write("dir/a.txt", "other");
    other.write("new", "other");
    one.check_in().await;
    let checked_in = other.check_in().await;
    let id = other.cx.id.0.simple().to_string();
    let beside = |name: &str| format!("{name}.conflict-{}", &id[24..]);
    let conflicts: Vec<_> = checked_in
        .conflicts
        .iter()
        .map(|conflict| (conflict.path.to_string(), conflict.kept_as.as_ref().unwrap().to_string()))
        .collect();
    let expected = ["/dir/a.txt", "/new"].map(|name| (name.to_owned(), beside(name)));
    assert_eq!(conflicts, expected);
    assert_eq!((room.text("/dir/a.txt").await, room.text("/new").await), ("one".into(), "one".into()));
    assert_eq!(room.text(&beside("/dir/a.txt")).await, "other");
    assert_eq!((other.text("dir/a.txt"), other.text(&beside("new"))), ("one".into(), "other".into()));
}

async fn the_same_change_made_twice_is_no_conflict(room: Room) {
    let scene = Scene::of(&room);
    room.put("/a", "0").await;
    let (mut one, mut other) = (scene.check_out().await, scene.check_out().await);
    for program in [&one, &other] {
        program.write("a", "same");
        program.write("new", "same");
    }
    one.check_in().await;
    assert_eq!(other.check_in().await, CheckedIn::default());
}

async fn a_file_that_another_changed_is_not_removed(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/a", "a"), put("/b", "b")]).await.unwrap();
    let mut program = scene.check_out().await;
    fs::remove_file(program.folder.join("a")).unwrap();
    program.write("b", "by program");
    room.put("/a", "by another").await;
    room.all(vec![Change::Remove { path: path("/b"), removal: Removal::File }]).await.unwrap();
    let checked_in = program.check_in().await;
    let conflicts: Vec<_> =
        checked_in.conflicts.iter().map(|conflict| (conflict.path.as_str(), conflict.kept_as.is_some())).collect();
    assert_eq!(conflicts, [("/a", false), ("/b", true)]);
    assert_eq!((room.text("/a").await, program.text("a")), ("by another".into(), "by another".into()));
    assert!(!program.has("b"));
}

async fn a_json_file_must_stay_json(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put_as("/board", FileType::Canvas, json(r#"{"a":1}"#))]).await.unwrap();
    let mut program = scene.check_out().await;
    program.write("board", "{\"a\":2,\"b\":[]}");
    assert_eq!(changed(&program.check_in().await), ["~/board"]);
    assert_eq!(room.read("/board").await.unwrap().content.unwrap(), json(r#"{"a":2,"b":[]}"#));
    assert_eq!(program.text("board"), "{\n  \"a\": 2,\n  \"b\": []\n}\n");
    program.write("board", "no JSON");
    let checked_in = program.check_in().await;
    let conflict = &checked_in.conflicts[0];
    assert!(conflict.reason.contains("Canvas"), "{}", conflict.reason);
    assert_eq!(room.text(conflict.kept_as.as_ref().unwrap().as_str()).await, "no JSON");
    assert_eq!(room.read("/board").await.unwrap().content.unwrap(), json(r#"{"a":2,"b":[]}"#));
    assert_eq!(program.text("board"), "{\n  \"a\": 2,\n  \"b\": []\n}\n");
}

async fn other_fields_of_a_document_stay(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put_as("/doc", FileType::Document, json(r#"{"text":"old","more":[1]}"#))]).await.unwrap();
    scene.run(|folder| fs::write(folder.join("doc"), "new").unwrap()).await;
    assert_eq!(room.read("/doc").await.unwrap().content.unwrap(), json(r#"{"text":"new","more":[1]}"#));
}

async fn ignored_files_stay_in_the_folder_without_versions(room: Room) {
    let scene = Scene::of(&room);
    room.put("/.gitignore", "node_modules/\n*.log\n").await;
    let install = |folder: &Path| {
        fs::create_dir_all(folder.join("node_modules/a/b")).unwrap();
        fs::write(folder.join("node_modules/a/b/c"), "c").unwrap();
        fs::create_dir(folder.join(".git")).unwrap();
        fs::write(folder.join("x.log"), "x").unwrap();
        fs::write(folder.join("code"), "code").unwrap();
    };
    let checked_in = scene.run(install).await;
    assert_eq!(changed(&checked_in), ["+/code"]);
    let ignored = |path| (path, LeftOutReason::Ignored);
    assert_eq!(left_out(&checked_in), ["/.git", "/node_modules", "/x.log"].map(ignored));
    assert_eq!(room.paths().await, ["/.gitignore", "/code"]);
    let mut program = scene.check_out().await;
    assert_eq!(program.text("node_modules/a/b/c"), "c");
    assert_eq!(program.check_in().await, CheckedIn::default(), "nothing is told again");
}

async fn a_tracked_file_stays_tracked_whatever_rules_say(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/.gitignore", "build/\n"), put("/build/kept", "1")]).await.unwrap();
    let checked_in = scene
        .run(|folder| {
            fs::write(folder.join("build/kept"), "2").unwrap();
            fs::write(folder.join("build/output"), "o").unwrap();
        })
        .await;
    assert_eq!(changed(&checked_in), ["~/build/kept"]);
    assert_eq!(left_out(&checked_in), [("/build/output", LeftOutReason::Ignored)]);
    assert_eq!(room.text("/build/kept").await, "2");
}

async fn limits_leave_out_and_tell(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/grows", "g"), put("/a-big-one", &"x".repeat(50))]).await.unwrap();
    let keep = KeepLimits { file_bytes: 10, commit_bytes: 25, commit_files: 4 };
    let mut program = scene.check_out_keeping(keep).await;
    program.write("grows", &"g".repeat(11));
    program.write("large", &"l".repeat(11));
    for name in ["1", "2", "3"] {
        program.write(name, &name.repeat(9));
    }
    let checked_in = program.check_in().await;
    assert_eq!(changed(&checked_in), ["+/1", "+/2"]);
    let expected =
        [("/3", LeftOutReason::TooMuch), ("/grows", LeftOutReason::TooLarge), ("/large", LeftOutReason::TooLarge)];
    assert_eq!(left_out(&checked_in), expected);
    assert_eq!(program.text("grows"), "g", "the folder shows what the workspace has");
    // What there was no room for comes with the next commit; what is too large stays as it is.
    let next = program.check_in().await;
    assert_eq!((changed(&next), left_out(&next).len()), (vec!["+/3".to_owned()], 0));
    for name in ["4", "5", "6", "7", "8"] {
        program.write(name, name);
    }
    assert_eq!(left_out(&program.check_in().await), [("/8", LeftOutReason::TooMuch)]);
    assert_eq!(program.text("large").len(), 11);
}

async fn hostile_entries_are_left_out_and_tracked_files_come_back(room: Room) {
    let scene = Scene::of(&room);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x"), "outside").unwrap();
    room.all(vec![put("/dir/x", "x"), put("/file", "f"), put("/pipe", "p")]).await.unwrap();
    let mut program = scene.check_out().await;
    let folder = program.folder.clone();
    fs::remove_dir_all(folder.join("dir")).unwrap();
    symlink(outside.path(), folder.join("dir")).unwrap();
    fs::remove_file(folder.join("file")).unwrap();
    symlink(outside.path().join("x"), folder.join("file")).unwrap();
    fs::remove_file(folder.join("pipe")).unwrap();
    for pipe in ["pipe", "another"] {
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        rustix::fs::mknodat(rustix::fs::CWD, folder.join(pipe), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    symlink("nowhere", folder.join("link")).unwrap();
    let checked_in = program.check_in().await;
    let expected = [
        ("/another", LeftOutReason::Special),
        ("/dir", LeftOutReason::Link),
        ("/file", LeftOutReason::Link),
        ("/link", LeftOutReason::Link),
        ("/pipe", LeftOutReason::Special),
    ];
    assert_eq!(left_out(&checked_in), expected);
    assert_eq!((checked_in.commit, changed(&checked_in).len()), (None, 0));
    assert!(program.text("dir/x") == "x" && program.text("file") == "f" && program.text("pipe") == "p");
    assert!(!folder.join("dir").is_symlink() && program.has("link"));
    assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "outside");
    assert_eq!(program.check_in().await, CheckedIn::default());
}

async fn closed_folders_and_files_are_opened(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/dir/sub/x", "x"), put("/file", "f")]).await.unwrap();
    let close = |folder: &Path, at: &str| fs::set_permissions(folder.join(at), Permissions::from_mode(0o000)).unwrap();
    let close_all = |folder: &Path| {
        fs::write(folder.join("dir/sub/new"), "n").unwrap();
        for at in ["dir/sub/new", "dir/sub", "dir", "file", ""] {
            close(folder, at);
        }
    };
    let program = scene.check_out().await;
    close_all(&program.folder);
    drop(program);
    let mut program = scene.check_out().await;
    assert!(!program.has("dir/sub/new") && program.text("dir/sub/x") == "x" && program.text("file") == "f");
    close_all(&program.folder);
    assert_eq!(changed(&program.check_in().await), ["+/dir/sub/new"]);
    assert_eq!(room.text("/dir/sub/new").await, "n");
    assert_eq!(program.text("dir/sub/new"), "n");
}

async fn names_that_no_path_can_have_are_left_out(room: Room) {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let scene = Scene::of(&room);
    let checked_in = scene
        .run(|folder| {
            fs::write(folder.join("new\nline"), "n").unwrap();
            fs::write(folder.join(OsStr::from_bytes(b"b\xffd")), "b").unwrap();
            fs::write(folder.join("good \u{e9}"), "g").unwrap();
        })
        .await;
    assert_eq!(changed(&checked_in), ["+/good \u{e9}"]);
    let name = LeftOutReason::Name;
    assert_eq!(left_out(&checked_in), [("/b\u{fffd}d", name), ("/new\nline", name)]);
    assert_eq!(scene.run(|_| ()).await, CheckedIn::default());
}

async fn a_deep_tree_is_left_out_and_removed(room: Room) {
    let kept = CheckoutsKept { folders: 0, ..CheckoutsKept::default() };
    let scene = Scene::keeping(&room, kept);
    let checked_in = scene
        .run(|folder| {
            let mut at = rustix::fs::open(folder, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
            for _ in 0..5_000 {
                rustix::fs::mkdirat(&at, "d", rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
                at = rustix::fs::openat(&at, "d", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
            }
        })
        .await;
    assert_eq!(checked_in.left_out.len(), 1);
    assert_eq!(checked_in.left_out[0].reason, LeftOutReason::Name);
    assert_eq!(checked_in.changed.len(), 1_024);
    until(|| scene.folders() == 0).await;
}

async fn a_program_that_still_runs_sees_what_others_did(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/a", "0"), put("/b", "0")]).await.unwrap();
    let mut program = scene.check_out().await;
    program.write("mine", "1");
    room.put("/a", "by another").await;
    assert_eq!(changed(&program.check_in().await), ["+/mine"]);
    assert_eq!(program.text("a"), "by another");
    program.write("mine", "2");
    program.write("a", "after another");
    let checked_in = program.check_in().await;
    assert_eq!((changed(&checked_in), checked_in.conflicts.len()), (vec!["~/a".into(), "~/mine".into()], 0));
    assert_eq!(room.text("/a").await, "after another");
    // What it does after the last check-in is not kept.
    program.write("mine", "3");
    drop(program);
    assert_eq!(scene.check_out().await.text("mine"), "2");
}

async fn chats_are_not_checked_out(room: Room) {
    let scene = Scene::of(&room);
    room.put("/a", "a").await;
    room.store.create_chat(room.access(), "Hello".into()).await.unwrap();
    let mut program = scene.check_out().await;
    assert!(!program.has("chats") && program.has("a"));
    assert_eq!(program.check_in().await, CheckedIn::default());
    fs::create_dir(program.folder.join("chats")).unwrap();
    program.write("chats/Hello.chat", "mine");
    program.write("chats/notes", "n");
    let checked_in = program.check_in().await;
    assert_eq!(checked_in.conflicts.len(), 1);
    assert_eq!(room.text("/chats/notes").await, "n");
    assert!(!program.has("chats/Hello.chat"));
    fs::remove_dir_all(program.folder.join("chats")).unwrap();
    program.check_in().await;
    assert_eq!(room.paths().await, ["/a", "/chats", "/chats/Hello.chat"]);
}

async fn strangers_are_refused_before_anything_is_made(room: Room) {
    let scene = Scene::of(&room);
    let stranger = new_user(&*room.store).await;
    let cx = scene.cx_of(stranger, Role::Editor).await;
    let options = CheckoutOptions { mode: CheckoutMode::Aside, keep: KeepLimits::default() };
    let refused = cx.workspace.check_out(options).await.err().unwrap();
    assert_eq!((refused.kind, scene.folders()), (ErrorKind::Forbidden, 0));
}

async fn viewers_cannot_check_in(room: Room) {
    let scene = Scene::of(&room);
    let mut program = scene.check_out().await;
    program.write("a", "a");
    let members = room.store.members(room.access()).await.unwrap();
    assert_eq!(members.len(), 1);
    let another = new_user(&*room.store).await;
    let mail = room.store.user(another).await.unwrap().unwrap().email;
    let owner = toolrest_core::Access { need: Role::Owner, ..room.access() };
    room.store.add_member(owner, mail, Role::Owner).await.unwrap();
    room.store.remove_member(owner, room.user).await.unwrap();
    let refused = program.checkout.check_in(&program.cx).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
}

async fn a_fifth_program_waits_for_a_folder(room: Room) {
    let scene = Scene::of(&room);
    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(scene.check_out().await);
    }
    assert_eq!(scene.folders(), 4);
    let second = running.remove(1);
    let folder = second.folder.clone();
    let fifth = scene.check_out();
    tokio::pin!(fifth);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut fifth).await.is_err());
    drop(second);
    assert_eq!(fifth.await.folder, folder);
}

async fn folders_that_are_not_used_are_removed(room: Room) {
    let kept = CheckoutsKept { idle: Duration::from_millis(20), ..CheckoutsKept::default() };
    let scene = Scene::keeping(&room, kept);
    scene.run(|_| ()).await;
    until(|| scene.folders() == 0).await;
    room.put("/a", "a").await;
    assert_eq!(scene.check_out().await.text("a"), "a");
}

async fn a_folder_that_another_filled_is_not_removed(room: Room) {
    let scene = Scene::of(&room);
    room.put("/dir/a", "a").await;
    let mut program = scene.check_out().await;
    fs::remove_dir_all(program.folder.join("dir")).unwrap();
    room.put("/dir/b", "b").await;
    assert_eq!(changed(&program.check_in().await), ["-/dir/a"]);
    assert_eq!(room.paths().await, ["/dir", "/dir/b"]);
    assert_eq!(program.text("dir/b"), "b");
}

async fn files_in_place_of_folders_of_others_go_beside(room: Room) {
    let scene = Scene::of(&room);
    let mut program = scene.check_out().await;
    fs::create_dir(program.folder.join("x")).unwrap();
    program.write("x/in", "in");
    program.write("y", "y");
    room.all(vec![put("/x", "file"), put("/y/in", "folder")]).await.unwrap();
    let checked_in = program.check_in().await;
    let conflicts: Vec<_> = checked_in.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    assert_eq!(conflicts, ["/x", "/x/in", "/y"]);
    for conflict in &checked_in.conflicts[1..] {
        let kept = conflict.kept_as.as_ref().unwrap();
        assert_eq!(room.text(kept.as_str()).await, conflict.path.name());
    }
    assert!(program.text("x") == "file" && program.text("y/in") == "folder");
}

/// Waits for something that another thread does.
async fn until(is_so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(30), async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap();
}

async fn what_was_forgotten_does_not_bring_back_what_others_removed(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/changed", "c"), put("/folder", "f")]).await.unwrap();
    let program = scene.check_out().await;
    program.write("changed", "by a program that was cancelled");
    fs::remove_file(program.folder.join("folder")).unwrap();
    fs::create_dir(program.folder.join("folder")).unwrap();
    drop(program);
    let removed = ["/changed", "/folder"].map(|at| Change::Remove { path: path(at), removal: Removal::File });
    room.all(removed.to_vec()).await.unwrap();
    let mut program = scene.check_out().await;
    assert!(!program.has("changed") && !program.has("folder"));
    assert_eq!(program.check_in().await, CheckedIn::default());
}

async fn a_file_can_take_the_place_of_a_folder_that_was_moved(room: Room) {
    let scene = Scene::of(&room);
    room.put("/old/a", "a").await;
    let checked_in = scene
        .run(|folder| {
            fs::rename(folder.join("old"), folder.join("new")).unwrap();
            fs::write(folder.join("old"), "a file").unwrap();
        })
        .await;
    assert_eq!((changed(&checked_in), checked_in.conflicts), (vec![">/new </old".into(), "+/old".into()], vec![]));
    assert_eq!(room.text("/old").await, "a file");
    room.undo().await.unwrap();
    assert_eq!(room.paths().await, ["/old", "/old/a"]);
}

async fn a_file_that_was_moved_to_a_folder_that_others_removed_is_kept(room: Room) {
    let scene = Scene::of(&room);
    room.all(vec![put("/file", "f"), Change::MakeDir(path("/folder"))]).await.unwrap();
    let mut program = scene.check_out().await;
    fs::rename(program.folder.join("file"), program.folder.join("folder/file")).unwrap();
    room.all(vec![Change::Remove { path: path("/folder"), removal: Removal::Single }]).await.unwrap();
    assert_eq!(changed(&program.check_in().await), ["+/folder", ">/folder/file </file"]);
    assert_eq!(room.paths().await, ["/folder", "/folder/file"]);
}

async fn a_file_that_grew_beyond_the_limit_is_not_read(room: Room) {
    let scene = Scene::of(&room);
    room.put("/a", "a").await;
    let mut program = scene.check_out().await;
    // To read so much would take hours.
    fs::File::options().write(true).open(program.folder.join("a")).unwrap().set_len(8 << 40).unwrap();
    assert_eq!(left_out(&program.check_in().await), [("/a", LeftOutReason::TooLarge)]);
    assert_eq!(program.text("a"), "a");
}

async fn a_checkout_that_is_cancelled_anywhere_hides_nothing_from_the_next(room: Room) {
    let scene = Scene::of(&room);
    room.put("/a", "a").await;
    for wakes in 0..20 {
        let mut program = scene.check_out().await;
        program.check_in().await;
        program.write("a", "after the last check-in");
        drop(program);
        let mut cancelled = Box::pin(scene.check_out());
        let mut left = wakes;
        poll_fn(|cx| {
            let is_over = cancelled.as_mut().poll(cx).is_ready() || left == 0;
            left -= i32::from(!is_over);
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        drop(cancelled);
        assert_eq!(scene.check_out().await.text("a"), "a", "{wakes}");
    }
}
