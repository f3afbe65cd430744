//! Creates the Python environment while the server runs.

use std::{
    env,
    io::{self, BufRead, BufReader, PipeReader, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Time that the command and its steps have to end.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether they have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A running `toolrest setup python`. Dropping it ends the command.
pub(crate) struct BackgroundSetup {
    /// Taken by whoever waits for the command: the thread that shows its output, or `drop`.
    child: Arc<Mutex<Option<Child>>>,
}

impl BackgroundSetup {
    /// Starts the command for a folder and shows its output, line by line. Returns `None` if the environment is up to
    /// date.
    pub(crate) fn start(folder: &Path) -> io::Result<Option<Self>> {
        if super::is_current(folder) {
            return Ok(None);
        }
        let mut command = Command::new(env::current_exe()?);
        command.args(["setup", "python", "--to"]).arg(folder);
        Self::run(command).map(Some)
    }

    fn run(mut command: Command) -> io::Result<Self> {
        let (output, write_end) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(write_end.try_clone()?).stderr(write_end);
        // A process group for the command and its steps, so that they can be ended together.
        let child = Arc::new(Mutex::new(Some(command.process_group(0).spawn()?)));
        // Closes this process's write ends, so that the output ends when the command and its steps have ended.
        drop(command);
        let for_thread = Arc::clone(&child);
        thread::spawn(move || show(output, &for_thread));
        Ok(Self { child })
    }
}

/// Shows the output of the command until it has ended.
fn show(output: PipeReader, child: &Mutex<Option<Child>>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let _ = writeln!(io::stdout(), "[setup python] {line}");
    }
    let Some(mut child) = take(child) else { return };
    if !child.wait().is_ok_and(|status| status.success()) {
        let _ = writeln!(io::stdout(), "[setup python] The data tools cannot be used; all other tools can.");
    }
}

fn take(child: &Mutex<Option<Child>>) -> Option<Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Drop for BackgroundSetup {
    fn drop(&mut self) {
        let Some(mut child) = take(&self.child) else { return };
        let Some(group) = Pid::from_raw(child.id().cast_signed()) else { return };
        // The steps get the signal of Ctrl-C, so that pip removes its temporary files. Where that signal is ignored, as in
        // background jobs of a shell, they are killed.
        let _ = kill_process_group(group, Signal::INT);
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            let _ = child.try_wait();
            if test_kill_process_group(group).is_err() {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
    }
}

#[cfg(test)]
#[path = "background_tests.rs"]
mod background_tests;
