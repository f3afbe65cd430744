//! The main loop of PID 1: waits for the program, reaps orphans and enforces the limits.

use std::{os::fd::OwnedFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus},
};

use super::watchdog::Watchdog;
use crate::{
    Exit, Limit,
    step::{Failure, Step, StepContext},
    sys,
    wire::{self, ToCell},
};

/// Interval between attempts to kill remaining processes.
const KILL_INTERVAL: Duration = Duration::from_millis(5);

/// How many children are reaped before the limits are checked again. A job can create exiting processes all the time.
const REAPED_AT_ONCE: u32 = 256;

/// Waits for the end of the program, kills all other processes, and returns the exit status and the limit that was hit.
pub(super) fn supervise(
    socket: &OwnedFd,
    signals: &OwnedFd,
    program: Pid,
    mut watchdog: Watchdog,
) -> Result<(Exit, Option<Limit>), Failure> {
    let mut limit_hit = None;
    let exit = loop {
        let more = match reap(signals, program).on(Step::Watch, "processes")? {
            ReapOutcome::Program(exit) => break exit,
            ReapOutcome::All => false,
            ReapOutcome::Some => true,
        };
        let time = if more { Duration::ZERO } else { watchdog.until_next_check() };
        match wait_for_event(Some(socket), signals, time).on(Step::Watch, "processes")? {
            WakeReason::LauncherGone => sys::exit(0),
            WakeReason::Begun { since } => watchdog.begin(since)?,
            WakeReason::Ready => {}
        }
        if limit_hit.is_none() {
            limit_hit = watchdog.check(|| has_ended(program))?;
            if limit_hit.is_some() {
                // Fails only if there are no processes left.
                let _ = sys::signal_all(Signal::KILL);
            }
        }
    };
    limit_hit = limit_hit.or_else(|| limit_of_signal(exit));
    if limit_hit.is_none() {
        limit_hit = watchdog.limit_behind_failure(exit != Exit::Code(0))?;
    }
    kill_all(signals).on(Step::Watch, "processes")?;
    Ok((exit, limit_hit))
}

/// Returns the limit that a signal stands for.
fn limit_of_signal(exit: Exit) -> Option<Limit> {
    match exit {
        Exit::Signal(libc::SIGXCPU) => Some(Limit::Time),
        Exit::Signal(libc::SIGXFSZ) => Some(Limit::Disk),
        Exit::Signal(_) | Exit::Code(_) => None,
    }
}

/// The result of reaping.
enum ReapOutcome {
    Program(Exit),
    All,
    /// There may be more.
    Some,
}

/// Reaps exited children, and returns the exit status of the program if it is among them.
fn reap(signals: &OwnedFd, program: Pid) -> rustix::io::Result<ReapOutcome> {
    drain(signals);
    for _ in 0..REAPED_AT_ONCE {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == program => return Ok(ReapOutcome::Program(exit_of(status))),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(ReapOutcome::All),
            Err(errno) => return Err(errno),
        }
    }
    Ok(ReapOutcome::Some)
}

fn exit_of(status: WaitStatus) -> Exit {
    status.terminating_signal().map_or_else(|| Exit::Code(status.exit_status().unwrap_or(0)), Exit::Signal)
}

/// Kills until no process is left. A process forked during one round is killed in the next.
fn kill_all(signals: &OwnedFd) -> rustix::io::Result<()> {
    loop {
        drain(signals);
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(()),
            Ok(None) => {
                // Fails only if there are no processes left.
                let _ = sys::signal_all(Signal::KILL);
                wait_for_event(None, signals, KILL_INTERVAL)?;
            }
            Err(errno) => return Err(errno),
        }
    }
}

/// Discards pending signals. Called before children are reaped, so that a later signal wakes the next wait. A single
/// read takes all pending ones; reading in a loop would let a job that sends signals keep PID 1 busy.
fn drain(signals: &OwnedFd) {
    let mut buffer = [0; 1024];
    let _ = rustix::io::read(signals, &mut buffer);
}

/// Why a wait has ended.
enum WakeReason {
    /// A child has exited, or the time has passed.
    Ready,
    /// The script of an idle interpreter has arrived.
    Begun {
        since: Duration,
    },
    LauncherGone,
}

/// Waits until a child has exited, the launcher has sent a message, or the time has passed.
fn wait_for_event(socket: Option<&OwnedFd>, signals: &OwnedFd, time: Duration) -> rustix::io::Result<WakeReason> {
    let mut polled = vec![PollFd::new(signals, PollFlags::IN)];
    polled.extend(socket.map(|socket| PollFd::new(socket, PollFlags::IN)));
    let time = Timespec::try_from(time).ok();
    match rustix::event::poll(&mut polled, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno),
    }
    let has_message = polled.get(1).is_some_and(|socket| !socket.revents().is_empty());
    let Some(socket) = socket.filter(|_| has_message) else { return Ok(WakeReason::Ready) };
    match wire::receive::<ToCell>(socket) {
        Ok(Some((ToCell::Begin { since }, _))) => Ok(WakeReason::Begun { since }),
        // No other message is sent to a running job.
        Ok(_) | Err(_) => Ok(WakeReason::LauncherGone),
    }
}

/// Whether the program has exited; it is not reaped. Other exited children do not matter: a job could produce them all
/// the time and so interrupt every measurement.
fn has_ended(program: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::Pid(program), options), Ok(None))
}
