//! What programs and others change at once.

use crate::checkout_scene::{Scene, changed, json, mode, put_as};
use crate::test_workspace::{TestWorkspace, on_both_stores, path, put};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use tokio::task::JoinSet;
use toolrest_core::{Change, CheckedIn, FileType, Removal};

on_both_stores!(
    two_programs_at_once_keep_both_their_changes,
    two_programs_that_write_the_same_file_lose_nothing,
    programs_that_end_in_the_same_moment_lose_nothing,
    the_same_change_made_twice_is_no_conflict,
    a_file_can_be_run_also_if_another_wrote_the_same,
    a_file_that_another_changed_is_not_removed,
    a_json_file_must_stay_json,
    other_fields_of_a_document_stay,
    a_program_that_still_runs_sees_what_others_did,
    a_folder_that_another_filled_is_not_removed,
    files_at_the_paths_of_others_folders_become_conflict_copies,
    discarded_changes_do_not_restore_what_others_removed,
    a_file_that_was_moved_to_a_folder_that_others_removed_is_kept,
);

async fn two_programs_at_once_keep_both_their_changes(room: TestWorkspace) {
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

async fn two_programs_that_write_the_same_file_lose_nothing(room: TestWorkspace) {
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
    let conflict_copy = |name: &str| format!("{name}.conflict-{}", &id[24..]);
    let conflicts: Vec<_> = checked_in
        .conflicts
        .iter()
        .map(|conflict| (conflict.path.to_string(), conflict.kept_as.as_ref().unwrap().to_string()))
        .collect();
    let expected = ["/dir/a.txt", "/new"].map(|name| (name.to_owned(), conflict_copy(name)));
    assert_eq!(conflicts, expected);
    assert_eq!((room.text("/dir/a.txt").await, room.text("/new").await), ("one".into(), "one".into()));
    assert_eq!(room.text(&conflict_copy("/dir/a.txt")).await, "other");
    assert_eq!((other.text("dir/a.txt"), other.text(&conflict_copy("new"))), ("one".into(), "other".into()));
}

async fn programs_that_end_in_the_same_moment_lose_nothing(room: TestWorkspace) {
    let scene = Scene::of(&room);
    for round in 0..5 {
        room.put("/same", "0").await;
        let mut ends = Vec::new();
        for number in 0..4 {
            let program = scene.check_out().await;
            program.write("same", &format!("{round} {number}"));
            program.write(&format!("own-{number}"), &format!("{round} {number}"));
            ends.push(program.finish());
        }
        let mut tasks: JoinSet<CheckedIn> = ends.into_iter().collect();
        let mut kept = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            let place = ended.unwrap().conflicts.first().and_then(|conflict| conflict.kept_as.clone());
            kept.push(room.text(place.map_or("/same".into(), |place| place.to_string()).as_str()).await);
        }
        kept.sort_unstable();
        for number in 0..4 {
            assert_eq!(room.text(&format!("/own-{number}")).await, format!("{round} {number}"));
        }
        assert_eq!(kept, [0, 1, 2, 3].map(|number| format!("{round} {number}")));
    }
}

async fn the_same_change_made_twice_is_no_conflict(room: TestWorkspace) {
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

async fn a_file_can_be_run_also_if_another_wrote_the_same(room: TestWorkspace) {
    let scene = Scene::of(&room);
    let board = |text: &str| put_as("/board", FileType::Canvas, json(text));
    room.all(vec![put("/changed", "0"), put("/tool", "tool"), board("{\"a\":1}")]).await.unwrap();
    let mut program = scene.check_out().await;
    program.write("changed", "1");
    program.write("board", "{\n  \"a\": 2\n}\n");
    program.write("new", "new");
    let names = ["board", "changed", "new", "tool"];
    for name in names {
        fs::set_permissions(program.folder.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    room.all(vec![put("/changed", "1"), put("/tool", "tool"), put("/new", "new"), board("{\"a\":2}")]).await.unwrap();
    let checked_in = program.check_in().await;
    assert_eq!(changed(&checked_in), ["~/board", "~/changed", "~/new", "~/tool"]);
    assert!(checked_in.conflicts.is_empty(), "{checked_in:?}");
    let anew = Scene::of(&room);
    let folder = anew.check_out().await.folder;
    assert_eq!(names.map(|name| mode(&folder.join(name))), [0o755; 4]);
    // Whoever says nothing of it leaves it to others.
    let mut other = scene.check_out().await;
    other.write("changed", "2");
    program.write("changed", "2");
    fs::set_permissions(program.folder.join("changed"), Permissions::from_mode(0o644)).unwrap();
    assert_eq!(changed(&program.check_in().await), ["~/changed"]);
    assert_eq!(other.check_in().await, CheckedIn::default());
    assert_eq!(mode(&other.folder.join("changed")), 0o644);
}

async fn a_file_that_another_changed_is_not_removed(room: TestWorkspace) {
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

async fn a_json_file_must_stay_json(room: TestWorkspace) {
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

async fn other_fields_of_a_document_stay(room: TestWorkspace) {
    let scene = Scene::of(&room);
    room.all(vec![put_as("/doc", FileType::Document, json(r#"{"text":"old","more":[1]}"#))]).await.unwrap();
    scene.run(|folder| fs::write(folder.join("doc"), "new").unwrap()).await;
    assert_eq!(room.read("/doc").await.unwrap().content.unwrap(), json(r#"{"text":"new","more":[1]}"#));
}

async fn a_program_that_still_runs_sees_what_others_did(room: TestWorkspace) {
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

async fn a_folder_that_another_filled_is_not_removed(room: TestWorkspace) {
    let scene = Scene::of(&room);
    room.put("/dir/a", "a").await;
    let mut program = scene.check_out().await;
    fs::remove_dir_all(program.folder.join("dir")).unwrap();
    room.put("/dir/b", "b").await;
    assert_eq!(changed(&program.check_in().await), ["-/dir/a"]);
    assert_eq!(room.paths().await, ["/dir", "/dir/b"]);
    assert_eq!(program.text("dir/b"), "b");
}

async fn files_at_the_paths_of_others_folders_become_conflict_copies(room: TestWorkspace) {
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

async fn discarded_changes_do_not_restore_what_others_removed(room: TestWorkspace) {
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

async fn a_file_that_was_moved_to_a_folder_that_others_removed_is_kept(room: TestWorkspace) {
    let scene = Scene::of(&room);
    room.all(vec![put("/file", "f"), Change::MakeDir(path("/folder"))]).await.unwrap();
    let mut program = scene.check_out().await;
    fs::rename(program.folder.join("file"), program.folder.join("folder/file")).unwrap();
    room.all(vec![Change::Remove { path: path("/folder"), removal: Removal::Single }]).await.unwrap();
    assert_eq!(changed(&program.check_in().await), ["+/folder", ">/folder/file </file"]);
    assert_eq!(room.paths().await, ["/folder", "/folder/file"]);
}
