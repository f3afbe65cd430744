use super::*;
use rusqlite::ffi;
use toolrest_core::ErrorKind;

#[test]
fn failed_writes_and_unavailable_databases_are_different_errors() {
    for (code, kind) in [
        (ffi::SQLITE_FULL, ErrorKind::StorageFull),
        (ffi::SQLITE_IOERR_SHMSIZE, ErrorKind::StorageFull),
        (ffi::SQLITE_IOERR_WRITE, ErrorKind::WriteFailed),
        (ffi::SQLITE_IOERR_FSYNC, ErrorKind::WriteFailed),
        (ffi::SQLITE_IOERR_READ, ErrorKind::Unavailable),
        (ffi::SQLITE_BUSY, ErrorKind::Unavailable),
        (ffi::SQLITE_CORRUPT, ErrorKind::Internal),
    ] {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        assert_eq!(to_store_error(error).kind(), kind, "{code}");
    }
}

#[tokio::test]
async fn inline_reads_return_the_last_write_with_and_without_free_connections() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("database"), 0).unwrap();
    let count = |db: &Connection| {
        db.query_row("SELECT count(*) FROM probe", [], |row| row.get::<_, i64>(0)).map_err(to_store_error)
    };
    let connections = store.inline_connections.lock().unwrap().len();
    assert!(store.read_inline(count).await.is_err(), "there is no such table yet");
    store.write(|db| db.execute_batch("CREATE TABLE probe (x)").map_err(to_store_error)).await.unwrap();
    for written in 1..=20 {
        store.write(|db| db.execute_batch("INSERT INTO probe VALUES (1)").map_err(to_store_error)).await.unwrap();
        assert_eq!(store.read_inline(count).await.unwrap(), written);
    }
    assert_eq!(store.inline_connections.lock().unwrap().len(), connections, "a failure costs no connection");
    store.inline_connections.lock().unwrap().clear();
    assert_eq!(store.read_inline(count).await.unwrap(), 20, "a reader looks where nobody else can");
}

#[tokio::test]
async fn closing_a_store_empties_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("database"), 0).unwrap();
    store.write(|db| db.execute_batch("CREATE TABLE probe (x)").map_err(to_store_error)).await.unwrap();
    store
        .read_inline(|db| db.query_row("SELECT count(*) FROM probe", [], |_| Ok(())).map_err(to_store_error))
        .await
        .unwrap();
    drop(store);
    let size = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(size("database") > 0);
    assert_eq!(size("database-wal"), 0);
    let copied = folder.path().join("copy");
    std::fs::copy(folder.path().join("database"), &copied).unwrap();
    let count = |db: &Connection| db.query_row("SELECT count(*) FROM probe", [], |row| row.get::<_, i64>(0));
    assert_eq!(count(&Connection::open(copied).unwrap()).unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callback_of_a_write_runs_though_its_caller_disconnects() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Sqlite::open(&folder.path().join("database"), 0).unwrap());
    let (begun, wait_begun) = std::sync::mpsc::channel();
    let (go_on, wait_go_on) = std::sync::mpsc::channel::<()>();
    let (noted, wait_noted) = std::sync::mpsc::channel();
    let caller = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let change = move |_: &Connection| {
                begun.send(()).unwrap();
                wait_go_on.recv().unwrap();
                Ok(7)
            };
            let note = move |written: &Result<i32>| noted.send(written.clone()).unwrap();
            store.write_then(change, note).await
        }
    });
    tokio::task::spawn_blocking(move || wait_begun.recv().unwrap()).await.unwrap();
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    go_on.send(()).unwrap();
    let written = tokio::task::spawn_blocking(move || wait_noted.recv().unwrap()).await.unwrap();
    assert_eq!(written.unwrap(), 7);
}
