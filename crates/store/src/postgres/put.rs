//! The most common write in one statement: a new version of a file, or a new file in an existing folder. All other
//! changesets are applied by [`super::commits`], which uses the plan. `put_tests.rs` checks that both decide the same.

use super::commits::PendingCommit;
use super::{Postgres, query};
use crate::blob::Prepared;
use crate::error::{Result, StoreError};
use crate::jobs::run_to_end;
use crate::plan::type_with_content;
use crate::quota::cost;
use crate::signature::Signature;
use crate::store::{check_rights, required_rights};
use deadpool_postgres::Object;
use std::sync::Arc;
use toolrest_core::{
    Change, Changeset, Commit, CommitId, ContentHash, Expect, FileId, FileType, Form, NetChange, Outcome, Put,
    VersionId, now,
};

/// Checks the membership, locks the file or its folder, and writes the blob, the version, the file's row, the commit
/// and, if it is written with the commit, the record of the call.
///
/// PostgreSQL evaluates the conditions again after waiting for a lock: a file that was moved or removed meanwhile is
/// not found, and of a file that was written the newest version is used. Sharing the lock on the folder's row keeps the
/// folder in place, because moving and removing folders lock their rows first.
pub(super) const PUT: &str = "
WITH me AS (
    SELECT rights, CASE WHEN $3::bigint < 0 THEN rights & 3 >= -$3 ELSE rights BETWEEN $3 AND $3 | 3 END AS is_allowed
    FROM members WHERE ws = $1 AND user_id = $2
), old AS (
    SELECT id, kind, is_virtual, head_seq, head_hash, head_version, head_form FROM files
    WHERE ws = $1 AND path = $4 AND deleted_at IS NULL AND (SELECT is_allowed FROM me)
    FOR NO KEY UPDATE
), fit AS (
    SELECT id, head_seq FROM old
    WHERE kind = $7 AND NOT is_virtual AND ($18::bytea IS NULL OR head_hash = $18)
        AND ($25::uuid IS NULL OR (head_version = $25 AND id = $29))
        AND ($27::smallint IS NULL OR head_form IS DISTINCT FROM $27)
), folder AS (
    SELECT 1 FROM files
    WHERE ws = $1 AND path = $5 AND deleted_at IS NULL AND kind = 0 AND (SELECT is_allowed FROM me)
        AND $18::bytea IS NULL AND $25::uuid IS NULL AND NOT EXISTS (SELECT 1 FROM old)
    FOR KEY SHARE
), made AS (
    INSERT INTO files (ws, id, path, dir, name, kind, head_seq, head_version, head_hash, head_blob, head_form, size,
        created_at, updated_at)
    SELECT $1, $15, $4, $5, $6, $7, 1, $14, $8, $9, $10, $28, $17, $17 FROM folder
    ON CONFLICT DO NOTHING
    RETURNING id
), target AS (
    SELECT id, head_seq + 1 AS seq, head_seq AS before FROM fit UNION ALL SELECT id, 1, NULL FROM made
), kept AS (
    INSERT INTO blobs (ws, key, size, encoding, data, signature) SELECT $1, $9, $11, $12, $13, $26 FROM target
    ON CONFLICT DO NOTHING RETURNING size
), versioned AS (
    INSERT INTO versions (ws, file_id, seq, id, hash, form, blob, size, author, commit_id, created_at)
    SELECT $1, id, seq, $14, $8, $10, $9, $28, $30, $16, $17 FROM target
), updated AS (
    UPDATE files SET head_seq = fit.head_seq + 1, head_version = $14, head_hash = $8, head_blob = $9, head_form = $10,
        size = $28, updated_at = $17
    FROM fit WHERE files.ws = $1 AND files.id = fit.id
), changed AS (
    INSERT INTO changes (ws, file_id) SELECT $1, id FROM target
), committed AS (
    INSERT INTO commits (ws, id, call_id, toolset, tool, author, created_at, changes)
    SELECT $1, $16, $19, $20, $21, $30, $17, '[{\"op\":\"' || CASE WHEN before IS NULL THEN 'create' ELSE 'update' END
        || '\",\"path\":' || $24::text || ',\"file_id\":\"' || id || CASE WHEN before IS NULL THEN '\"'
        ELSE '\",\"before\":' || before END || ',\"after\":' || seq || ',\"version_id\":\"' || $14::uuid || '\"}]'
    FROM target
), called AS (
    INSERT INTO calls (ws, id, correlation, principal, user_id, toolset, tool, path, args, outcome, started_at,
        duration_us, commit_id)
    SELECT $1, $19, $31, $32, $30, $20, $21, $33, $34, 'ok', $22, $23, $16 FROM target WHERE $35
    ON CONFLICT (ws, id) DO UPDATE SET commit_id = coalesce(calls.commit_id, excluded.commit_id)
)
SELECT (SELECT rights FROM me), target.id, (SELECT size FROM kept) FROM (SELECT 1) AS one LEFT JOIN target ON true";

