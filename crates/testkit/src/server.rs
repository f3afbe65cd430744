//! The real binary, run as a user runs it.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use tempfile::TempDir;

use crate::client::Client;
use crate::postgres::is_root;
use crate::process::{Process, Program, STDOUT};
use crate::watchdog::{self, LastSignal};

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const LISTENING: &str = "Toolrest is listening on http://";

/// Where the server keeps its data.
#[derive(Clone)]
pub enum Backend {
    /// In its own temporary data folder.
    Sqlite,
    /// In the database at this address; see [`crate::Postgres::create_database`].
    Postgres(String),
}

/// Which port a restarted server listens on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Port {
    Same,
    New,
}

/// How to start a server.
#[derive(Clone)]
pub struct ServerOptions {
    binary: PathBuf,
    backend: Backend,
    env: Vec<(String, String)>,
    permissions: Permissions,
}

/// Whether permissions of files keep the server out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Permissions {
    /// As they do for whoever runs the tests: not if that is root.
    AsForTests,
    /// As they do for an ordinary user.
    Bind,
}

impl ServerOptions {
    /// Has permissions of files keep the server out, also if root runs the tests.
    #[must_use]
    pub fn bound_by_permissions(mut self) -> Self {
        self.permissions = Permissions::Bind;
        self
    }

    /// Sets an environment variable; the last setting of a name wins.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the server and waits until it listens; panics with its output when it does not.
    pub fn start(self) -> Server {
        self.try_start().unwrap_or_else(|refusal| panic!("the server did not start: {refusal:?}"))
    }

    /// Starts the server; gives its exit and its words when it refuses to.
    pub fn try_start(self) -> Result<Server, Refusal> {
        self.try_start_in(new_home())
    }

    /// Starts the server in a home with data that is there already.
    pub fn start_in(self, home: TempDir) -> Server {
        self.try_start_in(home).unwrap_or_else(|refusal| panic!("the server did not start: {refusal:?}"))
    }

    fn try_start_in(self, home: TempDir) -> Result<Server, Refusal> {
        let (process, address) = launch(&self, home.path(), "127.0.0.1:0")?;
        let data_folder = data_folder(home.path());
        Ok(Server { options: self, home, data_folder, process, address })
    }
}

/// Makes a home for a server, with an empty data folder and one for workspaces; it goes with the value or with the test
/// process.
pub fn new_home() -> TempDir {
    let home = tempfile::Builder::new().prefix("toolrest-data-").tempdir().expect("a temporary folder");
    watchdog::owns_folder(home.path());
    make_folders(home.path());
    home
}

/// A server that ended instead of listening.
#[derive(Debug)]
pub struct Refusal {
    /// `None` when it neither listened nor ended in time.
    pub status: Option<ExitStatus>,
    /// Everything it printed, stdout and stderr.
    pub output: String,
}

/// A running server; it is killed, and its data folder goes, with the value or with the test process.
pub struct Server {
    // Before `home`: fields are dropped in order, and a running server would write into the folder as it goes.
    process: Process,
    home: TempDir,
    data_folder: PathBuf,
    options: ServerOptions,
    address: String,
}

