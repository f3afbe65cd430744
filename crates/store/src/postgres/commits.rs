//! Applies any changeset: locks and reads rows, plans, then writes.

use super::notifications::Signals;
use super::row::{FILE_COLUMNS, authorised, file, form, hash};
use super::statements::{Write, send};
use super::transaction::Transaction;
use super::{Postgres, approvals};
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

const MEMBER: &str = "SELECT rights FROM members WHERE ws = $1 AND user_id = $2";

/// The statements that read the rows of a changeset, with locks for a commit or without for a preview.
struct Reads {
    at: String,
    above: String,
    ids: String,
    trashed_folders: String,
    locks: Locks,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Locks {
    Take,
    None,
}

/// Lock rows for update before sharing parents: upgrading a lock can deadlock.
static LOCKED: LazyLock<Reads> = LazyLock::new(|| Reads::new("FOR UPDATE", "FOR KEY SHARE", Locks::Take));
static UNLOCKED: LazyLock<Reads> = LazyLock::new(|| Reads::new("", "", Locks::None));

impl Reads {
    fn new(for_update: &str, for_share: &str, locks: Locks) -> Self {
        let at_paths = |lock: &str| {
            format!(
                "SELECT {FILE_COLUMNS} FROM files f
                 WHERE f.ws = $1 AND f.path = ANY($2) AND f.deleted_at IS NULL ORDER BY f.path {lock}"
            )
        };
        Self {
            at: at_paths(for_update),
            above: at_paths(for_share),
            ids: format!(
                "SELECT {FILE_COLUMNS} FROM files f WHERE f.ws = $1 AND f.id = ANY($2) ORDER BY f.id {for_update}"
            ),
            trashed_folders: format!(
                "SELECT {FILE_COLUMNS} FROM files f WHERE f.ws = $1 AND f.deleted_at IS NOT NULL AND f.id IN (
                     SELECT DISTINCT ON (t.path) t.id FROM files t
                     WHERE t.ws = $1 AND t.path = ANY($2) AND t.deleted_at IS NOT NULL AND t.kind = 0
                     ORDER BY t.path, t.deleted_at DESC
                 ) {for_update}"
            ),
            locks,
        }
    }
}

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
/// stored and signals the change: a caller that disconnects does not stop a statement that the database has received.
pub(super) struct PendingCommit {
    pub access: Access,
    pub changes: Changeset,
    pub contents: Vec<Option<Prepared>>,
    pub call: CallInfo,
    pub reserved: Reserved,
    pub signals: Arc<Signals>,
}

