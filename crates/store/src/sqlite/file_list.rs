//! Lists the files of a workspace: all, or those that changed since a cursor.

use super::Sqlite;
use super::row::{FILE_COLUMNS, authorised, collect, file, find};
use super::slices;
use crate::error::{Result, StoreError};
use crate::file_list::{FileList, FilesSince, ListCursor, Rows};
use crate::search::Cursor;
use crate::store::settings_of;
use async_trait::async_trait;
use rusqlite::Connection;
use std::collections::HashMap;
use toolrest_core::{Access, ContentHash, FileId, WorkspaceId, WorkspaceSettings};
use uuid::Uuid;

/// Maximum number of changes since the cursor for which only the changed files are read. If there are more, all files
/// are read.
const MAX_CHANGES: Cursor = 5_000;

/// The settings of a workspace and the range of its recorded changes.
struct ChangeRange {
    settings: Option<WorkspaceSettings>,
    oldest: Cursor,
    newest: Cursor,
}

fn change_range(db: &Connection, access: Access) -> Result<ChangeRange> {
    authorised(db, access)?;
    // `place` is the sequence number of a change. Two subqueries, so that each reads one end of an index instead of
    // scanning it.
    let sql = "SELECT settings, coalesce((SELECT min(place) FROM changes WHERE ws = ?1), 1),
                      coalesce((SELECT max(place) FROM changes WHERE ws = ?1), 0)
               FROM workspaces WHERE id = ?1";
    let found = find(db, sql, [access.workspace.0], |row| {
        let settings = settings_of(row.get_ref(0)?.as_str()?);
        Ok(ChangeRange { settings, oldest: row.get(1)?, newest: row.get(2)? })
    })?;
    found.ok_or_else(|| StoreError::internal("a member of no workspace"))
}

fn listed_since(db: &Connection, access: Access, since: Option<ListCursor>) -> Result<FilesSince> {
    let ChangeRange { settings, oldest, newest } = change_range(db, access)?;
    let ws = access.workspace.0;
    let listed = match since {
        Some(ListCursor(since)) if oldest <= since + 1 && (since..=since + MAX_CHANGES).contains(&newest) => {
            let sql = format!(
                "SELECT {FILE_COLUMNS}, c.file_id
                 FROM (SELECT DISTINCT file_id FROM changes WHERE ws = ?1 AND place > ?2) c
                 LEFT JOIN files f ON f.ws = ?1 AND f.id = c.file_id AND f.deleted_at IS NULL"
            );
            Rows::Changed(collect(db, &sql, (ws, since), |row| {
                let found = row.get::<_, Option<Uuid>>(0)?.map(|_| file(row)).transpose()?;
                Ok((FileId(row.get(15)?), found))
            })?)
        }
        _ => {
            let sql = format!("SELECT {FILE_COLUMNS} FROM files f WHERE f.ws = ?1 AND f.deleted_at IS NULL");
            Rows::All(collect(db, &sql, [ws], file)?)
        }
    };
    Ok(FilesSince { settings, cursor: ListCursor(newest), listed })
}

#[async_trait]
impl FileList for Sqlite {
    async fn listed_since(&self, access: Access, since: Option<ListCursor>) -> Result<FilesSince> {
        if let Some(cursor) = since {
            let ChangeRange { settings, newest, .. } = self.read_inline(move |db| change_range(db, access)).await?;
            if newest == cursor.0 {
                return Ok(FilesSince { settings, cursor, listed: Rows::Changed(Vec::new()) });
            }
        }
        self.read(move |db| listed_since(db, access, since)).await
    }

    async fn stored(&self, workspace: WorkspaceId, keys: Vec<ContentHash>) -> Result<HashMap<ContentHash, Vec<u8>>> {
        self.read(move |db| {
            let mut contents = HashMap::with_capacity(keys.len());
            for key in keys {
                if let Some(bytes) = slices::bytes(db, workspace.0, key)? {
                    contents.insert(key, bytes);
                }
            }
            Ok(contents)
        })
        .await
    }
}
