//! The jobs that run: what they are allowed, and how each of them ends.

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
    group::Group,
};
use crate::{
    Enforced, Enforcer, Exit, Limit,
    step::{At, Failure, Step},
    sys,
    wire::{self, Clock, Command, Ending, Event, FromCell, Order, ToCell, Watched},
};

/// How many cells may die before a job has begun until it is refused.
const CELLS_TRIED: usize = 4;

/// What a descriptor of a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Server = 0,
    Cell = 1,
    Death = 2,
    Alarm = 3,
}

impl Source {
    pub(super) fn of(token: u64) -> (u64, Self) {
        let source = match token % 4 {
            0 => Self::Server,
            1 => Self::Cell,
            2 => Self::Death,
            _ => Self::Alarm,
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

/// What another cell needs where one dies before the job has begun.
struct Parcel {
    file: OwnedFd,
    order: Order,
    streams: Vec<OwnedFd>,
    sources: Vec<OwnedFd>,
    tried: usize,
    /// When its time is up, if that was known to the cell before.
    deadline: Option<Instant>,
}

struct Job {
    server: OwnedFd,
    cell: Cell,
    /// Whether the end is told only when the cell is gone: an overlay may not be mounted twice.
    to_the_last: bool,
    deadline: Option<Instant>,
    killed_for: Option<Limit>,
    told: bool,
    /// Kept until the job has begun, or is to end: the death of its cell is its own end from then on.
    parcel: Option<Parcel>,
    failure: Option<Failure>,
    ending: Option<Ending>,
    enforced_by: Enforced,
}

impl Jobs {
    pub(super) fn new(epoll: OwnedFd) -> Self {
        Self { epoll, running: HashMap::new(), count: 0 }
    }

    /// Gives an order to a cell.
    pub(super) fn start(&mut self, mut descriptors: Vec<OwnedFd>, cells: &mut Cells) {
        if descriptors.len() < 2 {
            return;
        }
        let mut streams = descriptors.split_off(2);
        let (Some(server), Some(file)) = (descriptors.pop(), descriptors.pop()) else { return };
        let order = wire::unseal::<Order>(&file);
        match order.and_then(|order| if streams.len() < order.streams() { Err(Errno::BADMSG) } else { Ok(order) }) {
            Ok(order) => {
                let sources = streams.split_off(order.streams());
                self.hand_out(&server, Parcel { file, order, streams, sources, tried: 0, deadline: None }, cells);
            }
            Err(errno) => refuse(&server, Failure::new(Step::Order, errno)),
        }
    }

    fn hand_out(&mut self, server: &OwnedFd, parcel: Parcel, cells: &mut Cells) {
        if let Err(failure) = self.try_start(server, parcel, cells) {
            refuse(server, failure);
        }
    }

    fn try_start(&mut self, server: &OwnedFd, mut parcel: Parcel, cells: &mut Cells) -> Result<(), Failure> {
        let Parcel { file, order, streams, sources, .. } = &parcel;
        let place = &order.job.place;
        let server = rustix::io::fcntl_dupfd_cloexec(server, 10).at(Step::Order)?;
        let trees = cells.clone_trees(place, sources)?;
        let cell = cells.take(&place.limits)?;
        let handed_over = cells.hand_over(&cell, streams).at(Step::Streams);
        if let Err(failure) = handed_over.and_then(|()| cells.map_trees(&cell, place, &trees)) {
            cell.kill();
            cells.dismiss(cell);
            return Err(failure);
        }
        let (memory, processes) = enforcers(&cell);
        let watch = Watched { memory: memory == Enforcer::Watchdog, processes: processes == Enforcer::Rlimit };
        let mounted = if trees.is_empty() { sources } else { &trees };
        let sent = [file, &server].into_iter().chain(streams).chain(mounted);
        let sent: Vec<BorrowedFd<'_>> = sent.map(AsFd::as_fd).collect();
        let enforced_by = Enforced { memory, processes, disk: Enforcer::Watchdog };
        match wire::send(&cell.socket, &ToCell::Run { watch, enforced_by }, &sent) {
            // A cell that has died cannot be told; its last words are still to be read.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
            Err(errno) => {
                cell.kill();
                cells.dismiss(cell);
                return Err(Failure::new(Step::Order, errno));
            }
        }
        if order.clock == Clock::OnBegin && parcel.deadline.is_some() {
            let _ = wire::send(&cell.socket, &ToCell::Begin { since: sys::time_of_files() }, &[]);
        }
        let wall = (order.clock == Clock::Now).then_some(place.limits.wall);
        let deadline = parcel.deadline.or_else(|| wall.and_then(|wall| Instant::now().checked_add(wall)));
        let to_the_last = place.has_overlay();
        parcel.tried += 1;
        let job = Job {
            server,
            to_the_last,
            deadline,
            killed_for: None,
            told: false,
            parcel: Some(parcel),
            failure: None,
            ending: None,
            enforced_by,
            cell,
        };
        self.add(job).at(Step::Order)
    }

    fn add(&mut self, job: Job) -> rustix::io::Result<()> {
        self.count += 1;
        let add = |file: &OwnedFd, source: Source| {
            epoll::add(&self.epoll, file, EventData::new_u64(source.token(self.count)), EventFlags::IN)
        };
        add(&job.server, Source::Server)?;
        add(&job.cell.socket, Source::Cell)?;
        add(&job.cell.pidfd, Source::Death)?;
        if let Some(alarm) = job.alarm() {
            add(alarm, Source::Alarm)?;
        }
        self.running.insert(self.count, job);
        Ok(())
    }

    /// Answers what has come from a job, or for it.
    pub(super) fn answer(&mut self, id: u64, source: Source, cells: &mut Cells) {
        let Some(job) = self.running.get_mut(&id) else { return };
        match source {
            Source::Server => match wire::receive::<Command>(&job.server) {
                Ok(Some((Command::Begin { wall, since }, _))) => {
                    job.deadline = Instant::now().checked_add(wall);
                    // A cell that has died needs no telling.
                    let _ = wire::send(&job.cell.socket, &ToCell::Begin { since }, &[]);
                }
                Ok(Some((Command::Kill, _))) => job.end(),
                Err(Errno::AGAIN) => {}
                Ok(None) | Err(_) => {
                    let _ = epoll::delete(&self.epoll, &job.server);
                    job.end();
                }
            },
            Source::Cell => {
                if !job.hear() {
                    let _ = epoll::delete(&self.epoll, &job.cell.socket);
                }
            }
            Source::Alarm => {
                if let Some(alarm) = job.alarm() {
                    let _ = epoll::delete(&self.epoll, alarm);
                }
                job.killed_for.get_or_insert(Limit::Memory);
                job.end();
            }
            Source::Death => {
                let Some(mut job) = self.running.remove(&id) else { return };
                let files = [&job.server, &job.cell.socket, &job.cell.pidfd];
                for file in files.into_iter().chain(job.alarm()) {
                    let _ = epoll::delete(&self.epoll, file);
                }
                while job.hear() {}
                let again = job.take_again();
                if again.is_none() {
                    job.conclude();
                }
                cells.encourage();
                cells.dismiss(job.cell);
                if let Some(parcel) = again {
                    self.hand_out(&job.server, parcel, cells);
                }
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.running.values().filter_map(|job| job.deadline).min()
    }

    /// Kills the jobs whose time is up.
    pub(super) fn kill_late(&mut self, now: Instant) {
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
            cells.dismiss(job.cell);
        }
        cells.close();
    }
}

fn refuse(server: &OwnedFd, failure: Failure) {
    // A server that does not listen any more needs no answer.
    let _ = wire::send(server, &Event::Failed(failure), &[]);
}

fn enforcers(cell: &Cell) -> (Enforcer, Enforcer) {
    let Some(group) = &cell.group else { return (Enforcer::Watchdog, Enforcer::Rlimit) };
    (group.enforcer(), if group.counts_processes() { group.enforcer() } else { Enforcer::Rlimit })
}

impl Job {
    fn alarm(&self) -> Option<&OwnedFd> {
        self.cell.group.as_ref().and_then(Group::alarm)
    }

    fn end(&mut self) {
        self.parcel = None;
        self.cell.kill();
    }

    /// What another cell can have, where this one has died of something else than the job.
    fn take_again(&mut self) -> Option<Parcel> {
        let parcel = self.parcel.take().filter(|_| self.failure.is_none())?;
        if parcel.tried < CELLS_TRIED {
            return Some(Parcel { deadline: self.deadline, ..parcel });
        }
        let subject = "(its cell was killed before)".to_owned();
        self.failure = Some(Failure { subject, ..Failure::new(Step::Fork, Errno::CANCELED) });
        None
    }

    /// Listens to the cell; false when it will say no more.
    fn hear(&mut self) -> bool {
        match wire::receive::<FromCell>(&self.cell.socket) {
            Ok(Some((FromCell::Failed(failure), _))) => {
                self.failure.get_or_insert(failure);
                // What failed in the program's process is known here before PID 1 has seen it end.
                self.cell.kill();
                true
            }
            Ok(Some((FromCell::Begun, _))) => {
                self.parcel = None;
                true
            }
            Ok(Some((FromCell::Ended { exit, limit_hit, cpu }, _))) => {
                let limit_hit = self.killed_for.or(limit_hit).or_else(|| self.group_limit(exit));
                self.deadline = None;
                self.ending = Some(Ending { exit, limit_hit, cpu, enforced_by: self.enforced_by });
                if !self.to_the_last {
                    self.tell();
                }
                true
            }
            Err(Errno::INTR) => true,
            Ok(None) | Err(_) => false,
        }
    }

    /// Tells the server how it ended, once. What could not be set up has not ended: it has failed.
    fn tell(&mut self) {
        let event = match (self.failure.take(), self.ending.take()) {
            (Some(failure), _) => Event::Failed(failure),
            (None, Some(ending)) => Event::Ended(ending),
            (None, None) => return,
        };
        if !self.told {
            self.told = true;
            // A server that does not listen any more needs no answer.
            let _ = wire::send(&self.server, &event, &[]);
        }
    }

    /// Tells the end when the cell is gone, whether it could tell anything or not.
    fn conclude(&mut self) {
        let exit = Exit::Signal(libc::SIGKILL);
        let limit_hit = self.killed_for.or_else(|| self.group_limit(exit));
        let killed = Ending { exit, limit_hit, cpu: Duration::ZERO, enforced_by: self.enforced_by };
        self.ending.get_or_insert(killed);
        self.tell();
    }

    /// The limit of the control group that a program which failed has run into.
    fn group_limit(&self, exit: Exit) -> Option<Limit> {
        let hit = self.cell.group.as_ref().filter(|_| exit != Exit::Code(0))?.hit();
        if hit.memory { Some(Limit::Memory) } else { hit.processes.then_some(Limit::Processes) }
    }
}
