//! The real `toolrest` binary, started as a user starts it.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, lchown};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use crate::client::Client;
use crate::process::{Process, Program, STDOUT};
use crate::temp_folder::temp_folder;
use crate::watchdog::LastSignal;

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
    log_to_file: bool,
    user: User,
}

/// The user that a server runs as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    SameAsTests,
    Nobody,
}

/// The id of the user and of the group `nobody`.
const NOBODY: u32 = 65_534;

impl ServerOptions {
    /// Options with the product's default settings, but without the listener of specification 003.
    pub fn new(binary: impl Into<PathBuf>, backend: Backend) -> Self {
        // All servers of a test run would want the same port.
        let env = vec![("TOOLREST__TOOL_BACKEND__LISTEN".to_owned(), "none".to_owned())];
        Self { binary: binary.into(), backend, env, log_to_file: false, user: User::SameAsTests }
    }

    /// Has the server run as an ordinary user, also where the tests run as root.
    #[must_use]
    pub fn as_ordinary_user(mut self) -> Self {
        if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            self.user = User::Nobody;
        }
        self
    }

    /// Sets an environment variable; the last setting of a name wins.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the log to a file instead of a pipe that this process reads, which would take part of the CPU time that a
    /// benchmark measures.
    #[must_use]
    pub fn log_to_file(mut self) -> Self {
        self.log_to_file = true;
        self
    }

    /// Starts the server and waits until it listens; panics with its output if it does not.
    pub fn start(self) -> Server {
        self.try_start().unwrap_or_else(|failure| panic!("the server did not start: {failure:?}"))
    }

    /// Starts the server; returns its exit status and its output if it does not listen.
    pub fn try_start(self) -> Result<Server, StartFailure> {
        self.try_start_in(Arc::new(new_home()))
    }

    /// Starts the server on the data in an existing home folder.
    pub fn start_in(self, home: TempDir) -> Server {
        self.try_start_in(Arc::new(home)).unwrap_or_else(|failure| panic!("the server did not start: {failure:?}"))
    }

    fn try_start_in(self, home: Arc<TempDir>) -> Result<Server, StartFailure> {
        let (process, address) = launch(&self, home.path(), "127.0.0.1:0")?;
        let data_folder = data_folder(home.path());
        Ok(Server { options: self, home, data_folder, process, address })
    }
}

/// Makes a home folder for a server: an empty data folder and a folder for workspaces. It is removed with the value or
/// with the test process.
pub fn new_home() -> TempDir {
    let home = temp_folder("data");
    make_folders(home.path());
    home
}

/// A server that ended, or did not listen in time.
#[derive(Debug)]
pub struct StartFailure {
    /// `None` if it still ran when the time was up.
    pub status: Option<ExitStatus>,
    /// Everything it printed, stdout and stderr.
    pub output: String,
}

/// A running server; it is killed, and its home folder removed, with the value or with the test process.
pub struct Server {
    // Before `home`: fields are dropped in order, and a running server would still write into the folder.
    process: Process,
    home: Arc<TempDir>,
    data_folder: PathBuf,
    options: ServerOptions,
    address: String,
}

