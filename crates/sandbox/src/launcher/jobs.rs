//! The running jobs: their events, deadlines and results.

use std::{
    collections::HashMap,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::epoll::{self, EventData, EventFlags},
    io::Errno,
};

use super::{
    cells::{Cell, Cells},
    cgroup::Cgroup,
};
use crate::{
    Enforcer, Exit, Limit, LimitEnforcers,
    step::{Failure, Step, StepContext},
    sys,
    wire::{self, ClockStart, Command, Event, FromCell, JobEnd, JobRequest, ToCell, WatchdogDuties},
};

/// How many cells may die before the program starts, until the job is refused.
const CELL_ATTEMPTS: usize = 4;

/// The kinds of descriptors of a job, as epoll events name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSource {
    Server = 0,
    Cell = 1,
    Exited = 2,
    OutOfMemory = 3,
}

impl EventSource {
    pub(super) fn from_token(token: u64) -> (u64, Self) {
        let source = match token % 4 {
            0 => Self::Server,
            1 => Self::Cell,
            2 => Self::Exited,
            _ => Self::OutOfMemory,
        };
        (token / 4, source)
    }

    const fn token(self, job: u64) -> u64 {
        job * 4 + self as u64
    }
}

pub(super) struct Jobs {
    epoll: OwnedFd,
    running: HashMap<u64, Job>,
    count: u64,
}

/// Everything that is needed to start the job in another cell, if its cell dies before the program starts.
struct PendingJob {
    file: OwnedFd,
    request: JobRequest,
    streams: Vec<OwnedFd>,
    sources: Vec<OwnedFd>,
    attempts: usize,
    /// The deadline, if the clock was already started in the previous cell.
    deadline: Option<Instant>,
}

struct Job {
    server: OwnedFd,
    cell: Cell,
    /// Whether the result is reported only after the cell's exit. An overlay must be unmounted before it is used again.
    report_after_exit: bool,
    deadline: Option<Instant>,
    killed_for: Option<Limit>,
    reported: bool,
    /// Kept until the program starts or the job is killed. After that, the death of the cell ends the job.
    pending: Option<PendingJob>,
    failure: Option<Failure>,
    ending: Option<JobEnd>,
    enforced_by: LimitEnforcers,
}

impl Jobs {
    pub(super) fn new(epoll: OwnedFd) -> Self {
        Self { epoll, running: HashMap::new(), count: 0 }
    }

    /// Starts a job in a cell.
    pub(super) fn start(&mut self, mut descriptors: Vec<OwnedFd>, cells: &mut Cells) {
        if descriptors.len() < 2 {
            return;
        }
        let mut streams = descriptors.split_off(2);
        let (Some(server), Some(file)) = (descriptors.pop(), descriptors.pop()) else { return };
        let request = wire::unseal::<JobRequest>(&file);
        match request
            .and_then(|request| if streams.len() < request.streams() { Err(Errno::BADMSG) } else { Ok(request) })
        {
            Ok(request) => {
                let sources = streams.split_off(request.streams());
                self.start_or_refuse(
                    &server,
                    PendingJob { file, request, streams, sources, attempts: 0, deadline: None },
                    cells,
                );
            }
            Err(errno) => refuse(&server, Failure::new(Step::Request, errno)),
        }
    }

    fn start_or_refuse(&mut self, server: &OwnedFd, pending: PendingJob, cells: &mut Cells) {
        if let Err(failure) = self.try_start(server, pending, cells) {
            refuse(server, failure);
        }
    }

