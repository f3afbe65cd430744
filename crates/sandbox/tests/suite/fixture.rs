//! The test fixture: a sandbox and a folder to run in.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Pid;
use tempfile::TempDir;
use toolrest_sandbox::{CellSpec, Exit, Job, Limits, Options, Report, Sandbox, Source, Stdin};

pub const PYTHON: &str = "/usr/bin/python3";

/// Python helpers that make raw system calls and return the errno.
const PRELUDE: &str = r"
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    return 'ok' if result >= 0 else errno.errorcode[ctypes.get_errno()]
def attempt(action):
    try:
        action()
        return 'ok'
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
";

pub struct Fixture {
    pub sandbox: Sandbox,
    pub home: TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        let sandbox = Sandbox::start(options()).unwrap();
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("folder")).unwrap();
        Self { sandbox, home }
    }

    /// Returns the folder that jobs see as `/workspace`.
    pub fn folder(&self) -> PathBuf {
        self.home.path().join("folder")
    }

    pub fn spec(&self) -> CellSpec {
        CellSpec::new(source(self.folder()), "/workspace").limits(limits())
    }

    pub async fn run(&self, job: Job) -> Report {
        self.sandbox.spawn(job).await.unwrap().wait().await.unwrap()
    }

    pub async fn bash(&self, code: &str) -> Report {
        self.run(Job::new(self.spec(), ["bash", "-c", code])).await
    }

    pub async fn python(&self, code: &str) -> Report {
        self.python_in(self.spec(), code).await
    }

    /// Runs Python. The code is passed by standard input, so it can have any length.
    pub async fn python_in(&self, spec: CellSpec, code: &str) -> Report {
        let code = format!("{PRELUDE}\n{code}");
        self.run(Job::new(spec, [PYTHON, "-"]).stdin(Stdin::Bytes(code.into()))).await
    }

    /// Runs Python that must succeed, and returns its output.
    pub async fn python_output(&self, code: &str) -> String {
        let report = self.python(code).await;
        assert_eq!((report.exit, report.limit_hit), (Exit::Code(0), None), "{}", report.stderr.text());
        report.stdout.text().trim_end().to_owned()
    }
}

pub fn source(path: impl Into<PathBuf>) -> Source {
    Source::open(path).unwrap()
}

pub fn options() -> Options {
    let program = env::var_os("TOOLREST_LAUNCHER").unwrap_or_else(|| env!("CARGO_BIN_EXE_toolrest-launcher").into());
    Options { program: program.into(), arguments: Vec::new(), ..Options::default() }
}

/// Limits that are tight enough for hostile programs to hit them soon.
pub fn limits() -> Limits {
    Limits {
        wall: Duration::from_secs(20),
        cpu: Duration::from_secs(10),
        memory_bytes: 256 << 20,
        processes: 64,
        open_files: 256,
        file_bytes: 64 << 20,
        disk_bytes: 150 << 20,
        new_files: 5000,
        temporary_bytes: 32 << 20,
        ..Limits::default()
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the host processes that have the text in their arguments.
pub fn processes_with(text: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let arguments = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
        *pid != std::process::id() && String::from_utf8_lossy(&arguments).contains(text)
    };
    pids.filter(has).collect()
}

/// Waits until a condition is true, for ten seconds at most.
pub async fn until(what: &str, is_true: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_true() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timed out waiting for {what}");
}

/// Returns a process name that no other test uses.
pub fn marker(name: &str) -> String {
    format!("toolrest-marker-{name}-{}", std::process::id())
}

/// Waits for a program that is started with `exec -a NAME`, and returns its process ID. Until `exec` the shell has the
/// name in its arguments too, but not followed by NUL.
pub async fn program_named(name: &str) -> u32 {
    let name = format!("{name}\0");
    until("the program's start", || processes_with(&name).len() == 1).await;
    processes_with(&name)[0]
}

pub fn parent(pid: Pid) -> Pid {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    Pid::from_raw(line.trim().parse().unwrap()).unwrap()
}

/// Returns the host user of a process.
pub fn user_of(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
