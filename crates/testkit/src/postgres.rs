//! A private PostgreSQL cluster on a free port of 127.0.0.1.

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Process, Program};
use crate::temp_folder::temp_folder;
use crate::wait::wait_until;
use crate::watchdog::LastSignal;

const START_LIMIT: Duration = Duration::from_secs(30);
const PORT_TRIES: usize = 20;

/// Whether what PostgreSQL acknowledged must survive a crash of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fsync {
    On,
    Off,
}

/// A running cluster; it is stopped, and its folder removed, with the value or with the test process.
pub struct Postgres {
    folder: TempDir,
    cluster: String,
    port: u16,
    fsync: Fsync,
    /// Whether it has a certificate, and refuses connections that are not encrypted.
    is_encrypted: bool,
    postmaster: Option<Process>,
    databases: AtomicUsize,
}

impl Postgres {
    /// Returns the cluster that all tests of this process share. It is started on first use, without fsync for speed.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| Self::create(Fsync::Off, None))
    }

    /// Starts another cluster, with fsync, which the caller may kill.
    pub fn start() -> Self {
        Self::create(Fsync::On, None)
    }

    /// Starts a cluster that accepts only encrypted connections, with this certificate and key in PEM format. It has one
    /// database, `postgres`.
    pub fn start_encrypted(certificate: &str, key: &str) -> Self {
        Self::create(Fsync::Off, Some((certificate, key)))
    }

    fn create(fsync: Fsync, identity: Option<(&str, &str)>) -> Self {
        let folder = temp_folder("postgres");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions of a new folder");
        let cluster = folder.path().file_name().expect("the folder has a name").to_string_lossy().into_owned();
        let (is_encrypted, databases) = (identity.is_some(), AtomicUsize::new(0));
        let mut postgres = Self { folder, cluster, port: 0, fsync, is_encrypted, postmaster: None, databases };
        postgres.init();
        if let Some((certificate, key)) = identity {
            postgres.set_identity(certificate, key);
        }
        for _ in 0..PORT_TRIES {
            postgres.port = free_port();
            match postgres.launch() {
                Ok(process) => {
                    postgres.postmaster = Some(process);
                    return postgres;
                }
                Err(log) if log.contains("could not bind") => {}
                Err(log) => panic!("PostgreSQL did not start:\n{log}"),
            }
        }
        panic!("PostgreSQL found no free port in {PORT_TRIES} tries");
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn init(&self) {
        let home = self.folder.path();
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(home));
        }
        let initdb = as_postgres([
            program("initdb").into_os_string(),
            "--no-sync".into(),
            "--auth=trust".into(),
            "--username=postgres".into(),
            "--encoding=UTF8".into(),
            "--locale=C.UTF-8".into(),
            "--pgdata".into(),
            self.data().into_os_string(),
        ]);
        run(Command::new(&initdb[0]).args(&initdb[1..]).current_dir(home));
    }

    fn set_identity(&self, certificate: &str, key: &str) {
        let rules = "hostnossl all all all reject\nhostssl all all all trust\n";
        for (name, text) in [("server.crt", certificate), ("server.key", key), ("pg_hba.conf", rules)] {
            let file = self.data().join(name);
            fs::write(&file, text).expect("a file of the cluster");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("permissions of a new file");
            if is_root() {
                run(Command::new("chown").arg("postgres").arg(file));
            }
        }
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the postmaster and waits until it accepts connections; the error is its log.
    fn launch(&self) -> Result<Process, String> {
        let mut command = vec![program("postgres").into_os_string(), "-D".into(), self.data().into_os_string()];
        let sockets = self.folder.path().display().to_string();
        let fsync = if self.fsync == Fsync::On { "on" } else { "off" };
        for (name, value) in [
            ("listen_addresses", "127.0.0.1"),
            ("port", &self.port.to_string()),
            ("unix_socket_directories", &sockets),
            ("cluster_name", &self.cluster),
            ("max_connections", "300"),
            ("fsync", fsync),
            ("shared_buffers", "256MB"),
            ("log_min_messages", "warning"),
            ("logging_collector", "off"),
            ("ssl", if self.is_encrypted { "on" } else { "off" }),
        ] {
            command.push("-c".into());
            command.push(format!("{name}={value}").into());
        }
        let mut process = Process::start(&Program {
            command: as_postgres(command),
            folder: self.folder.path(),
            env: Vec::new(),
            env_removed: &["PG"],
            stderr_file: None,
            last_signal: LastSignal::Quit,
        });
        let ready =
            process.output.wait_for(START_LIMIT, |log| log.contains("ready to accept connections").then_some(()));
        if ready.is_some() {
            Ok(process)
        } else {
            process.kill();
            Err(process.output.text())
        }
    }

    /// Returns the process id of the postmaster, the parent of all other processes of the cluster.
    pub fn pid(&self) -> u32 {
        self.postmaster.as_ref().expect("it runs").pid()
    }

    /// Creates an empty database and returns its address.
    pub fn create_database(&self) -> String {
        let name = format!("db{}", self.databases.fetch_add(1, Ordering::Relaxed) + 1);
        self.execute(&self.url("postgres"), &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs SQL in the database at `url`. May be called inside and outside of a runtime.
    pub fn execute(&self, url: &str, sql: &str) {
        let work = async {
            let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
            let connection = tokio::spawn(connection);
            let done = client.batch_execute(sql).await;
            drop(client);
            connection.await.expect("the connection task ends")?;
            done
        };
        let done: Result<(), tokio_postgres::Error> = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .expect("a runtime")
                        .block_on(work)
                })
                .join()
                .expect("the thread ends")
        });
        done.unwrap_or_else(|error| panic!("{sql}: {error:?}\n{}", self.log()));
    }

    /// Kills the postmaster with SIGKILL and waits until the last of its children is gone.
    pub fn kill(&mut self) {
        self.postmaster.as_mut().expect("it runs").kill();
        self.postmaster = None;
        // Its children exit when they notice that it is gone; until then a new start is refused.
        wait_until("PostgreSQL's children ended", START_LIMIT, || !has_process_titled(&self.cluster));
    }

    /// Starts the killed cluster again, on the same port and data, and waits until it accepts connections.
    pub fn restart(&mut self) {
        assert!(self.postmaster.is_none(), "kill it first");
        self.postmaster = Some(self.launch().unwrap_or_else(|log| panic!("PostgreSQL did not start again:\n{log}")));
    }

    /// Returns the log since the last start.
    pub fn log(&self) -> String {
        self.postmaster.as_ref().map_or_else(String::new, |process| process.output.text())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            postmaster.signal("QUIT");
            postmaster.wait(Duration::from_secs(10));
        }
    }
}

