//! What changesets of several changes do, and what taking them back does.

use crate::room::{Room, on_both_stores, path, put};
use toolrest_core::{Change, Changeset, Content, Destination, ErrorKind, Expect, Removal};

on_both_stores!(
    all_changes_are_applied_or_none,
    later_changes_see_earlier_ones,
    a_folder_moves_with_everything_below_it,
    a_move_counts_characters_and_bytes_apart,
    undo_brings_back_what_was_before_in_every_kind_of_change,
    undo_of_what_has_changed_since_is_refused,
    undo_of_a_removed_tree_restores_it_with_its_ids,
    expectations_are_checked_before_anything_is_done,
    many_files_go_into_one_commit,
    equal_contents_are_versions_of_their_own,
    old_versions_are_readable_after_the_store_was_tended,
    of_two_versions_in_one_commit_the_last_is_current,
    what_lies_below_a_folder_follows_earlier_changes,
    moves_of_what_was_moved_are_followed,
    undo_looks_at_what_the_last_effect_on_a_file_left,
    undo_of_a_removal_is_refused_once_the_file_was_elsewhere,
    a_folder_that_came_back_with_its_file_may_be_restored_too,
);

fn remove(at: &str) -> Change {
    Change::Remove { path: path(at), removal: Removal::Single }
}

fn rename(from: &str, to: &str) -> Change {
    Change::Move { from: path(from), to: Destination::Exactly(path(to)) }
}

