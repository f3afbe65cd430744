//! Changesets of several changes, and their undo.

use crate::test_workspace::{TestWorkspace, on_both_stores, path, put};
use toolrest_core::{Change, Changeset, Content, Destination, ErrorKind, Expect, Removal};

on_both_stores!(
    all_changes_are_applied_or_none,
    later_changes_see_earlier_ones,
    a_folder_moves_with_everything_below_it,
    paths_of_multibyte_characters_are_rewritten_by_moves,
    undo_restores_the_state_before_every_kind_of_change,
    undo_is_refused_after_a_later_change,
    undo_of_a_removed_tree_restores_it_with_its_ids,
    expectations_are_checked_before_anything_is_done,
    many_files_go_into_one_commit,
    equal_contents_make_separate_versions,
    old_versions_are_readable_after_maintenance,
    of_two_versions_in_one_commit_the_last_is_current,
    counts_below_a_folder_include_earlier_changes,
    repeated_moves_are_followed,
    undo_uses_the_last_effect_on_each_file,
    undo_of_a_removal_is_refused_after_the_file_was_moved,
    a_folder_restored_with_its_file_may_be_restored_again,
);

fn remove(at: &str) -> Change {
    Change::Remove { path: path(at), removal: Removal::Single }
}

fn rename(from: &str, to: &str) -> Change {
    Change::Move { from: path(from), to: Destination::Exactly(path(to)) }
}

