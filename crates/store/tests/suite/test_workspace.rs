//! A workspace in a new store, and short helpers for using it.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toolrest_core::{
    Access, CallDetails, CallId, Change, Changeset, Commit, Content, Depth, File, Parents, Put, Role, WsPath, now,
};
use toolrest_core::{
    FileType, IgnoredFiles, Interrupt, LineMatcher, LinePattern, Requirement, Search, UserId, WorkspaceId,
};
use toolrest_store::error::Result;
use toolrest_store::{CallInfo, Location, NewUser, Postgres, PostgresOptions, Quotas, RecordPlace, Sqlite, Store};

/// Instantiates each test function, which takes a [`TestWorkspace`], for both stores.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(crate::test_workspace::TestWorkspace::on_sqlite().await).await;
                }
            )+
        }

        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(crate::test_workspace::TestWorkspace::on_postgres().await).await;
                }
            )+
        }
    };
}
pub(crate) use on_both_stores;

pub(crate) const SEARCH_CACHE_BYTES: usize = 64 << 20;

#[derive(Clone)]
pub(crate) struct TestWorkspace {
    pub store: Arc<dyn Store>,
    pub user: UserId,
    pub workspace: WorkspaceId,
    folder: Option<Arc<TempDir>>,
}

impl TestWorkspace {
    pub(crate) async fn on_sqlite() -> Self {
        Self::on_sqlite_with(Quotas::default()).await
    }

    pub(crate) async fn on_sqlite_with(quotas: Quotas) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let store = Sqlite::open(&folder.path().join("test.db"), SEARCH_CACHE_BYTES).unwrap().limited(quotas);
        Self::with(Arc::new(store), Some(folder)).await
    }

    pub(crate) async fn on_postgres() -> Self {
        Self::on_postgres_at().await.0
    }

    /// Returns also the URL of the database.
    pub(crate) async fn on_postgres_at() -> (Self, String) {
        Self::on_postgres_with(Quotas::default()).await
    }

    pub(crate) async fn on_postgres_with(quotas: Quotas) -> (Self, String) {
        let url = tokio::task::spawn_blocking(|| toolrest_testkit::Postgres::shared().create_database()).await.unwrap();
        let second = Duration::from_secs(1);
        let options = PostgresOptions {
            pool_size: 5,
            statement_timeout: 30 * second,
            wait_timeout: 30 * second,
            search_cache_bytes: SEARCH_CACHE_BYTES,
        };
        let store = Postgres::connect(&url, options).await.unwrap().limited(quotas);
        (Self::with(Arc::new(store), None).await, url)
    }

    async fn with(store: Arc<dyn Store>, folder: Option<Arc<TempDir>>) -> Self {
        let user = new_user(&*store).await;
        let workspace = store.create_workspace(user, "test".into(), Location::Database).await.unwrap().id;
        Self { store, user, workspace, folder }
    }

    /// Opens the database file of SQLite once more, as another process does.
    pub(crate) fn in_another_process(&self) -> Self {
        let store = Sqlite::open(&self.file().unwrap(), SEARCH_CACHE_BYTES).unwrap();
        Self { store: Arc::new(store), ..self.clone() }
    }

    /// The same workspace through another store on the same database.
    pub(crate) fn with_store(&self, store: Arc<dyn Store>) -> Self {
        Self { store, ..self.clone() }
    }

    /// The database file of SQLite.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().join("test.db"))
    }

    pub(crate) fn access(&self) -> Access {
        Access { workspace: self.workspace, user: self.user, person: self.user, need: Role::Editor, rules: None }
    }

    pub(crate) async fn commit(&self, changes: Changeset) -> Result<Commit> {
        self.store.commit(self.access(), changes, call_of(self.user)).await
    }

    pub(crate) async fn all(&self, changes: Vec<Change>) -> Result<Commit> {
        self.commit(Changeset { changes, ..Changeset::default() }).await
    }

    pub(crate) async fn put(&self, at: &str, text: &str) -> Commit {
        self.all(vec![put(at, text)]).await.unwrap()
    }

    pub(crate) async fn read(&self, at: &str) -> Result<File> {
        self.store.read(self.access(), &path(at), i64::MAX).await
    }

    pub(crate) async fn text(&self, at: &str) -> String {
        match self.read(at).await.unwrap().content {
            Some(Content::Text(text)) => text,
            other => panic!("{at} holds {other:?}"),
        }
    }

    /// Every path below the root, sorted.
    pub(crate) async fn paths(&self) -> Vec<String> {
        let listing =
            self.store.list(self.access(), &WsPath::root(), Depth::Descendants, usize::MAX >> 8).await.unwrap();
        listing.entries.iter().map(|entry| entry.path.to_string()).collect()
    }

    /// Undoes the newest commit.
    pub(crate) async fn undo(&self) -> Result<Commit> {
        let page = toolrest_store::Page { before: None, limit: 1 };
        let newest = self.store.commits(self.access(), page).await?.remove(0);
        self.commit(toolrest_ops::inverse_of_commit(&newest)).await
    }
}

pub(crate) async fn new_user(store: &dyn Store) -> UserId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let email = format!("user-{}@example.com", NEXT.fetch_add(1, Ordering::Relaxed));
    store.create_user(NewUser { email, password_hash: "none".into(), full_name: None }).await.unwrap().id
}

pub(crate) fn call_of(user: UserId) -> CallInfo {
    CallInfo {
        id: CallId::new(),
        toolset: "test".into(),
        tool: "test".into(),
        caller: user,
        started_at: now(),
        details: CallDetails::default(),
        record: RecordPlace::WithCommit,
        approval: None,
        guard: Arc::default(),
    }
}

pub(crate) async fn commit(store: &dyn Store, access: Access, changes: Vec<Change>) -> Result<Commit> {
    store.commit(access, Changeset { changes, ..Changeset::default() }, call_of(access.user)).await
}

/// Creates a search for a text without restrictions.
pub(crate) fn search_for(needle: &'static str) -> Search {
    Search {
        pattern: Arc::new(Needle(needle, vec![Requirement { literals: vec![needle.into()] }])),
        within: WsPath::root(),
        paths: None,
        ignored: IgnoredFiles::Include,
        limit: 1000,
        context: 0,
        limit_bytes: 1 << 20,
        deadline: Instant::now() + Duration::from_secs(60),
    }
}

#[derive(Clone)]
struct Needle(&'static str, Vec<Requirement>);

impl LinePattern for Needle {
    fn compile(&self) -> toolrest_core::Result<Arc<dyn LineMatcher>> {
        Ok(Arc::new(self.clone()))
    }
}

impl LineMatcher for Needle {
    fn requirements(&self) -> &[Requirement] {
        &self.1
    }

    /// Treats the whole text as one line.
    fn find_lines(
        &self,
        text: &[u8],
        _: &Interrupt,
        found: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> toolrest_core::Result<()> {
        if String::from_utf8_lossy(text).contains(self.0) {
            let _ = found(0..text.len());
        }
        Ok(())
    }
}

pub(crate) fn path(text: &str) -> WsPath {
    WsPath::posix(text).unwrap()
}

pub(crate) fn put(at: &str, text: &str) -> Change {
    Change::Put(Put {
        path: path(at),
        file_type: FileType::Document,
        content: Content::Text(text.into()),
        parents: Parents::Create,
        executable: None,
    })
}
