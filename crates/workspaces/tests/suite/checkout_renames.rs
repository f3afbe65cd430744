//! Files and folders that a program gave another path.

use crate::checkout_scene::{Scene, changed};
use crate::programs::{run_in, tree};
use crate::test_workspace::{TestWorkspace, on_both_stores, put};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use toolrest_core::{CheckedIn, FileId};

on_both_stores!(
    many_renames_keep_every_file,
    folders_that_swap_their_names_keep_what_is_in_them,
    what_is_moved_into_the_place_of_a_moved_folder_stays_there,
    a_folder_takes_the_place_of_one_that_was_in_a_moved_folder,
    a_deep_tree_is_moved_and_made,
);

/// Runs a script and tells what the workspace must have become: what the program left.
async fn after(scene: &Scene, script: &str) -> CheckedIn {
    let program = scene.check_out().await;
    run_in(&program.folder, script);
    let left = tree(&program.folder);
    let checked_in = program.finish().await;
    assert!(checked_in.conflicts.is_empty() && checked_in.left_out.is_empty(), "{checked_in:?}");
    let stored = tree(&Scene::of(&scene.room).check_out().await.folder);
    assert_eq!(stored, left, "{checked_in:?}");
    assert_eq!(scene.run(|_| ()).await, CheckedIn::default());
    checked_in
}

async fn id(room: &TestWorkspace, at: &str) -> FileId {
    room.read(at).await.unwrap().entry.id
}

async fn many_renames_keep_every_file(room: TestWorkspace) {
    let scene = Scene::of(&room);
    let name = |number: usize| format!("{number:04}");
    let files = (0..300).flat_map(|number| {
        let number = name(number);
        let below = ["file", "sub/deep/file"].map(|below| format!("/{number}/{below}"));
        below.map(|at| put(&at, &at))
    });
    room.all(files.collect()).await.unwrap();
    let before = room.paths().await;
    let mut ids = BTreeMap::new();
    for number in [0, 50, 100, 101, 150] {
        ids.insert(number, id(&room, &format!("/{}/sub/deep/file", name(number))).await);
    }
    let rename = |folder: &Path| {
        let go = |from: String, to: String| fs::rename(folder.join(from), folder.join(to)).unwrap();
        for number in 0..300 {
            let old = name(number);
            match number {
                0..50 => go(old.clone(), format!("new-{old}")),
                // A folder in it is renamed too, before or after.
                50..100 => {
                    go(format!("{old}/sub"), format!("{old}/inner"));
                    go(old.clone(), format!("new-{old}"));
                    go(format!("new-{old}/inner/deep"), format!("new-{old}/out"));
                }
                // One into another, which is renamed after that.
                100..150 if number % 2 == 1 => {
                    let above = name(number - 1);
                    go(old, format!("{above}/sub/other"));
                    go(above.clone(), format!("new-{above}"));
                }
                // Along a chain of names that were free.
                150..200 => {
                    go(old.clone(), format!("a-{old}"));
                    go(format!("a-{old}"), format!("b-{old}"));
                    go(format!("b-{old}"), format!("c-{old}"));
                }
                // Each takes the name of the one before it.
                201..250 => go(old, name(number - 1)),
                200 => go(old, "new-0200".to_owned()),
                _ => {}
            }
        }
    };
    let program = scene.check_out().await;
    rename(&program.folder);
    let left = tree(&program.folder);
    let checked_in = program.finish().await;
    assert!(checked_in.conflicts.is_empty() && checked_in.left_out.is_empty(), "{checked_in:?}");
    let stored = tree(&Scene::of(&room).check_out().await.folder);
    assert!(stored == left, "{checked_in:?}");
    assert_eq!(scene.run(|_| ()).await, CheckedIn::default());
    let places = [
        (0, "/new-0000/sub/deep/file"),
        (50, "/new-0050/out/file"),
        (100, "/new-0100/sub/deep/file"),
        (101, "/new-0100/sub/other/sub/deep/file"),
        (150, "/c-0150/sub/deep/file"),
    ];
    for (number, place) in places {
        assert_eq!(id(&room, place).await, ids[&number], "{place}");
    }
    room.undo().await.unwrap();
    assert_eq!(room.paths().await, before);
}

async fn folders_that_swap_their_names_keep_what_is_in_them(room: TestWorkspace) {
    let scene = Scene::of(&room);
    room.all(vec![put("/a/x", "a x"), put("/b/y", "b y"), put("/c/d/z", "c d z")]).await.unwrap();
    after(&scene, "mv a t; mv b a; mv t b").await;
    after(&scene, "mv c/d t; mv c t/c; mv t d").await;
    assert_eq!(room.text("/d/z").await, "c d z");
}

async fn what_is_moved_into_the_place_of_a_moved_folder_stays_there(room: TestWorkspace) {
    let scene = Scene::of(&room);
    room.all(vec![put("/c/f", "c f"), put("/old/h", "h"), put("/old/sub/g", "g"), put("/old/sub/x/f", "c f")])
        .await
        .unwrap();
    let moved = id(&room, "/c/f").await;
    after(&scene, "mv old new; mv new/sub zzz; mkdir new/sub; mv c new/sub/x").await;
    assert_eq!(id(&room, "/new/sub/x/f").await, moved);
    room.undo().await.unwrap();
    assert_eq!((room.text("/c/f").await, room.text("/old/sub/g").await), ("c f".into(), "g".into()));
}

async fn a_folder_takes_the_place_of_one_that_was_in_a_moved_folder(room: TestWorkspace) {
    let scene = Scene::of(&room);
    room.all(vec![put("/c/f", "f"), put("/old/h", "h"), put("/old/x/g", "g")]).await.unwrap();
    after(&scene, "mv old new; rm -r new/x; mv c new/x").await;
    assert_eq!(room.paths().await, ["/new", "/new/h", "/new/x", "/new/x/f"]);
}

async fn a_deep_tree_is_moved_and_made(room: TestWorkspace) {
    let scene = Scene::of(&room);
    let deep = "d/".repeat(300);
    room.put(&format!("/old/{deep}file"), "deep").await;
    let file = id(&room, &format!("/old/{deep}file")).await;
    let script = format!("mv old new; mkdir -p made/{deep}; echo made > made/{deep}file; mv new/{deep} out");
    let checked_in = after(&scene, &script).await;
    assert_eq!(changed(&checked_in).iter().filter(|change| change.starts_with('>')).count(), 2);
    assert_eq!(id(&room, "/out/file").await, file);
    after(&scene, "rm -r new made").await;
    assert_eq!(room.paths().await, ["/out", "/out/file"]);
}
