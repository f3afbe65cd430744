//! The feed: every event once, in order, from any cursor.

use crate::calls::record_of;
use crate::test_workspace::{SEARCH_CACHE_BYTES, TestWorkspace, new_user, on_both_stores, put};
use futures_util::{StreamExt, stream};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use toolrest_core::{Access, CallRecord, ErrorKind, FeedCursor, FeedGap, FeedPage, FeedRecord, FeedSources, now};
use toolrest_store::{Postgres, PostgresOptions, Purge, Sqlite, Store};
use uuid::Uuid;

on_both_stores!(
    the_feed_goes_on_after_any_of_its_events,
    a_long_commit_is_shortened,
    large_commits_are_read_in_several_pages,
    a_purge_makes_a_gap_for_those_who_missed_something,
    a_cursor_of_the_future_goes_on_from_now,
    an_unreadable_cursor_is_refused_and_strangers_learn_nothing,
    only_the_wanted_types_are_read,
    a_subscription_is_signalled_after_commits_and_calls,
);

async fn feed(ws: &TestWorkspace, after: Option<&FeedCursor>) -> FeedPage {
    ws.store.feed(ws.access(), after, FeedSources::ALL).await.unwrap()
}

async fn position(ws: &TestWorkspace) -> FeedCursor {
    let page = feed(ws, None).await;
    assert!(page.events.is_empty() && page.gap.is_none() && !page.has_more);
    page.cursor
}

fn id(record: &FeedRecord) -> Uuid {
    match record {
        FeedRecord::Commit(commit) => commit.id.0,
        FeedRecord::Call(call) => call.id.0,
        FeedRecord::Approval(approval) => approval.id.0,
    }
}

/// Reads everything after a cursor.
async fn rest(ws: &TestWorkspace, mut after: FeedCursor) -> Vec<(FeedCursor, FeedRecord)> {
    let mut events = Vec::new();
    loop {
        let page = feed(ws, Some(&after)).await;
        assert_eq!(page.gap, None);
        events.extend(page.events.into_iter().map(|event| (event.cursor, event.record)));
        after = page.cursor;
        if !page.has_more {
            return events;
        }
    }
}

fn call(ws: &TestWorkspace) -> CallRecord {
    CallRecord { outcome: Some("not_found".into()), ..record_of(ws) }
}

async fn the_feed_goes_on_after_any_of_its_events(ws: TestWorkspace) {
    ws.put("/before", "text").await;
    let start = position(&ws).await;
    let first = ws.put("/a", "text").await;
    // By the plan, because a folder has to be created.
    ws.put("/deep/b", "text").await;
    let (one, two) = (call(&ws), call(&ws));
    ws.store.record_calls(vec![one.clone(), two.clone()]).await.unwrap();
    let events = rest(&ws, start).await;
    let names: Vec<&str> = events.iter().map(|(_, record)| record.name()).collect();
    assert_eq!(names, ["commit", "call", "commit", "call", "call", "call"]);
    let (FeedRecord::Commit(commit), FeedRecord::Call(made_it)) = (&events[0].1, &events[1].1) else {
        panic!("{events:?}")
    };
    assert_eq!((Some(commit.id), commit.call_id, commit.author), (first.id, made_it.id, ws.user));
    assert_eq!((commit.changes[0].path.as_str(), commit.more_changes), ("/a", 0));
    assert_eq!((made_it.commit_id, made_it.outcome.as_str()), (first.id, "ok"));
    assert_eq!([id(&events[4].1), id(&events[5].1)], [one.id.0, two.id.0]);
    for (n, (cursor, _)) in events.iter().enumerate() {
        let after: Vec<Uuid> = rest(&ws, cursor.clone()).await.iter().map(|(_, record)| id(record)).collect();
        let expected: Vec<Uuid> = events[n + 1..].iter().map(|(_, record)| id(record)).collect();
        assert_eq!(after, expected, "after event {n}");
    }
}

async fn a_long_commit_is_shortened(ws: TestWorkspace) {
    let start = position(&ws).await;
    ws.all((0..150).map(|n| put(&format!("/f{n}"), "text")).collect()).await.unwrap();
    let events = rest(&ws, start).await;
    let FeedRecord::Commit(commit) = &events[0].1 else { panic!("{events:?}") };
    assert_eq!((commit.changes.len(), commit.more_changes), (100, 50));
}

