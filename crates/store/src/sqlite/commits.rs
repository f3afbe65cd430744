//! Applies changesets.

use super::files::{by_id, live};
use super::row::{FILE_COLUMNS, authorised, file, find, hash, micros, run};
use super::{approvals, calls, slices};
use crate::blob::Prepared;
use crate::error::{Result, StoreError};
use crate::files::CallInfo;
use crate::history::FolderCommit;
use crate::plan::{Below, FileRow, Needs, Plan, RowOp, VersionRow, View, plan};
use crate::quota::cost;
use rusqlite::Connection;
use toolrest_core::{
    Access, Changeset, Commit, CommitId, FileId, FileType, Form, Preview, Timestamp, VersionId, WorkspaceId, WsPath,
    now,
};

/// Records a commit that was applied to a folder; false if it is recorded already.
pub(super) fn record(db: &Connection, commit: &FolderCommit) -> Result<bool> {
    let known = "SELECT 1 FROM commits WHERE ws = ?1 AND id = ?2";
    if find(db, known, (commit.workspace.0, commit.id.0), |_| Ok(()))?.is_some() {
        return Ok(false);
    }
    let writer = Writer { db, ws: commit.workspace, at: commit.at, commit: commit.id, call: &commit.call };
    for content in &commit.contents {
        writer.blob(content)?;
        // A content that was dropped before is stored again.
        let dropped = "SELECT 1 FROM blobs WHERE ws = ?1 AND key = ?2 AND encoding = 2";
        if find(db, dropped, (commit.workspace.0, content.key.0), |_| Ok(()))?.is_some() {
            let sql = "UPDATE blobs SET encoding = ?3, data = ?4 WHERE ws = ?1 AND key = ?2";
            run(db, sql, (commit.workspace.0, content.key.0, content.encoding.code(), &content.data))?;
        }
    }
    for op in &commit.plan.ops {
        writer.op(op)?;
    }
    writer.record(&commit.plan, commit.undoes)?;
    if !commit.call.is_recorded_with_commit() {
        calls::add_recovered_commit(db, commit.workspace, commit.call.id, commit.id)?;
    }
    if let Some(approval) = commit.call.approval {
        approvals::note_folder_commit(db, commit.workspace, approval, commit.id)?;
    }
    Ok(true)
}

/// Plans and applies a changeset inside the writer's transaction. Returns also the bytes that it counts.
pub(super) fn apply(
    db: &Connection,
    access: Access,
    changes: &Changeset,
    contents: &[Option<Prepared>],
    call: &CallInfo,
) -> Result<(Commit, i64)> {
    authorised(db, access)?;
    let ws = access.workspace;
    let at = now();
    let plan = plan(changes, contents, view(db, ws, changes)?, at, &call.guard)?;
    let id = plan.commit_id();
    let mut stored = 0;
    if let Some(id) = id {
        let writer = Writer { db, ws, at, commit: id, call };
        for content in contents.iter().flatten() {
            stored += if writer.blob(content)? { content.size } else { 0 };
        }
        stored = cost(stored, plan.ops.len());
        for op in &plan.ops {
            writer.op(op)?;
        }
        writer.record(&plan, changes.undoes)?;
        if let Some(approval) = call.approval {
            approvals::spend(db, ws, approval, id)?;
        }
    }
    Ok((plan.into_commit(id, at), stored))
}

/// Returns what [`apply`] would do.
pub(super) fn preview(
    db: &Connection,
    access: Access,
    changes: &Changeset,
    contents: &[Option<Prepared>],
    call: &CallInfo,
) -> Result<Preview> {
    authorised(db, access)?;
    let (view, at) = (view(db, access.workspace, changes)?, now());
    let heads = view.heads();
    Ok(plan(changes, contents, view, at, &call.guard)?.into_preview(at, &heads))
}

pub(super) fn view(db: &Connection, ws: WorkspaceId, changes: &Changeset) -> Result<View> {
    let mut needs = Needs::of(changes);
    let mut view = View::default();
    for id in &needs.ids {
        if let Some(row) = by_id(db, ws, *id)? {
            view.ids.insert(*id, row);
        }
    }
    needs.add_paths_of(&view.ids);
    for path in needs.at.union(&needs.above) {
        if let Some(row) = live(db, ws, path)? {
            view.live.insert(path.clone(), row);
        } else if needs.restores
            && needs.above.contains(path)
            && let Some(row) = trashed_folder(db, ws, path)?
        {
            view.trashed_folders.insert(path.clone(), row);
        }
    }
    for folder in needs.below {
        let below = below(db, ws, &folder)?;
        view.below.insert(folder, below);
    }
    for (file, seq) in needs.versions {
        if let Some(head) = old_version(db, ws, file, seq)? {
            view.versions.insert((file, seq), head);
        }
    }
    Ok(view)
}

