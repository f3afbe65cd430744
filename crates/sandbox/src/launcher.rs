//! The launcher: a small process with one thread that makes cells, hands orders to them and ends them.
//!
//! It never blocks on a cell: all it does is wait for any of its descriptors and answer what came.

mod cells;
mod group;
mod hierarchy;
mod id_map;
mod jobs;

use std::{
    os::fd::{AsFd, OwnedFd},
    process::ExitCode,
    time::Instant,
};

use rustix::{
    event::{Timespec, epoll},
    fs::{Mode, OFlags},
    io::Errno,
    process::{Resource, Rlimit},
};

use crate::{
    sys, wire,
    wire::{Configuration, Request},
};
use cells::Cells;
use jobs::{Jobs, Source};

/// The entry point of the launcher. A program that offers the sandbox calls it, and nothing else, when it is started
/// with the argument that [`Options`](crate::Options) name; it must not have started a thread before.
pub fn launcher_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolrest launcher: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let control = settle()?;
    let Some((Request::Configure(configuration), _)) = wire::receive::<Request>(&control)? else {
        return Ok(());
    };
    Launcher::new(control, &configuration)?.run()?;
    Ok(())
}

/// How long the launcher may take to end its jobs and to remove its control groups once the server is gone.
const CLEAN_UP: u32 = 10;

/// Takes the control socket from where the server has put it, and cuts the ties to everything else of the server's.
///
/// The launcher ends when that socket is closed, also by the death of the server, and not by a signal that is meant for
/// the server: it has jobs to end and control groups to remove.
fn settle() -> rustix::io::Result<OwnedFd> {
    sys::ignore_requests_to_end();
    // A signal from the terminal is the server's to answer.
    let _ = rustix::process::setsid();
    // Before the socket is moved, or it would get its number.
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let control = rustix::io::fcntl_dupfd_cloexec(sys::inherited(0)?, 10)?;
    sys::put_descriptor(&null, 0)?;
    sys::put_descriptor(&null, 1)?;
    rustix::process::chdir("/")?;
    // For the jobs, as root even where the server may have no core dumps at all; they say why it is not 0.
    let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(1), maximum: Some(1) });
    // Many jobs at once, and trees that are walked through.
    let files = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum })?;
    Ok(control)
}

struct Launcher {
    control: OwnedFd,
    epoll: OwnedFd,
    cells: Cells,
    jobs: Jobs,
}

/// What the control socket is known by; jobs are counted from one.
const CONTROL: u64 = 0;

impl Launcher {
    fn new(control: OwnedFd, configuration: &Configuration) -> Result<Self, Box<dyn std::error::Error>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &control, epoll::EventData::new_u64(CONTROL), epoll::EventFlags::IN)?;
        let cells = Cells::new(configuration)?;
        let jobs = Jobs::new(rustix::io::fcntl_dupfd_cloexec(&epoll, 10)?);
        Ok(Self { control, epoll, cells, jobs })
    }

    fn run(mut self) -> rustix::io::Result<()> {
        let mut events = Vec::with_capacity(64);
        loop {
            let timeout = if self.cells.are_wanted() { Some(Timespec::default()) } else { self.until_deadline() };
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            for event in &events {
                if !self.answer(event.data.u64()) {
                    sys::end_after(CLEAN_UP);
                    self.jobs.end_all(&mut self.cells);
                    return Ok(());
                }
            }
            self.jobs.kill_late(Instant::now());
            if events.is_empty() {
                // Nobody waits for an answer: time to prepare for the next order.
                self.cells.prepare();
            }
        }
    }

    fn until_deadline(&self) -> Option<Timespec> {
        let deadline = self.jobs.next_deadline()?;
        Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok()
    }

    /// Answers what has come; false when the server is gone.
    fn answer(&mut self, token: u64) -> bool {
        if token != CONTROL {
            let (job, source) = Source::of(token);
            self.jobs.answer(job, source, &mut self.cells);
            return true;
        }
        match wire::receive::<Request>(self.control.as_fd()) {
            Ok(Some((Request::Run, descriptors))) => self.jobs.start(descriptors, &mut self.cells),
            Ok(Some((Request::Configure(_), _))) | Err(Errno::AGAIN) => {}
            Ok(None) | Err(_) => return false,
        }
        true
    }
}
