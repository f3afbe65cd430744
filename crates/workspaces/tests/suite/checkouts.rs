//! The files of a workspace in a real folder, for programs.

use crate::checkout_scene::{Program, Scene, changed, json, mode, put_as, until};
use crate::test_workspace::{TestWorkspace, new_user, on_both_stores, path, put};
use std::fs::{self, Permissions};
use std::future::{Future, poll_fn};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::task::Poll;
use std::time::Duration;
use toolrest_core::{
    Change, CheckedIn, CheckoutMode, CheckoutOptions, Content, ErrorKind, FileType, KeepLimits, Removal, Role,
};
use toolrest_workspaces::CheckoutRetention;

on_both_stores!(
    programs_see_each_type_of_file_as_its_text,
    what_a_program_changes_becomes_one_commit_that_can_be_undone,
    a_program_that_changes_nothing_commits_nothing,
    executable_bits_go_both_ways,
    a_renamed_file_keeps_its_history,
    a_renamed_folder_is_one_move,
    a_renamed_folder_with_changes_in_it_keeps_both,
    a_file_becomes_a_folder_and_a_folder_a_file,
    a_working_copy_is_kept_and_gets_only_what_changed,
    another_replica_sees_what_this_one_checked_in,
    changes_after_the_last_check_in_are_discarded,
    strangers_are_refused_before_anything_is_made,
    viewers_cannot_check_in,
    a_refused_caller_causes_no_scan,
    a_free_folder_is_used_again,
    folders_that_are_not_used_are_removed,
    a_file_can_take_the_place_of_a_folder_that_was_moved,
    a_checkout_that_is_cancelled_anywhere_hides_nothing_from_the_next,
    among_very_many_files_each_change_is_seen,
);

async fn programs_see_each_type_of_file_as_its_text(room: TestWorkspace) {
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

async fn what_a_program_changes_becomes_one_commit_that_can_be_undone(room: TestWorkspace) {
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

async fn a_program_that_changes_nothing_commits_nothing(room: TestWorkspace) {
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

async fn executable_bits_go_both_ways(room: TestWorkspace) {
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

async fn a_renamed_file_keeps_its_history(room: TestWorkspace) {
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

async fn a_renamed_folder_is_one_move(room: TestWorkspace) {
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

async fn a_renamed_folder_with_changes_in_it_keeps_both(room: TestWorkspace) {
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

async fn a_file_becomes_a_folder_and_a_folder_a_file(room: TestWorkspace) {
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

async fn a_working_copy_is_kept_and_gets_only_what_changed(room: TestWorkspace) {
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

async fn another_replica_sees_what_this_one_checked_in(room: TestWorkspace) {
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

async fn changes_after_the_last_check_in_are_discarded(room: TestWorkspace) {
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

async fn strangers_are_refused_before_anything_is_made(room: TestWorkspace) {
    let scene = Scene::of(&room);
    let stranger = new_user(&*room.store).await;
    let cx = scene.cx_of(stranger, Role::Editor).await;
    let options = CheckoutOptions { mode: CheckoutMode::Isolated, keep: KeepLimits::default() };
    let refused = cx.workspace.check_out(options).await.err().unwrap();
    assert_eq!((refused.kind, scene.folders()), (ErrorKind::Forbidden, 0));
}

async fn viewers_cannot_check_in(room: TestWorkspace) {
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

async fn a_free_folder_is_used_again(room: TestWorkspace) {
    let scene = Scene::of(&room);
    let mut running = Vec::new();
    for _ in 0..4 {
        running.push(scene.check_out().await);
    }
    assert_eq!(scene.folders(), 4);
    let second = running.remove(1);
    let folder = second.folder.clone();
    drop(second);
    assert_eq!(scene.check_out().await.folder, folder);
}

async fn folders_that_are_not_used_are_removed(room: TestWorkspace) {
    let kept = CheckoutRetention { idle: Duration::from_millis(20), ..CheckoutRetention::default() };
    let scene = Scene::keeping(&room, kept);
    scene.run(|_| ()).await;
    until(|| scene.folders() == 0).await;
    room.put("/a", "a").await;
    assert_eq!(scene.check_out().await.text("a"), "a");
}

async fn a_file_can_take_the_place_of_a_folder_that_was_moved(room: TestWorkspace) {
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

async fn a_checkout_that_is_cancelled_anywhere_hides_nothing_from_the_next(room: TestWorkspace) {
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

/// More than one thread looks at alone, and more in one folder than is looked at at a time.
async fn among_very_many_files_each_change_is_seen(room: TestWorkspace) {
    const MANY: usize = 9_000;
    let scene = Scene::of(&room);
    let made = scene
        .run(|folder| {
            fs::create_dir(folder.join("flat")).unwrap();
            for number in 0..MANY {
                fs::write(folder.join(format!("flat/{number}")), "x").unwrap();
            }
            for number in 0..20 {
                fs::create_dir_all(folder.join(format!("deep/{number}/below"))).unwrap();
                fs::write(folder.join(format!("deep/{number}/below/file")), "y").unwrap();
            }
        })
        .await;
    assert_eq!(made.changed.len(), 1 + MANY + 1 + 20 * 3);
    assert_eq!(scene.run(|_| ()).await, CheckedIn::default());
    let checked_in = scene
        .run(|folder| {
            for number in [0, 4_095, 4_096, 8_191, 8_192, MANY - 1] {
                fs::write(folder.join(format!("flat/{number}")), "changed").unwrap();
            }
            fs::remove_file(folder.join("flat/5000")).unwrap();
            fs::write(folder.join("flat/new"), "new").unwrap();
            fs::write(folder.join("deep/7/below/file"), "changed").unwrap();
            fs::remove_dir_all(folder.join("deep/11")).unwrap();
        })
        .await;
    let mut expected = vec!["~/deep/7/below/file", "-/deep/11", "-/deep/11/below", "-/deep/11/below/file"];
    expected.extend(["~/flat/0", "~/flat/4095", "~/flat/4096", "~/flat/8191", "~/flat/8192", "~/flat/8999"]);
    expected.extend(["-/flat/5000", "+/flat/new"]);
    expected.sort_unstable_by_key(|change| &change[1..]);
    assert_eq!(changed(&checked_in), expected);
}

async fn a_refused_caller_causes_no_scan(room: TestWorkspace) {
    let scene = Scene::of(&room);
    room.put("/a", "a").await;
    scene.run(|_| ()).await;
    let folder = scene.check_out().await;
    let path = folder.folder.clone();
    folder.finish().await;
    // A working copy that is in use is scanned before the next program, and the scan would remove this file.
    fs::write(path.join("unseen"), "u").unwrap();
    let stranger = new_user(&*room.store).await;
    let options = CheckoutOptions { mode: CheckoutMode::Isolated, keep: KeepLimits::default() };
    let refused = scene.cx_of(stranger, Role::Editor).await.workspace.check_out(options).await;
    assert_eq!(refused.err().unwrap().kind, ErrorKind::Forbidden);
    let next = scene.check_out().await;
    assert!(next.folder == path && next.has("unseen"));
}
