//! Searches during concurrent changes: each answer is a snapshot that is not older than the call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolrest_testkit::{Backend, Postgres, Server, Workspace};

use crate::on::{On, list_at, options_on, text_at, workspace_at};

on_both_databases![searches_see_each_commit_completely_or_not_at_all];

const WRITERS: usize = 4;
const IN_FOLDER: usize = 15;
const STORM: Duration = Duration::from_secs(8);

async fn searches_see_each_commit_completely_or_not_at_all(on: On) {
    let server = on.options().start();
    let workspace = workspace_at(&server).await;
    storm(&[workspace.clone(), workspace]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_through_one_replica_see_what_another_wrote() {
    let backend = Backend::Postgres(Postgres::shared().create_database());
    let servers: Vec<Server> = (0..2).map(|_| options_on(backend.clone()).start()).collect();
    let workspace = workspace_at(&servers[0]).await;
    storm(&[workspace.through(&servers[0].client()), workspace.through(&servers[1].client())]).await;
}

/// What was acknowledged, so that a search knows what it must see at least.
#[derive(Default)]
struct Acknowledged {
    counts: [AtomicU64; WRITERS],
    /// The files made and the files removed, numbered on; each removal begins after it was counted here.
    made: AtomicU64,
    removing: AtomicU64,
    is_over: AtomicBool,
}

async fn storm(sides: &[Workspace; 2]) {
    for at in 0..IN_FOLDER {
        sides[0].write(&format!("/box/a/{at}.txt"), "in the moved folder").await;
    }
    let acknowledged = Arc::new(Acknowledged::default());
    let mut workers = JoinSet::new();
    for writer in 0..WRITERS {
        workers.spawn(count(sides[writer % 2].clone(), writer, Arc::clone(&acknowledged)));
    }
    workers.spawn(carry(sides[0].clone(), Arc::clone(&acknowledged)));
    workers.spawn(make_and_remove(sides[1].clone(), Arc::clone(&acknowledged)));
    let end = Instant::now() + STORM;
    let mut searchers = JoinSet::new();
    for side in sides {
        searchers.spawn(search_and_check(side.clone(), Arc::clone(&acknowledged), end));
    }
    let answers: u64 = searchers.join_all().await.iter().sum();
    acknowledged.is_over.store(true, Ordering::Relaxed);
    workers.join_all().await;
    let counted: u64 = acknowledged.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    assert!(answers > 20 && counted > 20, "{answers} answers and {counted} writes are too few to tell");
}

/// Writes ever larger numbers into one file.
async fn count(workspace: Workspace, writer: usize, acknowledged: Arc<Acknowledged>) {
    let mut number = 0;
    while !acknowledged.is_over.load(Ordering::Relaxed) {
        number += 1;
        workspace.write(&format!("/counts/{writer}.txt"), &format!("writer {writer} counts {number}")).await;
        acknowledged.counts[writer].store(number, Ordering::SeqCst);
    }
}

/// Moves a folder to and fro.
async fn carry(workspace: Workspace, acknowledged: Arc<Acknowledged>) {
    let ways = [("/box/a", "/box/b"), ("/box/b", "/box/a")];
    for (source, destination) in ways.iter().cycle() {
        if acknowledged.is_over.load(Ordering::Relaxed) {
            return;
        }
        workspace.ok("mv", json!({"source": source, "destination": destination})).await;
    }
}

/// Makes files and removes them again, the oldest first.
async fn make_and_remove(workspace: Workspace, acknowledged: Arc<Acknowledged>) {
    const ALIVE: u64 = 5;
    let mut number = 0;
    while !acknowledged.is_over.load(Ordering::Relaxed) {
        number += 1;
        workspace.write(&format!("/alive/{number}.txt"), &format!("alive {number}")).await;
        acknowledged.made.store(number, Ordering::SeqCst);
        if number > ALIVE {
            acknowledged.removing.store(number - ALIVE, Ordering::SeqCst);
            workspace.ok("rm", json!({"path": format!("/alive/{}.txt", number - ALIVE)})).await;
        }
    }
}

async fn search_and_check(workspace: Workspace, acknowledged: Arc<Acknowledged>, end: Instant) -> u64 {
    let mut answers = 0;
    let mut seen = [0; WRITERS];
    while Instant::now() < end {
        let before: Vec<u64> = acknowledged.counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        let made = acknowledged.made.load(Ordering::SeqCst);
        let result = workspace.ok("grep", json!({"pattern": "counts [0-9]+$|^alive|^in the moved folder$"})).await;
        let removing = acknowledged.removing.load(Ordering::SeqCst);
        answers += 1;
        check_counts(&result, &before, &mut seen);
        check_folder(&result);
        check_alive(&result, made, removing);
        let paths: Vec<&str> = list_at(&result, "/matches").iter().map(|one| text_at(one, "/path")).collect();
        assert!(paths.is_sorted_by(|a, b| a < b), "each file once, in order: {paths:?}");
    }
    answers
}

/// Each counter stands at least where it was acknowledged, and never goes back.
fn check_counts(result: &Value, before: &[u64], seen: &mut [u64; WRITERS]) {
    let mut counts = BTreeMap::new();
    for one in list_at(result, "/matches") {
        let words: Vec<&str> = text_at(one, "/line_text").split(' ').collect();
        if let ["writer", writer, "counts", number] = words[..] {
            counts.insert(writer.parse::<usize>().unwrap(), number.parse::<u64>().unwrap());
        }
    }
    for writer in 0..WRITERS {
        let count = counts.get(&writer).copied().unwrap_or(0);
        assert!(count >= before[writer], "writer {writer}: {count} found, {} was acknowledged", before[writer]);
        assert!(count >= seen[writer], "writer {writer}: {count} found after {}", seen[writer]);
        seen[writer] = count;
    }
}

/// The folder that is moved is whole, and in one place.
fn check_folder(result: &Value) {
    let inside: Vec<&str> = list_at(result, "/matches")
        .iter()
        .filter(|one| one["line_text"] == "in the moved folder")
        .map(|one| text_at(one, "/path"))
        .collect();
    assert_eq!(inside.len(), IN_FOLDER, "{inside:?}");
    let folder = &inside[0][..7];
    assert!(inside.iter().all(|path| path.starts_with(folder)), "{inside:?}");
}

/// What was made is there, unless its removal had begun.
fn check_alive(result: &Value, made: u64, removing: u64) {
    let alive: Vec<u64> = list_at(result, "/matches")
        .iter()
        .filter_map(|one| text_at(one, "/line_text").strip_prefix("alive ")?.parse().ok())
        .collect();
    for number in removing + 1..=made {
        assert!(alive.contains(&number), "{number} of {made} made is missing, up to {removing} may be: {alive:?}");
    }
}