fn below(db: &Connection, ws: WorkspaceId, folder: &WsPath) -> Result<Below> {
    let (low, high) = folder.below_range();
    // Covering indexes answer this query.
    let sql = "SELECT count(*), EXISTS (SELECT 1 FROM files
                   WHERE ws = ?1 AND path > ?2 AND path < ?3 AND is_virtual = 1 AND deleted_at IS NULL),
               coalesce(max(octet_length(path)), 0) FROM files
               WHERE ws = ?1 AND path > ?2 AND path < ?3 AND deleted_at IS NULL";
    let found = find(db, sql, (ws.0, low, high), |row| {
        Ok(Below { entries: row.get(0)?, holds_virtual: row.get(1)?, longest_path_bytes: row.get(2)? })
    })?;
    Ok(found.unwrap_or_default())
}

fn trashed_folder(db: &Connection, ws: WorkspaceId, path: &WsPath) -> Result<Option<FileRow>> {
    let sql = format!(
        "SELECT {FILE_COLUMNS} FROM files f
         WHERE f.ws = ?1 AND f.deleted_at IS NOT NULL AND f.path = ?2 AND f.kind = ?3
         ORDER BY f.deleted_at DESC LIMIT 1"
    );
    find(db, &sql, (ws.0, path.as_str(), FileType::Folder.code()), file)
}

fn old_version(db: &Connection, ws: WorkspaceId, file: FileId, seq: i64) -> Result<Option<VersionRow>> {
    let sql = "SELECT seq, id, hash, blob, form, size FROM versions WHERE ws = ?1 AND file_id = ?2 AND seq = ?3";
    find(db, sql, (ws.0, file.0, seq), |row| {
        Ok(VersionRow {
            seq: row.get(0)?,
            version: VersionId(row.get(1)?),
            hash: hash(row, 2)?,
            blob: hash(row, 3)?,
            form: Form::from_code(row.get(4)?).ok_or(rusqlite::types::FromSqlError::InvalidType)?,
            size: row.get(5)?,
        })
    })
}

/// Records that a file or folder changed, for search indexes and working copies.
pub(super) fn note_change(db: &Connection, ws: WorkspaceId, file: FileId) -> Result<()> {
    let sql = "INSERT INTO changes (ws, place, file_id)
               SELECT ?1, coalesce(max(place), 0) + 1, ?2 FROM changes WHERE ws = ?1";
    run(db, sql, (ws.0, file.0)).map(drop)
}

/// Inserts a file's row.
pub(super) fn insert_file(db: &Connection, ws: WorkspaceId, row: &FileRow) -> Result<()> {
    let dir = row.path.parent().map_or(String::new(), |dir| dir.to_string());
    let head = row.head.as_ref();
    run(
        db,
        "INSERT INTO files (ws, id, path, dir, name, display_name, kind, is_virtual, head_seq, head_version, head_hash,
            head_blob, head_form, size, created_at, updated_at, mode)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        rusqlite::params![
            ws.0,
            row.id.0,
            row.path.as_str(),
            dir,
            row.path.name(),
            row.display_name,
            row.file_type.code(),
            row.is_virtual,
            head.map(|head| head.seq),
            head.map(|head| head.version.0),
            head.map(|head| head.hash.0),
            head.map(|head| head.blob.0),
            head.map(|head| head.form.code()),
            head.map_or(0, |head| head.size),
            micros(row.created_at),
            micros(row.updated_at),
            row.mode,
        ],
    )?;
    note_change(db, ws, row.id)
}

/// Writes the rows of one commit.
struct Writer<'a> {
    db: &'a Connection,
    ws: WorkspaceId,
    at: Timestamp,
    commit: CommitId,
    call: &'a CallInfo,
}

