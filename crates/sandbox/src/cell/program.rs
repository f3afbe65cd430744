//! The last steps before a program runs. Each one drops a right.

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

use super::{CellTemplate, keep_only, landlock_rules};
use crate::{
    CellSpec, Job, Limits, canary,
    step::{Failure, Step, StepContext},
    sys::{self, ForkResult},
    wire::{self, FromCell, JobRequest, Payload, ToProgram},
};

/// The descriptor from which an interpreter reads its script.
const SCRIPT_FD: i32 = 3;

/// A process that is prepared as far as possible before the program is known.
pub(super) struct PreparedProcess {
    pid: Pid,
    socket: OwnedFd,
}

impl PreparedProcess {
    pub(super) fn start(cell: &OwnedFd, template: &CellTemplate) -> Result<Self, Failure> {
        let (ours, theirs) = wire::pair(SocketFlags::empty()).at(Step::Fork)?;
        if let ForkResult::Parent { pid, .. } = sys::clone(sys::SHARED_ROOT).at(Step::Fork)? {
            return Ok(Self { pid, socket: ours });
        }
        drop(ours);
        let Err(failure) = drop_privileges(template).and_then(|()| become_program(template, &theirs));
        // Fails only if the launcher is gone.
        let _ = wire::send(cell, &FromCell::Failed(failure), &[]);
        sys::exit(127)
    }

    /// Passes the request to the process. The streams are closed here, because their other ends would otherwise never
    /// see end of file.
    pub(super) fn start_program(self, request: &OwnedFd, streams: Vec<OwnedFd>) -> Pid {
        let passed: Vec<_> = std::iter::once(request).chain(&streams).map(AsFd::as_fd).collect();
        // Fails only if the process has failed, and that is reported to the launcher already.
        let _ = wire::send(&self.socket, &ToProgram::Go, &passed);
        drop(streams);
        self.pid
    }
}

/// Takes the steps that are the same for all programs. All later steps must work without privileges.
fn drop_privileges(template: &CellTemplate) -> Result<(), Failure> {
    sys::reset_signals();
    process::setsid().at(Step::Fork)?;
    process::umask(Mode::from_raw_mode(0o022));
    drop_bounding_set().at(Step::Capabilities)?;
    keep_only(CapabilitySet::empty())?;
    // The process inherits "not dumpable" from PID 1. The watchdog could not inspect it then.
    process::set_dumpable_behavior(DumpableBehavior::Dumpable).at(Step::Fork)?;
    set_oom_score().at(Step::Limits)?;
    // With a limit of 0, a kernel that pipes core dumps to a program would start that program as root, outside of the
    // job. The seccomp filter keeps this limit unchanged.
    limit(Resource::Core, 1, 1).at(Step::Limits)?;
    rustix::thread::set_no_new_privs(true).at(Step::NoNewPrivileges)?;
    template.filters.install().at(Step::Seccomp)
}

/// Makes the out-of-memory killer choose programs before PID 1, the server and other processes.
fn set_oom_score() -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open("proc/self/oom_score_adj", flags, Mode::empty())?;
    rustix::io::write(file, b"1000").map(drop)
}

fn become_program(template: &CellTemplate, socket: &OwnedFd) -> Result<Infallible, Failure> {
    let Some((ToProgram::Go, descriptors)) = wire::receive::<ToProgram>(socket).at(Step::Request)? else {
        // PID 1 has failed and reports it.
        sys::exit(1)
    };
    let Some((file, streams)) = descriptors.split_first() else {
        return Err(Failure::new(Step::Request, Errno::BADMSG));
    };
    let request: JobRequest = wire::unseal(file).at(Step::Request)?;
    let spec = &request.job.spec;
    process::chdir(&spec.cwd).on(Step::WorkingFolder, &spec.cwd)?;
    set_limits(&spec.limits).at(Step::Limits)?;
    landlock_rules::restrict(spec, template.without_landlock)?;
    template.filters.install_last().at(Step::Seccomp)?;
    let last = connect_streams(streams).at(Step::Streams)?;
    sys::close_on_exec_from(last + 1).at(Step::Streams)?;
    match &request.payload {
        Payload::Canary(targets) => canary::run(targets),
        Payload::Program => Err(execute(&request)),
    }
}

/// Moves the streams to their standard numbers, and returns the last number in use.
fn connect_streams(streams: &[OwnedFd]) -> rustix::io::Result<u32> {
    // First move them away from the numbers that are assigned below.
    let streams: Vec<OwnedFd> =
        streams.iter().map(|stream| rustix::io::fcntl_dupfd_cloexec(stream, 10)).collect::<Result<_, _>>()?;
    let numbers = [0, 1, 2, SCRIPT_FD];
    for (stream, number) in streams.iter().zip(numbers) {
        sys::put_descriptor(stream, number)?;
    }
    Ok(if streams.len() == numbers.len() { 3 } else { 2 })
}

fn set_limits(limits: &Limits) -> rustix::io::Result<()> {
    let cpu = limits.cpu.as_secs().max(1);
    let exact = |resource, value: u64| limit(resource, value, value);
    exact(Resource::As, limits.memory_bytes.saturating_add(limits.reserved_bytes))?;
    exact(Resource::Data, limits.memory_bytes.saturating_add(limits.memory_bytes / 8))?;
    // The soft limit is reached first, and sends `SIGXCPU`.
    limit(Resource::Cpu, cpu, cpu + 1)?;
    exact(Resource::Fsize, limits.file_bytes)?;
    exact(Resource::Nofile, limits.open_files)?;
    // PID 1 counts too.
    exact(Resource::Nproc, limits.processes.saturating_add(1))?;
    exact(Resource::Nice, 0)?;
    exact(Resource::Rtprio, 0)?;
    exact(Resource::Memlock, 1 << 20)?;
    exact(Resource::Msgqueue, 0)?;
    exact(Resource::Sigpending, 1024)
}

/// Sets a limit, but keeps a stricter limit of the server.
fn limit(resource: Resource, soft: u64, hard: u64) -> rustix::io::Result<()> {
    let ceiling = process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    process::setrlimit(resource, Rlimit { current: Some(soft.min(ceiling)), maximum: Some(hard.min(ceiling)) })
}

fn drop_bounding_set() -> rustix::io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // This is beyond the last capability of the kernel.
            Err(Errno::INVAL) if bit > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    rustix::thread::clear_ambient_capability_set()
}

/// Executes the program. Returns only if that fails.
fn execute(request: &JobRequest) -> Failure {
    // The server has refused strings that contain a NUL.
    let string = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
    let JobRequest { job: Job { argv, spec, .. }, .. } = request;
    let env = spec.env.iter().map(|(name, value)| string(&[name.as_bytes(), value.as_bytes()].join(&b'=')));
    let env: Vec<CString> = env.collect();
    let name = argv.first().map_or(OsStr::new(""), OsString::as_os_str);
    let argv: Vec<CString> = argv.iter().map(|argument| string(argument.as_bytes())).collect();
    let mut reason = Errno::NOENT;
    for candidate in candidates(name, spec) {
        match sys::execute(&string(candidate.as_os_str().as_bytes()), &argv, &env) {
            Errno::NOENT | Errno::NOTDIR => {}
            errno => reason = errno,
        }
    }
    Failure { subject: name.to_string_lossy().into_owned(), ..Failure::new(Step::Program, reason) }
}

/// Returns the possible paths of a program: the given path, or one per folder of `PATH`.
fn candidates(name: &OsStr, spec: &CellSpec) -> Vec<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    let path = spec.env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, value)| value);
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).collect()
}
