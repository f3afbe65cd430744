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
         INSERT INTO schema_version VALUES (1);",
        include_str!("grown.sql")
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
            executable: None,
        };
        let call = CallInfo {
            id: CallId::new(),
            toolset: "bench".into(),
            tool: "write".into(),
            caller: user,
            started_at: now(),
        };
        self.0.commit(access, Changeset::one(Change::Put(put)), call).await.expect("the store commits");
    }
}
