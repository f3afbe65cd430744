//! What only the embedded database does: it keeps current contents raw and compresses the others.

use crate::room::Room;
use rusqlite::Connection;

#[tokio::test]
async fn sqlite_compresses_contents_once_they_are_history() {
    let room = Room::on_sqlite().await;
    let text = |n: usize| format!("version {n}: {}", "the same words over and over ".repeat(100));
    for n in 0..3 {
        room.put("/a", &text(n)).await;
    }
    room.store.maintain().await.unwrap();
    let db = Connection::open(room.file().unwrap()).unwrap();
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
