//! A cell: a process that is PID 1 of namespaces of its own, builds a file system of its own and waits for an order.
//!
//! It is a fork of the launcher, which has one thread, so that all of Rust may be used in it.

mod certainty;
mod disk;
mod filter;
mod ground;
mod hidden;
mod kernel_objects;
mod masks;
mod memory;
mod mounts;
mod processes;
mod program;
mod quotas;
mod reaper;
mod root;
mod rules;
mod stop;
mod watch;

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

pub(crate) use ground::ExecutionRoot;
pub(crate) use mounts::attributes as mount_attributes;

use crate::{
    Exit, Network,
    step::{At, Failure, Step},
    sys,
    wire::{self, Ending, Event, FromCell, Order, ToCell},
};
use processes::Processes;
use program::Waiting;

/// User and group of everything in a cell, as seen from inside.
pub(crate) const INSIDE_ID: u32 = 1000;

/// What PID 1 keeps to see to the limits: the memory of processes and folders that hide themselves.
const WATCHING: CapabilitySet = CapabilitySet::SYS_PTRACE.union(CapabilitySet::DAC_READ_SEARCH);

/// Lives as a cell, from the first instruction in its namespaces to the end of its job.
pub(crate) fn live(socket: &OwnedFd, ground: &ExecutionRoot) -> ! {
    let end = panic::catch_unwind(AssertUnwindSafe(|| serve(socket, ground)));
    let failure = match end {
        Ok(Ok(())) => sys::exit(0),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(Step::Order, Errno::NOTRECOVERABLE),
    };
    // Nobody is left to tell where this fails.
    let _ = wire::send(socket, &FromCell::Failed(failure), &[]);
    sys::exit(1)
}

fn serve(socket: &OwnedFd, ground: &ExecutionRoot) -> Result<(), Failure> {
    sys::close_all_but(socket.as_fd()).at(Step::Streams)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).at(Step::Streams)?;
    for number in 0..3 {
        sys::put_descriptor(&null, number).at(Step::Streams)?;
    }
    drop(null);
    let Some((ToCell::Build, doors)) = wire::receive::<ToCell>(socket).at(Step::Order)? else { return Ok(()) };
    for door in doors {
        // Nought is whoever writes it.
        rustix::io::write(door, b"0").at(Step::Group)?;
    }
    take_identity(ground)?;
    root::build(ground)?;
    let signals = sys::child_signals().at(Step::Fork)?;
    let processes = Processes::mount().at(Step::Processes)?;
    let program = Waiting::start(socket, ground)?;

    let Some((ToCell::Run { watch, enforced_by }, descriptors)) = wire::receive::<ToCell>(socket).at(Step::Order)?
    else {
        return Ok(());
    };
    let Parcel { file, order, server, streams, mounted } = Parcel::open(descriptors)?;
    let place = &order.job.place;
    root::make_temporary(place.limits.temporary_bytes)?;
    let folders = mounts::attach(place, mounted, ground.privileged)?;
    root::enter()?;
    let _root = root::hide_mounts()?;
    // Until now the program shared the root, so that it has come along.
    sys::stop_sharing_root().at(Step::Pivot)?;
    // A launcher that is gone needs no telling.
    let _ = wire::send(socket, &FromCell::Begun, &[]);
    if let Network::Listener { port } = place.network {
        listen(&server, port)?;
    }
    let program = program.go(&file, streams);
    keep_only(WATCHING)?;
    let watched = watch::Watched { place, enforced: watch, clock: order.clock, socket_bytes: ground.socket_bytes };
    let watch = watch::Watch::new(&watched, processes, folders)?;
    let (exit, limit_hit) = reaper::reap(socket, &signals, program, watch)?;

    let cpu = sys::cpu_of_children();
    if exit == Exit::Code(0) && limit_hit.is_none() && !place.has_overlay() {
        // The launcher has nothing to add, and may be busy.
        let _ = wire::send(server, &Event::Ended(Ending { exit, limit_hit, cpu, enforced_by }), &[]);
    }
    // A launcher that is gone needs no answer.
    let _ = wire::send(socket, &FromCell::Ended { exit, limit_hit, cpu }, &[]);
    Ok(())
}

/// Gives the server a socket that listens in the network of the job.
fn listen(server: &OwnedFd, port: u16) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = listener.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let listener = listener.on(Step::Listener, port.to_string())?;
    wire::send(server, &Event::Listening, &[listener.as_fd()]).on(Step::Listener, port.to_string())
}

/// What comes with an order.
struct Parcel {
    file: OwnedFd,
    order: Order,
    server: OwnedFd,
    streams: Vec<OwnedFd>,
    mounted: Vec<OwnedFd>,
}

impl Parcel {
    fn open(descriptors: Vec<OwnedFd>) -> Result<Self, Failure> {
        let incomplete = || Failure::new(Step::Order, Errno::BADMSG);
        let mut descriptors = descriptors.into_iter();
        let file = descriptors.next().ok_or_else(incomplete)?;
        let server = descriptors.next().ok_or_else(incomplete)?;
        let order: Order = wire::unseal(&file).at(Step::Order)?;
        let count = order.streams();
        let streams: Vec<OwnedFd> = descriptors.by_ref().take(count).collect();
        if streams.len() < count {
            return Err(incomplete());
        }
        Ok(Self { file, order, server, streams, mounted: descriptors.collect() })
    }
}

/// Becomes the sandbox's user, keeps all capabilities within the namespaces and dies with the launcher.
fn take_identity(ground: &ExecutionRoot) -> Result<(), Failure> {
    use rustix::{
        fs::{Gid, Uid},
        process, thread,
    };
    let (user, group) = (Uid::from_raw(INSIDE_ID), Gid::from_raw(INSIDE_ID));
    if ground.privileged {
        thread::set_thread_groups(&[]).at(Step::Identity)?;
    }
    thread::set_thread_res_gid(group, group, group).at(Step::Identity)?;
    thread::set_thread_res_uid(user, user, user).at(Step::Identity)?;
    // After the change of user, which clears it.
    process::set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Identity)?;
    process::set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Step::Identity)
}

fn keep_only(capabilities: CapabilitySet) -> Result<(), Failure> {
    let sets = CapabilitySets { effective: capabilities, permitted: capabilities, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets).at(Step::Capabilities)
}