async fn large_commits_are_read_in_several_pages(ws: TestWorkspace) {
    let start = position(&ws).await;
    let long = "x".repeat(200);
    for n in 0..5 {
        ws.all((0..300).map(|m| put(&format!("/{n}-{m}-{long}"), "text")).collect()).await.unwrap();
    }
    let first = feed(&ws, Some(&start)).await;
    assert!(first.has_more && first.events.len() < 10, "{}", first.events.len());
    let events = rest(&ws, start).await;
    assert_eq!(events.len(), 10);
    assert_eq!(events.iter().map(|(_, record)| id(record)).collect::<BTreeSet<_>>().len(), 10);
}

async fn a_purge_makes_a_gap_for_those_who_missed_something(ws: TestWorkspace) {
    let other = ws.store.create_workspace(ws.user, "other".into(), toolrest_store::Location::Database).await.unwrap();
    let access = |workspace| Access { workspace, ..ws.access() };
    let quiet = ws.store.feed(access(other.id), None, FeedSources::ALL).await.unwrap().cursor;
    let before = position(&ws).await;
    ws.store.record_calls(vec![call(&ws)]).await.unwrap();
    let after = position(&ws).await;
    ws.put("/a", "text").await;
    let later = now().checked_add(Duration::from_secs(1)).unwrap();
    let kept = CallRecord { started_at: now().checked_add(Duration::from_secs(60)).unwrap(), ..call(&ws) };
    let purge = Purge { calls_before: Some(later), ..Purge::default() };
    ws.store.record_calls(vec![kept.clone()]).await.unwrap();
    ws.store.purge(purge).await.unwrap();
    // The commit and the younger call are left.
    let page = feed(&ws, Some(&before)).await;
    assert!(page.gap.is_some_and(|gap| gap != FeedGap::FUTURE));
    assert_eq!(page.events.iter().map(|event| event.record.name()).collect::<Vec<_>>(), ["commit", "call"]);
    assert_eq!(id(&page.events[1].record), kept.id.0);
    assert!(feed(&ws, Some(&after)).await.gap.is_some(), "the call of the commit was deleted");
    let commits = FeedSources { commits: true, calls: false, approvals: false };
    assert_eq!(ws.store.feed(ws.access(), Some(&before), commits).await.unwrap().gap, None, "no commit is missing");
    // On PostgreSQL it is told again while a transaction of anybody runs that is older than the purge.
    let (mut cursor, started) = (page.cursor, Instant::now());
    loop {
        let page = feed(&ws, Some(&cursor)).await;
        assert!(page.events.is_empty() && started.elapsed() < Duration::from_secs(60), "{page:?}");
        if page.gap.is_none() {
            break;
        }
        cursor = page.cursor;
    }
    assert_eq!(feed(&ws, Some(&position(&ws).await)).await.gap, None);
    assert_eq!(ws.store.feed(access(other.id), Some(&quiet), FeedSources::ALL).await.unwrap().gap, None);
}

async fn a_cursor_of_the_future_goes_on_from_now(ws: TestWorkspace) {
    ws.put("/a", "text").await;
    let current = position(&ws).await;
    let future = if current.0.starts_with('s') { "sffffff.ffffff" } else { "pfffffffffff0.1" };
    let page = feed(&ws, Some(&FeedCursor(future.into()))).await;
    assert_eq!((page.gap, page.events.len()), (Some(FeedGap::FUTURE), 0));
    ws.put("/b", "text").await;
    assert_eq!(rest(&ws, page.cursor).await.len(), 2);
}

async fn an_unreadable_cursor_is_refused_and_strangers_learn_nothing(ws: TestWorkspace) {
    let stranger = Access { user: new_user(&*ws.store).await, ..ws.access() };
    for text in ["", "x", "s", "p", "s1", "s-1.0", "p1", "p1.1.zz", &"p1.".repeat(40_000)] {
        let cursor = FeedCursor(text.into());
        let refused = async |access| ws.store.feed(access, Some(&cursor), FeedSources::ALL).await.unwrap_err().kind();
        assert_eq!(refused(ws.access()).await, ErrorKind::InvalidArgument, "{text:.20}");
        assert_eq!(refused(stranger).await, ErrorKind::Forbidden, "{text:.20}");
    }
    let current = position(&ws).await;
    for cursor in [None, Some(&current)] {
        let refusal = ws.store.feed(stranger, cursor, FeedSources::ALL).await.unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Forbidden);
    }
}

