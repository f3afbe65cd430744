//! A shell script that cleans up after the test process has ended: it ends child processes and removes folders.
//!
//! Destructors do not run for statics, nor after an abort or a `kill -9`. The script notices the end of the test process
//! by the end of a pipe, which works in all of these cases.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

#[allow(clippy::zombie_processes, reason = "it ends after this process, which therefore cannot wait for it")]
static WATCHDOG: LazyLock<Mutex<ChildStdin>> = LazyLock::new(|| {
    let mut shell = Command::new("sh")
        .args(["-c", include_str!("watchdog.sh")])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // In its own process group, so that Ctrl-C does not end it before it has cleaned up.
        .process_group(0)
        .spawn()
        .expect("sh starts");
    Mutex::new(shell.stdin.take().expect("stdin is piped"))
});

/// The signal that ends a process after the test process has ended.
#[derive(Clone, Copy)]
pub enum LastSignal {
    Kill,
    /// PostgreSQL's immediate shutdown, which also ends its children.
    Quit,
}

/// Registers a process to be ended after the test process.
pub fn end_process_at_end(pid: u32, last_signal: LastSignal) {
    let signal = match last_signal {
        LastSignal::Kill => "KILL",
        LastSignal::Quit => "QUIT",
    };
    order(&format!("run {pid} {signal}"));
}

/// Removes a process from the list, before the system can reuse its id.
pub fn forget_process(pid: u32) {
    order(&format!("ended {pid}"));
}

/// Registers a folder to be removed after the test process.
pub fn remove_folder_at_end(path: &Path) {
    order(&format!("folder {}", path.display()));
}

fn order(line: &str) {
    let mut pipe = WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner);
    pipe.write_all(format!("{line}\n").as_bytes()).expect("the watchdog reads");
}