impl Server {
    /// Options for a test: no limits on sign-in, since all tests sign in from one address, and only warnings logged.
    pub fn options(binary: impl Into<PathBuf>, backend: Backend) -> ServerOptions {
        ServerOptions::new(binary, backend)
            .env("TOOLREST__AUTH__ATTEMPTS_PER_ADDRESS", "100000")
            .env("TOOLREST__AUTH__REGISTRATIONS_PER_ADDRESS", "100000")
            .env("TOOLREST__LOG__LEVEL", "warn")
            .env("TOOLREST__RUN__PYTHON_DIR", concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python"))
    }

    /// Starts one more server process on the same data, with further environment variables.
    #[must_use]
    pub fn replica(&self, env: &[(&str, &str)]) -> Self {
        let options = env.iter().fold(self.options.clone(), |options, (name, value)| options.env(name, value));
        options.try_start_in(Arc::clone(&self.home)).unwrap_or_else(|failure| panic!("no replica: {failure:?}"))
    }

    /// Returns the address as `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address as `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns a client of the listener of specification 003, which the options must have turned on.
    pub fn tool_backend(&self) -> Client {
        let line = self.process.output.wait_for_line(&format!("{STDOUT}  backend http://"), START_LIMIT);
        let line = line.unwrap_or_else(|| panic!("no listener of specification 003:\n{}", self.output()));
        // The descriptions are of the main listener.
        Client::new(line.split_whitespace().next().expect("its address")).without_schema_checks()
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the highest resident memory since the process was started.
    pub fn peak_memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// Returns the folder in which the server keeps its data.
    pub fn data_folder(&self) -> &Path {
        &self.data_folder
    }

    /// Makes an empty folder that may become a workspace.
    pub fn new_folder(&self) -> PathBuf {
        let folder = folders(self.home.path()).join(uuid::Uuid::new_v4().simple().to_string());
        std::fs::create_dir(&folder).expect("a new folder");
        self.hand_over(&folder);
        folder
    }

    /// Makes the server's user the owner of files that a test created in a folder.
    pub fn hand_over(&self, folder: &Path) {
        if self.options.user == User::Nobody {
            hand_over(folder);
        }
    }

    /// Returns a client of this server, with no connection open yet.
    pub fn client(&self) -> Client {
        Client::new(&self.address)
    }

    /// Returns everything the server printed since it was last started, for the message of a failing test.
    pub fn output(&self) -> String {
        output_of(&self.process, self.home.path())
    }

    /// Ends the server with SIGKILL and waits until the process is gone.
    pub fn kill9(&mut self) {
        self.process.kill();
    }

    /// Stops the server (SIGSTOP), but not what it has started, until [`Server::resume`].
    pub fn pause(&mut self) {
        self.process.signal("STOP");
    }

    /// Continues a server that was paused.
    pub fn resume(&mut self) {
        self.process.signal("CONT");
    }

    /// Sends SIGTERM without waiting for the end.
    pub fn ask_to_stop(&mut self) {
        self.process.signal("TERM");
    }

    /// Sends SIGTERM and waits for the end.
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

    /// Starts the server again on the same data; one that still runs is killed first.
    pub fn restart(&mut self, port: Port) {
        self.try_restart(port).unwrap_or_else(|failure| panic!("the server did not start again: {failure:?}"));
    }

    /// Starts the server again on the same data; returns its exit status and its output if it does not listen.
    pub fn try_restart(&mut self, port: Port) -> Result<(), StartFailure> {
        self.process.kill();
        let listen = match port {
            Port::Same => self.address.as_str(),
            Port::New => "127.0.0.1:0",
        };
        (self.process, self.address) = launch(&self.options, self.home.path(), listen)?;
        Ok(())
    }
}

/// Returns the data folder in a home folder.
pub fn data_folder(home: &Path) -> PathBuf {
    home.join("data")
}

/// Returns the folder for workspaces in a home folder. It is outside the data folder, which no workspace may contain.
fn folders(home: &Path) -> PathBuf {
    home.join("folders")
}

fn make_folders(home: &Path) {
    for folder in [folders(home), data_folder(home)] {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).expect("a folder of the test");
    }
}

fn log_file(home: &Path) -> PathBuf {
    home.join("log")
}

fn output_of(process: &Process, home: &Path) -> String {
    process.output.text() + &std::fs::read_to_string(log_file(home)).unwrap_or_default()
}

/// Returns the start of a command that runs a program as the user `nobody`, and gives the home folder to that user. The
/// program is copied into the home folder, because `nobody` may not be able to open the build folder.
fn as_nobody(binary: &Path, home: &Path) -> Vec<OsString> {
    let copy = home.join("server");
    if !copy.exists() {
        std::fs::hard_link(binary, &copy)
            .or_else(|_| std::fs::copy(binary, &copy).map(drop))
            .expect("a copy of the server");
    }
    hand_over(home);
    let ids =
        ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--"];
    std::iter::once("setpriv").chain(ids).map(OsString::from).chain([copy.into_os_string()]).collect()
}

/// Makes the user `nobody` the owner of a folder and its contents, except for programs.
fn hand_over(path: &Path) {
    let kind = std::fs::symlink_metadata(path).expect("what is handed over");
    if kind.is_dir() {
        for entry in std::fs::read_dir(path).expect("a folder of the test").flatten() {
            hand_over(&entry.path());
        }
    }
    // The program may be a hard link to the build output.
    if !(kind.is_file() && kind.nlink() > 1) {
        lchown(path, Some(NOBODY), Some(NOBODY)).expect("root gives files away");
    }
}

fn launch(options: &ServerOptions, home: &Path, listen: &str) -> Result<(Process, String), StartFailure> {
    make_folders(home);
    let mut command = match options.user {
        User::SameAsTests => vec![options.binary.clone().into_os_string()],
        User::Nobody => as_nobody(&options.binary, home),
    };
    let arguments: [OsString; 7] = [
        "serve".into(),
        "--listen".into(),
        listen.into(),
        "--data-dir".into(),
        data_folder(home).into(),
        "--allow-root".into(),
        folders(home).into(),
    ];
    command.extend(arguments);
    if let Backend::Postgres(url) = &options.backend {
        command.push("--database-url".into());
        command.push(url.into());
    }
    let mut process = Process::start(&Program {
        command,
        // Not the repository, which may contain a developer's toolrest.toml.
        folder: home,
        env: options.env.clone(),
        env_removed: &["TOOLREST_", "BUILDSCALE_"],
        stderr_file: options.log_to_file.then(|| log_file(home)),
        last_signal: LastSignal::Kill,
    });
    let line = process.output.wait_for_line(&format!("{STDOUT}{LISTENING}"), START_LIMIT);
    if let Some(address) = line {
        return Ok((process, address.trim().to_owned()));
    }
    let status = process.wait(Duration::from_secs(5));
    process.kill();
    process.output.wait_for_end(Duration::from_secs(5));
    Err(StartFailure { status, output: output_of(&process, home) })
}