impl Postgres {
    /// Applies a changeset that is a single put, if the file or its folder exists and all conditions hold. Otherwise
    /// changes nothing and returns none, so that the plan decides. Returns also the bytes that the put counts.
    pub(super) async fn put_in_one_statement(&self, pending: &Arc<PendingCommit>) -> Result<Option<(Commit, i64)>> {
        // The approval of a call is spent in the transaction of its commit.
        if pending.call.approval.is_some() {
            return Ok(None);
        }
        let Some((put, ..)) = single_put(&pending.changes, &pending.contents) else { return Ok(None) };
        let is_allowed = |change| pending.call.guard.allows(change, &put.path);
        if !is_allowed(NetChange::Create) || !is_allowed(NetChange::Overwrite) {
            return Ok(None);
        }
        let (client, pending) = (self.client().await?, Arc::clone(pending));
        run_to_end(async move { execute_put(&client, &pending).await }).await
    }
}

/// Runs the statement, and counts what it stored.
async fn execute_put(client: &Object, pending: &PendingCommit) -> Result<Option<(Commit, i64)>> {
    let PendingCommit { access, changes, contents, call, .. } = pending;
    let access = *access;
    let Some((put, content, expected)) = single_put(changes, contents) else { return Ok(None) };
    let form_refused = refuses_encoded(changes).then(|| Form::Encoded.code());
    let (hash_expected, version_expected, file_expected) = match &expected {
        None => (None, None, None),
        Some(Expected::Hash(hash)) => (Some(&hash.0[..]), None, None),
        Some(Expected::Version(file, version)) => (None, Some(version.0), Some(file.0)),
    };
    let Some(folder) = put.path.parent() else { return Ok(None) };
    let at = now();
    let (commit, version) = (CommitId::new(), VersionId::new());
    let duration_us = at.as_microsecond() - call.started_at.as_microsecond();
    let quoted = serde_json::to_string(put.path.as_str()).map_err(StoreError::internal)?;
    let rows = query(
        client,
        PUT,
        &[
            &access.workspace.0,
            &access.user.0,
            &required_rights(access),
            &put.path.as_str(),
            &folder.as_str(),
            &put.path.name(),
            &put.file_type.code(),
            &&content.hash.0[..],
            &&content.key.0[..],
            &content.form.code(),
            &content.size,
            &content.encoding.code(),
            &content.data,
            &version.0,
            &FileId::new().0,
            &commit.0,
            &at,
            &hash_expected,
            &call.id.0,
            &call.toolset,
            &call.tool,
            &call.started_at,
            &duration_us,
            &quoted,
            &version_expected,
            &content.signature.as_ref().map(Signature::as_bytes),
            &form_refused,
            &content.shown_size,
            &file_expected,
            &call.caller.0,
            &call.details.correlation,
            &call.principal(),
            &call.path(),
            &call.details.args,
            &call.is_recorded_with_commit(),
        ],
    )
    .await;
    let rows = match rows {
        // A concurrent put created the file first; the plan decides.
        Err(StoreError::LostRace) => return Ok(None),
        other => other?,
    };
    let Some(row) = rows.first() else { return Ok(None) };
    check_rights(access, row.get(0))?;
    let Some(file) = row.get::<_, Option<uuid::Uuid>>(1) else { return Ok(None) };
    let outcome =
        Outcome { file: FileId(file), path: put.path.clone(), version: Some(version), hash: Some(content.hash) };
    let stored = cost(row.get::<_, Option<i64>>(2).unwrap_or(0), 1);
    Ok(Some(pending.made(Commit { id: Some(commit), created_at: at, outcomes: vec![outcome] }, stored)))
}

/// Whether the put must not replace a text in another encoding.
fn refuses_encoded(changes: &Changeset) -> bool {
    changes.expect.iter().any(|expect| matches!(expect, Expect::NotEncoded(_)))
}

/// What the put expects of the file.
enum Expected {
    Hash(ContentHash),
    Version(FileId, VersionId),
}

/// Returns the put, its content and its condition, if the changeset consists of nothing else that the statement cannot
/// do.
fn single_put<'a>(
    changes: &'a Changeset,
    contents: &'a [Option<Prepared>],
) -> Option<(&'a Put, &'a Prepared, Option<Expected>)> {
    let ([Change::Put(put)], [Some(content)], None) = (&changes.changes[..], contents, changes.undoes) else {
        return None;
    };
    // The statement compares types and does not change them.
    let changes_type = type_with_content(put.file_type, content.form) != put.file_type;
    if put.executable.is_some() || put.file_type == FileType::Folder || changes_type {
        return None;
    }
    let is_other = |expect: &&Expect| !matches!(expect, Expect::NotEncoded(path) if *path == put.path);
    let expected = match &changes.expect.iter().filter(is_other).collect::<Vec<_>>()[..] {
        [] => None,
        [Expect::Hash(path, hash)] if *path == put.path => Some(Expected::Hash(*hash)),
        [Expect::Version(file, version)] => Some(Expected::Version(*file, *version)),
        _ => return None,
    };
    Some((put, content, expected))
}

#[cfg(test)]
#[path = "put_tests.rs"]
mod tests;
