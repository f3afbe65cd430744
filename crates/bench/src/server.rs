//! The server that is measured, and blocking calls to it.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use toolrest_testkit::{Account, Client, Postgres, RawReply, Reply, Request, ServerOptions};

use crate::process::{self, ResidentMemory};

const EMAIL: &str = "bench@example.com";

/// Connections that write data before a measurement.
const PREPARING_CONNECTIONS: usize = 8;

#[derive(Clone, Copy)]
pub enum Backend<'a> {
    Sqlite,
    Postgres(&'a Postgres),
}

impl Backend<'_> {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }
}

/// A running release binary with its own data and one signed-in user.
pub struct Server<'a> {
    process: toolrest_testkit::Server,
    backend: Backend<'a>,
    account: Account,
}

/// An environment variable that changes a setting, and its value.
pub type Setting<'a> = (&'a str, &'a str);

/// CPU time used so far.
#[derive(Clone, Copy)]
pub struct Cpu {
    pub server: Duration,
    pub database: Duration,
}

impl Cpu {
    pub fn since(self, before: Self) -> Self {
        Self {
            server: self.server.saturating_sub(before.server),
            database: self.database.saturating_sub(before.database),
        }
    }
}

impl<'a> Server<'a> {
    /// Starts the binary with default settings.
    pub fn start(toolrest: &Path, backend: Backend<'a>) -> Self {
        Self::start_with(toolrest, backend, &[])
    }

    /// Starts the binary with some settings that differ from the default.
    pub fn start_with(toolrest: &Path, backend: Backend<'a>, settings: &[Setting]) -> Self {
        let database = match backend {
            Backend::Sqlite => toolrest_testkit::Backend::Sqlite,
            Backend::Postgres(postgres) => toolrest_testkit::Backend::Postgres(postgres.create_database()),
        };
        // The whole run uses one access token.
        let options = ServerOptions::new(absolute(toolrest), database)
            .env("TOOLREST__JWT__ACCESS_TOKEN_EXPIRATION_MINUTES", "600")
            .log_to_file();
        let options = settings.iter().fold(options, |options, (name, value)| options.env(name, value));
        let process = options.start();
        let account = runtime().block_on(Account::register(&process.client(), EMAIL));
        Self { process, backend, account }
    }

    /// Starts one more process on the same data.
    pub fn replica(&self, settings: &[Setting]) -> Self {
        Self { process: self.process.replica(settings), backend: self.backend, account: self.account.clone() }
    }

    pub fn backend(&self) -> Backend<'a> {
        self.backend
    }

    /// Returns the folder of the embedded database.
    pub fn data_folder(&self) -> &Path {
        self.process.data_folder()
    }

    /// Returns a session, which opens its connection with the first call.
    pub fn session(&self) -> Session {
        let client = self.process.client().without_schema_checks();
        Session { runtime: runtime(), account: self.account.through(&client), client }
    }

    /// Returns a session with the listener of specification 003, which the settings must have turned on.
    pub fn tool_backend_session(&self) -> Session {
        let client = self.process.tool_backend().without_schema_checks();
        Session { runtime: runtime(), account: self.account.through(&client), client }
    }

    /// Renders a call of a tool of the workspace toolset.
    pub fn render_tool(&self, workspace: &str, tool: &str, args: &Value) -> Vec<u8> {
        Request::new("POST", &format!("/api/v1/workspaces/{workspace}/tools"))
            .bearer(&self.account.access_token)
            .json(&json!({"tool": tool, "args": args}))
            .to_bytes()
    }

    /// Runs `job` once for each number below `count`, on several connections.
    pub fn prepare(&self, count: usize, job: impl Fn(&Session, usize) + Sync) {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..PREPARING_CONNECTIONS {
                scope.spawn(|| {
                    let session = self.session();
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count {
                            break;
                        }
                        job(&session, index);
                    }
                });
            }
        });
    }

    pub fn cpu(&self) -> Cpu {
        Cpu {
            server: process::cpu(self.process.pid()),
            database: match self.backend {
                Backend::Sqlite => Duration::ZERO,
                Backend::Postgres(postgres) => process::cpu_with_children(postgres.pid()),
            },
        }
    }

    pub fn resident_memory(&self) -> ResidentMemory {
        process::resident_memory(self.process.pid())
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let output = self.process.output();
            let lines: Vec<&str> = output.lines().collect();
            eprintln!("the end of the server's log:\n{}", lines[lines.len().saturating_sub(30)..].join("\n"));
        }
    }
}

/// The server is started in another folder.
fn absolute(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime starts")
}

/// One keep-alive connection of the signed-in user, for blocking calls.
pub struct Session {
    runtime: Runtime,
    account: Account,
    client: Client,
}

impl Session {
    /// Sends a rendered request and returns the answer unchecked.
    pub fn exchange(&self, request: &[u8]) -> RawReply {
        self.runtime.block_on(self.client.exchange_bytes(request)).expect("the server answers")
    }

    /// Sends a request; `path` is relative to `/api/v1`.
    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.runtime.block_on(self.account.post(path, body))
    }

    /// Sends a request that must succeed; `path` is relative to `/api/v1`.
    pub fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        self.runtime.block_on(self.account.send(method, path, body)).success()
    }

    /// Returns a session of an agent key of a workspace.
    pub fn agent(&self, workspace: &str) -> Self {
        let made = self.send("POST", &format!("/workspaces/{workspace}/keys"), Some(&json!({"name": "bench"})));
        let access_token = made["secret"].as_str().expect("its secret").to_owned();
        // Connections belong to the runtime that opened them.
        let client = Client::new(self.client.address()).without_schema_checks();
        let account = Account { access_token, ..self.account.through(&client) };
        Self { runtime: runtime(), account, client }
    }

    /// Renders a call of a tool of any toolset.
    pub fn render_call(&self, workspace: &str, toolset: &str, tool: &str, args: &Value) -> Vec<u8> {
        Request::new("POST", &format!("/api/v1/workspaces/{workspace}/toolsets/{toolset}"))
            .bearer(&self.account.access_token)
            // Specification 003 requires it.
            .header("X-Correlation-ID", "bench")
            .json(&json!({"tool": tool, "args": args}))
            .to_bytes()
    }

    pub fn create_workspace(&self, name: &str) -> String {
        self.runtime.block_on(self.account.workspace(name)).id
    }

    /// Calls a tool of the workspace toolset and returns its result.
    pub fn tool(&self, workspace: &str, tool: &str, args: &Value) -> Value {
        self.runtime.block_on(self.account.in_workspace(workspace).call(tool, args)).result()
    }

    pub fn write(&self, workspace: &str, path: &str, content: &str) {
        self.tool(workspace, "write", &json!({"path": path, "content": content}));
    }

    pub fn read(&self, workspace: &str, path: &str) -> String {
        self.runtime.block_on(self.account.in_workspace(workspace).text(path))
    }
}
