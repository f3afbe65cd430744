//! PostgreSQL, for several replicas on one database.

mod account_admin;
mod accounts;
mod approvals;
mod calls;
mod chats;
mod commits;
mod feed;
mod file_list;
mod files;
mod folders;
mod keys;
mod memories;
mod notifications;
mod put;
mod renewal;
mod row;
mod rules;
mod search;
mod secrets;
mod sessions;
mod snapshot;
mod statements;
mod storage;
mod tls;
mod transaction;
mod upkeep;
mod workspace_metrics;
mod workspaces;

use crate::error::{Result, StoreError};
use crate::quota::Usage;
use crate::search::Searcher;
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use futures_util::future::try_join_all;
use notifications::Signals;
use std::{str::FromStr, sync::Arc, time::Duration};
use tls::{Connector, Tls};
use tokio_postgres::{
    Row,
    config::SslMode,
    error::SqlState,
    types::{ToSql, WasNull, WrongType},
};
use toolrest_core::ToolError;

/// Schema changes, oldest first. Never edit one that was released; add another.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/postgres/0001_ground_floor.sql"),
    include_str!("../migrations/postgres/0002_search.sql"),
    include_str!("../migrations/postgres/0003_folders.sql"),
    include_str!("../migrations/postgres/0004_workspace_settings.sql"),
    include_str!("../migrations/postgres/0005_account_control.sql"),
    include_str!("../migrations/postgres/0006_storage_used.sql"),
    include_str!("../migrations/postgres/0007_folders_uncounted.sql"),
    include_str!("../migrations/postgres/0008_renewal.sql"),
    include_str!("../migrations/postgres/0009_keys.sql"),
    include_str!("../migrations/postgres/0010_records.sql"),
    include_str!("../migrations/postgres/0011_feed.sql"),
    include_str!("../migrations/postgres/0012_approvals.sql"),
    include_str!("../migrations/postgres/0013_memories.sql"),
    include_str!("../migrations/postgres/0014_secrets.sql"),
    include_str!("../migrations/postgres/0015_sessions.sql"),
];

/// The advisory lock that serialises migrations of replicas. An arbitrary number that no other program uses.
const MIGRATION_LOCK: i64 = 0x746f_6f6c_7265_7374;

/// Number of connections opened at the start.
const FIRST_CONNECTIONS: usize = 4;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A store on PostgreSQL.
///
/// A request holds at most one connection, and only while its statement or transaction runs.
#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
    searcher: Arc<Searcher>,
    usage: Arc<Usage>,
    signals: Arc<Signals>,
}

/// Options of a PostgreSQL store.
pub struct PostgresOptions {
    /// Maximum number of connections.
    pub pool_size: usize,
    /// Maximum duration of a statement.
    pub statement_timeout: Duration,
    /// Maximum time that a request waits for a connection.
    pub wait_timeout: Duration,
    /// Maximum size of the search cache.
    pub search_cache_bytes: usize,
}

