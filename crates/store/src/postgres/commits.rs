//! Applies any changeset: locks and reads rows, plans, then writes.

use super::Postgres;
use super::row::{FILE_COLUMNS, authorised, file, form, hash};
use super::statements::{Write, send};
use super::transaction::Transaction;
use crate::blob::Prepared;
use crate::error::{Result, StoreError};
use crate::files::{CallInfo, FileStore};
use crate::history::FolderCommit;
use crate::jobs::run_to_end;
use crate::plan::{Below, Needs, VersionRow, View, plan};
use crate::quota::{Reserved, cost};
use futures_util::future::try_join_all;
use std::sync::{Arc, LazyLock};
use tokio_postgres::Row;
use toolrest_core::{Access, Changeset, Commit, FileId, VersionId, WsPath, now};
use uuid::Uuid;

/// Maximum number of attempts of a commit that loses races.
const TRIES: usize = 20;

/// Serialises commits that lock several rows within a workspace, so that they cannot deadlock. Commits of one statement
/// do not take this lock.
const LOCK_COMMITS: &str = "SELECT pg_advisory_xact_lock($1)";

const MEMBER: &str = "SELECT role FROM members WHERE ws = $1 AND user_id = $2";

/// Lock rows for update before sharing parents: upgrading a lock can deadlock.
static LOCK_AT: LazyLock<String> = LazyLock::new(|| at_paths("FOR UPDATE"));
static LOCK_ABOVE: LazyLock<String> = LazyLock::new(|| at_paths("FOR KEY SHARE"));

fn at_paths(lock: &str) -> String {
    format!(
        "SELECT {FILE_COLUMNS} FROM files f
         WHERE f.ws = $1 AND f.path = ANY($2) AND f.deleted_at IS NULL ORDER BY f.path {lock}"
    )
}

static LOCK_IDS: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.ws = $1 AND f.id = ANY($2) ORDER BY f.id FOR UPDATE")
});

static TRASHED_FOLDERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {FILE_COLUMNS} FROM files f WHERE f.ws = $1 AND f.deleted_at IS NOT NULL AND f.id IN (
             SELECT DISTINCT ON (t.path) t.id FROM files t
             WHERE t.ws = $1 AND t.path = ANY($2) AND t.deleted_at IS NOT NULL AND t.kind = 0
             ORDER BY t.path, t.deleted_at DESC
         ) FOR UPDATE"
    )
});

/// Prevents new files below folders that will be moved or removed.
const LOCK_FOLDERS_BELOW: &str = "SELECT 1 FROM files
    WHERE ws = $1 AND path > $2 AND path < $3 AND kind = 0 AND deleted_at IS NULL ORDER BY path FOR UPDATE";

const BELOW: &str = "SELECT count(*), EXISTS (SELECT 1 FROM files
        WHERE ws = $1 AND path > $2 AND path < $3 AND is_virtual AND deleted_at IS NULL),
    coalesce(max(octet_length(path)), 0)::bigint
    FROM files WHERE ws = $1 AND path > $2 AND path < $3 AND deleted_at IS NULL";

const OLD_VERSION: &str =
    "SELECT seq, id, hash, blob, form, size FROM versions WHERE ws = $1 AND file_id = $2 AND seq = $3";

/// A changeset on its way into the database. The statement that writes it runs in a task that also counts what it
/// stored: a caller that disconnects does not stop a statement that the database has received.
pub(super) struct PendingCommit {
    pub access: Access,
    pub changes: Changeset,
    pub contents: Vec<Option<Prepared>>,
    pub call: CallInfo,
    pub reserved: Reserved,
}

impl PendingCommit {
    /// Counts the bytes that the commit stored, and returns them with it.
    pub(super) fn made(&self, commit: Commit, stored: i64) -> (Commit, i64) {
        self.reserved.settle(stored);
        (commit, stored)
    }
}

impl Postgres {
    /// Applies a changeset. Returns also the bytes that it counts.
    pub(super) async fn commit_in_transaction(&self, pending: &Arc<PendingCommit>) -> Result<(Commit, i64)> {
        // Strangers are refused before anything is locked.
        self.authorise(pending.access).await?;
        let mut tries = 1;
        loop {
            let result = self.try_commit(pending).await;
            match result {
                Err(StoreError::LostRace) if tries < TRIES => tries += 1,
                other => return other,
            }
        }
    }

    async fn try_commit(&self, pending: &Arc<PendingCommit>) -> Result<(Commit, i64)> {
        let PendingCommit { access, changes, contents, call, .. } = &**pending;
        let mut transaction = self.transaction().await?;
        let at = now();
        let planned = match lock_and_read(&transaction, *access, changes).await {
            Ok(view) => plan(changes, contents, view, at),
            Err(error) => Err(error),
        };
        let planned = match planned {
            Ok(planned) => planned,
            Err(error) => {
                transaction.rollback().await?;
                return Err(error);
            }
        };
        let Some(id) = planned.commit_id() else {
            transaction.rollback().await?;
            return Ok(pending.made(planned.into_commit(None, at), 0));
        };
        let write = Write { ws: access.workspace.0, at, commit: id, call };
        let statements = write.statements(&planned, changes.undoes, &contents.iter().flatten().collect::<Vec<_>>())?;
        let pending = Arc::clone(pending);
        run_to_end(async move {
            let stored = send(&transaction, &statements).await?;
            transaction.finished();
            let stored = cost(stored, planned.ops.len());
            Ok(pending.made(planned.into_commit(Some(id), at), stored))
        })
        .await
    }
}

impl Postgres {
    /// Reads the recorded rows that the changes concern.
    pub(super) async fn recorded_view(&self, access: Access, changes: &Changeset) -> Result<View> {
        let transaction = self.transaction().await?;
        let view = lock_and_read(&transaction, access, changes).await;
        transaction.rollback().await?;
        view
    }