impl Server {
    /// Options with limits on sign-in lifted, since every test signs in from one address.
    pub fn options(binary: impl Into<PathBuf>, backend: Backend) -> ServerOptions {
        ServerOptions { binary: binary.into(), backend, env: Vec::new(), permissions: Permissions::AsForTests }
            .env("TOOLREST__AUTH__ATTEMPTS_PER_ADDRESS", "100000")
            .env("TOOLREST__AUTH__REGISTRATIONS_PER_ADDRESS", "100000")
            .env("TOOLREST__LOG__LEVEL", "warn")
            .env("TOOLREST__RUN__PYTHON_DIR", concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python"))
    }

    /// Gives the address as `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Gives the address as `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The most memory that it has held since it was started.
    pub fn peak_memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// The folder in which it keeps its data.
    pub fn data_folder(&self) -> &Path {
        &self.data_folder
    }

    /// Makes an empty folder that may become a workspace.
    pub fn new_folder(&self) -> PathBuf {
        let folder = folders(self.home.path()).join(uuid::Uuid::new_v4().simple().to_string());
        std::fs::create_dir(&folder).expect("a new folder");
        folder
    }

    /// Gives a client of this server with no connection open yet.
    pub fn client(&self) -> Client {
        Client::new(&self.address)
    }

    /// Gives everything it printed since it was last started, for the message of a failing test.
    pub fn output(&self) -> String {
        self.process.output.text()
    }

    /// Ends the server with SIGKILL and waits until it is gone.
    pub fn kill9(&mut self) {
        self.process.kill();
    }

    /// Asks the server to stop with SIGTERM, without waiting for it.
    pub fn ask_to_stop(&mut self) {
        self.process.signal("TERM");
    }

    /// Asks the server to stop with SIGTERM, and waits until it did.
    pub fn stop(&mut self) -> ExitStatus {
        self.ask_to_stop();
        self.process
            .wait(STOP_LIMIT)
            .unwrap_or_else(|| panic!("the server did not stop within {STOP_LIMIT:?} of SIGTERM:\n{}", self.output()))
    }

    /// Sets an environment variable for the next start.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.options = self.options.clone().env(name, value);
    }

    /// Starts the ended (or still running, then killed) server again on the same data.
    pub fn restart(&mut self, port: Port) {
        self.try_restart(port).unwrap_or_else(|refusal| panic!("the server did not start again: {refusal:?}"));
    }

    /// Starts the server again on the same data; gives its exit and its words when it refuses to.
    pub fn try_restart(&mut self, port: Port) -> Result<(), Refusal> {
        self.process.kill();
        let listen = match port {
            Port::Same => self.address.as_str(),
            Port::New => "127.0.0.1:0",
        };
        (self.process, self.address) = launch(&self.options, self.home.path(), listen)?;
        Ok(())
    }
}

/// Where the server keeps its data, in the folder of the test.
pub fn data_folder(home: &Path) -> PathBuf {
    home.join("data")
}

/// Where folders may lie that are to be workspaces: not in the data, which no workspace may show.
fn folders(home: &Path) -> PathBuf {
    home.join("folders")
}

fn make_folders(home: &Path) {
    for folder in [folders(home), data_folder(home)] {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).expect("a folder of the test");
    }
}

fn launch(options: &ServerOptions, home: &Path, listen: &str) -> Result<(Process, String), Refusal> {
    make_folders(home);
    let mut command: Vec<OsString> = Vec::new();
    if options.permissions == Permissions::Bind && is_root() {
        // Without these capabilities the permissions of its own files bind root as they do others.
        command.extend(["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--"].map(OsString::from));
    }
    command.extend([
        options.binary.clone().into_os_string(),
        "serve".into(),
        "--listen".into(),
        listen.into(),
        "--data-dir".into(),
        data_folder(home).into(),
        "--allow-root".into(),
        folders(home).into(),
    ]);
    if let Backend::Postgres(url) = &options.backend {
        command.push("--database-url".into());
        command.push(url.into());
    }
    let mut process = Process::start(&Program {
        command,
        // Not the repository, where a toolrest.toml of a developer may lie.
        folder: home,
        env: options.env.clone(),
        env_removed: &["TOOLREST_", "BUILDSCALE_"],
        last_signal: LastSignal::Kill,
    });
    let line = process.output.wait_for_line(&format!("{STDOUT}{LISTENING}"), START_LIMIT);
    if let Some(address) = line {
        return Ok((process, address.trim().to_owned()));
    }
    let status = process.wait(Duration::from_secs(5));
    process.kill();
    Err(Refusal { status, output: process.output.wait_for_end(Duration::from_secs(5)) })
}