impl PendingCommit {
    /// Counts the bytes that the commit stored and signals the change. Returns the commit with the bytes.
    pub(super) fn made(&self, commit: Commit, stored: i64) -> (Commit, i64) {
        self.reserved.count_written(stored);
        if commit.id.is_some() {
            self.signals.changed(self.access.workspace.0);
        }
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
        let planned = match read_view(&transaction, *access, changes, &LOCKED).await {
            Ok(view) => plan(changes, contents, view, at, &call.guard),
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
        if let Some(approval) = call.approval
            && let Err(error) = approvals::spend(&transaction, access.workspace.0, approval, id).await
        {
            transaction.rollback().await?;
            return Err(error);
        }
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
    /// Reads the rows that the changes concern, in one snapshot without locks.
    pub(super) async fn unlocked_view(&self, access: Access, changes: &Changeset) -> Result<View> {
        let transaction = self.transaction().await?;
        let view = read_view(&transaction, access, changes, &UNLOCKED).await;
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
        if let Some(approval) = commit.call.approval {
            approvals::note_folder_commit(&transaction, ws, approval, commit.id).await?;
        }
        let write = Write { ws, at: commit.at, commit: commit.id, call: &commit.call };
        let blobs: Vec<&Prepared> = commit.contents.iter().collect();
        let mut statements = write.statements(&commit.plan, commit.undoes, &blobs)?;
        statements.push(write.fill(&blobs));
        if !commit.call.is_recorded_with_commit() {
            statements.push(write.add_recovered_commit());
        }
        send(&transaction, &statements).await?;
        transaction.finished();
        Ok(())
    }
}

/// Reads the rows that the changes concern, and locks them for a commit.
async fn read_view(transaction: &Transaction, access: Access, changes: &Changeset, reads: &Reads) -> Result<View> {
    let ws = access.workspace.0;
    let mut needs = Needs::of(changes);
    let mut view = View::default();
    let ids: Vec<Uuid> = needs.ids.iter().map(|id| id.0).collect();
    transaction.prepare(&[MEMBER, &reads.ids, &reads.at, &reads.above, BELOW]).await?;
    if reads.locks == Locks::Take {
        transaction.prepare(&[LOCK_COMMITS, LOCK_FOLDERS_BELOW]).await?;
    }
    let begin = async {
        if reads.locks == Locks::None {
            return transaction.begin_reading().await;
        }
        let lock = async { transaction.query(LOCK_COMMITS, &[&commit_lock_key(ws)]).await };
        tokio::try_join!(biased; transaction.begin(), lock).map(|_| ())
    };
    let first = async {
        tokio::try_join!(
            biased;
            begin,
            async { transaction.query(MEMBER, &[&ws, &access.user.0]).await },
            async { transaction.query(&reads.ids, &[&ws, &ids]).await },
        )
    };
    let (members, found) = if ids.is_empty() {
        let (((), members, _), found) = tokio::try_join!(biased; first, fetch(transaction, ws, &needs, reads))?;
        (members, found)
    } else {
        let ((), members, rows) = first.await?;
        for row in &rows {
            let row = file(row)?;
            view.ids.insert(row.id, row);
        }
        needs.add_paths_of(&view.ids);
        (members, fetch(transaction, ws, &needs, reads).await?)
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

/// The rows that were read.
struct Rows {
    at: Vec<Row>,
    above: Vec<Row>,
    below: Vec<(WsPath, Vec<Row>)>,
    trashed_folders: Vec<Row>,
    versions: Vec<(FileId, Vec<Row>)>,
}

async fn fetch(transaction: &Transaction, ws: Uuid, needs: &Needs, reads: &Reads) -> Result<Rows> {
    let at: Vec<&str> = needs.at.iter().map(WsPath::as_str).collect();
    let above: Vec<&str> = needs.above.difference(&needs.at).map(WsPath::as_str).collect();
    let below = try_join_all(needs.below.iter().map(|folder| async move {
        let (low, high) = folder.below_range();
        let lock = async {
            match reads.locks {
                Locks::Take => transaction.query(LOCK_FOLDERS_BELOW, &[&ws, &low, &high]).await,
                Locks::None => Ok(Vec::new()),
            }
        };
        // Counted after locking, so that the count stays valid until the commit.
        let count = async { transaction.query(BELOW, &[&ws, &low, &high]).await };
        let (_, counted) = tokio::try_join!(biased; lock, count)?;
        Ok((folder.clone(), counted))
    }));
    let trashed = async {
        if !needs.restores {
            return Ok(Vec::new());
        }
        let anywhere: Vec<&str> = needs.at.union(&needs.above).map(WsPath::as_str).collect();
        transaction.query(&reads.trashed_folders, &[&ws, &anywhere]).await
    };
    let versions =
        try_join_all(needs.versions.iter().map(|(file, seq)| async move {
            Ok((*file, transaction.query(OLD_VERSION, &[&ws, &file.0, seq]).await?))
        }));
    let (at, above, below, trashed_folders, versions) = tokio::try_join!(
        biased;
        async { transaction.query(&reads.at, &[&ws, &at]).await },
        async { transaction.query(&reads.above, &[&ws, &above]).await },
        below,
        trashed,
        versions,
    )?;
    Ok(Rows { at, above, below, trashed_folders, versions })
}

impl Rows {
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