async fn only_the_wanted_types_are_read(ws: TestWorkspace) {
    let start = position(&ws).await;
    ws.put("/a", "text").await;
    ws.put("/b", "text").await;
    for (sources, name) in [
        (FeedSources { commits: true, calls: false, approvals: false }, "commit"),
        (FeedSources { commits: false, calls: true, approvals: false }, "call"),
    ] {
        let page = ws.store.feed(ws.access(), Some(&start), sources).await.unwrap();
        assert_eq!(page.events.iter().map(|event| event.record.name()).collect::<Vec<_>>(), [name, name]);
        assert!(rest(&ws, page.cursor).await.is_empty(), "the others are passed over");
    }
}

async fn a_subscription_is_signalled_after_commits_and_calls(ws: TestWorkspace) {
    let mut signal = ws.store.subscribe(ws.workspace);
    for turn in 0..3 {
        // The watcher signals once when it starts.
        while tokio::time::timeout(Duration::from_millis(1_500), signal.signalled()).await.is_ok() {}
        let begun = Instant::now();
        match turn {
            0 => drop(ws.put("/a", "text").await),
            1 => drop(ws.put("/deep/a", "text").await),
            _ => ws.store.record_calls(vec![call(&ws)]).await.unwrap(),
        }
        tokio::time::timeout(Duration::from_secs(5), signal.signalled()).await.expect("a signal");
        println!("turn {turn}: signalled after {:?}", begun.elapsed());
    }
}

const WRITERS: usize = 20;
const READERS: usize = 5;
/// Each makes a commit and the record of a call.
const WRITES_PER_WRITER: usize = 250;

fn write(replicas: &[TestWorkspace]) -> JoinSet<Vec<Uuid>> {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let ws = replicas[writer % replicas.len()].clone();
        writers.spawn(async move {
            let mut written = Vec::new();
            for turn in 0..WRITES_PER_WRITER {
                // Some take the plan and its locks, and one file is written by all.
                let at = match turn % 5 {
                    0 => format!("/{writer}/{turn}/file"),
                    1 => "/shared".to_owned(),
                    _ => format!("/{writer}"),
                };
                match ws.all(vec![put(&format!("{at}.txt"), &format!("{writer} {turn}"))]).await {
                    Ok(commit) => written.extend(commit.id.map(|id| id.0)),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
                }
            }
            written
        });
    }
    writers
}

/// Reads the feed until the writers have ended and nothing is left. Each page is left at a random event, as by a client
/// that disconnects, and the feed goes on from there at a random replica.
async fn read(
    replicas: Vec<TestWorkspace>,
    start: FeedCursor,
    ended: Arc<AtomicBool>,
    reader: usize,
) -> Vec<FeedRecord> {
    let (mut cursor, mut events, mut random) = (start, Vec::new(), reader + 1);
    loop {
        let all_written = ended.load(Ordering::SeqCst);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let ws = &replicas[(random >> 40) % replicas.len()];
        let page = feed(ws, Some(&cursor)).await;
        assert_eq!(page.gap, None);
        let found = page.events.len();
        let taken = if (random >> 33).is_multiple_of(3) { found / 2 } else { found };
        for event in page.events.into_iter().take(taken) {
            cursor = event.cursor;
            events.push(event.record);
        }
        if taken == found {
            cursor = page.cursor;
        }
        if found == 0 && all_written && !page.has_more {
            return events;
        }
    }
}

async fn no_event_is_lost_or_repeated(replicas: Vec<TestWorkspace>) {
    let start = position(&replicas[0]).await;
    let ended = Arc::new(AtomicBool::new(false));
    let begun = Instant::now();
    let mut readers = JoinSet::new();
    for reader in 0..READERS {
        readers.spawn(read(replicas.clone(), start.clone(), Arc::clone(&ended), reader));
    }
    let mut writers = write(&replicas);
    let mut written = BTreeSet::new();
    while let Some(ids) = writers.join_next().await {
        written.extend(ids.unwrap());
    }
    println!("{} commits in {:?}", written.len(), begun.elapsed());
    ended.store(true, Ordering::SeqCst);
    assert!(written.len() > WRITERS * WRITES_PER_WRITER * 9 / 10, "{}", written.len());
    while let Some(events) = readers.join_next().await {
        let events = events.unwrap();
        let commits: Vec<Uuid> = events.iter().filter(|event| event.name() == "commit").map(id).collect();
        let calls: BTreeSet<Uuid> = events.iter().filter(|event| event.name() == "call").map(id).collect();
        let unique: BTreeSet<Uuid> = commits.iter().copied().collect();
        assert_eq!((commits.len(), unique == written), (written.len(), true), "each commit once");
        assert_eq!((events.len() - commits.len(), calls.len()), (written.len(), written.len()), "each call once");
        // A commit comes before the call that made it.
        let mut seen = BTreeSet::new();
        for event in &events {
            match event {
                FeedRecord::Commit(commit) => drop(seen.insert(commit.id)),
                FeedRecord::Call(call) => assert!(call.commit_id.is_some_and(|id| seen.contains(&id)), "{call:?}"),
                FeedRecord::Approval(approval) => panic!("{approval:?}"),
            }
        }
    }
}

