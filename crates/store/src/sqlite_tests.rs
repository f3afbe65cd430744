use super::*;
use rusqlite::ffi;
use toolrest_core::ErrorKind;

#[test]
fn a_write_that_the_disk_refuses_is_told_from_a_database_that_is_away() {
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
        assert_eq!(fault(error).kind(), kind, "{code}");
    }
}

#[tokio::test]
async fn a_glance_sees_what_was_written_last_whoever_has_to_look() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("database"), 0).unwrap();
    let count =
        |db: &Connection| db.query_row("SELECT count(*) FROM probe", [], |row| row.get::<_, i64>(0)).map_err(fault);
    let connections = store.glances.lock().unwrap().len();
    assert!(store.read_inline(count).await.is_err(), "there is no such table yet");
    store.write(|db| db.execute_batch("CREATE TABLE probe (x)").map_err(fault)).await.unwrap();
    for written in 1..=20 {
        store.write(|db| db.execute_batch("INSERT INTO probe VALUES (1)").map_err(fault)).await.unwrap();
        assert_eq!(store.read_inline(count).await.unwrap(), written);
    }
    assert_eq!(store.glances.lock().unwrap().len(), connections, "a failure costs no connection");
    store.glances.lock().unwrap().clear();
    assert_eq!(store.read_inline(count).await.unwrap(), 20, "a reader looks where nobody else can");
}

#[tokio::test]
async fn a_store_that_is_closed_leaves_nothing_in_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("database"), 0).unwrap();
    store.write(|db| db.execute_batch("CREATE TABLE probe (x)").map_err(fault)).await.unwrap();
    store.read_inline(|db| db.query_row("SELECT count(*) FROM probe", [], |_| Ok(())).map_err(fault)).await.unwrap();
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
async fn a_write_is_noted_though_its_caller_goes_away_while_it_is_made() {
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
