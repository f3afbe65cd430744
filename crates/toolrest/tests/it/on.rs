//! The backends that tests run on, and the servers that tests share.

use std::sync::{Once, OnceLock};

use crate::github_host::github;
use crate::web_host::{WEB_ADDRESS, WebHost};
use serde_json::Value;
use toolrest_testkit::{Account, Backend, Postgres, Server, ServerOptions, Workspace, unique_email};

/// Instantiates each test function, which takes an [`On`], for one backend.
macro_rules! on {
    ($module:ident, $on:ident: $($name:ident),+) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(crate::on::On::$on).await;
                }
            )+
        }
    };
}

/// Instantiates each test function for files in both databases.
macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {
        on!(sqlite, Sqlite: $($name),+);
        on!(postgres, Postgres: $($name),+);
    };
}

/// Instantiates each test function for files in both databases and in a folder with its history in either. The functions
/// after the semicolon run on databases only: they are about JSON types and the search cache.
macro_rules! on_every_backend {
    ($($name:ident),+ $(; $($of_databases:ident),+)? $(,)?) => {
        on_both_databases!($($name),+ $(, $($of_databases),+)?);
        on!(folder, Folder: $($name),+);
        on!(folder_on_postgres, FolderOnPostgres: $($name),+);
    };
}

/// The backend of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Sqlite,
    Postgres,
    Folder,
    FolderOnPostgres,
    /// A folder, on a server that runs as an ordinary user.
    FolderOfUser,
}

impl On {
    /// Returns options for a separate server with new data.
    pub fn options(self) -> ServerOptions {
        let backend = match self {
            Self::Sqlite | Self::Folder | Self::FolderOfUser => Backend::Sqlite,
            Self::Postgres | Self::FolderOnPostgres => Backend::Postgres(Postgres::shared().create_database()),
        };
        let options = options_on(backend);
        if self == Self::FolderOfUser { options.as_ordinary_user() } else { options }
    }

    /// Returns the shared server of this backend; each test creates its own users and workspaces on it.
    pub fn shared(self) -> &'static Server {
        static SQLITE: OnceLock<Server> = OnceLock::new();
        static POSTGRES: OnceLock<Server> = OnceLock::new();
        static OF_USER: OnceLock<Server> = OnceLock::new();
        static HOOK: Once = Once::new();
        HOOK.call_once(|| show_on_panic([&SQLITE, &POSTGRES, &OF_USER]));
        let shared = match self {
            Self::Sqlite | Self::Folder => &SQLITE,
            Self::Postgres | Self::FolderOnPostgres => &POSTGRES,
            Self::FolderOfUser => &OF_USER,
        };
        shared.get_or_init(|| self.options().start())
    }

    /// Registers a new user at the shared server.
    pub async fn account(self) -> Account {
        Account::register(&self.shared().client(), &unique_email("someone")).await
    }

    /// Creates a user and a workspace on the shared server.
    pub async fn workspace(self) -> Workspace {
        self.workspace_of(&self.account().await, self.shared()).await
    }

    /// Creates a user and a workspace on a separate server.
    pub async fn workspace_at(self, server: &Server) -> Workspace {
        let account = Account::register(&server.client(), &unique_email("someone")).await;
        self.workspace_of(&account, server).await
    }

    /// Creates a workspace of a user on a server.
    pub async fn workspace_of(self, account: &Account, server: &Server) -> Workspace {
        match self {
            Self::Sqlite | Self::Postgres => account.workspace("Bench").await,
            Self::Folder | Self::FolderOnPostgres | Self::FolderOfUser => {
                account.folder_workspace("Bench", &server.new_folder()).await
            }
        }
    }
}

/// Returns options for a server with this backend.
pub fn options_on(backend: Backend) -> ServerOptions {
    // Calls ask only in workspaces that say so, which the tests of approvals do.
    Server::options(env!("CARGO_BIN_EXE_toolrest"), backend)
        .env("TOOLREST__POLICY__APPROVALS", "off")
        .env("TOOLREST__WEB__ALLOW_PRIVATE", WEB_ADDRESS)
        .env("TOOLREST__WEB__BROWSER", "false")
        .env("TOOLREST__WEB__SEARCH_PROVIDER", "searxng")
        .env("TOOLREST__WEB__SEARCH_URL", &WebHost::web().url())
        .env("TOOLREST__GITHUB__API_URL", &format!("{}/api/v3", github().url()))
}

/// Creates a user and a database workspace on a separate server.
pub async fn workspace_at(server: &Server) -> Workspace {
    Account::register(&server.client(), &unique_email("someone")).await.workspace("Bench").await
}

/// Adds the logs of the shared servers to the message of a failing test.
fn show_on_panic(servers: [&'static OnceLock<Server>; 3]) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        for server in servers.iter().filter_map(|server| server.get()) {
            let output = server.output();
            let tail: Vec<_> = output.lines().rev().take(20).collect();
            let tail: Vec<_> = tail.into_iter().rev().collect();
            eprintln!("server {} logged:\n{}", server.url(), tail.join("\n"));
        }
    }));
}

/// Returns a string of an answer; panics with the answer if it is missing.
#[track_caller]
pub fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no string at {pointer} of {value}"))
}

/// Returns an array of an answer; panics with the answer if it is missing.
#[track_caller]
pub fn list_at<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("no array at {pointer} of {value}"))
}
