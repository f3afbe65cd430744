//! A cell: a process that is PID 1 of its own namespaces, builds its own file system and waits for a request.
//!
//! It is forked from the launcher, which has a single thread. So it may use all of Rust, including the allocator.

mod certainty;
mod deleted_files;
mod disk;
mod kernel_objects;
mod landlock_rules;
mod masked_paths;
mod memory;
mod mounts;
mod pause;
mod processes;
mod program;
mod quotas;
mod root;
mod seccomp;
mod supervisor;
mod template;
mod watchdog;

use std::{
    net::{Ipv4Addr, TcpListener},
    os::fd::{AsFd, OwnedFd},
    panic::{self, AssertUnwindSafe},
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    process::{DumpableBehavior, Signal},
    thread::{CapabilitySet, CapabilitySets},
};

pub(crate) use mounts::attributes as mount_attributes;
pub(crate) use template::CellTemplate;

use crate::{
    Exit, Network,
    step::{Failure, Step, StepContext},
    sys,
    wire::{self, Event, FromCell, JobEnd, JobRequest, ToCell},
};
use processes::Processes;
use program::PreparedProcess;

/// User and group id inside a cell.
pub(crate) const INSIDE_ID: u32 = 1000;

/// The capabilities that PID 1 keeps to measure processes and folders that deny access.
const WATCHDOG_CAPABILITIES: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH);

/// Runs as a cell, from the first instruction in its namespaces to the end of its job.
pub(crate) fn run(socket: &OwnedFd, template: &CellTemplate) -> ! {
    let end = panic::catch_unwind(AssertUnwindSafe(|| serve(socket, template)));
    let failure = match end {
        Ok(Ok(())) => sys::exit(0),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(Step::Request, Errno::NOTRECOVERABLE),
    };
    // Fails only if the launcher is gone.
    let _ = wire::send(socket, &FromCell::Failed(failure), &[]);
    sys::exit(1)
}

fn serve(socket: &OwnedFd, template: &CellTemplate) -> Result<(), Failure> {
    sys::close_all_but(socket.as_fd()).at(Step::Streams)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).at(Step::Streams)?;
    for number in 0..3 {
        sys::put_descriptor(&null, number).at(Step::Streams)?;
    }
    drop(null);
    let Some((ToCell::Build, procs_files)) = wire::receive::<ToCell>(socket).at(Step::Request)? else { return Ok(()) };
    for procs_file in procs_files {
        // 0 means the writing process.
        rustix::io::write(procs_file, b"0").at(Step::Group)?;
    }
    switch_user(template)?;
    root::build(template)?;
    let signals = sys::child_signals().at(Step::Fork)?;
    let processes = Processes::mount().at(Step::Processes)?;
    let program = PreparedProcess::start(socket, template)?;

    let Some((ToCell::Run { duties, enforced_by }, descriptors)) = wire::receive::<ToCell>(socket).at(Step::Request)?
    else {
        return Ok(());
    };
    let RunMessage { file, request, server, streams, mounted } = RunMessage::parse(descriptors)?;
    let spec = &request.job.spec;
    root::make_temporary(spec.limits.temporary_bytes)?;
    let folders = mounts::attach(spec, mounted, template.privileged)?;
    root::enter()?;
    let _root = root::hide_mounts()?;
    // Until now the program's process shared the root directory, so that the change of root applied to it too.
    sys::stop_sharing_root().at(Step::Pivot)?;
    // Fails only if the launcher is gone.
    let _ = wire::send(socket, &FromCell::Started, &[]);
    if let Network::Listener { port } = spec.network {
        listen(&server, port)?;
    }
    let program = program.start_program(&file, streams);
    keep_only(WATCHDOG_CAPABILITIES)?;
    let config = watchdog::WatchdogConfig { spec, duties, clock: request.clock, socket_bytes: template.socket_bytes };
    let watchdog = watchdog::Watchdog::new(&config, processes, folders)?;
    let (exit, limit_hit) = supervisor::supervise(socket, &signals, program, watchdog)?;

    let cpu = sys::cpu_of_children();
    if exit == Exit::Code(0) && limit_hit.is_none() && !spec.has_overlay() {
        // Reports success directly to the server. The launcher has nothing to add, and may be busy.
        let _ = wire::send(server, &Event::Ended(JobEnd { exit, limit_hit, cpu, enforced_by }), &[]);
    }
    // Fails only if the launcher is gone.
    let _ = wire::send(socket, &FromCell::Ended { exit, limit_hit, cpu }, &[]);
    Ok(())
}

/// Sends the server a socket that listens in the network of the job.
fn listen(server: &OwnedFd, port: u16) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = listener.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let listener = listener.on(Step::Listener, port.to_string())?;
    wire::send(server, &Event::Listening, &[listener.as_fd()]).on(Step::Listener, port.to_string())
}

/// The contents of [`ToCell::Run`].
struct RunMessage {
    file: OwnedFd,
    request: JobRequest,
    server: OwnedFd,
    streams: Vec<OwnedFd>,
    mounted: Vec<OwnedFd>,
}

impl RunMessage {
    fn parse(descriptors: Vec<OwnedFd>) -> Result<Self, Failure> {
        let incomplete = || Failure::new(Step::Request, Errno::BADMSG);
        let mut descriptors = descriptors.into_iter();
        let file = descriptors.next().ok_or_else(incomplete)?;
        let server = descriptors.next().ok_or_else(incomplete)?;
        let request: JobRequest = wire::unseal(&file).at(Step::Request)?;
        let count = request.streams();
        let streams: Vec<OwnedFd> = descriptors.by_ref().take(count).collect();
        if streams.len() < count {
            return Err(incomplete());
        }
        Ok(Self { file, request, server, streams, mounted: descriptors.collect() })
    }
}

/// Becomes the sandbox's user, keeps all capabilities within the namespaces and sets the parent death signal.
fn switch_user(template: &CellTemplate) -> Result<(), Failure> {
    use rustix::{
        fs::{Gid, Uid},
        process, thread,
    };
    let (user, group) = (Uid::from_raw(INSIDE_ID), Gid::from_raw(INSIDE_ID));
    if template.privileged {
        thread::set_thread_groups(&[]).at(Step::Identity)?;
    }
    thread::set_thread_res_gid(group, group, group).at(Step::Identity)?;
    thread::set_thread_res_uid(user, user, user).at(Step::Identity)?;
    // Set last, because a change of user clears it.
    process::set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Identity)?;
    process::set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Step::Identity)
}

fn keep_only(capabilities: CapabilitySet) -> Result<(), Failure> {
    let sets = CapabilitySets { effective: capabilities, permitted: capabilities, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets).at(Step::Capabilities)
}
