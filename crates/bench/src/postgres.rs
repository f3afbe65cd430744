//! A private PostgreSQL cluster on loopback with durable settings, for as long as the bench runs.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::process::{self, StopSignal, Supervised};

const SUPERUSER: &str = "toolrest";

/// PostgreSQL refuses to run as root, so root borrows the account of Debian's package.
const UNPRIVILEGED: &str = "setpriv --reuid=postgres --regid=postgres --init-groups";

pub struct Cluster {
    postmaster: Supervised,
    programs: PathBuf,
    port: u16,
}

impl Cluster {
    pub fn start() -> Self {
        let programs = programs();
        let folder = process::fresh_folder("postgres");
        let prefix = unprivileged_prefix(&folder);
        let data = folder.join("data");

        let mut initdb = prefix.clone();
        initdb.extend([programs.join("initdb").into(), "--pgdata".into(), data.clone().into()]);
        initdb.extend(words("--auth=trust --encoding=UTF8 --locale=C.UTF-8 --username"));
        initdb.push(SUPERUSER.into());
        run(&initdb);

        let port = free_port();
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            format!("unix_socket_directories={}", folder.display()),
            "fsync=on".to_owned(),
            "synchronous_commit=on".to_owned(),
            "shared_buffers=256MB".to_owned(),
        ];
        let mut postgres = prefix;
        postgres.extend([programs.join("postgres").into(), "-D".into(), data.clone().into()]);
        postgres.extend(settings.into_iter().flat_map(|setting| ["-c".into(), setting.into()]));
        // SIGINT is the fast shutdown; SIGTERM would wait for clients to leave.
        let postmaster = Supervised::start(&postgres, &[], StopSignal::Int, folder);
        wait_until_ready(&data);
        Self { postmaster, programs, port }
    }

    /// Makes an empty database and returns its address.
    pub fn create_database(&self, name: &str) -> String {
        let port = self.port;
        let mut createdb = vec![self.programs.join("createdb").into()];
        createdb.extend(words(&format!("--host=127.0.0.1 --port={port} --username={SUPERUSER} {name}")));
        run(&createdb);
        format!("postgres://{SUPERUSER}@127.0.0.1:{port}/{name}")
    }

    /// CPU time of the postmaster and of all its children, those that have ended included.
    pub fn cpu(&self) -> Duration {
        process::family_cpu(self.postmaster.pid())
    }
}

/// The version of the PostgreSQL that [`Cluster::start`] would run.
pub fn version() -> String {
    let output = Command::new(programs().join("postgres")).arg("--version").output().expect("postgres starts");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The folder of PostgreSQL's programs, which Debian keeps out of `PATH`.
fn programs() -> PathBuf {
    // A link in PATH leads to a folder that has the other programs too.
    let in_path = env::var_os("PATH")
        .and_then(|path| env::split_paths(&path).find_map(|folder| folder.join("initdb").canonicalize().ok()));
    let newest_of_debian = || {
        fs::read_dir("/usr/lib/postgresql")
            .ok()?
            .filter_map(|entry| {
                let folder = entry.ok()?.path();
                let major: u32 = folder.file_name()?.to_str()?.parse().ok()?;
                Some((major, folder.join("bin/initdb").canonicalize().ok()?))
            })
            .max()
            .map(|(_, initdb)| initdb)
    };
    in_path
        .or_else(newest_of_debian)
        .and_then(|initdb| Some(initdb.parent()?.to_owned()))
        .expect("PostgreSQL's initdb is installed (Debian: apt-get install postgresql)")
}

/// What to put before a command of the server; gives `folder` to the account it names.
fn unprivileged_prefix(folder: &Path) -> Vec<OsString> {
    let id = Command::new("id").arg("-u").output().expect("id starts");
    if id.stdout.trim_ascii() != b"0" {
        return Vec::new();
    }
    run(&["chown".into(), "postgres:postgres".into(), folder.into()]);
    words(UNPRIVILEGED)
}

fn words(command: &str) -> Vec<OsString> {
    command.split(' ').map(OsString::from).collect()
}

fn run(argv: &[OsString]) {
    let output = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", argv[0].display()));
    assert!(output.status.success(), "{argv:?} failed: {}", String::from_utf8_lossy(&output.stderr));
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .expect("loopback has a free port")
        .port()
}

/// The last line of the postmaster's pid file turns to `ready` when it takes connections.
fn wait_until_ready(data: &Path) {
    let start = Instant::now();
    let status = data.join("postmaster.pid");
    while !fs::read_to_string(&status).is_ok_and(|text| text.trim_end().ends_with("ready")) {
        assert!(start.elapsed() < Duration::from_secs(60), "PostgreSQL is not ready after a minute");
        thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
