//! The statements that write a planned commit. Rows of one table are written by one statement.

use super::transaction::Transaction;
use crate::blob::Prepared;
use crate::error::{Result, StoreError};
use crate::files::CallInfo;
use crate::plan::{FileRow, Plan, RowOp, VersionRow};
use futures_util::future::try_join_all;
use tokio_postgres::types::ToSql;
use toolrest_core::{CommitId, FileId, FileType, Timestamp, WsPath};
use uuid::Uuid;

/// Maximum number of statements sent before waiting for an answer.
const WINDOW: usize = 24;

/// A statement with its parameters.
pub(super) struct Statement {
    sql: &'static str,
    params: Vec<Box<dyn ToSql + Sync + Send>>,
}

macro_rules! statement {
    ($sql:expr, $($param:expr),* $(,)?) => {
        Statement { sql: $sql, params: vec![$(Box::new($param)),*] }
    };
}

/// Sends the statements and the commit without waiting in between. Returns the size of the contents that were not
/// stored before.
pub(super) async fn send(transaction: &Transaction, statements: &[Statement]) -> Result<i64> {
    let texts: Vec<&str> = statements.iter().map(|statement| statement.sql).collect();
    transaction.prepare(&texts).await?;
    let mut windows = statements.chunks(WINDOW).peekable();
    let mut stored = 0;
    while let Some(window) = windows.next() {
        let written = try_join_all(window.iter().map(|statement| async move {
            let params: Vec<&(dyn ToSql + Sync)> = statement.params.iter().map(|param| &**param as _).collect();
            transaction.query(statement.sql, &params).await
        }));
        let written = match windows.peek() {
            Some(_) => written.await?,
            None => tokio::try_join!(biased; written, transaction.commit())?.0,
        };
        // Only the statement that stores contents returns rows: the size of each new content.
        stored += written.iter().flatten().map(|row| row.get::<_, i64>(0)).sum::<i64>();
    }
    Ok(stored)
}

/// The values that all rows of a commit share.
pub(super) struct Write<'a> {
    pub ws: Uuid,
    pub at: Timestamp,
    pub commit: CommitId,
    pub call: &'a CallInfo,
}