async fn all_changes_are_applied_or_none(ws: TestWorkspace) {
    ws.put("/a", "a").await;
    let error = ws.all(vec![put("/a", "changed"), put("/b", "b"), remove("/missing")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(ws.text("/a").await, "a");
    assert_eq!(ws.paths().await, ["/a"]);
}

async fn later_changes_see_earlier_ones(ws: TestWorkspace) {
    ws.put("/docs/a", "a").await;
    ws.all(vec![
        rename("/docs", "/texts"),
        put("/texts/a", "a in its new place"),
        put("/texts/b", "b"),
        put("/texts/b", "b again"),
        remove("/texts/a"),
        rename("/texts/b", "/texts/a"),
    ])
    .await
    .unwrap();
    assert_eq!(ws.paths().await, ["/texts", "/texts/a"]);
    assert_eq!(ws.text("/texts/a").await, "b again");
}

async fn a_folder_moves_with_everything_below_it(ws: TestWorkspace) {
    for name in ["/old/a", "/old/deep/er/b", "/older/c", "/old.txt"] {
        ws.put(name, name).await;
    }
    ws.all(vec![Change::MakeDir(path("/to")), rename("/old", "/to/new")]).await.unwrap();
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
    assert_eq!(ws.paths().await, expected);
    assert_eq!(ws.text("/to/new/deep/er/b").await, "/old/deep/er/b");
    ws.put("/to/new/deep/c", "found by its folder").await;
}

async fn paths_of_multibyte_characters_are_rewritten_by_moves(ws: TestWorkspace) {
    ws.put("/größe/ж/x", "x").await;
    ws.all(vec![rename("/größe", "/µ")]).await.unwrap();
    assert_eq!(ws.paths().await, ["/µ", "/µ/ж", "/µ/ж/x"]);
    ws.all(vec![rename("/µ/ж", "/µ/abc")]).await.unwrap();
    assert_eq!(ws.paths().await, ["/µ", "/µ/abc", "/µ/abc/x"]);
}

async fn undo_restores_the_state_before_every_kind_of_change(ws: TestWorkspace) {
    ws.put("/keep/a", "first").await;
    ws.put("/keep/b", "b").await;
    let before = ws.paths().await;
    for changes in [
        vec![put("/keep/a", "second")],
        vec![put("/new/folder/file", "new")],
        vec![remove("/keep/b")],
        vec![rename("/keep", "/kept")],
        vec![Change::MakeDir(path("/x/y/z"))],
        vec![put("/keep/a", "second"), rename("/keep/a", "/keep/c"), put("/keep/d", "d"), remove("/keep/b")],
    ] {
        let described = format!("{changes:?}");
        ws.all(changes).await.unwrap();
        let taken_back = ws.undo().await.unwrap_or_else(|error| panic!("{described}: {error}"));
        assert!(taken_back.id.is_some());
        assert_eq!(ws.paths().await, before, "{described}");
        assert_eq!(ws.text("/keep/a").await, "first", "{described}");
        assert_eq!(ws.text("/keep/b").await, "b", "{described}");
    }
}

async fn undo_is_refused_after_a_later_change(ws: TestWorkspace) {
    ws.put("/a", "one").await;
    ws.put("/a", "two").await;
    let page = toolrest_store::Page { before: None, limit: 10 };
    let commits = ws.store.commits(ws.access(), page).await.unwrap();
    let creation = toolrest_ops::inverse_of_commit(&commits[1]);
    assert_eq!(ws.commit(creation).await.unwrap_err().kind(), ErrorKind::Stale);
    assert_eq!(ws.text("/a").await, "two");
}

async fn undo_of_a_removed_tree_restores_it_with_its_ids(ws: TestWorkspace) {
    ws.put("/folder/file", "text").await;
    let file = ws.read("/folder/file").await.unwrap().entry.id;
    let folder = ws.read("/folder").await.unwrap().entry.id;
    ws.all(vec![remove("/folder/file")]).await.unwrap();
    ws.all(vec![remove("/folder")]).await.unwrap();
    ws.all(vec![Change::Restore(file)]).await.unwrap();
    assert_eq!(ws.paths().await, ["/folder", "/folder/file"]);
    assert_eq!(ws.read("/folder/file").await.unwrap().entry.id, file);
    assert_eq!(ws.read("/folder").await.unwrap().entry.id, folder);
    assert!(ws.store.trash(ws.access(), toolrest_store::Page { before: None, limit: 9 }).await.unwrap().is_empty());
}

async fn expectations_are_checked_before_anything_is_done(ws: TestWorkspace) {
    ws.put("/a", "a").await;
    let hash = ws.read("/a").await.unwrap().entry.hash.unwrap();
    ws.put("/a", "b").await;
    let changes = Changeset::one(put("/new", "new")).expecting(Some(Expect::Hash(path("/a"), hash)));
    assert_eq!(ws.commit(changes).await.unwrap_err().kind(), ErrorKind::Stale);
    assert_eq!(ws.paths().await, ["/a"]);
}

async fn many_files_go_into_one_commit(ws: TestWorkspace) {
    let changes = (0..500).map(|i| put(&format!("/many/{:03}/{i}", i % 50), &format!("text {i}"))).collect();
    let commit = ws.all(changes).await.unwrap();
    assert_eq!(commit.outcomes.len(), 500);
    assert_eq!(ws.paths().await.len(), 500 + 50 + 1);
    assert_eq!(ws.text("/many/007/407").await, "text 407");
    ws.undo().await.unwrap();
    assert!(ws.paths().await.is_empty());
}

async fn equal_contents_make_separate_versions(ws: TestWorkspace) {
    for _ in 0..3 {
        ws.put("/a", "same").await;
    }
    let file = ws.read("/a").await.unwrap().entry.id;
    let page = toolrest_store::Page { before: None, limit: 10 };
    let versions = ws.store.versions(ws.access(), file, page).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.seq).collect::<Vec<_>>(), [3, 2, 1]);
    assert!(versions.windows(2).all(|pair| pair[0].hash == pair[1].hash && pair[0].id != pair[1].id));
}

async fn old_versions_are_readable_after_maintenance(ws: TestWorkspace) {
    let text = |n: usize| format!("version {n}: {}", "the same words over and over ".repeat(100));
    for n in 0..250 {
        ws.put("/a", &text(n)).await;
    }
    ws.put("/a", "short").await;
    ws.store.maintain().await.unwrap();
    let file = ws.read("/a").await.unwrap().entry.id;
    let page = toolrest_store::Page { before: None, limit: 1000 };
    let versions = ws.store.versions(ws.access(), file, page).await.unwrap();
    for (n, version) in versions.iter().rev().take(250).enumerate() {
        let (read, content) = ws.store.version(ws.access(), file, version.id, i64::MAX).await.unwrap();
        let content = content.unwrap();
        assert_eq!(content, Content::Text(text(n)));
        assert_eq!(read.hash, content.hash().unwrap());
        let (_, left_out) = ws.store.version(ws.access(), file, version.id, read.size - 1).await.unwrap();
        assert_eq!(left_out, None);
    }
    ws.put("/a", &text(7)).await;
    assert_eq!(ws.text("/a").await, text(7), "a content of old that is current again");
}

