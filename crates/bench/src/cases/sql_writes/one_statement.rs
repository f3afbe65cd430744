//! Our way: hash and compress outside the database, then one statement.

use sha2::{Digest, Sha256};
use tokio_postgres::{Client, Statement};
use uuid::Uuid;
use zstd::bulk::Compressor;

use super::{WORKSPACE, Way, connect};

/// The store's tables, under names of the bench's own.
pub const OUR_TABLES: &str = r#"
DROP TABLE IF EXISTS our_files, our_versions, our_blobs, our_changes;
CREATE TABLE our_files (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    path text COLLATE "C" NOT NULL,
    dir text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    head_seq bigint NOT NULL,
    head_version uuid,
    head_hash bytea,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz,
    PRIMARY KEY (ws, id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX ON our_files (ws, path) WHERE deleted_at IS NULL;
CREATE INDEX ON our_files (ws, dir, name) WHERE deleted_at IS NULL;
CREATE TABLE our_versions (
    ws uuid NOT NULL,
    file_id uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    hash bytea NOT NULL,
    form smallint NOT NULL,
    blob bytea NOT NULL,
    author uuid NOT NULL,
    commit_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (ws, file_id, seq)
);
CREATE TABLE our_blobs (
    ws uuid NOT NULL,
    key bytea NOT NULL,
    size integer NOT NULL,
    encoding smallint NOT NULL,
    ascii boolean NOT NULL,
    data bytea NOT NULL,
    signature bytea,
    PRIMARY KEY (ws, key)
);
ALTER TABLE our_blobs ALTER data SET STORAGE EXTERNAL;
CREATE TABLE our_changes (
    ws uuid NOT NULL,
    xid xid8 NOT NULL,
    file_id uuid NOT NULL,
    PRIMARY KEY (ws, xid, file_id)
);
INSERT INTO our_files (ws, id, path, dir, name, kind, head_seq, updated_at)
SELECT '00000000-0000-0000-0000-000000000001', gen_random_uuid(),
       '/src/folder-' || i % 40 || '/file-' || i || '.rs', '/src/folder-' || i % 40, 'file-' || i || '.rs', 1, 1, now()
FROM generate_series(0, 1999) i;
INSERT INTO our_versions (ws, file_id, seq, id, hash, form, blob, author, commit_id, created_at)
SELECT ws, id, 1, id, sha256(path::bytea), 1, sha256(path::bytea), ws, id, now() FROM our_files;
INSERT INTO our_blobs (ws, key, size, encoding, ascii, data)
SELECT ws, sha256(path::bytea), 4096, 0, true, repeat(md5(path), 128)::bytea FROM our_files;
"#;

pub const COUNT_VERSIONS: &str = "SELECT count(*) FROM our_versions";

/// The statement under test. Its parameters are those of [`NewVersion`], in order.
fn one_statement_sql() -> &'static str {
    "WITH file AS (
         SELECT id, head_seq FROM our_files
         WHERE ws = $1 AND path = $2 AND deleted_at IS NULL
         FOR UPDATE
     ), blob AS (
         INSERT INTO our_blobs (ws, key, size, encoding, ascii, data)
         VALUES ($1, $3, $4, 1, $5, $6)
         ON CONFLICT DO NOTHING
     ), version AS (
         INSERT INTO our_versions (ws, file_id, seq, id, hash, form, blob, author, commit_id, created_at)
         SELECT $1, id, head_seq + 1, $7, $3, 1, $3, $8, $9, now() FROM file
         RETURNING file_id, seq
     ), change AS (
         INSERT INTO our_changes (ws, xid, file_id)
         SELECT $1, pg_current_xact_id(), file_id FROM version
     )
     UPDATE our_files f
     SET head_seq = version.seq, head_version = $7, head_hash = $3, updated_at = now()
     FROM version
     WHERE f.ws = $1 AND f.id = version.file_id
     RETURNING f.id, f.head_seq"
}

/// What our tables keep of a new content, made ready outside the database.
pub struct NewVersion {
    pub hash: [u8; 32],
    pub size: i32,
    pub ascii: bool,
    pub data: Vec<u8>,
    pub id: Uuid,
    pub author: Uuid,
    pub commit: Uuid,
}

impl NewVersion {
    pub fn of(text: &str, compressor: &mut Compressor<'static>) -> Self {
        Self {
            hash: Sha256::digest(text).into(),
            size: i32::try_from(text.len()).expect("texts here are short"),
            ascii: text.is_ascii(),
            data: compressor.compress(text.as_bytes()).expect("a text compresses"),
            id: Uuid::now_v7(),
            author: WORKSPACE,
            commit: Uuid::now_v7(),
        }
    }
}

pub struct OneStatement {
    client: Client,
    statement: Statement,
    compressor: Compressor<'static>,
}

impl Way for OneStatement {
    const SCHEMA: &'static str = OUR_TABLES;
    const COUNT_VERSIONS: &'static str = COUNT_VERSIONS;

    async fn prepare(address: &str) -> Self {
        let client = connect(address).await;
        Self {
            statement: client.prepare(one_statement_sql()).await.expect("it prepares"),
            compressor: Compressor::new(3).expect("zstd starts"),
            client,
        }
    }

    async fn write(&mut self, path: &str, text: &str) {
        let new = NewVersion::of(text, &mut self.compressor);
        self.client
            .query_one(
                &self.statement,
                &[
                    &WORKSPACE,
                    &path,
                    &new.hash.as_slice(),
                    &new.size,
                    &new.ascii,
                    &new.data,
                    &new.id,
                    &new.author,
                    &new.commit,
                ],
            )
            .await
            .expect("the statement writes one version");
    }
}
