//! PID 1 of a job: waits for the program, buries what it leaves behind and watches its limits.

use std::{os::fd::OwnedFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus},
};

use super::watch::Watch;
use crate::{
    Exit, Limit,
    step::{At, Failure, Step},
    sys,
    wire::{self, ToCell},
};

/// How long the dead may take to be buried before they are killed once more.
const BURIAL: Duration = Duration::from_millis(5);

/// How many of the dead are buried before the limits are looked at again: a job can have others die all the time.
const BURIED_AT_ONCE: u32 = 256;

/// Waits until the program has ended, ends everything else, and says how it ended and by what limit.
pub(super) fn reap(
    socket: &OwnedFd,
    signals: &OwnedFd,
    program: Pid,
    mut watch: Watch,
) -> Result<(Exit, Option<Limit>), Failure> {
    let mut limit_hit = None;
    let exit = loop {
        let more = match bury(signals, program).on(Step::Watch, "processes")? {
            Buried::Program(exit) => break exit,
            Buried::All => false,
            Buried::Some => true,
        };
        let time = if more { Duration::ZERO } else { watch.rest() };
        match rest(Some(socket), signals, time).on(Step::Watch, "processes")? {
            Wake::LauncherGone => sys::exit(0),
            Wake::Begun { since } => watch.begin(since)?,
            Wake::Ready => {}
        }
        if limit_hit.is_none() {
            limit_hit = watch.look(|| has_ended(program))?;
            if limit_hit.is_some() {
                // It fails only where there is nobody left to kill.
                let _ = sys::signal_all(Signal::KILL);
            }
        }
    };
    limit_hit = limit_hit.or_else(|| limit_of(exit));
    if limit_hit.is_none() {
        limit_hit = watch.reached_while_it_failed(exit != Exit::Code(0))?;
    }
    end_all(signals).on(Step::Watch, "processes")?;
    Ok((exit, limit_hit))
}

/// The limit that a signal stands for.
fn limit_of(exit: Exit) -> Option<Limit> {
    match exit {
        Exit::Signal(libc::SIGXCPU) => Some(Limit::Time),
        Exit::Signal(libc::SIGXFSZ) => Some(Limit::Disk),
        Exit::Signal(_) | Exit::Code(_) => None,
    }
}

/// Who was buried.
enum Buried {
    Program(Exit),
    All,
    /// There are more.
    Some,
}

/// Buries those that have died, and says how the program ended if it is among them.
fn bury(signals: &OwnedFd, program: Pid) -> rustix::io::Result<Buried> {
    drain(signals);
    for _ in 0..BURIED_AT_ONCE {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == program => return Ok(Buried::Program(exit_of(status))),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(Buried::All),
            Err(errno) => return Err(errno),
        }
    }
    Ok(Buried::Some)
}

fn exit_of(status: WaitStatus) -> Exit {
    status.terminating_signal().map_or_else(|| Exit::Code(status.exit_status().unwrap_or(0)), Exit::Signal)
}

/// Kills until nobody is left: who forked while the others were killed is killed the next time.
fn end_all(signals: &OwnedFd) -> rustix::io::Result<()> {
    loop {
        drain(signals);
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(()),
            Ok(None) => {
                // It fails only where there is nobody left to kill.
                let _ = sys::signal_all(Signal::KILL);
                rest(None, signals, BURIAL)?;
            }
            Err(errno) => return Err(errno),
        }
    }
}

/// Forgets the signals that have come. Before the dead are counted: one that comes later wakes the next rest. One read
/// takes all there are; to read until there are none would let a job that sends signals keep PID 1 here.
fn drain(signals: &OwnedFd) {
    let mut drained = [0; 1024];
    let _ = rustix::io::read(signals, &mut drained);
}

/// Why a rest has ended.
enum Wake {
    /// A child has died, or the time has passed.
    Ready,
    /// The script that an interpreter has waited for has come.
    Begun {
        since: Duration,
    },
    LauncherGone,
}

/// Rests until a child has died, the launcher has something to say or the time has passed.
fn rest(socket: Option<&OwnedFd>, signals: &OwnedFd, time: Duration) -> rustix::io::Result<Wake> {
    let mut polled = vec![PollFd::new(signals, PollFlags::IN)];
    polled.extend(socket.map(|socket| PollFd::new(socket, PollFlags::IN)));
    let time = Timespec::try_from(time).ok();
    match rustix::event::poll(&mut polled, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno),
    }
    let said = polled.get(1).is_some_and(|socket| !socket.revents().is_empty());
    let Some(socket) = socket.filter(|_| said) else { return Ok(Wake::Ready) };
    match wire::receive::<ToCell>(socket) {
        Ok(Some((ToCell::Begin { since }, _))) => Ok(Wake::Begun { since }),
        // Nothing else is said to a job that runs.
        Ok(_) | Err(_) => Ok(Wake::LauncherGone),
    }
}

/// Whether the program has ended, which is not buried by that. That anybody has died says nothing: a job can have
/// others die all the time, so that nobody would ever get to look.
fn has_ended(program: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::Pid(program), options), Ok(None))
}