impl Postgres {
    /// Connects and migrates the schema.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self> {
        let (url, tls) = Tls::of_url(url)?;
        let mut config = tokio_postgres::Config::from_str(&url)
            .map_err(|error| ToolError::argument("database.url", format!("The database URL is not valid: {error}")))?;
        if config.get_application_name().is_none() {
            config.application_name("toolrest");
        }
        config.ssl_mode(if tls.is_on() { SslMode::Require } else { SslMode::Disable });
        config.connect_timeout(CONNECT_TIMEOUT);
        // Statements must not wait for ever for a machine that is unreachable.
        config.tcp_user_timeout(options.statement_timeout + CONNECT_TIMEOUT);
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), tls.clone(), recycling);
        let pool = Pool::builder(manager)
            .max_size(options.pool_size)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(options.wait_timeout))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .post_create(Hook::async_fn(move |client, _| {
                let setup = session_setup(options.statement_timeout);
                Box::pin(async move { client.batch_execute(&setup).await.map_err(HookError::Backend) })
            }))
            .build()
            .map_err(StoreError::internal)?;
        if let Err(error) = pool.get().await {
            let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            let causes: Vec<String> = causes.map(ToString::to_string).collect();
            let message = format!("Cannot connect to the database: {}", causes.join(": "));
            return Err(StoreError::Unavailable(message));
        }
        // Opened now, so that the first callers need not wait for them.
        let first = (0..options.pool_size.min(FIRST_CONNECTIONS)).map(|_| pool.get());
        drop(try_join_all(first).await.map_err(no_connection)?);
        let searcher = Arc::new(Searcher::new(options.search_cache_bytes));
        let signals = Arc::new(Signals::start(Connector { config, tls }));
        let store = Self { pool, searcher, usage: Arc::default(), signals };
        store.migrate().await?;
        Ok(store)
    }

    async fn client(&self) -> Result<Object> {
        self.pool.get().await.map_err(no_connection)
    }

    /// Migrates the schema. Replicas that start together migrate one after the other.
    async fn migrate(&self) -> Result<()> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await.map_err(to_store_error)?;
        let prepare = format!(
            "SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({MIGRATION_LOCK});
             CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL);"
        );
        transaction.batch_execute(&prepare).await.map_err(to_store_error)?;
        let found = transaction.query_opt("SELECT version FROM schema_version", &[]).await.map_err(to_store_error)?;
        let done = found.map_or(0, |row| row.get::<_, i32>(0));
        let done = usize::try_from(done).map_err(StoreError::internal)?;
        if done > MIGRATIONS.len() {
            return Err(crate::store::newer_database(done, MIGRATIONS.len()));
        }
        for migration in &MIGRATIONS[done..] {
            transaction.batch_execute(migration).await.map_err(to_store_error)?;
        }
        let record =
            format!("DELETE FROM schema_version; INSERT INTO schema_version (version) VALUES ({})", MIGRATIONS.len());
        transaction.batch_execute(&record).await.map_err(to_store_error)?;
        transaction.commit().await.map_err(to_store_error)
    }

    /// Runs a read-only query. If the connection is closed, the query is retried once on another one.
    async fn fetch(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let mut retried = false;
        loop {
            let client = self.client().await?;
            match query(&client, sql, params).await {
                Err(_) if client.is_closed() && !retried => retried = true,
                other => return other,
            }
        }
    }

    /// Runs two read-only queries in one snapshot and one round trip.
    async fn fetch_both(&self, first: Query<'_>, second: Query<'_>) -> Result<(Vec<Row>, Vec<Row>)> {
        let mut retried = false;
        loop {
            let mut transaction = self.transaction().await?;
            match transaction.fetch_both(first, second).await {
                Ok(both) => {
                    transaction.finished();
                    return Ok(both);
                }
                Err(_) if transaction.is_closed() && !retried => retried = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// Runs one statement that writes.
    async fn execute(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        query(&self.client().await?, sql, params).await
    }
}

/// A statement and its parameters.
type Query<'a> = (&'a str, &'a [&'a (dyn ToSql + Sync)]);

/// Returns the settings of a new session.
fn session_setup(statement_timeout: Duration) -> String {
    // Generic plans and no JIT: the statements are few and short, so planning or compiling each again costs more than
    // it gains. Acknowledged commits are durable, whatever the database's default is.
    format!(
        "SET statement_timeout = {}; SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET timezone = 'UTC';
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';",
        statement_timeout.as_millis()
    )
}

/// Runs a prepared statement.
async fn query(client: &Object, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
    let statement = client.prepare_cached(sql).await.map_err(to_store_error)?;
    client.query(&statement, params).await.map_err(to_store_error)
}

/// Translates a failure of the database.
fn to_store_error(error: tokio_postgres::Error) -> StoreError {
    let Some(code) = error.code() else {
        if std::error::Error::source(&error).is_some_and(|source| source.is::<WrongType>() || source.is::<WasNull>()) {
            return StoreError::internal(error);
        }
        // There is no SQLSTATE: the connection failed.
        let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        tracing::warn!(%error, cause, "the connection to the database failed");
        return unavailable();
    };
    if *code == SqlState::DISK_FULL {
        tracing::error!(%error, "the disk of the database is full");
        let message = "The disk that holds the database is full; nothing was written";
        return StoreError::StorageFull(message);
    }
    if means_unavailable(code) {
        tracing::warn!(%error, "the database is unavailable");
        return unavailable();
    }
    if *code == SqlState::QUERY_CANCELED {
        return StoreError::Timeout("The database took too long; try again, or ask for less at once".to_owned());
    }
    if [SqlState::UNIQUE_VIOLATION, SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE].contains(code)
    {
        return StoreError::LostRace;
    }
    // Only the message and the code: the detail may contain data of users.
    let words = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
    StoreError::internal(format!("{words} (SQLSTATE {})", code.code()))
}

fn means_unavailable(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::OUT_OF_MEMORY,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ]
    .contains(code)
        || code.code().starts_with("08")
}

fn no_connection(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => to_store_error(error),
        PoolError::Timeout(TimeoutType::Wait) => {
            StoreError::Timeout("No database connection became free in time; try again".to_owned())
        }
        other => {
            tracing::warn!(error = %other, "no connection to the database");
            unavailable()
        }
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("The database is unavailable at the moment; try again".to_owned())
}