    fn try_start(&mut self, server: &OwnedFd, mut pending: PendingJob, cells: &mut Cells) -> Result<(), Failure> {
        let PendingJob { file, request, streams, sources, .. } = &pending;
        let spec = &request.job.spec;
        let server = rustix::io::fcntl_dupfd_cloexec(server, 10).at(Step::Request)?;
        let trees = cells.clone_mounts(spec, sources)?;
        let cell = cells.take(&spec.limits)?;
        let prepared = cells.give_streams(&cell, streams).at(Step::Streams);
        if let Err(failure) = prepared.and_then(|()| cells.map_mounts(&cell, spec, &trees)) {
            cell.kill();
            cells.release(cell);
            return Err(failure);
        }
        let (memory, processes) = enforcers(&cell);
        let duties = WatchdogDuties { memory: memory == Enforcer::Watchdog, processes: processes == Enforcer::Rlimit };
        let mounted = if trees.is_empty() { sources } else { &trees };
        let sent = [file, &server].into_iter().chain(streams).chain(mounted);
        let sent: Vec<BorrowedFd<'_>> = sent.map(AsFd::as_fd).collect();
        let enforced_by = LimitEnforcers { memory, processes, disk: Enforcer::Watchdog };
        match wire::send(&cell.socket, &ToCell::Run { duties, enforced_by }, &sent) {
            // The cell has died. Its last message is still to be received.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
            Err(errno) => {
                cell.kill();
                cells.release(cell);
                return Err(Failure::new(Step::Request, errno));
            }
        }
        if request.clock == ClockStart::OnScript && pending.deadline.is_some() {
            let _ = wire::send(&cell.socket, &ToCell::Begin { since: sys::file_clock_now() }, &[]);
        }
        let wall = (request.clock == ClockStart::Immediately).then_some(spec.limits.wall);
        let deadline = pending.deadline.or_else(|| wall.and_then(|wall| Instant::now().checked_add(wall)));
        let report_after_exit = spec.has_overlay();
        pending.attempts += 1;
        let job = Job {
            server,
            report_after_exit,
            deadline,
            killed_for: None,
            reported: false,
            pending: Some(pending),
            failure: None,
            ending: None,
            enforced_by,
            cell,
        };
        self.add(job).at(Step::Request)
    }

    fn add(&mut self, job: Job) -> rustix::io::Result<()> {
        self.count += 1;
        let add = |file: &OwnedFd, source: EventSource| {
            epoll::add(&self.epoll, file, EventData::new_u64(source.token(self.count)), EventFlags::IN)
        };
        add(&job.server, EventSource::Server)?;
        add(&job.cell.socket, EventSource::Cell)?;
        add(&job.cell.pidfd, EventSource::Exited)?;
        if let Some(oom_event) = job.oom_event() {
            add(oom_event, EventSource::OutOfMemory)?;
        }
        self.running.insert(self.count, job);
        Ok(())
    }

