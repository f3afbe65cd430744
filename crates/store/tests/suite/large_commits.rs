//! Commits of many megabytes, with concurrent small commits.

use crate::test_workspace::{TestWorkspace, commit, new_user, path, put, search_for};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolrest_core::{Access, Change, Content, ErrorKind, FileType, Parents, Put, Removal, Role, now};
use toolrest_store::{Location, Purge, Quotas};

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

/// Counts the rows of a table.
fn rows(ws: &TestWorkspace, table: &str) -> i64 {
    let db = rusqlite::Connection::open(ws.file().unwrap()).unwrap();
    db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn text_of(change: &Change) -> &str {
    match change {
        Change::Put(Put { content: Content::Text(text), .. }) => text,
        other => panic!("{other:?}"),
    }
}

/// Writes small files to another workspace until the work is done; returns how long the work took, and the longest of
/// the writes.
async fn with_writes_of_others<T: Send + 'static>(
    ws: &TestWorkspace,
    work: impl Future<Output = T> + Send + 'static,
) -> (Duration, Duration) {
    let other = new_user(&*ws.store).await;
    let elsewhere = ws.store.create_workspace(other, "elsewhere".into(), Location::Database).await.unwrap().id;
    let access = Access { workspace: elsewhere, user: other, person: other, need: Role::Editor, rules: None };
    let working = tokio::spawn(async move {
        let begun = Instant::now();
        work.await;
        begun.elapsed()
    });
    let mut longest = Duration::ZERO;
    let mut count = 0;
    while !working.is_finished() {
        let begun = Instant::now();
        commit(&*ws.store, access, vec![put("/small.txt", &count.to_string())]).await.unwrap();
        longest = longest.max(begun.elapsed());
        count += 1;
    }
    let whole = working.await.unwrap();
    println!("the work took {whole:?}; of {count} small writes the longest took {longest:?}");
    (whole, longest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_commit_blocks_other_writes_for_a_fraction_of_its_time() {
    let ws = TestWorkspace::on_sqlite().await;
    let changes: Vec<Change> = (0..3).map(|n| large(&format!("/large-{n}.txt"), 50 * MEGABYTE)).collect();
    let writing = ws.clone();
    let (whole, longest) = with_writes_of_others(&ws, async move { writing.all(changes).await.unwrap() }).await;
    assert!(longest < whole / 10, "a small commit waited {longest:?} of the {whole:?} that the large one took");
}

/// Fills the workspace with large contents, in slices and whole.
async fn fill(ws: &TestWorkspace) -> Vec<String> {
    let mut paths = Vec::new();
    for (count, bytes) in [(3, 50 * MEGABYTE), (75, 2 * MEGABYTE - 100)] {
        let names: Vec<String> = (0..count).map(|n| format!("/{bytes}-{n}.txt")).collect();
        ws.all(names.iter().map(|name| large(name, bytes)).collect()).await.unwrap();
        paths.extend(names);
    }
    paths
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_of_large_trash_blocks_other_writes_for_a_fraction_of_its_time() {
    let ws = TestWorkspace::on_sqlite().await;
    let gone = fill(&ws).await;
    let remove = |at: &String| Change::Remove { path: path(at), removal: Removal::Single };
    ws.all(gone.iter().map(remove).collect()).await.unwrap();
    let purging = Arc::clone(&ws.store);
    let before = Some(now().checked_add(Duration::from_secs(1)).unwrap());
    let purge = async move { purging.purge(Purge { trash_before: before, ..Purge::default() }).await.unwrap() };
    let (whole, longest) = with_writes_of_others(&ws, purge).await;
    assert!(longest < whole / 2, "a small commit waited {longest:?} of the {whole:?} that the purge took");
    assert_eq!((rows(&ws, "blob_slices"), rows(&ws, "staged_blobs")), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_of_a_large_workspace_blocks_other_writes_for_a_fraction_of_its_time() {
    let ws = TestWorkspace::on_sqlite().await;
    fill(&ws).await;
    ws.store.delete_workspace(Access { need: Role::Owner, ..ws.access() }).await.unwrap();
    let purging = Arc::clone(&ws.store);
    let purge = async move { purging.purge(Purge::default()).await.unwrap() };
    let (whole, longest) = with_writes_of_others(&ws, purge).await;
    assert!(longest < whole / 2, "a small commit waited {longest:?} of the {whole:?} that the purge took");
    assert_eq!((rows(&ws, "blob_slices"), rows(&ws, "staged_blobs")), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_very_many_versions_is_purged_in_batches() {
    const VERSIONS: usize = 12_000;
    let ws = TestWorkspace::on_sqlite().await;
    for from in (0..VERSIONS).step_by(1000) {
        let versions = (from..from + 1000).map(|n| put("/a.txt", &n.to_string())).collect();
        ws.all(versions).await.unwrap();
    }
    ws.put("/kept.txt", "7").await;
    ws.all(vec![Change::Remove { path: path("/a.txt"), removal: Removal::Single }]).await.unwrap();
    let before = Some(now().checked_add(Duration::from_secs(1)).unwrap());
    let purged = ws.store.purge(Purge { trash_before: before, ..Purge::default() }).await.unwrap();
    assert_eq!((purged.files, purged.blobs), (1, VERSIONS as u64 - 1));
    assert_eq!((rows(&ws, "versions"), rows(&ws, "blobs"), rows(&ws, "staged_blobs")), (1, 1, 0));
    assert_eq!(ws.text("/kept.txt").await, "7");
}

/// Changes that are refused by the plan, after their content was staged.
fn refused() -> [Change; 2] {
    let below = |at: &str| match large(at, 5 * MEGABYTE) {
        Change::Put(put) => Change::Put(Put { parents: Parents::Require, ..put }),
        other => other,
    };
    [below("/missing/a.txt"), below("/file.txt/b.txt")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_large_write_leaves_nothing_stored() {
    let ws = TestWorkspace::on_sqlite().await;
    ws.put("/file.txt", "in the way").await;
    let kept = match large("/kept.txt", 3 * MEGABYTE) {
        Change::Put(put) => put,
        other => panic!("{other:?}"),
    };
    ws.all(vec![Change::Put(kept.clone())]).await.unwrap();
    for change in refused() {
        // The other change refers to the content of an existing file, which must stay.
        let again = Change::Put(Put { path: path("/again.txt"), ..kept.clone() });
        ws.all(vec![again, change]).await.unwrap_err();
        assert_eq!((rows(&ws, "blobs"), rows(&ws, "staged_blobs"), rows(&ws, "blob_slices")), (2, 0, 3));
    }
    assert!(ws.text("/kept.txt").await == text_of(&Change::Put(kept)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_write_whose_caller_disconnects_leaves_nothing_stored() {
    let ws = TestWorkspace::on_sqlite().await;
    let changes = vec![large("/a.txt", 60 * MEGABYTE)];
    let writing = tokio::spawn({
        let ws = ws.clone();
        async move { ws.all(changes).await }
    });
    while rows(&ws, "blob_slices") == 0 {
        tokio::task::yield_now().await;
    }
    writing.abort();
    assert!(writing.await.unwrap_err().is_cancelled());
    ws.store.maintain().await.unwrap();
    assert_eq!((rows(&ws, "blobs"), rows(&ws, "staged_blobs"), rows(&ws, "blob_slices")), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_large_writes_do_not_count_as_usage() {
    let quotas = Quotas { bytes_per_workspace: Some(12 * MEGABYTE as u64), ..Quotas::default() };
    let ws = TestWorkspace::on_sqlite_with(quotas).await;
    ws.put("/file.txt", "in the way").await;
    for _ in 0..5 {
        for change in refused() {
            let error = ws.all(vec![change]).await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ThroughFile), "{error:?}");
            assert_eq!(rows(&ws, "blob_slices"), 0);
        }
    }
    // The whole quota is available immediately, and no more.
    ws.all(vec![large("/a.txt", 10 * MEGABYTE)]).await.unwrap();
    let error = ws.all(vec![large("/b.txt", 5 * MEGABYTE)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_content_is_read_searched_and_stored_like_any_other() {
    let ws = TestWorkspace::on_sqlite().await;
    let (first, second) = (large("/a.txt", 5 * MEGABYTE), large("/b.txt", 3 * MEGABYTE));
    ws.all(vec![first.clone(), second.clone(), put("/small.txt", "small")]).await.unwrap();
    for (at, change) in [("/a.txt", &first), ("/b.txt", &second)] {
        assert!(ws.text(at).await == text_of(change), "{at}");
    }
    assert_eq!(ws.text("/small.txt").await, "small");
    let found = ws.store.search(ws.access(), search_for("/b.txt is a large file")).await.unwrap();
    assert!(found.matches.len() == 1 || found.truncated, "{found:?}");
    ws.put("/a.txt", "replaced").await;
    // Sliced contents are not compressed.
    ws.store.maintain().await.unwrap();
    ws.undo().await.unwrap();
    assert!(ws.text("/a.txt").await == text_of(&first));
    // The same content is stored once, and refused contents leave nothing behind.
    let again = match second.clone() {
        Change::Put(put) => Change::Put(Put { path: path("/c.txt"), ..put }),
        other => other,
    };
    ws.all(vec![again]).await.unwrap();
    assert!(ws.text("/c.txt").await == text_of(&second));
    let stranger = Access { user: new_user(&*ws.store).await, ..ws.access() };
    commit(&*ws.store, stranger, vec![large("/d.txt", 5 * MEGABYTE)]).await.unwrap_err();
    assert_eq!(rows(&ws, "staged_blobs"), 0);
}
