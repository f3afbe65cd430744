//! The last steps before a program runs: each takes something away, the last one the means to take anything back.

use std::{
    convert::Infallible,
    ffi::{CString, OsStr, OsString},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::PathBuf,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    net::SocketFlags,
    process::{self, DumpableBehavior, Pid, Resource, Rlimit},
    thread::CapabilitySet,
};

use super::{ExecutionRoot, keep_only, rules};
use crate::{
    Job, Limits, Place, canary,
    step::{At, Failure, Step},
    sys::{self, Forked},
    wire::{self, Act, FromCell, Order, ToProgram},
};

/// Address space beyond the memory that a process may really use: runtimes reserve far more than they touch.
const RESERVED_BYTES: u64 = 64 << 30;

/// The number under which an interpreter finds its script.
const SCRIPT: i32 = 3;

/// A process that is to become the program, as far along as it can be without knowing it.
pub(super) struct Waiting {
    pid: Pid,
    socket: OwnedFd,
}

impl Waiting {
    pub(super) fn start(cell: &OwnedFd, ground: &ExecutionRoot) -> Result<Self, Failure> {
        let (ours, theirs) = wire::pair(SocketFlags::empty()).at(Step::Fork)?;
        if let Forked::Parent { pid, .. } = sys::clone(sys::SHARED_ROOT).at(Step::Fork)? {
            return Ok(Self { pid, socket: ours });
        }
        drop(ours);
        let Err(failure) = give_up_rights(ground).and_then(|()| become_program(ground, &theirs));
        // Nobody is left to tell where this fails.
        let _ = wire::send(cell, &FromCell::Failed(failure), &[]);
        sys::exit(127)
    }

    /// Hands it the order. The streams are closed here, or their other ends would never see the end of them.
    pub(super) fn go(self, order: &OwnedFd, streams: Vec<OwnedFd>) -> Pid {
        let parcel: Vec<_> = std::iter::once(order).chain(&streams).map(AsFd::as_fd).collect();
        // One that has failed has said so to the launcher.
        let _ = wire::send(&self.socket, &ToProgram::Go, &parcel);
        drop(streams);
        self.pid
    }
}

/// Takes the steps that are the same for all programs. What comes after them must be possible without any right.
fn give_up_rights(ground: &ExecutionRoot) -> Result<(), Failure> {
    sys::reset_signals();
    process::setsid().at(Step::Fork)?;
    process::umask(Mode::from_raw_mode(0o022));
    drop_bounding_set().at(Step::Capabilities)?;
    keep_only(CapabilitySet::empty())?;
    // PID 1, of which this is a fork, is not dumpable. It could not look into this process if that were not either.
    process::set_dumpable_behavior(DumpableBehavior::Dumpable).at(Step::Fork)?;
    give_up_memory_first().at(Step::Limits)?;
    // With 0, a kernel that is told to pipe core dumps to a program would start it, as root and outside of the job. The
    // filter leaves it as it is from here on.
    limit(Resource::Core, 1, 1).at(Step::Limits)?;
    rustix::thread::set_no_new_privs(true).at(Step::NoNewPrivileges)?;
    ground.filters.install().at(Step::Seccomp)
}

/// Has the kernel end programs before PID 1, the server and everybody else where memory runs out.
fn give_up_memory_first() -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open("proc/self/oom_score_adj", flags, Mode::empty())?;
    rustix::io::write(file, b"1000").map(drop)
}

