//! The launcher: a small single-threaded process that creates cells, passes requests to them and ends them.
//!
//! It never blocks on a cell. It waits for all of its descriptors and handles the events.

mod cells;
mod cgroup;
mod cgroup_pool;
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
use jobs::{EventSource, Jobs};

/// The entry point of the launcher. A program that uses the sandbox must call it, and nothing else, when it is started
/// with the arguments named in [`Options`](crate::Options). It must not have started a thread before.
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
    let control = detach()?;
    let Some((Request::Configure(configuration), _)) = wire::receive::<Request>(&control)? else {
        return Ok(());
    };
    Launcher::new(control, &configuration)?.run()?;
    Ok(())
}

/// Seconds that the launcher may take to end its jobs and to remove its control groups after the server is gone.
const CLEAN_UP: u32 = 10;

/// Takes over the control socket and detaches the process from the server's session and files.
///
/// The launcher ends when that socket is closed, which also happens if the server dies. It ignores signals meant for
/// the server, because it has to end jobs and remove control groups first.
fn detach() -> rustix::io::Result<OwnedFd> {
    sys::ignore_requests_to_end();
    // Signals from the terminal are for the server.
    let _ = rustix::process::setsid();
    // Opened before descriptor 0 is free, so that it does not get that number.
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let control = rustix::io::fcntl_dupfd_cloexec(sys::inherited(0)?, 10)?;
    sys::put_descriptor(&null, 0)?;
    sys::put_descriptor(&null, 1)?;
    rustix::process::chdir("/")?;
    // A core limit of 1 for the jobs; `cell/program.rs` explains why it is not 0. Root can raise it even if the
    // server's own limit is 0.
    let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(1), maximum: Some(1) });
    // Many concurrent jobs need many descriptors.
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

/// The epoll token of the control socket. Job numbers start at 1.
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
            let timeout = if self.cells.wants_more() { Some(Timespec::default()) } else { self.until_deadline() };
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            for event in &events {
                if !self.handle_event(event.data.u64()) {
                    sys::end_after(CLEAN_UP);
                    self.jobs.end_all(&mut self.cells);
                    return Ok(());
                }
            }
            self.jobs.kill_overdue(Instant::now());
            if events.is_empty() {
                // No event is pending: prepare for the next request.
                self.cells.create_ahead();
            }
        }
    }

    fn until_deadline(&self) -> Option<Timespec> {
        let deadline = self.jobs.next_deadline()?;
        Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok()
    }

    /// Handles an event. Returns false when the server is gone.
    fn handle_event(&mut self, token: u64) -> bool {
        if token != CONTROL {
            let (job, source) = EventSource::from_token(token);
            self.jobs.handle_event(job, source, &mut self.cells);
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
