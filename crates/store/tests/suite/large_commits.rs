//! Commits of many megabytes, beside the small ones of others.

use crate::room::{Room, commit, new_user, path, put, search_for};
use std::time::{Duration, Instant};
use toolrest_core::{Access, Change, Content, FileType, Parents, Put, Role};
use toolrest_store::Place;

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

fn text_of(change: &Change) -> &str {
    match change {
        Change::Put(Put { content: Content::Text(text), .. }) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_commit_holds_the_writes_of_others_up_for_a_fraction_of_its_time() {
    let room = Room::on_sqlite().await;
    let other = new_user(&*room.store).await;
    let elsewhere = room.store.create_workspace(other, "elsewhere".into(), Place::Database).await.unwrap().id;
    let access = Access { workspace: elsewhere, user: other, need: Role::Editor };
    let writing = tokio::spawn({
        let room = room.clone();
        let changes: Vec<Change> = (0..3).map(|n| large(&format!("/large-{n}.txt"), 50 * MEGABYTE)).collect();
        async move {
            let begun = Instant::now();
            room.all(changes).await.unwrap();
            begun.elapsed()
        }
    });
    let mut longest = Duration::ZERO;
    let mut count = 0;
    while !writing.is_finished() {
        let begun = Instant::now();
        commit(&*room.store, access, vec![put("/small.txt", &count.to_string())]).await.unwrap();
        longest = longest.max(begun.elapsed());
        count += 1;
    }
    let whole = writing.await.unwrap();
    println!("the large commit took {whole:?}; of {count} small ones the longest took {longest:?}");
    assert!(longest < whole / 10, "a small commit waited {longest:?} of the {whole:?} that the large one took");
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
    room.store.tend().await.unwrap();
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
    let staged = rusqlite::Connection::open(room.file().unwrap()).unwrap();
    let staged: i64 = staged.query_row("SELECT count(*) FROM staged_blobs", [], |row| row.get(0)).unwrap();
    assert_eq!(staged, 0);
}