impl Write<'_> {
    pub(super) fn statements(
        &self,
        plan: &Plan,
        undoes: Option<CommitId>,
        blobs: &[&Prepared],
    ) -> Result<Vec<Statement>> {
        // Locked before any blob is written: otherwise a concurrent purge could remove a blob that the insert found
        // existing.
        let mut statements = vec![statement!("LOCK TABLE versions IN ROW EXCLUSIVE MODE",)];
        if !blobs.is_empty() {
            statements.push(self.blobs(blobs));
        }
        let mut ops = &plan.ops[..];
        while let Some(first) = ops.first() {
            let alike = |op: &&RowOp| std::mem::discriminant(*op) == std::mem::discriminant(first);
            let (run, rest) = ops.split_at(ops.iter().take_while(alike).count());
            self.run(run, &mut statements);
            ops = rest;
        }
        statements.extend(self.changed(&plan.ops));
        statements.push(self.commit(plan, undoes)?);
        if self.call.is_recorded_with_commit() {
            statements.push(self.call());
        }
        Ok(statements)
    }

    /// Adds the statements of operations of one kind.
    fn run(&self, ops: &[RowOp], statements: &mut Vec<Statement>) {
        let mut inserts: Vec<&FileRow> = Vec::new();
        let mut versions: Vec<(FileId, &VersionRow)> = Vec::new();
        let mut updates: Vec<(FileId, FileType, &VersionRow)> = Vec::new();
        let (mut trashed, mut untrashed): (Vec<Uuid>, Vec<Uuid>) = Default::default();
        for op in ops {
            match op {
                RowOp::Insert(row) => {
                    inserts.push(row);
                    versions.extend(row.head.as_ref().map(|head| (row.id, head)));
                }
                RowOp::AddVersion { file, file_type, head, .. } => {
                    versions.push((*file, head));
                    // Of several versions of one file, the last becomes current.
                    updates.retain(|(earlier, ..)| earlier != file);
                    updates.push((*file, *file_type, head));
                }
                RowOp::Touch { file, .. } => statements.push(statement!(
                    "UPDATE files SET updated_at = $3 WHERE ws = $1 AND id = $2",
                    self.ws,
                    file.0,
                    self.at
                )),
                RowOp::Trash { file, .. } => trashed.push(file.0),
                RowOp::Untrash(row) => untrashed.push(row.id.0),
                RowOp::SetMode { file, mode, .. } => statements.push(statement!(
                    "UPDATE files SET mode = $3 WHERE ws = $1 AND id = $2",
                    self.ws,
                    file.0,
                    mode.cast_signed()
                )),
                RowOp::Forget { path } => statements.push(self.forget(path)),
                RowOp::Move { file, is_folder, from, to } => {
                    statements.push(self.move_one(*file, to));
                    if *is_folder {
                        statements.push(self.move_below(from, to));
                    }
                }
            }
        }
        if !inserts.is_empty() {
            statements.push(self.inserts(&inserts));
        }
        if !trashed.is_empty() {
            let sql = "UPDATE files SET deleted_at = $3 WHERE ws = $1 AND id = ANY($2)";
            statements.push(statement!(sql, self.ws, trashed, self.at));
        }
        if !untrashed.is_empty() {
            let sql = "UPDATE files SET deleted_at = NULL, updated_at = $3 WHERE ws = $1 AND id = ANY($2)";
            statements.push(statement!(sql, self.ws, untrashed, self.at));
        }
        if !versions.is_empty() {
            statements.push(self.versions(&versions));
        }
        if !updates.is_empty() {
            statements.push(self.updates(&updates));
        }
    }

    fn blobs(&self, blobs: &[&Prepared]) -> Statement {
        statement!(
            "INSERT INTO blobs (ws, key, size, encoding, data, signature)
             SELECT $1, * FROM unnest($2::bytea[], $3::bigint[], $4::smallint[], $5::bytea[], $6::bytea[])
             ON CONFLICT DO NOTHING RETURNING size",
            self.ws,
            column(blobs, |blob| blob.key.0.to_vec()),
            column(blobs, |blob| blob.size),
            column(blobs, |blob| blob.encoding.code()),
            column(blobs, |blob| blob.data.clone()),
            column(blobs, |blob| blob.signature.as_ref().map(|signature| signature.as_bytes().to_vec())),
        )
    }

    /// Records which files and folders changed, for search indexes and working copies. The statement that moves a
    /// folder records what is below it.
    fn changed(&self, ops: &[RowOp]) -> Option<Statement> {
        let changed: Vec<Uuid> = ops
            .iter()
            .filter_map(|op| match op {
                RowOp::Insert(row) | RowOp::Untrash(row) => Some(row.id.0),
                RowOp::AddVersion { file, .. } | RowOp::Trash { file, .. } | RowOp::Move { file, .. } => Some(file.0),
                RowOp::Touch { .. } | RowOp::SetMode { .. } | RowOp::Forget { .. } => None,
            })
            .collect();
        let sql = "INSERT INTO changes (ws, file_id) SELECT $1, unnest($2::uuid[])";
        (!changed.is_empty()).then(|| statement!(sql, self.ws, changed))
    }

    fn inserts(&self, rows: &[&FileRow]) -> Statement {
        let head = |row: &&FileRow| row.head;
        statement!(
            "INSERT INTO files (ws, created_at, updated_at, id, path, dir, name, display_name, kind, is_virtual,
                head_seq, head_version, head_hash, head_blob, head_form, size, mode)
             SELECT $1, $2, $2, * FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::smallint[],
                $9::boolean[], $10::bigint[], $11::uuid[], $12::bytea[], $13::bytea[], $14::smallint[], $15::bigint[],
                $16::integer[])",
            self.ws,
            self.at,
            column(rows, |row| row.id.0),
            column(rows, |row| row.path.to_string()),
            column(rows, |row| row.path.parent().map_or(String::new(), |dir| dir.to_string())),
            column(rows, |row| row.path.name().to_owned()),
            column(rows, |row| row.display_name.clone()),
            column(rows, |row| row.file_type.code()),
            column(rows, |row| row.is_virtual),
            column(rows, |row| head(row).map(|head| head.seq)),
            column(rows, |row| head(row).map(|head| head.version.0)),
            column(rows, |row| head(row).map(|head| head.hash.0.to_vec())),
            column(rows, |row| head(row).map(|head| head.blob.0.to_vec())),
            column(rows, |row| head(row).map(|head| head.form.code())),
            column(rows, |row| head(row).map_or(0, |head| head.size)),
            column(rows, |row| row.mode.map(u32::cast_signed)),
        )
    }

    /// Marks a path and everything below it as deleted.
    fn forget(&self, path: &WsPath) -> Statement {
        let (low, high) = path.below_range();
        statement!(
            "UPDATE files SET deleted_at = $5 WHERE ws = $1 AND deleted_at IS NULL AND NOT is_virtual
             AND (path = $2 OR (path > $3 AND path < $4))",
            self.ws,
            path.to_string(),
            low,
            high,
            self.at,
        )
    }

    /// Stores contents that were dropped before.
    pub(super) fn fill(&self, blobs: &[&Prepared]) -> Statement {
        statement!(
            "UPDATE blobs b SET encoding = v.encoding, data = v.data
             FROM unnest($2::bytea[], $3::smallint[], $4::bytea[]) AS v (key, encoding, data)
             WHERE b.ws = $1 AND b.key = v.key AND b.encoding = 2",
            self.ws,
            column(blobs, |blob| blob.key.0.to_vec()),
            column(blobs, |blob| blob.encoding.code()),
            column(blobs, |blob| blob.data.clone()),
        )
    }

    fn versions(&self, versions: &[(FileId, &VersionRow)]) -> Statement {
        statement!(
            "INSERT INTO versions (ws, author, commit_id, created_at, file_id, seq, id, hash, form, blob, size)
             SELECT $1, $2, $3, $4, * FROM unnest($5::uuid[], $6::bigint[], $7::uuid[], $8::bytea[], $9::smallint[],
                $10::bytea[], $11::bigint[])",
            self.ws,
            self.call.caller.0,
            self.commit.0,
            self.at,
            column(versions, |(file, _)| file.0),
            column(versions, |(_, head)| head.seq),
            column(versions, |(_, head)| head.version.0),
            column(versions, |(_, head)| head.hash.0.to_vec()),
            column(versions, |(_, head)| head.form.code()),
            column(versions, |(_, head)| head.blob.0.to_vec()),
            column(versions, |(_, head)| head.size),
        )
    }

    fn updates(&self, heads: &[(FileId, FileType, &VersionRow)]) -> Statement {
        statement!(
            "UPDATE files SET head_seq = v.seq, head_version = v.id, head_hash = v.hash, head_blob = v.blob,
                head_form = v.form, size = v.size, kind = v.kind, updated_at = $2
             FROM unnest($3::uuid[], $4::bigint[], $5::uuid[], $6::bytea[], $7::bytea[], $8::smallint[], $9::bigint[],
                $10::smallint[]) AS v (file_id, seq, id, hash, blob, form, size, kind)
             WHERE files.ws = $1 AND files.id = v.file_id",
            self.ws,
            self.at,
            column(heads, |(file, ..)| file.0),
            column(heads, |(.., head)| head.seq),
            column(heads, |(.., head)| head.version.0),
            column(heads, |(.., head)| head.hash.0.to_vec()),
            column(heads, |(.., head)| head.blob.0.to_vec()),
            column(heads, |(.., head)| head.form.code()),
            column(heads, |(.., head)| head.size),
            column(heads, |(_, file_type, _)| file_type.code()),
        )
    }

    fn move_one(&self, file: FileId, to: &WsPath) -> Statement {
        statement!(
            "UPDATE files SET path = $3, dir = $4, name = $5, updated_at = $6 WHERE ws = $1 AND id = $2",
            self.ws,
            file.0,
            to.to_string(),
            to.parent().map_or(String::new(), |dir| dir.to_string()),
            to.name().to_owned(),
            self.at,
        )
    }

    /// Rewrites the paths of everything below a folder.
    fn move_below(&self, from: &WsPath, to: &WsPath) -> Statement {
        let (low, high) = from.below_range();
        // In characters, because `substr` counts characters.
        let skip = i32::try_from(from.as_str().chars().count() + 1).unwrap_or(i32::MAX);
        statement!(
            "WITH moved AS (
                 UPDATE files SET path = $4::text || substr(path, $5), dir = $4::text || substr(dir, $5)
                 WHERE ws = $1 AND path > $2 AND path < $3 AND deleted_at IS NULL RETURNING id
             ) INSERT INTO changes (ws, file_id) SELECT $1, id FROM moved",
            self.ws,
            low,
            high,
            to.to_string(),
            skip,
        )
    }

    fn commit(&self, plan: &Plan, undoes: Option<CommitId>) -> Result<Statement> {
        Ok(statement!(
            "INSERT INTO commits (ws, id, call_id, toolset, tool, author, created_at, undoes, changes)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            self.ws,
            self.commit.0,
            self.call.id.0,
            self.call.toolset.clone(),
            self.call.tool.clone(),
            self.call.caller.0,
            self.at,
            undoes.map(|id| id.0),
            serde_json::to_string(&plan.effects).map_err(StoreError::internal)?,
        ))
    }

    fn call(&self) -> Statement {
        let call = self.call;
        statement!(
            "INSERT INTO calls (ws, id, correlation, principal, user_id, toolset, tool, path, args, outcome, started_at,
                 duration_us, commit_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'ok', $10, $11, $12)
             ON CONFLICT (ws, id) DO UPDATE SET commit_id = coalesce(calls.commit_id, excluded.commit_id)",
            self.ws,
            call.id.0,
            call.details.correlation.clone(),
            call.principal(),
            call.caller.0,
            call.toolset.clone(),
            call.tool.clone(),
            call.path().map(str::to_owned),
            call.details.args.clone(),
            call.started_at,
            self.at.as_microsecond() - call.started_at.as_microsecond(),
            self.commit.0,
        )
    }

    /// Adds a commit that was found in a journal to the record of its interrupted call.
    pub(super) fn add_recovered_commit(&self) -> Statement {
        statement!(
            "UPDATE calls SET commit_id = $3 WHERE ws = $1 AND id = $2 AND commit_id IS NULL AND outcome = 'interrupted'",
            self.ws,
            self.call.id.0,
            self.commit.0,
        )
    }
}

fn column<T, V>(rows: &[T], value: impl Fn(&T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
