//! What programs leave behind that is not kept.

use crate::checkout_scene::{Scene, changed, left_out, until};
use crate::test_workspace::{TestWorkspace, on_both_stores, put};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use toolrest_core::{CheckedIn, KeepLimits, LeftOutReason};
use toolrest_workspaces::CheckoutRetention;

on_both_stores!(
    ignored_files_stay_in_the_folder_without_versions,
    a_tracked_file_stays_tracked_whatever_rules_say,
    files_over_the_limits_are_left_out_and_reported,
    a_file_over_the_limit_can_be_moved,
    a_file_over_the_limit_becomes_a_conflict_copy_if_others_created_its_new_path,
    a_file_over_the_limit_in_the_place_of_a_folder_is_left_out,
    hostile_entries_are_left_out_and_tracked_files_come_back,
    closed_folders_and_files_are_opened,
    names_that_no_path_can_have_are_left_out,
    a_deep_tree_is_left_out_and_removed,
    chats_are_not_checked_out,
    a_file_that_grew_beyond_the_limit_is_not_read,
);

async fn ignored_files_stay_in_the_folder_without_versions(room: TestWorkspace) {
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
    assert_eq!(program.check_in().await, CheckedIn::default(), "nothing is reported again");
}

async fn a_tracked_file_stays_tracked_whatever_rules_say(room: TestWorkspace) {
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

async fn files_over_the_limits_are_left_out_and_reported(room: TestWorkspace) {
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

async fn a_file_over_the_limit_can_be_moved(room: TestWorkspace) {
    let scene = Scene::of(&room);
    let large = |letter: &str| letter.repeat(50);
    let files = ["a", "b", "c", "d", "e"].map(|name| put(&format!("/{name}"), &large(name)));
    room.all(files.to_vec()).await.unwrap();
    room.put("/dir/small", "s").await;
    let id = room.read("/a").await.unwrap().entry.id;
    let keep = KeepLimits { file_bytes: 10, ..KeepLimits::default() };
    let mut program = scene.check_out_keeping(keep).await;
    let folder = program.folder.clone();
    let rename = |from: &str, to: &str| fs::rename(folder.join(from), folder.join(to)).unwrap();
    fs::create_dir(folder.join("new")).unwrap();
    rename("a", "new/a");
    rename("dir", "other");
    rename("b", "other/b");
    rename("c", "d");
    // Another file of that size, which is not the one that was there.
    fs::rename(folder.join("e"), folder.join("f")).unwrap();
    program.write("f", &large("f"));
    let checked_in = program.check_in().await;
    let expected = [">/d </c", "-/e", "+/new", ">/new/a </a", ">/other </dir", ">/other/b </b"];
    assert_eq!(changed(&checked_in), expected);
    assert_eq!(left_out(&checked_in), [("/f", LeftOutReason::TooLarge)]);
    assert_eq!(room.read("/new/a").await.unwrap().entry.id, id);
    let texts = (room.text("/new/a").await, room.text("/other/b").await, room.text("/d").await);
    assert_eq!(texts, (large("a"), large("b"), large("c")));
    assert_eq!(program.check_in().await, CheckedIn::default());
    // Its bits would take a new version.
    fs::set_permissions(folder.join("d"), Permissions::from_mode(0o755)).unwrap();
    rename("d", "g");
    let checked_in = program.check_in().await;
    assert_eq!(
        (changed(&checked_in), left_out(&checked_in)),
        (vec![">/g </d".into()], vec![("/g", LeftOutReason::TooLarge)])
    );
    assert_eq!((room.text("/g").await, program.text("g")), (large("c"), large("c")));
    room.undo().await.unwrap();
    assert_eq!((room.text("/d").await, room.read("/g").await.is_err()), (large("c"), true));
}

async fn a_file_over_the_limit_becomes_a_conflict_copy_if_others_created_its_new_path(room: TestWorkspace) {
    let scene = Scene::of(&room);
    let large = "l".repeat(50);
    room.all(vec![put("/a", &large), put("/b", &large), put("/c", "c")]).await.unwrap();
    let keep = KeepLimits { file_bytes: 10, ..KeepLimits::default() };
    let mut program = scene.check_out_keeping(keep).await;
    fs::rename(program.folder.join("a"), program.folder.join("c")).unwrap();
    fs::rename(program.folder.join("b"), program.folder.join("new")).unwrap();
    room.all(vec![put("/c", "by another"), put("/new", "by another")]).await.unwrap();
    let checked_in = program.check_in().await;
    let kept: Vec<_> = checked_in.conflicts.iter().map(|conflict| conflict.kept_as.clone().unwrap()).collect();
    assert_eq!((kept.len(), checked_in.left_out.len()), (2, 0), "{checked_in:?}");
    for place in kept {
        assert_eq!(room.text(place.as_str()).await, large);
        assert_eq!(program.text(place.without_slash()), large);
    }
    for name in ["c", "new"] {
        assert_eq!(
            (room.text(&format!("/{name}")).await, program.text(name)),
            ("by another".into(), "by another".into())
        );
    }
    assert!(room.read("/a").await.is_err() && room.read("/b").await.is_err());
}

async fn hostile_entries_are_left_out_and_tracked_files_come_back(room: TestWorkspace) {
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

async fn closed_folders_and_files_are_opened(room: TestWorkspace) {
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

async fn names_that_no_path_can_have_are_left_out(room: TestWorkspace) {
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

async fn a_deep_tree_is_left_out_and_removed(room: TestWorkspace) {
    let kept = CheckoutRetention { folders: 0, ..CheckoutRetention::default() };
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

async fn chats_are_not_checked_out(room: TestWorkspace) {
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

async fn a_file_that_grew_beyond_the_limit_is_not_read(room: TestWorkspace) {
    let scene = Scene::of(&room);
    room.put("/a", "a").await;
    let mut program = scene.check_out().await;
    // To read so much would take hours.
    fs::File::options().write(true).open(program.folder.join("a")).unwrap().set_len(8 << 40).unwrap();
    assert_eq!(left_out(&program.check_in().await), [("/a", LeftOutReason::TooLarge)]);
    assert_eq!(program.text("a"), "a");
}

async fn a_file_over_the_limit_in_the_place_of_a_folder_is_left_out(room: TestWorkspace) {
    let scene = Scene::of(&room);
    room.all(vec![put("/dir/small", "s"), put("/large", &"l".repeat(50)), put("/kept", "k")]).await.unwrap();
    let keep = KeepLimits { file_bytes: 10, ..KeepLimits::default() };
    let program = scene.check_out_keeping(keep).await;
    fs::remove_dir_all(program.folder.join("dir")).unwrap();
    fs::rename(program.folder.join("large"), program.folder.join("dir")).unwrap();
    program.write("kept", "changed");
    let checked_in = program.finish().await;
    assert_eq!(changed(&checked_in), ["-/dir", "-/dir/small", "~/kept", "-/large"]);
    assert_eq!(left_out(&checked_in), [("/dir", LeftOutReason::TooLarge)]);
}