fn options() -> PostgresOptions {
    let second = Duration::from_secs(1);
    PostgresOptions {
        pool_size: 12,
        statement_timeout: 30 * second,
        wait_timeout: 30 * second,
        search_cache_bytes: SEARCH_CACHE_BYTES,
    }
}

/// The same workspace through another store on the same database.
async fn replica_of(ws: &TestWorkspace, url: Option<&str>) -> TestWorkspace {
    let store: Arc<dyn Store> = match url {
        Some(url) => Arc::new(Postgres::connect(url, options()).await.unwrap()),
        None => Arc::new(Sqlite::open(&ws.file().unwrap(), SEARCH_CACHE_BYTES).unwrap()),
    };
    ws.with_store(store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_or_repeated_on_sqlite() {
    no_event_is_lost_or_repeated(vec![TestWorkspace::on_sqlite().await]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_or_repeated_with_two_processes_on_one_sqlite_file() {
    let ws = TestWorkspace::on_sqlite().await;
    let other = replica_of(&ws, None).await;
    no_event_is_lost_or_repeated(vec![ws, other]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_or_repeated_on_two_replicas() {
    let (ws, url) = TestWorkspace::on_postgres_at().await;
    let other = replica_of(&ws, Some(&url)).await;
    no_event_is_lost_or_repeated(vec![ws, other]).await;
}

/// Measures the time from a commit on one store to the signal on another.
async fn signals_cross(ws: TestWorkspace, other: TestWorkspace, p50: Duration) {
    let mut signal = other.store.subscribe(ws.workspace);
    while tokio::time::timeout(Duration::from_millis(1_500), signal.signalled()).await.is_ok() {}
    let mut times = Vec::new();
    for turn in 0..21 {
        ws.put("/a", &format!("{turn}")).await;
        let begun = Instant::now();
        tokio::time::timeout(Duration::from_secs(5), signal.signalled()).await.expect("a signal");
        times.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(150)).await;
        let _ = tokio::time::timeout(Duration::ZERO, signal.signalled()).await;
    }
    times.sort();
    println!("p50 {:?}, longest {:?}", times[10], times[20]);
    assert!(times[10] <= p50, "{times:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_replica_is_signalled() {
    let (ws, url) = TestWorkspace::on_postgres_at().await;
    let other = replica_of(&ws, Some(&url)).await;
    signals_cross(ws, other, Duration::from_millis(200)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_on_the_same_file_is_signalled() {
    let ws = TestWorkspace::on_sqlite().await;
    let other = replica_of(&ws, None).await;
    signals_cross(ws, other, Duration::from_millis(400)).await;
}

/// Notifications are sent outside the writing transactions: many commits share one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_are_coalesced() {
    let (ws, url) = TestWorkspace::on_postgres_at().await;
    let (client, mut connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let tokio_postgres::AsyncMessage::Notification(notification) = message {
                let _ = sender.send(notification.payload().to_owned());
            }
        }
    });
    client.batch_execute("LISTEN toolrest_changes").await.unwrap();
    let begun = Instant::now();
    let mut writers = write(std::slice::from_ref(&ws));
    while writers.join_next().await.is_some() {}
    let took = begun.elapsed();
    let mut count = 0_u128;
    while let Ok(Some(payload)) = tokio::time::timeout(Duration::from_millis(300), received.recv()).await {
        assert_eq!(payload, ws.workspace.0.simple().to_string());
        count += 1;
    }
    println!("{count} notifications in {took:?}");
    assert!(count >= 1 && count <= took.as_millis() / 10 + 3, "{count} in {took:?}");
}
