//! A small shell that outlives the test process just long enough to clean up after it.
//!
//! Destructors do not run for statics, nor after an abort or a `kill -9`; the end of a pipe is always noticed.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

#[allow(clippy::zombie_processes, reason = "it ends after this process does, so nobody here can wait for it")]
static WATCHDOG: LazyLock<Mutex<ChildStdin>> = LazyLock::new(|| {
    let mut shell = Command::new("sh")
        .args(["-c", include_str!("watchdog.sh")])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A group of its own: an interrupt from the keyboard must not reach it before it has cleaned up.
        .process_group(0)
        .spawn()
        .expect("sh starts");
    Mutex::new(shell.stdin.take().expect("stdin is piped"))
});

/// How a process is ended when the test process is gone.
#[derive(Clone, Copy)]
pub enum LastSignal {
    Kill,
    /// PostgreSQL's immediate shutdown, which also ends its children.
    Quit,
}

/// Registers a process to be ended with the test process.
pub fn process_runs(pid: u32, last_signal: LastSignal) {
    let signal = match last_signal {
        LastSignal::Kill => "KILL",
        LastSignal::Quit => "QUIT",
    };
    order(&format!("run {pid} {signal}"));
}

/// Forgets a process, before its id can be given to another.
pub fn process_ended(pid: u32) {
    order(&format!("ended {pid}"));
}

/// Registers a folder to be removed with the test process.
pub fn owns_folder(path: &Path) {
    order(&format!("folder {}", path.display()));
}

fn order(line: &str) {
    let mut pipe = WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner);
    pipe.write_all(format!("{line}\n").as_bytes()).expect("the watchdog reads");
}
