//! Commits of many megabytes, beside the small ones of others.

use crate::room::{Room, commit, new_user, path, put, search_for};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolrest_core::{Access, Change, Content, ErrorKind, FileType, Parents, Put, Removal, Role, now};
use toolrest_store::{Place, Purge, Quotas};

const MEGABYTE: usize = 1 << 20;

fn large(at: &str, bytes: usize) -> Change {
    let line = format!("{at} is a large file that a program has written\n");
    let text = line.repeat(bytes / line.len());
    let content = Content::Text(text);
    Change::Put(Put {
        path: path(at),
        file_type: FileType::Document,
        content,
        parents: Parents::Create,
        executable: None,
    })
}

/// How many rows a table of the room's database has.
fn rows(room: &Room, table: &str) -> i64 {
    let db = rusqlite::Connection::open(room.file().unwrap()).unwrap();
    db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn text_of(change: &Change) -> &str {
    match change {
        Change::Put(Put { content: Content::Text(text), .. }) => text,
        other => panic!("{other:?}"),
    }
}

/// Writes small files to the workspace of somebody else until the work is done; tells how long the work took, and how
/// long the longest of the writes.
async fn with_writes_of_others<T: Send + 'static>(
    room: &Room,
    work: impl Future<Output = T> + Send + 'static,
) -> (Duration, Duration) {
    let other = new_user(&*room.store).await;
    let elsewhere = room.store.create_workspace(other, "elsewhere".into(), Place::Database).await.unwrap().id;
    let access = Access { workspace: elsewhere, user: other, need: Role::Editor };
    let working = tokio::spawn(async move {
        let begun = Instant::now();
        work.await;
        begun.elapsed()
    });
    let mut longest = Duration::ZERO;
    let mut count = 0;
    while !working.is_finished() {
        let begun = Instant::now();
        commit(&*room.store, access, vec![put("/small.txt", &count.to_string())]).await.unwrap();
        longest = longest.max(begun.elapsed());
        count += 1;
    }
    let whole = working.await.unwrap();
    println!("the work took {whole:?}; of {count} small writes the longest took {longest:?}");
    (whole, longest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_commit_holds_the_writes_of_others_up_for_a_fraction_of_its_time() {
    let room = Room::on_sqlite().await;
    let changes: Vec<Change> = (0..3).map(|n| large(&format!("/large-{n}.txt"), 50 * MEGABYTE)).collect();
    let writing = room.clone();
    let (whole, longest) = with_writes_of_others(&room, async move { writing.all(changes).await.unwrap() }).await;
    assert!(longest < whole / 10, "a small commit waited {longest:?} of the {whole:?} that the large one took");
}

/// Fills the room with large contents, in slices and whole.
async fn fill(room: &Room) -> Vec<String> {
    let mut paths = Vec::new();
    for (count, bytes) in [(3, 50 * MEGABYTE), (75, 2 * MEGABYTE - 100)] {
        let names: Vec<String> = (0..count).map(|n| format!("/{bytes}-{n}.txt")).collect();
        room.all(names.iter().map(|name| large(name, bytes)).collect()).await.unwrap();
        paths.extend(names);
    }
    paths
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_of_large_trash_holds_the_writes_of_others_up_for_a_fraction_of_its_time() {
    let room = Room::on_sqlite().await;
    let gone = fill(&room).await;
    let remove = |at: &String| Change::Remove { path: path(at), removal: Removal::Single };
    room.all(gone.iter().map(remove).collect()).await.unwrap();
    let purging = Arc::clone(&room.store);
    let before = Some(now().checked_add(Duration::from_secs(1)).unwrap());
    let purge = async move { purging.purge(Purge { trash_before: before, ..Purge::default() }).await.unwrap() };
    let (whole, longest) = with_writes_of_others(&room, purge).await;
    assert!(longest < whole / 2, "a small commit waited {longest:?} of the {whole:?} that the purge took");
    assert_eq!((rows(&room, "blob_slices"), rows(&room, "staged_blobs")), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_of_a_large_workspace_holds_the_writes_of_others_up_for_a_fraction_of_its_time() {
    let room = Room::on_sqlite().await;
    fill(&room).await;
    room.store.delete_workspace(Access { need: Role::Owner, ..room.access() }).await.unwrap();
    let purging = Arc::clone(&room.store);
    let purge = async move { purging.purge(Purge::default()).await.unwrap() };
    let (whole, longest) = with_writes_of_others(&room, purge).await;
    assert!(longest < whole / 2, "a small commit waited {longest:?} of the {whole:?} that the purge took");
    assert_eq!((rows(&room, "blob_slices"), rows(&room, "staged_blobs")), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_very_many_versions_is_purged_in_turns() {
    const VERSIONS: usize = 12_000;
    let room = Room::on_sqlite().await;
    for from in (0..VERSIONS).step_by(1000) {
        let versions = (from..from + 1000).map(|n| put("/a.txt", &n.to_string())).collect();
        room.all(versions).await.unwrap();
    }
    room.put("/kept.txt", "7").await;
    room.all(vec![Change::Remove { path: path("/a.txt"), removal: Removal::Single }]).await.unwrap();
    let before = Some(now().checked_add(Duration::from_secs(1)).unwrap());
    let purged = room.store.purge(Purge { trash_before: before, ..Purge::default() }).await.unwrap();
    assert_eq!((purged.files, purged.blobs), (1, VERSIONS as u64 - 1));
    assert_eq!((rows(&room, "versions"), rows(&room, "blobs"), rows(&room, "staged_blobs")), (1, 1, 0));
    assert_eq!(room.text("/kept.txt").await, "7");
}

/// Changes that are refused when they are planned, after their content was stored ahead.
fn refused() -> [Change; 2] {
    let below = |at: &str| match large(at, 5 * MEGABYTE) {
        Change::Put(put) => Change::Put(Put { parents: Parents::Require, ..put }),
        other => other,
    };
    [below("/missing/a.txt"), below("/file.txt/b.txt")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_large_write_leaves_nothing_stored() {
    let room = Room::on_sqlite().await;
    room.put("/file.txt", "in the way").await;
    let kept = match large("/kept.txt", 3 * MEGABYTE) {
        Change::Put(put) => put,
        other => panic!("{other:?}"),
    };
    room.all(vec![Change::Put(kept.clone())]).await.unwrap();
    for change in refused() {
        // The content of a file that is there goes with it, and stays.
        let again = Change::Put(Put { path: path("/again.txt"), ..kept.clone() });
        room.all(vec![again, change]).await.unwrap_err();
        assert_eq!((rows(&room, "blobs"), rows(&room, "staged_blobs"), rows(&room, "blob_slices")), (2, 0, 3));
    }
    assert!(room.text("/kept.txt").await == text_of(&Change::Put(kept)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_write_whose_caller_goes_away_leaves_nothing_stored() {
    let room = Room::on_sqlite().await;
    let changes = vec![large("/a.txt", 60 * MEGABYTE)];
    let writing = tokio::spawn({
        let room = room.clone();
        async move { room.all(changes).await }
    });
    while rows(&room, "blob_slices") == 0 {
        tokio::task::yield_now().await;
    }
    writing.abort();
    assert!(writing.await.unwrap_err().is_cancelled());
    room.store.maintain().await.unwrap();
    assert_eq!((rows(&room, "blobs"), rows(&room, "staged_blobs"), rows(&room, "blob_slices")), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_large_writes_take_no_room_and_none_away() {
    let quotas = Quotas { bytes_per_workspace: Some(12 * MEGABYTE as u64), ..Quotas::default() };
    let room = Room::on_sqlite_with(quotas).await;
    room.put("/file.txt", "in the way").await;
    for _ in 0..5 {
        for change in refused() {
            let error = room.all(vec![change]).await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ThroughFile), "{error:?}");
            assert_eq!(rows(&room, "blob_slices"), 0);
        }
    }
    // There is room for what the quota allows, at once, and for no more.
    room.all(vec![large("/a.txt", 10 * MEGABYTE)]).await.unwrap();
    let error = room.all(vec![large("/b.txt", 5 * MEGABYTE)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_content_is_read_searched_and_kept_as_any_other() {
    let room = Room::on_sqlite().await;
    let (first, second) = (large("/a.txt", 5 * MEGABYTE), large("/b.txt", 3 * MEGABYTE));
    room.all(vec![first.clone(), second.clone(), put("/small.txt", "small")]).await.unwrap();
    for (at, change) in [("/a.txt", &first), ("/b.txt", &second)] {
        assert!(room.text(at).await == text_of(change), "{at}");
    }
    assert_eq!(room.text("/small.txt").await, "small");
    let found = room.store.search(room.access(), search_for("/b.txt is a large file")).await.unwrap();
    assert!(found.matches.len() == 1 || found.truncated, "{found:?}");
    room.put("/a.txt", "replaced").await;
    // What waits to be compressed is left as it is.
    room.store.maintain().await.unwrap();
    room.undo().await.unwrap();
    assert!(room.text("/a.txt").await == text_of(&first));
    // The same content twice is kept once, and refused contents leave nothing in the way.
    let again = match second.clone() {
        Change::Put(put) => Change::Put(Put { path: path("/c.txt"), ..put }),
        other => other,
    };
    room.all(vec![again]).await.unwrap();
    assert!(room.text("/c.txt").await == text_of(&second));
    let stranger = Access { user: new_user(&*room.store).await, ..room.access() };
    commit(&*room.store, stranger, vec![large("/d.txt", 5 * MEGABYTE)]).await.unwrap_err();
    assert_eq!(rows(&room, "staged_blobs"), 0);
}