async fn of_two_versions_in_one_commit_the_last_is_current(ws: TestWorkspace) {
    ws.put("/a", "one").await;
    ws.all(vec![put("/a", "two"), put("/a", "three")]).await.unwrap();
    assert_eq!(ws.text("/a").await, "three");
    ws.put("/a", "four").await;
    assert_eq!(ws.text("/a").await, "four");
}

async fn counts_below_a_folder_include_earlier_changes(ws: TestWorkspace) {
    ws.put("/a/f", "f").await;
    ws.all(vec![Change::MakeDir(path("/empty"))]).await.unwrap();
    for changes in [
        vec![rename("/a", "/b"), remove("/b")],
        vec![put("/empty/f", "f"), remove("/empty")],
        vec![rename("/a/f", "/empty/f"), remove("/empty")],
    ] {
        let described = format!("{changes:?}");
        assert_eq!(ws.all(changes).await.unwrap_err().kind(), ErrorKind::NotEmpty, "{described}");
    }
    ws.all(vec![rename("/a/f", "/f"), remove("/a")]).await.unwrap();
    assert_eq!(ws.paths().await, ["/empty", "/f"]);
    ws.undo().await.unwrap();
    assert_eq!(ws.paths().await, ["/a", "/a/f", "/empty"]);
}

async fn repeated_moves_are_followed(ws: TestWorkspace) {
    ws.put("/a/f", "f").await;
    ws.all(vec![rename("/a", "/b"), rename("/b", "/c"), put("/c/f", "in its third place")]).await.unwrap();
    assert_eq!(ws.text("/c/f").await, "in its third place");
    ws.all(vec![Change::MakeDir(path("/d"))]).await.unwrap();
    let into = Change::Move { from: path("/c"), to: Destination::At(path("/d")) };
    ws.all(vec![into, put("/d/c/f", "in its fourth")]).await.unwrap();
    assert_eq!(ws.text("/d/c/f").await, "in its fourth");
    assert_eq!(ws.paths().await, ["/d", "/d/c", "/d/c/f"]);
}

async fn undo_uses_the_last_effect_on_each_file(ws: TestWorkspace) {
    ws.put("/a", "one").await;
    for changes in [
        vec![put("/a", "two"), put("/a", "three")],
        vec![put("/new", "new"), rename("/new", "/newer")],
        vec![put("/a", "two"), remove("/a")],
    ] {
        let described = format!("{changes:?}");
        ws.all(changes).await.unwrap();
        ws.undo().await.unwrap_or_else(|error| panic!("{described}: {error}"));
        assert_eq!(ws.paths().await, ["/a"], "{described}");
        assert_eq!(ws.text("/a").await, "one", "{described}");
    }
}

async fn undo_of_a_removal_is_refused_after_the_file_was_moved(ws: TestWorkspace) {
    ws.put("/a", "one").await;
    let file = ws.read("/a").await.unwrap().entry.id;
    ws.all(vec![remove("/a")]).await.unwrap();
    let page = toolrest_store::Page { before: None, limit: 1 };
    let removal = ws.store.commits(ws.access(), page).await.unwrap().remove(0);
    ws.all(vec![Change::Restore(file)]).await.unwrap();
    ws.put("/a", "two").await;
    ws.all(vec![rename("/a", "/g")]).await.unwrap();
    ws.all(vec![remove("/g")]).await.unwrap();
    let error = ws.commit(toolrest_ops::inverse_of_commit(&removal)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(ws.paths().await.is_empty());
}

async fn a_folder_restored_with_its_file_may_be_restored_again(ws: TestWorkspace) {
    ws.put("/a/f", "f").await;
    let ids = [ws.read("/a/f").await.unwrap().entry.id, ws.read("/a").await.unwrap().entry.id];
    ws.all(vec![remove("/a/f")]).await.unwrap();
    ws.all(vec![remove("/a")]).await.unwrap();
    ws.all(ids.map(Change::Restore).to_vec()).await.unwrap();
    assert_eq!(ws.paths().await, ["/a", "/a/f"]);
}
