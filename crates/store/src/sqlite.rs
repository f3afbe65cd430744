//! SQLite: one writer thread with group commit, and several readers.

mod account_admin;
mod accounts;
mod approvals;
mod backup;
mod calls;
mod chats;
mod commits;
mod feed;
mod file_list;
mod files;
mod folders;
mod history;
mod keys;
mod memories;
mod renewal;
mod row;
mod rules;
mod search;
mod secrets;
mod sessions;
mod slices;
mod staging;
mod storage;
mod upkeep;
mod watcher;
mod workspace_metrics;
mod workspaces;
mod write_turn;

pub use backup::{check_database, copy_database};

use crate::disk_fault::is_full;
use crate::error::{Result, StoreError};
use crate::jobs;
use crate::quota::Usage;
use crate::search::{Searchable, Searcher};
use crate::wakeups::Wakeups;
use crossbeam_channel::{Receiver, Sender};
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use search::{SearchConnections, SqliteTexts};
use staging::Staging;
use std::{
    fs::OpenOptions,
    io::ErrorKind,
    os::unix::fs::OpenOptionsExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::sync::oneshot;
use write_turn::WriteTurns;

/// Schema changes, oldest first. Never edit one that was released; add another.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/sqlite/0001_ground_floor.sql"),
    include_str!("../migrations/sqlite/0002_search.sql"),
    include_str!("../migrations/sqlite/0003_folders.sql"),
    include_str!("../migrations/sqlite/0004_workspace_settings.sql"),
    include_str!("../migrations/sqlite/0005_account_control.sql"),
    include_str!("../migrations/sqlite/0006_storage_used.sql"),
    include_str!("../migrations/sqlite/0007_blob_slices.sql"),
    include_str!("../migrations/sqlite/0008_removal_in_turns.sql"),
    include_str!("../migrations/sqlite/0009_folders_uncounted.sql"),
    include_str!("../migrations/sqlite/0010_renewal.sql"),
    include_str!("../migrations/sqlite/0011_keys.sql"),
    include_str!("../migrations/sqlite/0012_records.sql"),
    include_str!("../migrations/sqlite/0013_feed.sql"),
    include_str!("../migrations/sqlite/0014_approvals.sql"),
    include_str!("../migrations/sqlite/0015_memories.sql"),
    include_str!("../migrations/sqlite/0016_secrets.sql"),
    include_str!("../migrations/sqlite/0017_sessions.sql"),
];

/// Maximum number of writes that share one transaction, and so one fsync.
const GROUP: usize = 256;

/// A store in one file.
///
/// Writes are queued for one writer, which applies all queued writes in one transaction and answers them when it is on
/// disk. Reads run in parallel, each on a snapshot.
pub struct Sqlite {
    writes: Option<Sender<WriteJob>>,
    reads: Option<Sender<ReadJob>>,
    /// Connections for reads on the calling thread.
    inline_connections: Mutex<Vec<Connection>>,
    writer: Option<JoinHandle<()>>,
    readers: Vec<JoinHandle<()>>,
    searcher: Searcher,
    texts: Arc<SqliteTexts>,
    usage: Arc<Usage>,
    staging: Arc<Staging>,
    path: PathBuf,
    wakeups: Wakeups,
}

type ReadJob = Box<dyn FnOnce(&Connection) + Send>;
/// Does its work inside the transaction; returns none if its caller disconnected.
type WriteJob = Box<dyn FnOnce(Result<&Connection>) -> Option<Written> + Send>;

/// A change that was applied, or failed, in a transaction that is not committed yet.
struct Written {
    /// Why the change failed, if it did.
    failure: Option<StoreError>,
    /// Called after the transaction was committed, or has failed.
    answer: Box<dyn FnOnce(Result<()>) + Send>,
}