fn become_program(ground: &ExecutionRoot, socket: &OwnedFd) -> Result<Infallible, Failure> {
    let Some((ToProgram::Go, descriptors)) = wire::receive::<ToProgram>(socket).at(Step::Order)? else {
        // PID 1 has given up, and says why.
        sys::exit(1)
    };
    let Some((file, streams)) = descriptors.split_first() else {
        return Err(Failure::new(Step::Order, Errno::BADMSG));
    };
    let order: Order = wire::unseal(file).at(Step::Order)?;
    let place = &order.job.place;
    process::chdir(&place.cwd).on(Step::WorkingFolder, &place.cwd)?;
    set_limits(&place.limits).at(Step::Limits)?;
    rules::restrict(place, ground.without_landlock)?;
    ground.filters.install_last().at(Step::Seccomp)?;
    let last = connect(streams).at(Step::Streams)?;
    sys::close_on_exec_from(last + 1).at(Step::Streams)?;
    match &order.act {
        Act::Canary(bait) => canary::sing(bait),
        Act::Program => Err(execute(&order)),
    }
}

/// Puts the streams where programs look for them, and gives the last number in use.
fn connect(streams: &[OwnedFd]) -> rustix::io::Result<u32> {
    // First out of the way of the numbers they are to have.
    let streams: Vec<OwnedFd> =
        streams.iter().map(|stream| rustix::io::fcntl_dupfd_cloexec(stream, 10)).collect::<Result<_, _>>()?;
    let numbers = [0, 1, 2, SCRIPT];
    for (stream, number) in streams.iter().zip(numbers) {
        sys::put_descriptor(stream, number)?;
    }
    Ok(if streams.len() == numbers.len() { 3 } else { 2 })
}

fn set_limits(limits: &Limits) -> rustix::io::Result<()> {
    let cpu = limits.cpu.as_secs().max(1);
    let exact = |resource, value: u64| limit(resource, value, value);
    exact(Resource::As, limits.memory_bytes.saturating_add(RESERVED_BYTES))?;
    exact(Resource::Data, limits.memory_bytes.saturating_add(limits.memory_bytes / 8))?;
    // The soft limit comes first, with a signal that names it.
    limit(Resource::Cpu, cpu, cpu + 1)?;
    exact(Resource::Fsize, limits.file_bytes)?;
    exact(Resource::Nofile, limits.open_files)?;
    // PID 1 is counted too.
    exact(Resource::Nproc, limits.processes.saturating_add(1))?;
    exact(Resource::Nice, 0)?;
    exact(Resource::Rtprio, 0)?;
    exact(Resource::Memlock, 1 << 20)?;
    exact(Resource::Msgqueue, 0)?;
    exact(Resource::Sigpending, 1024)
}

/// Sets a limit, or leaves a stricter one that the server itself was given.
fn limit(resource: Resource, soft: u64, hard: u64) -> rustix::io::Result<()> {
    let ceiling = process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    process::setrlimit(resource, Rlimit { current: Some(soft.min(ceiling)), maximum: Some(hard.min(ceiling)) })
}

fn drop_bounding_set() -> rustix::io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Past the last capability that the kernel knows.
            Err(Errno::INVAL) if bit > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    rustix::thread::clear_ambient_capability_set()
}

/// Executes the program; returns only if that fails.
fn execute(order: &Order) -> Failure {
    // The server has seen to it that no string holds a NUL.
    let string = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
    let Order { job: Job { argv, place, .. }, .. } = order;
    let env = place.env.iter().map(|(name, value)| string(&[name.as_bytes(), value.as_bytes()].join(&b'=')));
    let env: Vec<CString> = env.collect();
    let name = argv.first().map_or(OsStr::new(""), OsString::as_os_str);
    let argv: Vec<CString> = argv.iter().map(|argument| string(argument.as_bytes())).collect();
    let mut reason = Errno::NOENT;
    for candidate in candidates(name, place) {
        match sys::execute(&string(candidate.as_os_str().as_bytes()), &argv, &env) {
            Errno::NOENT | Errno::NOTDIR => {}
            errno => reason = errno,
        }
    }
    Failure { subject: name.to_string_lossy().into_owned(), ..Failure::new(Step::Program, reason) }
}

/// Where a program can be: at its path, or in one of the folders of `PATH`.
fn candidates(name: &OsStr, place: &Place) -> Vec<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    let path = place.env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, value)| value);
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).collect()
}
