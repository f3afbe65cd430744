use super::*;
use crate::blob::Compression;
use toolrest_core::Content;

fn prepared(size: usize) -> Prepared {
    let bytes = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
    Prepared::of(&Content::Bytes(bytes), Compression::Off).unwrap()
}

#[test]
fn no_batch_is_much_larger_than_a_slice_and_nothing_is_left_out() {
    let sizes = [1, SLICE_BYTES / 2, SLICED_FROM_BYTES - 1, SLICED_FROM_BYTES, 5 * SLICE_BYTES + 1, 0, 3, 4];
    let contents: Vec<Prepared> = sizes.into_iter().map(prepared).collect();
    let batches = batches(&contents.iter().collect::<Vec<_>>());
    let mut stored = vec![0; sizes.len()];
    for batch in &batches {
        let mut bytes = 0;
        for part in batch {
            let size = sizes[part.content];
            let of_it = part.slice.map_or(size, |n| size.min((n + 1) * SLICE_BYTES) - n * SLICE_BYTES);
            stored[part.content] += of_it;
            bytes += of_it;
        }
        assert!(bytes < SLICE_BYTES + SLICED_FROM_BYTES, "{bytes} bytes in one batch");
    }
    assert_eq!(stored, sizes);
}

#[tokio::test]
async fn a_sliced_content_reads_as_one_and_is_removed_without_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("database"), 0).unwrap();
    let ws = WorkspaceId::new();
    let contents = Arc::new(vec![prepared(5 * SLICE_BYTES + 7), prepared(100)]);
    for _ in 0..2 {
        // The second call finds everything stored.
        store.stage(ws, None, &contents, |contents| contents.iter().collect()).await.unwrap();
    }
    let count = |table: &'static str| {
        let sql = format!("SELECT count(*) FROM {table}");
        store.read(move |db| Ok(find(db, &sql, [], |row| row.get::<_, i64>(0))?.unwrap()))
    };
    assert_eq!((count("blobs").await.unwrap(), count("blob_slices").await.unwrap()), (2, 6));
    let (key, expected) = (contents[0].key, contents[0].data.clone());
    let found = store.read(move |db| bytes(db, ws.0, key)).await.unwrap().unwrap();
    assert!(found == expected);
    // A pending commit protects the contents; they are removed once it is abandoned.
    let first = store.staging.begin(ws, &contents.iter().collect::<Vec<_>>(), None);
    let second = store.staging.begin(ws, &contents.iter().collect::<Vec<_>>(), None);
    drop(first);
    store.remove_unused_contents().await.unwrap();
    assert_eq!((count("blobs").await.unwrap(), count("blob_slices").await.unwrap()), (2, 6));
    drop(second);
    store.remove_unused_contents().await.unwrap();
    for table in ["blobs", "blob_slices", "staged_blobs"] {
        assert_eq!(count(table).await.unwrap(), 0, "{table}");
    }
}