impl Sqlite {
    /// Opens or creates the database file and migrates its schema.
    ///
    /// The search cache takes at most `search_cache_bytes`.
    pub fn open(path: &Path, search_cache_bytes: usize) -> Result<Self> {
        // Created before SQLite does it, with a private mode, which the log and its index inherit. An existing file is
        // not opened: closing it would release the locks that other connections of this process hold on it.
        match OpenOptions::new().create_new(true).write(true).mode(0o600).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => drop(created.map_err(|error| cannot_open(path, &error))?),
        }
        let writer = connect(path, OpenFlags::default())?;
        // The empty log and its index stay when the file is closed, because they could not be created on a full disk.
        let kept = writer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        kept.map_err(|error| cannot_open(path, &error))?;
        migrate(&writer)?;
        let (write, queued_writes) = crossbeam_channel::unbounded();
        let (read, queued_reads) = crossbeam_channel::unbounded();
        let turns = WriteTurns::open(path);
        let writer = Some(spawn("sqlite-writer", move || write_in_groups(&writer, turns.as_ref(), &queued_writes))?);
        let count = thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let (mut inline_connections, mut readers) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            let read_inline = connect(path, read_only)?;
            // Inline readers fail fast instead of waiting, and use a small cache.
            let pragmas = "PRAGMA busy_timeout = 0; PRAGMA cache_size = -512;";
            read_inline.execute_batch(pragmas).map_err(|error| cannot_open(path, &error))?;
            inline_connections.push(read_inline);
            let reader = connect(path, read_only)?;
            let queue: Receiver<ReadJob> = queued_reads.clone();
            readers.push(spawn("sqlite-reader", move || queue.iter().for_each(|job| run_read(&reader, job)))?);
        }
        let texts = Arc::new(SqliteTexts(Arc::new(SearchConnections::new(path.to_owned()))));
        let searcher = Searcher::new(search_cache_bytes);
        Ok(Self {
            writes: Some(write),
            reads: Some(read),
            inline_connections: Mutex::new(inline_connections),
            writer,
            readers,
            searcher,
            texts,
            usage: Arc::default(),
            staging: Arc::default(),
            path: path.to_owned(),
            wakeups: Wakeups::default(),
        })
    }

    /// Returns what searches read from.
    pub(crate) fn searchable(&self) -> Arc<dyn Searchable> {
        Arc::<SqliteTexts>::clone(&self.texts)
    }

    /// Runs a query on a reader thread, in one snapshot.
    async fn read<T, F>(&self, query: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: ReadJob = Box::new(move |connection| {
            // The caller may have disconnected while the job was queued.
            if !reply.is_closed() {
                jobs::answer(reply, in_snapshot(connection, query));
            }
        });
        send(self.reads.as_ref(), job)?;
        answer.await.map_err(|_| StoreError::internal("a reader thread gave no answer"))?
    }

    /// Runs a query for a few small rows on the calling thread, because waking a reader thread takes longer. Uses a
    /// reader thread if it would have to wait.
    async fn read_inline<T, F>(&self, query: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T> + Send + 'static,
    {
        match self.try_read_inline(&query) {
            Some(Ok(found)) => Ok(found),
            Some(Err(StoreError::Unavailable(_))) | None => self.read(query).await,
            Some(Err(error)) => Err(error),
        }
    }

    fn try_read_inline<T>(&self, query: impl Fn(&Connection) -> Result<T>) -> Option<Result<T>> {
        let connection = self.inline_connections.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        let found = in_snapshot(&connection, query);
        if connection.is_autocommit() {
            self.inline_connections.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        Some(found)
    }

    /// Runs a change on the writer; returns when it is durable. An error rolls the change back.
    async fn write<T, F>(&self, change: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.write_then(change, |_| ()).await
    }

    /// Like `write`, but also passes the result to `then`, even if the caller disconnects before.
    async fn write_then<T, F, N>(&self, change: F, then: N) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
        N: FnOnce(&Result<T>) + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: WriteJob = Box::new(move |connection| {
            if reply.is_closed() {
                return None;
            }
            let result = connection.and_then(|connection| in_savepoint(connection, change));
            let failure = result.as_ref().err().cloned();
            let answer = Box::new(move |committed: Result<()>| {
                let result = committed.and(result);
                then(&result);
                jobs::answer(reply, result);
            });
            Some(Written { failure, answer })
        });
        send(self.writes.as_ref(), job)?;
        answer.await.map_err(|_| StoreError::internal("the writer thread gave no answer"))?
    }
}

