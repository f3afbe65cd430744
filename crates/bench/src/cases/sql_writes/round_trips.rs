//! The usual way: a round trip for each step, on usual tables and on ours.

use std::fmt::Write as _;

use serde_json::json;
use sha2::{Digest, Sha256};
use tokio_postgres::{Client, Statement};
use uuid::Uuid;
use zstd::bulk::Compressor;

use super::one_statement::{COUNT_VERSIONS, NewVersion, OUR_TABLES};
use super::{WORKSPACE, Way, connect};

/// As the original of this API keeps them, with the indexes it has on them.
const USUAL_TABLES: &str = r#"
DROP TABLE IF EXISTS bench_files, bench_versions;
CREATE TABLE bench_files (
    id uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    parent_id uuid,
    path text COLLATE "C" NOT NULL,
    name text NOT NULL,
    file_type text NOT NULL,
    latest_version_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);
CREATE UNIQUE INDEX ON bench_files (workspace_id, path) WHERE deleted_at IS NULL;
CREATE INDEX ON bench_files (parent_id) WHERE deleted_at IS NULL;
CREATE INDEX ON bench_files (path text_pattern_ops);
CREATE INDEX ON bench_files (workspace_id);
CREATE INDEX ON bench_files (workspace_id, name);
CREATE INDEX ON bench_files (deleted_at);
CREATE TABLE bench_versions (
    id uuid PRIMARY KEY,
    file_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    content jsonb NOT NULL,
    hash text NOT NULL,
    author_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON bench_versions (file_id, created_at DESC);
CREATE INDEX ON bench_versions (hash);
CREATE INDEX ON bench_versions (workspace_id);
INSERT INTO bench_files (id, workspace_id, path, name, file_type)
SELECT gen_random_uuid(), '00000000-0000-0000-0000-000000000001',
       '/src/folder-' || i % 40 || '/file-' || i || '.rs', 'file-' || i || '.rs', 'document'
FROM generate_series(0, 1999) i;
INSERT INTO bench_versions (id, file_id, workspace_id, content, hash, author_id)
SELECT id, id, workspace_id, jsonb_build_object('text', repeat(md5(path), 128)), md5(path), workspace_id
FROM bench_files;
"#;

pub struct OnUsualTables {
    client: Client,
    file_by_path: Statement,
    file_by_id: Statement,
    latest_version: Statement,
    insert_version: Statement,
    update_file: Statement,
}

impl Way for OnUsualTables {
    const SCHEMA: &'static str = USUAL_TABLES;
    const COUNT_VERSIONS: &'static str = "SELECT count(*) FROM bench_versions";

    async fn prepare(address: &str) -> Self {
        let client = connect(address).await;
        let prepare = async |sql| client.prepare(sql).await.expect("it prepares");
        Self {
            file_by_path: prepare(
                "SELECT * FROM bench_files WHERE workspace_id = $1 AND path = $2 AND deleted_at IS NULL",
            )
            .await,
            file_by_id: prepare("SELECT * FROM bench_files WHERE id = $1").await,
            latest_version: prepare("SELECT * FROM bench_versions WHERE file_id = $1 ORDER BY created_at DESC LIMIT 1")
                .await,
            insert_version: prepare(
                "INSERT INTO bench_versions (id, file_id, workspace_id, content, hash, author_id)
                 VALUES ($1, $2, $3, $4::text::jsonb, $5, $6)
                 RETURNING id, created_at",
            )
            .await,
            update_file: prepare("UPDATE bench_files SET latest_version_id = $2, updated_at = now() WHERE id = $1")
                .await,
            client,
        }
    }

    async fn write(&mut self, path: &str, text: &str) {
        let hash = hex(&Sha256::digest(text));
        let content = json!({"text": text}).to_string();
        let client = &mut self.client;
        let found = client.query_one(&self.file_by_path, &[&WORKSPACE, &path]).await.expect("the file is there");
        let file: Uuid = found.get("id");
        client.query_one(&self.file_by_id, &[&file]).await.expect("the file is there");
        client.query_opt(&self.latest_version, &[&file]).await.expect("at most one version is the latest");
        let transaction = client.transaction().await.expect("a transaction begins");
        let inserted = transaction
            .query_one(&self.insert_version, &[&Uuid::now_v7(), &file, &WORKSPACE, &content, &hash, &WORKSPACE])
            .await
            .expect("a version is inserted");
        transaction
            .execute(&self.update_file, &[&file, &inserted.get::<_, Uuid>("id")])
            .await
            .expect("the file is updated");
        transaction.commit().await.expect("the transaction commits");
    }
}

/// Writes the rows of our one statement in seven round trips, so that only the trips differ.
pub struct OnOurTables {
    client: Client,
    file_by_path: Statement,
    file_by_id: Statement,
    latest_version: Statement,
    insert_version: Statement,
    update_file: Statement,
    compressor: Compressor<'static>,
}

impl Way for OnOurTables {
    const SCHEMA: &'static str = OUR_TABLES;
    const COUNT_VERSIONS: &'static str = COUNT_VERSIONS;

    async fn prepare(address: &str) -> Self {
        let client = connect(address).await;
        let prepare = async |sql| client.prepare(sql).await.expect("it prepares");
        Self {
            file_by_path: prepare("SELECT * FROM our_files WHERE ws = $1 AND path = $2 AND deleted_at IS NULL").await,
            file_by_id: prepare("SELECT * FROM our_files WHERE ws = $1 AND id = $2").await,
            latest_version: prepare(
                "SELECT v.*, b.size, b.encoding, b.data FROM our_versions v
                 JOIN our_blobs b ON b.ws = v.ws AND b.key = v.blob
                 WHERE v.ws = $1 AND v.file_id = $2
                 ORDER BY v.seq DESC LIMIT 1",
            )
            .await,
            // Without a guard two writers would take the same number, so the file's row is locked here.
            insert_version: prepare(
                "WITH blob AS (
                     INSERT INTO our_blobs (ws, key, size, encoding, ascii, data)
                     VALUES ($1, $3, $4, 1, $5, $6)
                     ON CONFLICT DO NOTHING
                 ), file AS (
                     SELECT id, head_seq FROM our_files WHERE ws = $1 AND id = $2 FOR UPDATE
                 )
                 INSERT INTO our_versions (ws, file_id, seq, id, hash, form, blob, author, commit_id, created_at)
                 SELECT $1, id, head_seq + 1, $7, $3, 1, $3, $8, $9, now() FROM file
                 RETURNING seq",
            )
            .await,
            update_file: prepare(
                "WITH change AS (
                     INSERT INTO our_changes (ws, xid, file_id) VALUES ($1, pg_current_xact_id(), $2)
                 )
                 UPDATE our_files SET head_seq = $3, head_version = $4, head_hash = $5, updated_at = now()
                 WHERE ws = $1 AND id = $2",
            )
            .await,
            compressor: Compressor::new(3).expect("zstd starts"),
            client,
        }
    }

    async fn write(&mut self, path: &str, text: &str) {
        let new = NewVersion::of(text, &mut self.compressor);
        let hash = new.hash.as_slice();
        let client = &mut self.client;
        let found = client.query_one(&self.file_by_path, &[&WORKSPACE, &path]).await.expect("the file is there");
        let file: Uuid = found.get("id");
        client.query_one(&self.file_by_id, &[&WORKSPACE, &file]).await.expect("the file is there");
        client.query_opt(&self.latest_version, &[&WORKSPACE, &file]).await.expect("at most one version is the latest");
        let transaction = client.transaction().await.expect("a transaction begins");
        let inserted = transaction
            .query_one(
                &self.insert_version,
                &[&WORKSPACE, &file, &hash, &new.size, &new.ascii, &new.data, &new.id, &new.author, &new.commit],
            )
            .await
            .expect("a version is inserted");
        transaction
            .execute(&self.update_file, &[&WORKSPACE, &file, &inserted.get::<_, i64>("seq"), &new.id, &hash])
            .await
            .expect("the file is updated");
        transaction.commit().await.expect("the transaction commits");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
