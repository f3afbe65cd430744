use super::*;
use crate::blob::Compression;
use toolrest_core::Content;

fn prepared(letter: u8, size: usize) -> Prepared {
    Prepared::of(&Content::Bytes(vec![letter; size]), Compression::Off).unwrap()
}

async fn count(store: &Sqlite, table: &'static str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    store.read(move |db| Ok(find(db, &sql, [], |row| row.get(0))?.unwrap())).await.unwrap()
}

#[tokio::test]
async fn a_large_content_is_removed_in_batches_and_can_be_stored_again_in_between() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("database"), 0).unwrap();
    let ws = WorkspaceId::new();
    let contents = Arc::new(vec![prepared(b'x', 20 << 20)]);
    let stage = || store.stage(ws, None, &contents, |contents| contents.iter().collect());
    stage().await.unwrap();
    assert_eq!(count(&store, "blob_slices").await, 20);
    let keys = [(ws.0, contents[0].key)];
    let turn = || {
        let staging = Arc::clone(&store.staging);
        store.write(move |db| remove_some(db, &staging, &keys))
    };
    assert_eq!(turn().await.unwrap(), 0, "the content needs more than one turn");
    assert_eq!((count(&store, "blobs").await, count(&store, "blob_slices").await), (0, 12));
    // Another commit needs the content: nothing more is removed, and the missing slices are stored again.
    let staged = store.staging.begin(ws, &[&contents[0]], None);
    assert_eq!(turn().await.unwrap(), 1);
    stage().await.unwrap();
    assert_eq!((count(&store, "blobs").await, count(&store, "blob_slices").await), (1, 20));
    let found = store.read(move |db| slices::bytes(db, ws.0, keys[0].1)).await.unwrap().unwrap();
    assert!(found == contents[0].data);
    drop(staged);
    store.remove_unused_contents().await.unwrap();
    for table in ["blobs", "blob_slices", "staged_blobs"] {
        assert_eq!(count(&store, table).await, 0, "{table}");
    }
}

#[tokio::test]
async fn a_possibly_unused_content_stays_if_a_commit_needs_it_during_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("database"), 0).unwrap();
    let ws = WorkspaceId::new().0;
    let (needed, unused) = (prepared(b'n', 10), prepared(b'u', 10));
    let keys = [(needed.key.0, false), (unused.key.0, false)];
    let settled = store.write(move |db| {
        for content in [&needed, &unused] {
            slices::insert(db, ws, content)?;
            mark_possibly_unused(db, ws, &content.key.0)?;
        }
        assert!(!slices::unstage(db, ws, &needed)?, "it was counted all the time");
        resolve_possibly_unused(db, ws, &keys)
    });
    assert_eq!(settled.await.unwrap(), 1);
    store.remove_unused_contents().await.unwrap();
    let left = "SELECT key FROM blobs";
    let left: Vec<[u8; 32]> = store.read(move |db| collect(db, left, [], |row| row.get(0))).await.unwrap();
    assert_eq!(left, [keys[0].0]);
}

#[test]
fn failed_removals_are_logged_at_intervals() {
    let staging = Staging::default();
    assert!(staging.warns_now() && !staging.warns_now());
    staging.lock().warned_at = Instant::now().checked_sub(WARNING_INTERVAL);
    assert!(staging.warns_now() && !staging.warns_now());
}