async fn all_changes_are_applied_or_none(room: Room) {
    room.put("/a", "a").await;
    let error = room.all(vec![put("/a", "changed"), put("/b", "b"), remove("/missing")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(room.text("/a").await, "a");
    assert_eq!(room.paths().await, ["/a"]);
}

async fn later_changes_see_earlier_ones(room: Room) {
    room.put("/docs/a", "a").await;
    room.all(vec![
        rename("/docs", "/texts"),
        put("/texts/a", "a in its new place"),
        put("/texts/b", "b"),
        put("/texts/b", "b again"),
        remove("/texts/a"),
        rename("/texts/b", "/texts/a"),
    ])
    .await
    .unwrap();
    assert_eq!(room.paths().await, ["/texts", "/texts/a"]);
    assert_eq!(room.text("/texts/a").await, "b again");
}

async fn a_folder_moves_with_everything_below_it(room: Room) {
    for name in ["/old/a", "/old/deep/er/b", "/older/c", "/old.txt"] {
        room.put(name, name).await;
    }
    room.all(vec![Change::MakeDir(path("/to")), rename("/old", "/to/new")]).await.unwrap();
    let expected = [
        "/old.txt",
        "/older",
        "/older/c",
        "/to",
        "/to/new",
        "/to/new/a",
        "/to/new/deep",
        "/to/new/deep/er",
        "/to/new/deep/er/b",
    ];
    assert_eq!(room.paths().await, expected);
    assert_eq!(room.text("/to/new/deep/er/b").await, "/old/deep/er/b");
    room.put("/to/new/deep/c", "found by its folder").await;
}

async fn a_move_counts_characters_and_bytes_apart(room: Room) {
    room.put("/größe/ж/x", "x").await;
    room.all(vec![rename("/größe", "/µ")]).await.unwrap();
    assert_eq!(room.paths().await, ["/µ", "/µ/ж", "/µ/ж/x"]);
    room.all(vec![rename("/µ/ж", "/µ/abc")]).await.unwrap();
    assert_eq!(room.paths().await, ["/µ", "/µ/abc", "/µ/abc/x"]);
}

async fn undo_brings_back_what_was_before_in_every_kind_of_change(room: Room) {
    room.put("/keep/a", "first").await;
    room.put("/keep/b", "b").await;
    let before = room.paths().await;
    for changes in [
        vec![put("/keep/a", "second")],
        vec![put("/new/folder/file", "new")],
        vec![remove("/keep/b")],
        vec![rename("/keep", "/kept")],
        vec![Change::MakeDir(path("/x/y/z"))],
        vec![put("/keep/a", "second"), rename("/keep/a", "/keep/c"), put("/keep/d", "d"), remove("/keep/b")],
    ] {
        let described = format!("{changes:?}");
        room.all(changes).await.unwrap();
        let taken_back = room.undo().await.unwrap_or_else(|error| panic!("{described}: {error}"));
        assert!(taken_back.id.is_some());
        assert_eq!(room.paths().await, before, "{described}");
        assert_eq!(room.text("/keep/a").await, "first", "{described}");
        assert_eq!(room.text("/keep/b").await, "b", "{described}");
    }
}

async fn undo_of_what_has_changed_since_is_refused(room: Room) {
    room.put("/a", "one").await;
    room.put("/a", "two").await;
    let page = toolrest_store::Page { before: None, limit: 10 };
    let commits = room.store.commits(room.access(), page).await.unwrap();
    let creation = toolrest_ops::undo(&commits[1], toolrest_ops::Force::No).unwrap();
    assert_eq!(room.commit(creation).await.unwrap_err().kind(), ErrorKind::Stale);
    assert_eq!(room.text("/a").await, "two");
}

async fn undo_of_a_removed_tree_restores_it_with_its_ids(room: Room) {
    room.put("/folder/file", "text").await;
    let file = room.read("/folder/file").await.unwrap().entry.id;
    let folder = room.read("/folder").await.unwrap().entry.id;
    room.all(vec![remove("/folder/file")]).await.unwrap();
    room.all(vec![remove("/folder")]).await.unwrap();
    room.all(vec![Change::Restore(file)]).await.unwrap();
    assert_eq!(room.paths().await, ["/folder", "/folder/file"]);
    assert_eq!(room.read("/folder/file").await.unwrap().entry.id, file);
    assert_eq!(room.read("/folder").await.unwrap().entry.id, folder);
    assert!(room.store.trash(room.access(), toolrest_store::Page { before: None, limit: 9 }).await.unwrap().is_empty());
}

async fn expectations_are_checked_before_anything_is_done(room: Room) {
    room.put("/a", "a").await;
    let hash = room.read("/a").await.unwrap().entry.hash.unwrap();
    room.put("/a", "b").await;
    let changes = Changeset::one(put("/new", "new")).expecting(Some(Expect::Hash(path("/a"), hash)));
    assert_eq!(room.commit(changes).await.unwrap_err().kind(), ErrorKind::Stale);
    assert_eq!(room.paths().await, ["/a"]);
}

async fn many_files_go_into_one_commit(room: Room) {
    let changes = (0..500).map(|i| put(&format!("/many/{:03}/{i}", i % 50), &format!("text {i}"))).collect();
    let commit = room.all(changes).await.unwrap();
    assert_eq!(commit.outcomes.len(), 500);
    assert_eq!(room.paths().await.len(), 500 + 50 + 1);
    assert_eq!(room.text("/many/007/407").await, "text 407");
    room.undo().await.unwrap();
    assert!(room.paths().await.is_empty());
}

async fn equal_contents_are_versions_of_their_own(room: Room) {
    for _ in 0..3 {
        room.put("/a", "same").await;
    }
    let file = room.read("/a").await.unwrap().entry.id;
    let page = toolrest_store::Page { before: None, limit: 10 };
    let versions = room.store.versions(room.access(), file, page).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.seq).collect::<Vec<_>>(), [3, 2, 1]);
    assert!(versions.windows(2).all(|pair| pair[0].hash == pair[1].hash && pair[0].id != pair[1].id));
}

async fn old_versions_are_readable_after_the_store_was_tended(room: Room) {
    let text = |n: usize| format!("version {n}: {}", "the same words over and over ".repeat(100));
    for n in 0..250 {
        room.put("/a", &text(n)).await;
    }
    room.put("/a", "short").await;
    room.store.maintain().await.unwrap();
    let file = room.read("/a").await.unwrap().entry.id;
    let page = toolrest_store::Page { before: None, limit: 1000 };
    let versions = room.store.versions(room.access(), file, page).await.unwrap();
    for (n, version) in versions.iter().rev().take(250).enumerate() {
        let (read, content) = room.store.version(room.access(), file, version.id, i64::MAX).await.unwrap();
        let content = content.unwrap();
        assert_eq!(content, Content::Text(text(n)));
        assert_eq!(read.hash, content.hash().unwrap());
        let (_, left_out) = room.store.version(room.access(), file, version.id, read.size - 1).await.unwrap();
        assert_eq!(left_out, None);
    }
    room.put("/a", &text(7)).await;
    assert_eq!(room.text("/a").await, text(7), "a content of old that is current again");
}

