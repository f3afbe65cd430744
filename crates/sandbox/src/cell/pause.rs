//! Stops all processes of a job for one measurement.

use std::{
    collections::HashSet,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::{Errno, Result},
    process::{Pid, Signal},
};

use super::processes::Processes;
use crate::sys;

/// How long the processes may take to stop. A running process stops as soon as it gets a processor. Only a job that
/// keeps continuing its processes takes longer.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(10);

const INTERVAL: Duration = Duration::from_millis(1);

/// Keeps the processes of a job stopped until it is dropped.
pub(super) struct PausedProcesses<'a> {
    processes: &'a Processes,
    /// Processes that were already stopped before the pause. They stay stopped after it.
    paused_before: HashSet<u32>,
}

impl Processes {
    /// Stops all processes except PID 1, which is the caller. Fails if they do not stop in time.
    #[allow(clippy::disallowed_methods, reason = "the kernel gives no sign when a process has stopped")]
    pub(super) fn pause_all(&self) -> Result<PausedProcesses<'_>> {
        let paused_before = self.all()?.into_iter().filter(|pid| matches!(self.state(&pid.to_string()), Ok(Some('T'))));
        let paused = PausedProcesses { paused_before: paused_before.collect(), processes: self };
        let deadline = Instant::now() + PAUSE_TIMEOUT;
        loop {
            // Repeated, because processes can continue each other.
            signal_all(Signal::STOP)?;
            if self.all_paused()? {
                return Ok(paused);
            }
            if Instant::now() > deadline {
                return Err(Errno::TIMEDOUT);
            }
            thread::sleep(INTERVAL);
        }
    }

    /// Whether no process runs. A process in disk sleep (`D`) stops before it runs again.
    fn all_paused(&self) -> Result<bool> {
        for pid in self.all()?.into_iter().filter(|pid| *pid != 1) {
            for thread in self.threads(pid)? {
                if self.state(&thread)?.is_some_and(|state| !matches!(state, 'T' | 't' | 'Z' | 'X' | 'D')) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

impl Drop for PausedProcesses<'_> {
    fn drop(&mut self) {
        if self.paused_before.is_empty() {
            let _ = signal_all(Signal::CONT);
            return;
        }
        let all = self.processes.all().unwrap_or_default();
        for pid in all.into_iter().filter(|pid| *pid != 1 && !self.paused_before.contains(pid)) {
            // Fails only if the process has ended.
            let _ = Pid::from_raw(pid.cast_signed()).map(|pid| rustix::process::kill_process(pid, Signal::CONT));
        }
    }
}

/// Sends a signal to all processes. There may be none.
fn signal_all(signal: Signal) -> Result<()> {
    match sys::signal_all(signal) {
        Err(Errno::SRCH) => Ok(()),
        sent => sent,
    }
}
