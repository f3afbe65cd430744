//! Lists the files of a workspace, and what changed in it.

use super::Postgres;
use super::row::{FILE_COLUMNS, FILE_WIDTH, authorised, file, file_if_any};
use crate::blob::stored_bytes;
use crate::error::{Result, StoreError};
use crate::file_list::{FileList, FilesSince, ListCursor, Rows};
use crate::search::Cursor;
use crate::store::settings_of;
use async_trait::async_trait;
use std::{collections::HashMap, sync::LazyLock};
use tokio_postgres::Row;
use toolrest_core::{Access, ContentHash, FileId, WorkspaceId, WorkspaceSettings};
use uuid::Uuid;

/// Maximum number of changed files that are read one by one. If there are more, the whole list is read.
const MAX_CHANGES: usize = 5_000;

/// Reads the membership, the current cursor, the workspace's settings, and the current rows of files that changed since
/// an earlier cursor.
///
/// Transactions from the earlier snapshot's xmin on may or may not have been visible then; applying a change twice is
/// harmless.
static CHANGES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {FILE_COLUMNS}, c.file_id, m.rights, pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
            k.kept::text::bigint, w.settings
         FROM members m JOIN workspaces w ON w.id = m.ws CROSS JOIN changes_kept k
         LEFT JOIN (
             SELECT DISTINCT file_id FROM changes WHERE ws = $1 AND xid >= $3::bigint::text::xid8 LIMIT {MAX_CHANGES} + 1
         ) c ON true
         LEFT JOIN files f ON f.ws = $1 AND f.id = c.file_id AND f.deleted_at IS NULL
         WHERE m.ws = $1 AND m.user_id = $2"
    )
});

static ALL: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.ws = $1 AND f.deleted_at IS NULL"));

/// The result of [`CHANGES`].
struct ParsedChanges {
    cursor: ListCursor,
    settings: Option<WorkspaceSettings>,
    /// None if the changes are no longer recorded, or too many.
    changed: Option<Rows>,
}

fn parse_changes(access: Access, since: Option<ListCursor>, rows: &[Row]) -> Result<ParsedChanges> {
    authorised(access, rows, FILE_WIDTH + 1)?;
    let Some(first) = rows.first() else { return Err(StoreError::internal("a member without a row")) };
    let (now, kept): (Cursor, Cursor) = (first.get(FILE_WIDTH + 2), first.get(FILE_WIDTH + 3));
    let parsed =
        ParsedChanges { cursor: ListCursor(now), settings: settings_of(first.get(FILE_WIDTH + 4)), changed: None };
    // A cursor in the future belongs to another database that this one was copied from.
    if !since.is_some_and(|since| (kept..=now).contains(&since.0)) || rows.len() > MAX_CHANGES {
        return Ok(parsed);
    }
    let mut changed = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(id) = row.get::<_, Option<Uuid>>(FILE_WIDTH) {
            changed.push((FileId(id), file_if_any(row, 0)?));
        }
    }
    Ok(ParsedChanges { changed: Some(Rows::Changed(changed)), ..parsed })
}

#[async_trait]
impl FileList for Postgres {
    async fn listed_since(&self, access: Access, since: Option<ListCursor>) -> Result<FilesSince> {
        let (ws, user) = (access.workspace.0, access.user.0);
        if let Some(ListCursor(cursor)) = since {
            let rows = self.fetch(&CHANGES, &[&ws, &user, &Some(cursor)]).await?;
            if let ParsedChanges { cursor, settings, changed: Some(listed) } = parse_changes(access, since, &rows)? {
                return Ok(FilesSince { settings, cursor, listed });
            }
        }
        let nothing: Option<Cursor> = None;
        let (first, all) = self.fetch_both((&CHANGES, &[&ws, &user, &nothing]), (&ALL, &[&ws])).await?;
        let ParsedChanges { cursor, settings, .. } = parse_changes(access, None, &first)?;
        Ok(FilesSince { settings, cursor, listed: Rows::All(all.iter().map(file).collect::<Result<_>>()?) })
    }

    async fn stored(&self, workspace: WorkspaceId, keys: Vec<ContentHash>) -> Result<HashMap<ContentHash, Vec<u8>>> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
        let sql = "SELECT key, encoding, size, data FROM blobs WHERE ws = $1 AND key = ANY($2)";
        let rows = self.fetch(sql, &[&workspace.0, &keys]).await?;
        let content = |row: &Row| {
            let key =
                ContentHash::from_slice(row.get(0)).ok_or_else(|| StoreError::internal("a key of a wrong length"))?;
            Ok((key, stored_bytes(row.get(1), row.get(2), row.get(3))?.into_owned()))
        };
        rows.iter().map(content).collect()
    }
}
