//! SQLite only: current contents are stored raw, older ones compressed.

use crate::test_workspace::TestWorkspace;
use rusqlite::Connection;

#[tokio::test]
async fn sqlite_compresses_contents_that_are_not_current() {
    let ws = TestWorkspace::on_sqlite().await;
    let text = |n: usize| format!("version {n}: {}", "the same words over and over ".repeat(100));
    for n in 0..3 {
        ws.put("/a", &text(n)).await;
    }
    ws.store.maintain().await.unwrap();
    let db = Connection::open(ws.file().unwrap()).unwrap();
    let mut query = db.prepare("SELECT encoding, size, length(data) FROM blobs ORDER BY rowid").unwrap();
    let blobs: Vec<(i64, i64, i64)> =
        query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap().map(Result::unwrap).collect();
    assert_eq!(blobs.iter().map(|(encoding, ..)| *encoding).collect::<Vec<_>>(), [1, 1, 0]);
    for (encoding, size, stored) in blobs {
        assert_eq!(usize::try_from(size).unwrap(), text(0).len());
        assert_eq!(stored < size / 10, encoding == 1);
    }
    let waiting: i64 = db.query_row("SELECT count(*) FROM superseded", [], |row| row.get(0)).unwrap();
    assert_eq!(waiting, 0);
}
