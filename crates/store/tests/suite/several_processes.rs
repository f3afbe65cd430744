//! Several processes on one SQLite file.

use crate::test_workspace::{TestWorkspace, put};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_writes_all_the_time_does_not_keep_another_from_writing() {
    let busy = TestWorkspace::on_sqlite().await;
    let other = busy.in_another_process();
    let (is_done, written) = (Arc::new(AtomicBool::default()), Arc::new(AtomicUsize::default()));
    let mut writers = JoinSet::new();
    for writer in 0..16 {
        let (busy, is_done, written) = (busy.clone(), Arc::clone(&is_done), Arc::clone(&written));
        writers.spawn(async move {
            while !is_done.load(Ordering::Relaxed) {
                let n = written.fetch_add(1, Ordering::Relaxed);
                busy.put(&format!("/busy/{writer}-{n}"), "text").await;
            }
        });
    }
    while written.load(Ordering::Relaxed) < 100 {
        tokio::task::yield_now().await;
    }
    let mut longest = Duration::ZERO;
    for n in 0..50 {
        let started = Instant::now();
        other.put(&format!("/other/{n}"), "text").await;
        longest = longest.max(started.elapsed());
    }
    is_done.store(true, Ordering::Relaxed);
    writers.join_all().await;
    println!(
        "the longest of 50 writes took {longest:?}, beside {} of the other process",
        written.load(Ordering::Relaxed)
    );
    assert!(longest < Duration::from_secs(2), "a write took {longest:?}");
    assert_eq!(busy.paths().await.len(), written.load(Ordering::Relaxed) + 50 + 2, "nothing is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contents_that_one_process_stages_are_not_removed_by_another() {
    let writing = TestWorkspace::on_sqlite().await;
    let other = writing.in_another_process();
    let file = writing.file().unwrap();
    let slices = move || {
        let db = rusqlite::Connection::open(&file).unwrap();
        db.query_row("SELECT count(*) FROM blob_slices", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let text = "a line of a large file\n".repeat(3_000_000);
    let commit = {
        let (writing, text) = (writing.clone(), text.clone());
        tokio::spawn(async move { writing.all(vec![put("/large.txt", &text)]).await })
    };
    let mut staged = 0;
    while !commit.is_finished() {
        other.store.maintain().await.unwrap();
        let found = slices();
        assert!(found >= staged, "{found} of {staged} slices are left");
        staged = found;
    }
    commit.await.unwrap().unwrap();
    assert!(other.text("/large.txt").await == text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_ends_does_not_wait_for_readers_of_another() {
    let staying = TestWorkspace::on_sqlite().await;
    staying.put("/a.txt", "before").await;
    let reader = rusqlite::Connection::open(staying.file().unwrap()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM files").unwrap();
    let ending = staying.in_another_process();
    ending.put("/b.txt", "written by the process that ends").await;
    let started = Instant::now();
    let ended = tokio::task::spawn_blocking(move || drop(ending));
    staying.put("/c.txt", "written meanwhile").await;
    ended.await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "it took {:?}", started.elapsed());
    assert_eq!(staying.text("/b.txt").await, "written by the process that ends");
}
