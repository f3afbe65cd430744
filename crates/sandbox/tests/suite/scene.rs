//! A sandbox and a folder to run in.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Pid;
use tempfile::TempDir;
use toolrest_sandbox::{Exit, Job, Limits, Options, Place, Report, Sandbox, Source, Stdin};

pub const PYTHON: &str = "/usr/bin/python3";

/// Python that calls the kernel directly, and tells what came of it.
const PRELUDE: &str = r"
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    return 'ok' if result >= 0 else errno.errorcode[ctypes.get_errno()]
def attempt(deed):
    try:
        deed()
        return 'ok'
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
";

pub struct Scene {
    pub sandbox: Sandbox,
    pub home: TempDir,
}

impl Scene {
    pub fn new() -> Self {
        let sandbox = Sandbox::start(options()).unwrap();
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("folder")).unwrap();
        Self { sandbox, home }
    }

    /// The folder that jobs find at `/workspace`.
    pub fn folder(&self) -> PathBuf {
        self.home.path().join("folder")
    }

    pub fn place(&self) -> Place {
        Place::new(source(self.folder()), "/workspace").limits(limits())
    }

    pub async fn run(&self, job: Job) -> Report {
        self.sandbox.spawn(job).await.unwrap().wait().await.unwrap()
    }

    pub async fn bash(&self, code: &str) -> Report {
        self.run(Job::new(self.place(), ["bash", "-c", code])).await
    }

    pub async fn python(&self, code: &str) -> Report {
        self.python_in(self.place(), code).await
    }

    /// Runs Python; its code goes in by the standard input, so that it can be of any length.
    pub async fn python_in(&self, place: Place, code: &str) -> Report {
        let code = format!("{PRELUDE}\n{code}");
        self.run(Job::new(place, [PYTHON, "-"]).stdin(Stdin::Bytes(code.into()))).await
    }

    /// Runs Python that must end well, and gives what it printed.
    pub async fn told(&self, code: &str) -> String {
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

/// Tight enough for hostile programs to hit them soon.
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

/// Processes of the host that have the text among their arguments.
pub fn processes_with(text: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let arguments = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
        *pid != std::process::id() && String::from_utf8_lossy(&arguments).contains(text)
    };
    pids.filter(has).collect()
}

/// Waits for something to become true, for at most ten seconds.
pub async fn until(what: &str, is_true: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_true() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not come true");
}

/// A name that no other test's processes have.
pub fn mark(name: &str) -> String {
    format!("toolrest-mark-{name}-{}", std::process::id())
}

/// The process that a shell has become by `exec -a`: before, the name is only a part of its script.
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

/// The user of the host that a process runs as.
pub fn user_of(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