impl Drop for Sqlite {
    /// Finishes the queued jobs. The writer closes the file last: it moves the log into it.
    fn drop(&mut self) {
        self.reads = None;
        self.inline_connections.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        self.writes = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn send<J>(queue: Option<&Sender<J>>, job: J) -> Result<()> {
    let closed = || StoreError::Unavailable("The database is shutting down".to_owned());
    queue.ok_or_else(closed)?.send(job).map_err(|_| closed())
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map_err(StoreError::internal)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, &error))?;
    // Writes are acknowledged when they are on disk: FULL syncs the log at each commit, while NORMAL could lose the
    // last commits at a power failure. If another process holds the file, readers wait instead of failing.
    let pragmas = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        PRAGMA cache_size = -4096; PRAGMA mmap_size = 0; PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;
        PRAGMA journal_size_limit = 67108864;";
    connection.execute_batch(pragmas).map_err(|error| cannot_open(path, &error))?;
    // Otherwise a query whose plan depends on its parameters would be planned each time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(|error| cannot_open(path, &error))?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

fn cannot_open(path: &Path, error: &dyn std::error::Error) -> StoreError {
    StoreError::Unavailable(format!("Cannot open the database {}: {error}", path.display()))
}

/// Migrates the schema. The transaction serialises concurrent processes.
fn migrate(connection: &Connection) -> Result<()> {
    let known = MIGRATIONS.len();
    connection.execute_batch("BEGIN IMMEDIATE").map_err(to_store_error)?;
    let done: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(to_store_error)?;
    let done = done as usize;
    if done > known {
        let _ = connection.execute_batch("ROLLBACK");
        return Err(crate::store::newer_database(done, known));
    }
    for (i, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        connection.execute_batch(migration).map_err(to_store_error)?;
        connection.execute_batch(&format!("PRAGMA user_version = {}", i + 1)).map_err(to_store_error)?;
    }
    connection.execute_batch("COMMIT").map_err(to_store_error)
}

fn run_read(connection: &Connection, job: ReadJob) {
    // A panic fails one call, by dropping its reply; the thread continues.
    if catch_unwind(AssertUnwindSafe(|| job(connection))).is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
}

fn in_snapshot<T>(connection: &Connection, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    connection.prepare_cached("BEGIN").and_then(|mut begin| begin.execute([])).map_err(to_store_error)?;
    let result = query(connection);
    connection.prepare_cached("COMMIT").and_then(|mut end| end.execute([])).map_err(to_store_error)?;
    result
}

fn in_savepoint<T>(connection: &Connection, change: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let run = |sql: &str| connection.prepare_cached(sql).and_then(|mut sql| sql.execute([])).map_err(to_store_error);
    run("SAVEPOINT change")?;
    let result = catch_unwind(AssertUnwindSafe(|| change(connection)))
        .unwrap_or_else(|_| Err(StoreError::internal("a change panicked")))
        .map_err(|error| detect_full_quota(connection, error));
    if connection.is_autocommit() {
        // SQLite has rolled back the whole transaction with its savepoints.
        return result;
    }
    if result.is_err() {
        run("ROLLBACK TO change")?;
    }
    run("RELEASE change")?;
    result
}

/// Applies the queued writes in one transaction, and answers them when it is on disk.
fn write_in_groups(connection: &Connection, turns: Option<&WriteTurns>, queue: &Receiver<WriteJob>) {
    while let Ok(first) = queue.recv() {
        let turn = turns.and_then(WriteTurns::wait);
        let mut written: Vec<Written> = Vec::new();
        let begun = connection.execute_batch("BEGIN IMMEDIATE").map_err(to_store_error);
        let committed = match begun {
            Ok(()) => {
                for job in std::iter::once(first).chain(queue.try_iter().take(GROUP - 1)) {
                    written.extend(job(Ok(connection)));
                    // On a full disk SQLite rolls back the whole transaction; the remaining jobs need a new one.
                    if connection.is_autocommit() {
                        break;
                    }
                }
                commit(connection, written.last().and_then(|last| last.failure.as_ref()))
            }
            Err(error) => {
                written.extend(first(Err(error.clone())));
                Err(error)
            }
        };
        drop(turn);
        for Written { answer, .. } in written {
            answer(committed.clone());
        }
    }
    // After this, the database file alone is a complete copy. If the disk is full, the log stays, which is safe too. It
    // also stays if another process uses the file: waiting for its readers would block its writes.
    let _ = connection.busy_timeout(Duration::ZERO);
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        tracing::warn!(%error, "the log of the database could not be moved into it; it stays beside it");
    }
}

