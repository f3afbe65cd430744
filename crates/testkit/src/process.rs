//! A child process that ends with the test process.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::output::Output;
use crate::watchdog::{self, LastSignal};

pub const STDOUT: &str = "out| ";
pub const STDERR: &str = "err| ";

/// A command with its environment.
pub struct Program<'a> {
    pub command: Vec<OsString>,
    pub folder: &'a Path,
    pub env: Vec<(String, String)>,
    /// Variables whose names begin with one of these are not inherited.
    pub env_removed: &'a [&'a str],
    /// A file to append stderr to, instead of reading it into [`Process::output`].
    pub stderr_file: Option<PathBuf>,
    pub last_signal: LastSignal,
}

/// A child process, running or ended, and its output.
pub struct Process {
    child: Child,
    status: Option<ExitStatus>,
    pub output: Output,
}

impl Process {
    /// Starts the program.
    ///
    /// A shell waits for a line on stdin and then replaces itself with the program. The line is sent after the watchdog
    /// has the process id, so that the watchdog can end the program at any time.
    pub fn start(program: &Program) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"read -r go && exec "$@" </dev/null"#, "sh"])
            .args(&program.command)
            .current_dir(program.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(program.stderr_file.as_deref().map_or_else(Stdio::piped, append_to))
            .process_group(0);
        for (name, _) in std::env::vars_os() {
            if is_removed(&name, program.env_removed) {
                command.env_remove(name);
            }
        }
        command.envs(program.env.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().expect("sh starts");
        watchdog::end_process_at_end(child.id(), program.last_signal);
        let output = Output::default();
        output.drain(child.stdout.take().expect("stdout is piped"), STDOUT);
        if let Some(stderr) = child.stderr.take() {
            output.drain(stderr, STDERR);
        }
        child.stdin.take().expect("stdin is piped").write_all(b"go\n").expect("the shell reads");
        Self { child, status: None, output }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the exit status if the process has ended.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("the child can be waited for");
            if self.status.is_some() {
                watchdog::forget_process(self.child.id());
            }
        }
        self.status
    }

    /// Sends a signal by name (`TERM`, `QUIT`, …) unless the process has ended.
    pub fn signal(&mut self, name: &str) {
        if self.status().is_none() {
            let sent = Command::new("kill")
                .args(["-s", name, &self.child.id().to_string()])
                .stderr(Stdio::null())
                .status()
                .expect("kill(1) is installed (apt-get install procps)");
            assert!(sent.success() || self.status().is_some(), "SIG{name} was not delivered to {}", self.child.id());
        }
    }

    /// Kills the process and waits for it.
    pub fn kill(&mut self) {
        if self.status().is_none() {
            // Nobody has waited for the child yet, so its id cannot belong to another process.
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
            watchdog::forget_process(self.child.id());
        }
    }

    /// Waits for the end; returns `None` after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        while self.status().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.status()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn append_to(path: &Path) -> Stdio {
    OpenOptions::new().create(true).append(true).open(path).expect("a log file").into()
}

fn is_removed(name: &OsStr, prefixes: &[&str]) -> bool {
    name.to_str().is_some_and(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
}
