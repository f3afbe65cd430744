//! The server under measurement and the calls that prepare it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{self, Connection};
use crate::postgres::Cluster;
use crate::process::{self, Resident, StopSignal, Supervised};

const EMAIL: &str = "bench@example.com";
const PASSWORD: &str = "Turning-wood-4-a-living";

/// Connections that prepare data; what they do is not measured.
const PREPARING: usize = 8;

#[derive(Clone, Copy)]
pub enum Backend<'a> {
    Sqlite,
    Postgres(&'a Cluster),
}

impl Backend<'_> {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }
}

/// A running release binary with one signed-in user, on data of its own.
pub struct Server<'a> {
    process: Supervised,
    backend: Backend<'a>,
    folder: PathBuf,
    address: SocketAddr,
    token: String,
    toolrest: PathBuf,
    /// The arguments that say where the data is.
    database: Vec<OsString>,
}

/// A setting's environment variable and its value.
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
    /// Starts the binary with its defaults; `purpose` names its folder and database.
    pub fn start(toolrest: &Path, backend: Backend<'a>, purpose: &str) -> Self {
        Self::start_with(&[], toolrest, backend, purpose)
    }

    /// Starts the binary with some settings of its own.
    pub fn start_with(settings: &[Setting], toolrest: &Path, backend: Backend<'a>, purpose: &str) -> Self {
        let folder = process::fresh_folder(purpose);
        let mut database = vec!["--data-dir".into(), folder.join("data").into()];
        if let Backend::Postgres(cluster) = backend {
            database.extend(["--database-url".into(), cluster.create_database(purpose).into()]);
        }
        let mut server = Self::launch(settings, toolrest, backend, folder, database);
        server.sign_in();
        server
    }

    /// Starts one more process on the same data. It should not be there for longer than this one, which owns the data.
    pub fn replica(&self, settings: &[Setting]) -> Self {
        let folder = process::fresh_folder("replica");
        let replica = Self::launch(settings, &self.toolrest, self.backend, folder, self.database.clone());
        Self { token: self.token.clone(), ..replica }
    }

    fn launch(
        settings: &[Setting],
        toolrest: &Path,
        backend: Backend<'a>,
        folder: PathBuf,
        database: Vec<OsString>,
    ) -> Self {
        let mut argv: Vec<OsString> = vec![toolrest.into(), "serve".into()];
        argv.extend(["--listen".into(), "127.0.0.1:0".into()]);
        argv.extend_from_slice(&database);
        // One sign-in has to last for the whole run.
        let mut environment = vec![("TOOLREST__JWT__ACCESS_TOKEN_EXPIRATION_MINUTES", "600")];
        environment.extend_from_slice(settings);
        let process = Supervised::start(&argv, &environment, StopSignal::Term, folder.clone());
        let address = process
            .wait_for_line("Toolrest is listening on http://", Duration::from_secs(60))
            .trim()
            .parse()
            .expect("the announced address is one");
        Self { process, backend, folder, address, token: String::new(), toolrest: toolrest.to_owned(), database }
    }

    fn sign_in(&mut self) {
        let mut session = self.session();
        let account = json!({"email": EMAIL, "password": PASSWORD, "confirm_password": PASSWORD});
        session.post("/api/v1/auth/register", &account);
        let answer = session.post("/api/v1/auth/login", &json!({"email": EMAIL, "password": PASSWORD}));
        text(&answer["access_token"]).clone_into(&mut self.token);
    }

    pub fn backend(&self) -> Backend<'a> {
        self.backend
    }

    /// The folder that holds the embedded database.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    pub fn session(&self) -> Session<'_> {
        Session { server: self, connection: self.connect() }
    }

    /// Renders a call of a tool of the workspace toolset.
    pub fn render_tool(&self, workspace: &str, tool: &str, args: &Value) -> Vec<u8> {
        client::render(
            "POST",
            &format!("/api/v1/workspaces/{workspace}/tools"),
            Some(&self.token),
            &json!({"tool": tool, "args": args}),
        )
    }

    /// Does `job` once for each number below `count`, on several connections.
    pub fn prepare(&self, count: usize, job: impl Fn(&mut Session, usize) + Sync) {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..PREPARING {
                scope.spawn(|| {
                    let mut session = self.session();
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count {
                            break;
                        }
                        job(&mut session, index);
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
                Backend::Postgres(cluster) => cluster.cpu(),
            },
        }
    }

    pub fn resident(&self) -> Resident {
        process::resident(self.process.pid())
    }
}

/// One connection for calls whose answers matter more than their cost.
pub struct Session<'a> {
    server: &'a Server<'a>,
    connection: Connection,
}

impl Session<'_> {
    pub fn post(&mut self, path: &str, body: &Value) -> Value {
        let token = Some(self.server.token.as_str()).filter(|token| !token.is_empty());
        let request = client::render("POST", path, token, body);
        let response = self.connection.exchange(&request);
        let body = String::from_utf8_lossy(response.body);
        assert_eq!(response.status, 200, "POST {path} answered {body}");
        serde_json::from_str(&body).expect("an answer is JSON")
    }

    pub fn create_workspace(&mut self, name: &str) -> String {
        let answer = self.post("/api/v1/workspaces", &json!({"name": name}));
        text(&answer["workspace"]["id"]).to_owned()
    }

    /// Calls a tool of the workspace toolset and returns its result.
    pub fn tool(&mut self, workspace: &str, tool: &str, args: &Value) -> Value {
        let path = format!("/api/v1/workspaces/{workspace}/tools");
        let mut answer = self.post(&path, &json!({"tool": tool, "args": args}));
        assert_eq!(answer["success"], true, "{tool} answered {answer}");
        answer["result"].take()
    }

    pub fn write(&mut self, workspace: &str, path: &str, content: &str) {
        self.tool(workspace, "write", &json!({"path": path, "content": content}));
    }

    pub fn read(&mut self, workspace: &str, path: &str) -> String {
        let result = self.tool(workspace, "read", &json!({"path": path}));
        text(&result["content"]).to_owned()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a string was expected, not {value}"))
}