    /// Handles an event of a job.
    pub(super) fn handle_event(&mut self, id: u64, source: EventSource, cells: &mut Cells) {
        let Some(job) = self.running.get_mut(&id) else { return };
        match source {
            EventSource::Server => match wire::receive::<Command>(&job.server) {
                Ok(Some((Command::Begin { wall, since }, _))) => {
                    job.deadline = Instant::now().checked_add(wall);
                    // Fails only if the cell has died.
                    let _ = wire::send(&job.cell.socket, &ToCell::Begin { since }, &[]);
                }
                Ok(Some((Command::Kill, _))) => job.end(),
                Err(Errno::AGAIN) => {}
                Ok(None) | Err(_) => {
                    let _ = epoll::delete(&self.epoll, &job.server);
                    job.end();
                }
            },
            EventSource::Cell => {
                if !job.receive() {
                    let _ = epoll::delete(&self.epoll, &job.cell.socket);
                }
            }
            EventSource::OutOfMemory => {
                if let Some(oom_event) = job.oom_event() {
                    let _ = epoll::delete(&self.epoll, oom_event);
                }
                job.killed_for.get_or_insert(Limit::Memory);
                job.end();
            }
            EventSource::Exited => {
                let Some(mut job) = self.running.remove(&id) else { return };
                let files = [&job.server, &job.cell.socket, &job.cell.pidfd];
                for file in files.into_iter().chain(job.oom_event()) {
                    let _ = epoll::delete(&self.epoll, file);
                }
                while job.receive() {}
                let retry = job.take_retry();
                if retry.is_none() {
                    job.report_exit();
                }
                cells.allow_creation();
                cells.release(job.cell);
                if let Some(pending) = retry {
                    self.start_or_refuse(&job.server, pending, cells);
                }
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.running.values().filter_map(|job| job.deadline).min()
    }

    /// Kills the jobs that are past their deadline.
    pub(super) fn kill_overdue(&mut self, now: Instant) {
        for job in self.running.values_mut() {
            if job.deadline.is_some_and(|deadline| deadline <= now) {
                job.deadline = None;
                job.killed_for = Some(Limit::Time);
                job.end();
            }
        }
    }

    pub(super) fn end_all(&mut self, cells: &mut Cells) {
        for job in self.running.values() {
            job.cell.kill();
        }
        for (_, job) in self.running.drain() {
            cells.release(job.cell);
        }
        cells.shut_down();
    }
}

fn refuse(server: &OwnedFd, failure: Failure) {
    // Fails only if the server is gone.
    let _ = wire::send(server, &Event::Failed(failure), &[]);
}

fn enforcers(cell: &Cell) -> (Enforcer, Enforcer) {
    let Some(group) = &cell.group else { return (Enforcer::Watchdog, Enforcer::Rlimit) };
    (group.enforcer(), if group.counts_processes() { group.enforcer() } else { Enforcer::Rlimit })
}

impl Job {
    fn oom_event(&self) -> Option<&OwnedFd> {
        self.cell.group.as_ref().and_then(Cgroup::oom_event)
    }

    fn end(&mut self) {
        self.pending = None;
        self.cell.kill();
    }

    /// Returns the job for another cell, if this cell died before the program started.
    fn take_retry(&mut self) -> Option<PendingJob> {
        let pending = self.pending.take().filter(|_| self.failure.is_none())?;
        if pending.attempts < CELL_ATTEMPTS {
            return Some(PendingJob { deadline: self.deadline, ..pending });
        }
        let subject = "(its cell was killed before the program started)".to_owned();
        self.failure = Some(Failure { subject, ..Failure::new(Step::Fork, Errno::CANCELED) });
        None
    }

    /// Receives a message of the cell. Returns false if there are no more.
    fn receive(&mut self) -> bool {
        match wire::receive::<FromCell>(&self.cell.socket) {
            Ok(Some((FromCell::Failed(failure), _))) => {
                self.failure.get_or_insert(failure);
                // The program's process reports its failure itself, before PID 1 notices its exit.
                self.cell.kill();
                true
            }
            Ok(Some((FromCell::Started, _))) => {
                self.pending = None;
                true
            }
            Ok(Some((FromCell::Ended { exit, limit_hit, cpu }, _))) => {
                let limit_hit = self.killed_for.or(limit_hit).or_else(|| self.group_limit(exit));
                self.deadline = None;
                self.ending = Some(JobEnd { exit, limit_hit, cpu, enforced_by: self.enforced_by });
                if !self.report_after_exit {
                    self.report_once();
                }
                true
            }
            Err(Errno::INTR) => true,
            Ok(None) | Err(_) => false,
        }
    }

    /// Reports the result to the server, at most once. A failed set-up takes precedence over an exit status.
    fn report_once(&mut self) {
        let event = match (self.failure.take(), self.ending.take()) {
            (Some(failure), _) => Event::Failed(failure),
            (None, Some(ending)) => Event::Ended(ending),
            (None, None) => return,
        };
        if !self.reported {
            self.reported = true;
            // Fails only if the server is gone.
            let _ = wire::send(&self.server, &event, &[]);
        }
    }

    /// Reports the result after the exit of the cell, even if the cell reported none.
    fn report_exit(&mut self) {
        let exit = Exit::Signal(libc::SIGKILL);
        let limit_hit = self.killed_for.or_else(|| self.group_limit(exit));
        let killed = JobEnd { exit, limit_hit, cpu: Duration::ZERO, enforced_by: self.enforced_by };
        self.ending.get_or_insert(killed);
        self.report_once();
    }

    /// Returns the limit of the control group that a failed program hit, if any.
    fn group_limit(&self, exit: Exit) -> Option<Limit> {
        let limits_hit = self.cell.group.as_ref().filter(|_| exit != Exit::Code(0))?.limits_hit();
        if limits_hit.memory { Some(Limit::Memory) } else { limits_hit.processes.then_some(Limit::Processes) }
    }
}
