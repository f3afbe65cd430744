//! Updates versions of earlier releases.

use super::Postgres;
use super::row::hash;
use crate::blob::Encoding;
use crate::error::{Result, StoreError};
use crate::renewal::{BATCH, BEGINNING_BYTES, CorrectedVersion, OldVersion, Position, batch};
use std::collections::HashMap;
use tokio_postgres::{Row, types::ToSql};
use toolrest_core::{ContentHash, FileType, Form};
use uuid::Uuid;

const NEXT: &str = "SELECT v.ws, v.file_id, v.seq, v.form, v.size, v.blob, f.kind, b.encoding,
        octet_length(b.data)::bigint
    FROM versions v JOIN files f ON f.ws = v.ws AND f.id = v.file_id JOIN blobs b ON b.ws = v.ws AND b.key = v.blob
    WHERE (v.ws, v.file_id, v.seq) > ($1, $2, $3) ORDER BY v.ws, v.file_id, v.seq LIMIT $4";

const CONTENTS: &str = "SELECT b.ws, b.key, b.encoding, b.size,
        CASE WHEN w.whole THEN b.data ELSE substring(b.data FROM 1 FOR $4::bigint::integer) END
    FROM unnest($1::uuid[], $2::bytea[], $3::boolean[]) AS w (ws, key, whole)
    JOIN blobs b ON b.ws = w.ws AND b.key = w.key";

const RENEW: &str = "WITH new AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::smallint[], $5::bigint[], $6::smallint[])
            AS n (ws, file_id, seq, form, size, plain)
    ), of_versions AS (
        UPDATE versions v SET form = n.form, size = n.size FROM new n
        WHERE v.ws = n.ws AND v.file_id = n.file_id AND v.seq = n.seq
    ), of_files AS (
        UPDATE files f SET head_form = n.form, size = n.size,
            kind = CASE WHEN f.kind IN ($7, $8) THEN n.plain ELSE f.kind END
        FROM new n WHERE f.ws = n.ws AND f.id = n.file_id AND f.head_seq = n.seq
        RETURNING f.ws, f.id
    )
    INSERT INTO changes (ws, file_id) SELECT ws, id FROM of_files";

fn position(row: &Row) -> Position {
    Position { ws: row.get(0), file: row.get(1), seq: row.get(2) }
}

fn old_version(row: &Row) -> Result<OldVersion> {
    let unknown = |what: &str| StoreError::internal(format!("a version of an unknown {what}"));
    Ok(OldVersion {
        at: position(row),
        form: Form::from_code(row.get(3)).ok_or_else(|| unknown("form"))?,
        size: row.get(4),
        blob: hash(row, 5)?,
        file_type: FileType::from_code(row.get(6)).ok_or_else(|| unknown("type"))?,
        encoding: row.get(7),
        stored_bytes: row.get(8),
    })
}

impl Postgres {
    /// Updates a batch of versions; false if none is left. Several replicas may do this at once.
    pub(super) async fn renew_some(&self) -> Result<bool> {
        let rows = self.fetch("SELECT ws, file_id, seq FROM renewal", &[]).await?;
        let Some(from) = rows.first().map(position) else { return Ok(false) };
        let rows = self.fetch(NEXT, &[&from.ws, &from.file, &from.seq, &BATCH]).await?;
        let mut versions: Vec<OldVersion> = rows.iter().map(old_version).collect::<Result<_>>()?;
        let is_all = i64::try_from(versions.len()).is_ok_and(|count| count < BATCH);
        let count = batch(&versions);
        let is_last = is_all && count == versions.len();
        versions.truncate(count);
        let end = versions.last().map(|version| version.at).filter(|_| !is_last);
        let renewed = self.outdated(versions).await?;
        if !renewed.is_empty() {
            self.renew(&renewed).await?;
        }
        match end {
            Some(Position { ws, file, seq }) => {
                let sql = "UPDATE renewal SET ws = $1, file_id = $2, seq = $3";
                self.execute(sql, &[&ws, &file, &seq]).await?;
            }
            None => drop(self.execute("DELETE FROM renewal", &[]).await?),
        }
        Ok(end.is_some())
    }

    /// Returns the versions that have to be updated.
    async fn outdated(&self, mut versions: Vec<OldVersion>) -> Result<Vec<CorrectedVersion>> {
        // Contents that were dropped from the history cannot be checked.
        versions.retain(|version| version.encoding != Encoding::Dropped.code() && version.form != Form::Encoded);
        let workspaces: Vec<Uuid> = versions.iter().map(|version| version.at.ws).collect();
        let keys: Vec<&[u8]> = versions.iter().map(|version| &version.blob.0[..]).collect();
        let whole: Vec<bool> = versions.iter().map(OldVersion::needs_whole).collect();
        let rows = self.fetch(CONTENTS, &[&workspaces, &keys, &whole, &BEGINNING_BYTES]).await?;
        let check = move || {
            let mut contents: HashMap<(Uuid, ContentHash), Vec<&Row>> = HashMap::new();
            for row in &rows {
                contents.entry((row.get(0), hash(row, 1)?)).or_default().push(row);
            }
            let outdated = versions.iter().filter_map(|version| {
                // Versions of two forms can share a content: then it was read twice, once completely.
                let found = contents.get(&(version.at.ws, version.blob))?;
                let row = found.iter().max_by_key(|row| row.get::<_, &[u8]>(4).len())?;
                version.renewed(row.get(2), row.get(3), row.get(4))
            });
            Ok(outdated.collect())
        };
        tokio::task::spawn_blocking(check).await.map_err(StoreError::internal)?
    }

    async fn renew(&self, renewed: &[CorrectedVersion]) -> Result<()> {
        let params: [&(dyn ToSql + Sync); 8] = [
            &renewed.iter().map(|version| version.at.ws).collect::<Vec<_>>(),
            &renewed.iter().map(|version| version.at.file).collect::<Vec<_>>(),
            &renewed.iter().map(|version| version.at.seq).collect::<Vec<_>>(),
            &renewed.iter().map(|version| version.form.code()).collect::<Vec<_>>(),
            &renewed.iter().map(|version| version.size).collect::<Vec<_>>(),
            &renewed.iter().map(|version| version.form.plain_type().code()).collect::<Vec<_>>(),
            &FileType::Document.code(),
            &FileType::File.code(),
        ];
        self.execute(RENEW, &params).await.map(drop)
    }
}