    /// Records a commit that was applied to a folder, unless it is recorded already.
    pub(super) async fn record_folder_commit(&self, commit: &FolderCommit) -> Result<()> {
        let ws = commit.workspace.0;
        let mut transaction = self.transaction().await?;
        transaction.begin().await?;
        transaction.query(LOCK_COMMITS, &[&commit_lock_key(ws)]).await?;
        let known = "SELECT 1 FROM commits WHERE ws = $1 AND id = $2";
        if !transaction.query(known, &[&ws, &commit.id.0]).await?.is_empty() {
            return transaction.rollback().await;
        }
        let write = Write { ws, at: commit.at, commit: commit.id, call: &commit.call };
        let blobs: Vec<&Prepared> = commit.contents.iter().collect();
        let mut statements = write.statements(&commit.plan, commit.undoes, &blobs)?;
        statements.push(write.fill(&blobs));
        send(&transaction, &statements).await?;
        transaction.finished();
        Ok(())
    }
}

/// Locks and reads the rows that the changes concern.
async fn lock_and_read(transaction: &Transaction, access: Access, changes: &Changeset) -> Result<View> {
    let ws = access.workspace.0;
    let mut needs = Needs::of(changes);
    let mut view = View::default();
    let ids: Vec<Uuid> = needs.ids.iter().map(|id| id.0).collect();
    transaction.prepare(&[LOCK_COMMITS, MEMBER, &LOCK_IDS, &LOCK_AT, &LOCK_ABOVE, LOCK_FOLDERS_BELOW, BELOW]).await?;
    let first = async {
        tokio::try_join!(
            biased;
            transaction.begin(),
            async { transaction.query(LOCK_COMMITS, &[&commit_lock_key(ws)]).await },
            async { transaction.query(MEMBER, &[&ws, &access.user.0]).await },
            async { transaction.query(&LOCK_IDS, &[&ws, &ids]).await },
        )
    };
    let (members, found) = if ids.is_empty() {
        let (((), _, members, _), found) = tokio::try_join!(biased; first, lock_and_fetch(transaction, ws, &needs))?;
        (members, found)
    } else {
        let ((), _, members, rows) = first.await?;
        for row in &rows {
            let row = file(row)?;
            view.ids.insert(row.id, row);
        }
        needs.add_paths_of(&view.ids);
        (members, lock_and_fetch(transaction, ws, &needs).await?)
    };
    authorised(access, &members, 0)?;
    found.add_to(&mut view)?;
    Ok(view)
}

/// Returns the key of the advisory lock that serialises commits of a workspace.
fn commit_lock_key(ws: Uuid) -> i64 {
    let (_, random) = ws.as_u64_pair();
    random.cast_signed()
}

/// The rows that were locked and read.
struct LockedRows {
    at: Vec<Row>,
    above: Vec<Row>,
    below: Vec<(WsPath, Vec<Row>)>,
    trashed_folders: Vec<Row>,
    versions: Vec<(FileId, Vec<Row>)>,
}

async fn lock_and_fetch(transaction: &Transaction, ws: Uuid, needs: &Needs) -> Result<LockedRows> {
    let at: Vec<&str> = needs.at.iter().map(WsPath::as_str).collect();
    let above: Vec<&str> = needs.above.difference(&needs.at).map(WsPath::as_str).collect();
    let below = try_join_all(needs.below.iter().map(|folder| async move {
        let (low, high) = folder.below_range();
        // Counted after locking, so that the count stays valid until the commit.
        let (_, counted) = tokio::try_join!(
            biased;
            async { transaction.query(LOCK_FOLDERS_BELOW, &[&ws, &low, &high]).await },
            async { transaction.query(BELOW, &[&ws, &low, &high]).await },
        )?;
        Ok((folder.clone(), counted))
    }));
    let trashed = async {
        if !needs.restores {
            return Ok(Vec::new());
        }
        let anywhere: Vec<&str> = needs.at.union(&needs.above).map(WsPath::as_str).collect();
        transaction.query(&TRASHED_FOLDERS, &[&ws, &anywhere]).await
    };
    let versions =
        try_join_all(needs.versions.iter().map(|(file, seq)| async move {
            Ok((*file, transaction.query(OLD_VERSION, &[&ws, &file.0, seq]).await?))
        }));
    let (at, above, below, trashed_folders, versions) = tokio::try_join!(
        biased;
        async { transaction.query(&LOCK_AT, &[&ws, &at]).await },
        async { transaction.query(&LOCK_ABOVE, &[&ws, &above]).await },
        below,
        trashed,
        versions,
    )?;
    Ok(LockedRows { at, above, below, trashed_folders, versions })
}

impl LockedRows {
    fn add_to(self, view: &mut View) -> Result<()> {
        for row in self.at.iter().chain(&self.above) {
            let row = file(row)?;
            view.live.insert(row.path.clone(), row);
        }
        for (folder, rows) in self.below {
            if let Some(row) = rows.first() {
                let below = Below { entries: row.get(0), holds_virtual: row.get(1), longest_path_bytes: row.get(2) };
                view.below.insert(folder, below);
            }
        }
        for row in &self.trashed_folders {
            let row = file(row)?;
            view.trashed_folders.insert(row.path.clone(), row);
        }
        for (file, rows) in self.versions {
            if let Some(row) = rows.first() {
                let head = VersionRow {
                    seq: row.get(0),
                    version: VersionId(row.get(1)),
                    hash: hash(row, 2)?,
                    blob: hash(row, 3)?,
                    form: form(row.get(4))?,
                    size: row.get(5),
                };
                view.versions.insert((file, head.seq), head);
            }
        }
        Ok(())
    }
}
