//! Stopping all processes of a job for a moment, so that nothing moves while it is counted.

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

/// How long the processes may take to stop. One that runs stops as soon as it gets a processor; only one that has itself
/// continued all the time takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

const INTERVAL: Duration = Duration::from_millis(1);

/// Keeps the processes of a job stopped as long as it lives.
pub(super) struct Stopped<'a> {
    processes: &'a Processes,
    /// Those that were stopped before, and stay so.
    before: HashSet<u32>,
}

impl Processes {
    /// Stops all processes but PID 1, which calls it. Fails if they cannot be stopped.
    #[allow(clippy::disallowed_methods, reason = "the kernel gives no sign when a process has stopped")]
    pub(super) fn stop_all(&self) -> Result<Stopped<'_>> {
        let before = self.all()?.into_iter().filter(|pid| matches!(self.state(&pid.to_string()), Ok(Some('T'))));
        let stopped = Stopped { before: before.collect(), processes: self };
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Each time again: who was continued meanwhile by another one has to stop too.
            signal_all(Signal::STOP)?;
            if self.stand_still()? {
                return Ok(stopped);
            }
            if Instant::now() > deadline {
                return Err(Errno::TIMEDOUT);
            }
            thread::sleep(INTERVAL);
        }
    }

    /// Whether no process runs. One that waits for the disk stops before it does anything else.
    fn stand_still(&self) -> Result<bool> {
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

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        if self.before.is_empty() {
            let _ = signal_all(Signal::CONT);
            return;
        }
        let all = self.processes.all().unwrap_or_default();
        for pid in all.into_iter().filter(|pid| *pid != 1 && !self.before.contains(pid)) {
            // It fails only where the process has ended.
            let _ = Pid::from_raw(pid.cast_signed()).map(|pid| rustix::process::kill_process(pid, Signal::CONT));
        }
    }
}

/// Sends a signal to all, of whom there may be none.
fn signal_all(signal: Signal) -> Result<()> {
    match sys::signal_all(signal) {
        Err(Errno::SRCH) => Ok(()),
        sent => sent,
    }
}