/// Finds a program of PostgreSQL on PATH or where Debian puts it.
pub fn program(name: &str) -> PathBuf {
    let on_path = std::env::var_os("PATH")
        .iter()
        .flat_map(|path| std::env::split_paths(path).collect::<Vec<_>>())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    on_path.or_else(|| newest_debian_program(name)).unwrap_or_else(|| {
        panic!(
            "{name} of PostgreSQL was found neither on PATH nor in /usr/lib/postgresql/*/bin: \
                 apt-get install postgresql"
        )
    })
}

fn newest_debian_program(name: &str) -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let file = entry.path().join("bin").join(name);
            file.is_file().then_some((version, file))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, file)| file)
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Returns the command, run as the user `postgres` if this process runs as root, which PostgreSQL refuses.
fn as_postgres(command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let switch: &[&str] =
        if is_root() { &["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"] } else { &[] };
    switch.iter().map(OsString::from).chain(command).collect()
}

fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        done.status.success(),
        "{command:?}: {}\n{}{}",
        done.status,
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// Whether a process with `title` in its command line runs. PostgreSQL's children show the cluster's name there.
fn has_process_titled(title: &str) -> bool {
    let has_title = |process: &Path| {
        fs::read(process.join("cmdline")).is_ok_and(|line| {
            let line = String::from_utf8_lossy(&line);
            line.starts_with("postgres: ") && line.contains(title)
        })
    };
    fs::read_dir("/proc").expect("/proc").flatten().any(|entry| has_title(&entry.path()))
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
