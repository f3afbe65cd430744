//! The store itself, as the server uses it: its one statement on its own tables.

use std::time::Duration;

use toolrest_core::{
    Access, CallId, Change, Changeset, Content, FileType, Parents, Put, Role, UserId, WorkspaceId, WsPath, now,
};
use toolrest_store::{CallInfo, FileStore, Postgres, PostgresOptions};

use super::{WORKSPACE, Way};

const PATIENCE: Duration = Duration::from_secs(30);

pub struct TheStore(Postgres);

impl Way for TheStore {
    const SCHEMA: &'static str = concat!(
        "DROP SCHEMA public CASCADE; CREATE SCHEMA public;",
        include_str!("../../../../store/migrations/postgres/0001_ground_floor.sql"),
        "CREATE TABLE schema_version (version integer NOT NULL);
         INSERT INTO schema_version VALUES (1);
         INSERT INTO members (ws, user_id, role, created_at)
         VALUES ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000001', 3, now());
         INSERT INTO files (ws, id, path, dir, name, kind, head_seq, head_version, head_hash, head_blob, head_form, size,
             created_at, updated_at)
         SELECT '00000000-0000-0000-0000-000000000001', gen_random_uuid(),
             '/src/folder-' || i % 40 || '/file-' || i || '.rs', '/src/folder-' || i % 40, 'file-' || i || '.rs', 1, 1,
             gen_random_uuid(), sha256(i::text::bytea), sha256(i::text::bytea), 0, 4096, now(), now()
         FROM generate_series(0, 1999) i;
         INSERT INTO versions (ws, file_id, seq, id, hash, form, blob, size, author, commit_id, created_at)
         SELECT ws, id, 1, head_version, head_hash, 0, head_blob, 4096, ws, id, now() FROM files;
         INSERT INTO blobs (ws, key, size, encoding, data)
         SELECT ws, head_blob, 4096, 0, repeat(md5(path), 128)::bytea FROM files;"
    );
    const COUNT_VERSIONS: &'static str = "SELECT count(*) FROM versions";

    async fn prepare(address: &str) -> Self {
        let options = PostgresOptions {
            pool_size: 1,
            statement_timeout: PATIENCE,
            wait_timeout: PATIENCE,
            search_cache_bytes: 0,
        };
        Self(Postgres::connect(address, options).await.expect("the store opens"))
    }

    async fn write(&mut self, path: &str, text: &str) {
        let user = UserId(WORKSPACE);
        let access = Access { workspace: WorkspaceId(WORKSPACE), user, need: Role::Editor };
        let put = Put {
            path: WsPath::posix(path).expect("a path"),
            file_type: FileType::Document,
            content: Content::Text(text.to_owned()),
            parents: Parents::Require,
        };
        let call = CallInfo { id: CallId::new(), toolset: "bench", tool: "write", caller: user, started_at: now() };
        self.0.commit(access, Changeset::one(Change::Put(put)), call).await.expect("the store commits");
    }
}