impl Writer<'_> {
    /// Stores a content; returns whether it is new. A content that was staged for this commit is new too.
    fn blob(&self, content: &Prepared) -> Result<bool> {
        let inserted = slices::insert(self.db, self.ws.0, content)?;
        let staged = slices::unstage(self.db, self.ws.0, content)?;
        Ok(inserted || staged)
    }

    fn op(&self, op: &RowOp) -> Result<()> {
        let at = micros(self.at);
        let ws = self.ws.0;
        match op {
            RowOp::Insert(row) => {
                insert_file(self.db, self.ws, row)?;
                row.head.as_ref().map_or(Ok(()), |head| self.version(row.id, head))
            }
            RowOp::AddVersion { file, file_type, head, replaced, .. } => {
                self.version(*file, head)?;
                if let Some(blob) = replaced {
                    let sql = "INSERT INTO superseded (ws, key) VALUES (?1, ?2)";
                    run(self.db, sql, (ws, blob.0))?;
                }
                run(
                    self.db,
                    "UPDATE files SET head_seq = ?3, head_version = ?4, head_hash = ?5, head_blob = ?6, head_form = ?7,
                        size = ?8, updated_at = ?9, kind = ?10 WHERE ws = ?1 AND id = ?2",
                    (
                        ws,
                        file.0,
                        head.seq,
                        head.version.0,
                        head.hash.0,
                        head.blob.0,
                        head.form.code(),
                        head.size,
                        at,
                        file_type.code(),
                    ),
                )?;
                note_change(self.db, self.ws, *file)
            }
            RowOp::Touch { file, .. } => {
                run(self.db, "UPDATE files SET updated_at = ?3 WHERE ws = ?1 AND id = ?2", (ws, file.0, at)).map(drop)
            }
            RowOp::Move { file, is_folder, from, to } => {
                let dir = to.parent().map_or(String::new(), |dir| dir.to_string());
                let sql = "UPDATE files SET path = ?3, dir = ?4, name = ?5, updated_at = ?6 WHERE ws = ?1 AND id = ?2";
                run(self.db, sql, (ws, file.0, to.as_str(), dir, to.name(), at))?;
                note_change(self.db, self.ws, *file)?;
                if *is_folder { self.move_below(from, to) } else { Ok(()) }
            }
            RowOp::Trash { file, .. } => {
                run(self.db, "UPDATE files SET deleted_at = ?3 WHERE ws = ?1 AND id = ?2", (ws, file.0, at))?;
                note_change(self.db, self.ws, *file)
            }
            RowOp::Untrash(row) => {
                let sql = "UPDATE files SET deleted_at = NULL, updated_at = ?3 WHERE ws = ?1 AND id = ?2";
                run(self.db, sql, (ws, row.id.0, at))?;
                note_change(self.db, self.ws, row.id)
            }
            RowOp::SetMode { file, mode, .. } => {
                run(self.db, "UPDATE files SET mode = ?3 WHERE ws = ?1 AND id = ?2", (ws, file.0, mode)).map(drop)
            }
            RowOp::Forget { path } => {
                let (low, high) = path.below_range();
                let sql = "UPDATE files SET deleted_at = ?5 WHERE ws = ?1 AND deleted_at IS NULL AND is_virtual = 0
                           AND (path = ?2 OR (path > ?3 AND path < ?4))";
                run(self.db, sql, (ws, path.as_str(), low, high, at)).map(drop)
            }
        }
    }

    fn version(&self, file: FileId, head: &VersionRow) -> Result<()> {
        run(
            self.db,
            "INSERT INTO versions (ws, file_id, seq, id, hash, form, blob, size, author, commit_id, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            (
                self.ws.0,
                file.0,
                head.seq,
                head.version.0,
                head.hash.0,
                head.form.code(),
                head.blob.0,
                head.size,
                self.call.caller.0,
                self.commit.0,
                micros(self.at),
            ),
        )
        .map(drop)
    }

    /// Rewrites the paths of everything below a folder in one statement.
    fn move_below(&self, from: &WsPath, to: &WsPath) -> Result<()> {
        let (low, high) = from.below_range();
        // In characters, because `substr` counts characters.
        let skip = from.as_str().chars().count() + 1;
        run(
            self.db,
            "UPDATE files SET path = ?4 || substr(path, ?5), dir = ?4 || substr(dir, ?5)
             WHERE ws = ?1 AND path > ?2 AND path < ?3 AND deleted_at IS NULL",
            (self.ws.0, low, high, to.as_str(), i64::try_from(skip).map_err(StoreError::internal)?),
        )?;
        let (low, high) = to.below_range();
        run(
            self.db,
            "INSERT INTO changes (ws, place, file_id)
             SELECT ?1, (SELECT coalesce(max(place), 0) FROM changes WHERE ws = ?1) + row_number() OVER (), id
             FROM files WHERE ws = ?1 AND path > ?2 AND path < ?3 AND deleted_at IS NULL",
            (self.ws.0, low, high),
        )
        .map(drop)
    }

    fn record(&self, plan: &Plan, undoes: Option<CommitId>) -> Result<()> {
        let effects = serde_json::to_string(&plan.effects).map_err(StoreError::internal)?;
        let call = self.call;
        run(
            self.db,
            // Commits are deleted only with their workspace, so the next position is one more than the last.
            "INSERT INTO commits (ws, pos, id, call_id, toolset, tool, author, created_at, undoes, changes)
             VALUES (?1, (SELECT coalesce(max(pos), 0) + 1 FROM commits WHERE ws = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (
                self.ws.0,
                self.commit.0,
                call.id.0,
                &*call.toolset,
                &*call.tool,
                call.caller.0,
                micros(self.at),
                undoes.map(|id| id.0),
                effects,
            ),
        )?;
        if call.is_recorded_with_commit() {
            calls::insert_with_commit(self.db, self.ws, call, self.commit, self.at)?;
        }
        Ok(())
    }
}