/// Commits the transaction. If SQLite has rolled it back already, the failure of the last change is the reason, and all
/// changes of the group failed.
fn commit(connection: &Connection, last_failure: Option<&StoreError>) -> Result<()> {
    if connection.is_autocommit() {
        let unknown = || StoreError::WriteFailed("The database gave up the transaction; nothing was written");
        return Err(last_failure.cloned().unwrap_or_else(unknown));
    }
    let committed =
        connection.execute_batch("COMMIT").map_err(|error| detect_full_quota(connection, to_store_error(error)));
    if committed.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    committed
}

/// Detects a full quota. SQLite has a code for a full disk, but reports a full quota as a failed write.
fn detect_full_quota(connection: &Connection, error: StoreError) -> StoreError {
    match error {
        StoreError::WriteFailed(_) if is_full(&system_error(connection)) => storage_full(),
        other => other,
    }
}

/// Returns the error of the last failed system call.
#[allow(unsafe_code, reason = "rusqlite does not offer sqlite3_system_errno")]
fn system_error(connection: &Connection) -> std::io::Error {
    // SAFETY: the handle is open for as long as the connection is borrowed, and the call only reads a number of it.
    let errno = unsafe { rusqlite::ffi::sqlite3_system_errno(connection.handle()) };
    std::io::Error::from_raw_os_error(errno)
}

fn storage_full() -> StoreError {
    StoreError::StorageFull("The disk that holds the database is full; nothing was written")
}

/// Translates a failure of the database.
fn to_store_error(error: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull, ReadOnly, SystemIoFailure};
    use rusqlite::ffi::{self, SQLITE_IOERR_FSYNC, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE};
    let is_write_error = |error: &ffi::Error| {
        [SQLITE_IOERR_FSYNC, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE].contains(&error.extended_code)
    };
    match error.sqlite_error_code() {
        Some(DiskFull) => storage_full(),
        // The index of the log, which is shared memory, could not grow.
        Some(SystemIoFailure)
            if error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE) =>
        {
            storage_full()
        }
        Some(ReadOnly) => {
            tracing::error!(%error, "the database cannot be written");
            StoreError::WriteFailed("The database may only be read; nothing was written")
        }
        Some(SystemIoFailure) if error.sqlite_error().is_some_and(is_write_error) => {
            tracing::error!(%error, "the disk of the database cannot be written");
            let message = "The disk that holds the database failed to write; look at the file before you try again";
            StoreError::WriteFailed(message)
        }
        Some(DatabaseBusy | DatabaseLocked | SystemIoFailure) => {
            tracing::error!(%error, "the database is not usable now");
            StoreError::Unavailable("The database is not usable now; try again".to_owned())
        }
        _ => StoreError::internal(error),
    }
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