async fn of_two_versions_in_one_commit_the_last_is_current(room: Room) {
    room.put("/a", "one").await;
    room.all(vec![put("/a", "two"), put("/a", "three")]).await.unwrap();
    assert_eq!(room.text("/a").await, "three");
    room.put("/a", "four").await;
    assert_eq!(room.text("/a").await, "four");
}

async fn what_lies_below_a_folder_follows_earlier_changes(room: Room) {
    room.put("/a/f", "f").await;
    room.all(vec![Change::MakeDir(path("/empty"))]).await.unwrap();
    for changes in [
        vec![rename("/a", "/b"), remove("/b")],
        vec![put("/empty/f", "f"), remove("/empty")],
        vec![rename("/a/f", "/empty/f"), remove("/empty")],
    ] {
        let described = format!("{changes:?}");
        assert_eq!(room.all(changes).await.unwrap_err().kind(), ErrorKind::NotEmpty, "{described}");
    }
    room.all(vec![rename("/a/f", "/f"), remove("/a")]).await.unwrap();
    assert_eq!(room.paths().await, ["/empty", "/f"]);
    room.undo().await.unwrap();
    assert_eq!(room.paths().await, ["/a", "/a/f", "/empty"]);
}

async fn moves_of_what_was_moved_are_followed(room: Room) {
    room.put("/a/f", "f").await;
    room.all(vec![rename("/a", "/b"), rename("/b", "/c"), put("/c/f", "in its third place")]).await.unwrap();
    assert_eq!(room.text("/c/f").await, "in its third place");
    room.all(vec![Change::MakeDir(path("/d"))]).await.unwrap();
    let into = Change::Move { from: path("/c"), to: Destination::At(path("/d")) };
    room.all(vec![into, put("/d/c/f", "in its fourth")]).await.unwrap();
    assert_eq!(room.text("/d/c/f").await, "in its fourth");
    assert_eq!(room.paths().await, ["/d", "/d/c", "/d/c/f"]);
}

async fn undo_looks_at_what_the_last_effect_on_a_file_left(room: Room) {
    room.put("/a", "one").await;
    for changes in [
        vec![put("/a", "two"), put("/a", "three")],
        vec![put("/new", "new"), rename("/new", "/newer")],
        vec![put("/a", "two"), remove("/a")],
    ] {
        let described = format!("{changes:?}");
        room.all(changes).await.unwrap();
        room.undo().await.unwrap_or_else(|error| panic!("{described}: {error}"));
        assert_eq!(room.paths().await, ["/a"], "{described}");
        assert_eq!(room.text("/a").await, "one", "{described}");
    }
}

async fn undo_of_a_removal_is_refused_once_the_file_was_elsewhere(room: Room) {
    room.put("/a", "one").await;
    let file = room.read("/a").await.unwrap().entry.id;
    room.all(vec![remove("/a")]).await.unwrap();
    let page = toolrest_store::Page { before: None, limit: 1 };
    let removal = room.store.commits(room.access(), page).await.unwrap().remove(0);
    room.all(vec![Change::Restore(file)]).await.unwrap();
    room.put("/a", "two").await;
    room.all(vec![rename("/a", "/g")]).await.unwrap();
    room.all(vec![remove("/g")]).await.unwrap();
    let error = room.commit(toolrest_ops::undo(&removal, toolrest_ops::Force::No).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(room.paths().await.is_empty());
}

async fn a_folder_that_came_back_with_its_file_may_be_restored_too(room: Room) {
    room.put("/a/f", "f").await;
    let ids = [room.read("/a/f").await.unwrap().entry.id, room.read("/a").await.unwrap().entry.id];
    room.all(vec![remove("/a/f")]).await.unwrap();
    room.all(vec![remove("/a")]).await.unwrap();
    room.all(ids.map(Change::Restore).to_vec()).await.unwrap();
    assert_eq!(room.paths().await, ["/a", "/a/f"]);
}
