//! The last steps before a program runs: each takes something away, the last one the means to take anything back.

use std::{
    ffi::{CStr, CString, OsStr},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::{
    fs::Mode,
    io::Errno,
    process::{self, Pid, Resource, Rlimit},
    thread::CapabilitySet,
};

use super::{Ground, keep_only, rules};
use crate::{
    Limits, canary,
    step::{At, Failure, Step},
    sys::{self, Forked},
    wire::{self, Act, FromCell, Order},
};

/// Address space beyond the memory that a process may really use: runtimes reserve far more than they touch.
const RESERVED_BYTES: u64 = 64 << 30;

/// The number under which an interpreter finds its script.
const SCRIPT: i32 = 3;

/// Starts the program in a process of its own.
pub(super) fn start(socket: &OwnedFd, ground: &Ground, order: &Order, streams: Vec<OwnedFd>) -> Result<Pid, Failure> {
    if let Forked::Parent { pid, .. } = sys::clone(0).at(Step::Fork)? {
        // Or their other ends would never see the end of them.
        drop(streams);
        return Ok(pid);
    }
    let Err(failure) = become_program(ground, order, &streams);
    // Nobody is left to tell where this fails.
    let _ = wire::send(socket, &FromCell::Failed(failure), &[]);
    sys::exit(127)
}

fn become_program(ground: &Ground, order: &Order, streams: &[OwnedFd]) -> Result<std::convert::Infallible, Failure> {
    let place = &order.job.place;
    sys::reset_signals();
    process::setsid().at(Step::Fork)?;
    process::umask(Mode::from_raw_mode(0o022));
    process::chdir(&place.cwd).on(Step::WorkingFolder, &place.cwd)?;
    set_limits(&place.limits).at(Step::Limits)?;
    drop_bounding_set().at(Step::Capabilities)?;
    keep_only(CapabilitySet::empty())?;
    rustix::thread::set_no_new_privs(true).at(Step::NoNewPrivileges)?;
    rules::restrict(place, ground.without_landlock)?;
    let last = connect(streams).at(Step::Streams)?;
    sys::close_on_exec_from(last + 1).at(Step::Streams)?;
    let prepared = Prepared::new(order);
    ground.filters.install().map_err(|errno| Failure::new(Step::Seccomp, errno))?;
    match &order.act {
        Act::Canary(bait) => canary::sing(bait),
        Act::Program => Err(prepared.execute()),
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
    exact(Resource::Core, 0)?;
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

/// A program made ready while memory and paths can still be had freely.
struct Prepared {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
}

impl Prepared {
    fn new(order: &Order) -> Self {
        // The server has seen to it that no string holds a NUL.
        let string = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
        let place = &order.job.place;
        let argv: Vec<CString> = order.job.argv.iter().map(|argument| string(argument.as_bytes())).collect();
        let env = place.env.iter().map(|(name, value)| string(&[name.as_bytes(), value.as_bytes()].join(&b'=')));
        let name = argv.first().map_or(&b""[..], |program| program.as_bytes());
        let candidates = if name.contains(&b'/') {
            vec![string(name)]
        } else {
            let path = place.env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, value)| value);
            let folders = path.as_bytes().split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
            folders
                .map(|folder| {
                    string(Path::new(OsStr::from_bytes(folder)).join(OsStr::from_bytes(name)).as_os_str().as_bytes())
                })
                .collect()
        };
        Self { candidates, env: env.collect(), argv }
    }

    fn execute(&self) -> Failure {
        let mut reason = Errno::NOENT;
        for candidate in &self.candidates {
            match sys::execute(candidate, &self.argv, &self.env) {
                Errno::NOENT | Errno::NOTDIR => {}
                errno => reason = errno,
            }
        }
        let subject = self.argv.first().map(CString::as_c_str).map(CStr::to_string_lossy).unwrap_or_default();
        Failure { subject: subject.into_owned(), ..Failure::new(Step::Program, reason) }
    }
}
