//! Which files a workspace has, and what changed in it.

use super::Postgres;
use super::row::{FILE_COLUMNS, FILE_WIDTH, authorised, file, file_if_any};
use crate::blob::stored_bytes;
use crate::error::{Result, StoreError};
use crate::file_list::{FileList, FilesSince, Moment, Rows};
use crate::search::Cursor;
use crate::store::settings_of;
use async_trait::async_trait;
use std::{collections::HashMap, sync::LazyLock};
use tokio_postgres::Row;
use toolrest_core::{Access, ContentHash, FileId, WorkspaceId, WorkspaceSettings};
use uuid::Uuid;

/// Beyond so many changed files the whole list is read anew.
const CHANGES_MOST: usize = 5_000;

/// The membership, this moment, the workspace's settings, and what changed since an earlier one, as it is now.
///
/// Transactions from the earlier moment's xmin on may or may not have been seen then; to see one twice does no harm.
static CHANGES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {FILE_COLUMNS}, c.file_id, m.role, pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
            k.kept::text::bigint, w.settings
         FROM members m JOIN workspaces w ON w.id = m.ws CROSS JOIN changes_kept k
         LEFT JOIN (
             SELECT DISTINCT file_id FROM changes WHERE ws = $1 AND xid >= $3::bigint::text::xid8 LIMIT {CHANGES_MOST} + 1
         ) c ON true
         LEFT JOIN files f ON f.ws = $1 AND f.id = c.file_id AND f.deleted_at IS NULL
         WHERE m.ws = $1 AND m.user_id = $2"
    )
});

static ALL: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.ws = $1 AND f.deleted_at IS NULL"));

/// What a look at the changes tells.
struct Look {
    moment: Moment,
    settings: Option<WorkspaceSettings>,
    /// None if that is not known.
    changed: Option<Rows>,
}

fn look_of(access: Access, since: Option<Moment>, rows: &[Row]) -> Result<Look> {
    authorised(access, rows, FILE_WIDTH + 1)?;
    let Some(first) = rows.first() else { return Err(StoreError::internal("a member without a row")) };
    let (now, kept): (Cursor, Cursor) = (first.get(FILE_WIDTH + 2), first.get(FILE_WIDTH + 3));
    let look = Look { moment: Moment(now), settings: settings_of(first.get(FILE_WIDTH + 4)), changed: None };
    // A moment in the future is one of another database that this one was copied from.
    if !since.is_some_and(|since| (kept..=now).contains(&since.0)) || rows.len() > CHANGES_MOST {
        return Ok(look);
    }
    let mut changed = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(id) = row.get::<_, Option<Uuid>>(FILE_WIDTH) {
            changed.push((FileId(id), file_if_any(row, 0)?));
        }
    }
    Ok(Look { changed: Some(Rows::Changed(changed)), ..look })
}

#[async_trait]
impl FileList for Postgres {
    async fn listed_since(&self, access: Access, since: Option<Moment>) -> Result<FilesSince> {
        let (ws, user) = (access.workspace.0, access.user.0);
        if let Some(Moment(cursor)) = since {
            let rows = self.look(&CHANGES, &[&ws, &user, &Some(cursor)]).await?;
            if let Look { moment, settings, changed: Some(listed) } = look_of(access, since, &rows)? {
                return Ok(FilesSince { settings, moment, listed });
            }
        }
        let nothing: Option<Cursor> = None;
        let (first, all) = self.look_twice((&CHANGES, &[&ws, &user, &nothing]), (&ALL, &[&ws])).await?;
        let Look { moment, settings, .. } = look_of(access, None, &first)?;
        Ok(FilesSince { settings, moment, listed: Rows::All(all.iter().map(file).collect::<Result<_>>()?) })
    }

    async fn stored(&self, workspace: WorkspaceId, keys: Vec<ContentHash>) -> Result<HashMap<ContentHash, Vec<u8>>> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
        let sql = "SELECT key, encoding, size, data FROM blobs WHERE ws = $1 AND key = ANY($2)";
        let rows = self.look(sql, &[&workspace.0, &keys]).await?;
        let content = |row: &Row| {
            let key =
                ContentHash::from_slice(row.get(0)).ok_or_else(|| StoreError::internal("a key of a wrong length"))?;
            Ok((key, stored_bytes(row.get(1), row.get(2), row.get(3))?.into_owned()))
        };
        rows.iter().map(content).collect()
    }
}
