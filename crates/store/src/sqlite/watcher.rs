//! Notices changes that other processes make to the same database file.

use super::row::find;
use super::{connect, to_store_error};
use crate::error::Result;
use crate::wakeups::Wakeups;
use rusqlite::{Connection, OpenFlags};
use std::{collections::HashMap, path::PathBuf, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

/// Interval at which the file is checked while anybody waits.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The newest commit, call and event of an approval of a workspace.
type Newest = (Option<i64>, Option<i64>, Option<i64>);

/// Wakes subscribers of workspaces that other processes changed. Ends when nobody is subscribed.
pub(super) async fn watch(path: PathBuf, wakeups: Wakeups) {
    let mut watcher = None;
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if wakeups.stop_if_unused() {
            return;
        }
        if let Err(error) = check(&mut watcher, &path, &wakeups) {
            tracing::debug!(%error, "the database file could not be checked for changes; will retry");
            watcher = None;
        }
    }
}

fn check(watcher: &mut Option<Watcher>, path: &std::path::Path, wakeups: &Wakeups) -> Result<()> {
    let watcher = match watcher {
        Some(watcher) => watcher,
        None => watcher.insert(Watcher::open(path)?),
    };
    watcher.check(wakeups)
}

struct Watcher {
    connection: Connection,
    /// The last known `PRAGMA data_version`, which changes with each commit of another connection.
    version: Option<i64>,
    newest: HashMap<Uuid, Newest>,
}

impl Watcher {
    fn open(path: &std::path::Path) -> Result<Self> {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // It runs on the calling thread, so it fails fast instead of waiting, and uses a small cache.
        connection.execute_batch("PRAGMA busy_timeout = 0; PRAGMA cache_size = -512;").map_err(to_store_error)?;
        Ok(Self { connection, version: None, newest: HashMap::new() })
    }

    fn check(&mut self, wakeups: &Wakeups) -> Result<()> {
        let version = find(&self.connection, "PRAGMA data_version", [], |row| row.get(0))?;
        if version == self.version {
            return Ok(());
        }
        // The writer of this process is another connection too. So the workspaces that have something new are found,
        // instead of waking all.
        let mut newest = HashMap::new();
        for ws in wakeups.subscribed() {
            let sql = "SELECT (SELECT max(pos) FROM commits WHERE ws = ?1), (SELECT max(pos) FROM calls WHERE ws = ?1),
                           (SELECT max(pos) FROM approval_events WHERE ws = ?1)";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let found: Option<Newest> = find(&self.connection, sql, [ws], read)?;
            let found = found.unwrap_or_default();
            if self.newest.get(&ws) != Some(&found) {
                wakeups.wake(ws);
            }
            newest.insert(ws, found);
        }
        (self.version, self.newest) = (version, newest);
        Ok(())
    }
}
