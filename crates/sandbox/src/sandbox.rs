//! The server's side of the sandbox: starts the launcher and sends it job requests.

#![allow(clippy::disallowed_methods, reason = "this file spawns the launcher")]

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use rustix::{
    io::Errno,
    net::SocketFlags,
    process::{Resource, Rlimit},
};
use tokio::io::unix::AsyncFd;

use crate::{
    Access, Error, Job, Layer, Network, Result, RunningJob,
    running::Streams,
    sys,
    wire::{self, ClockStart, Configuration, JobRequest, Payload, Request},
};

/// Options for starting the sandbox.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program to start as the launcher. Given the arguments, it must call [`launcher_main`](crate::launcher_main).
    /// The default is the running program itself.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// The first host user and group for jobs, used only by root. Each concurrent job gets its own id, counting up from
    /// this one; there are 4096 at most. These users should own nothing and run nothing else.
    pub host_id: u32,
    /// Number of cells that are created ahead of requests.
    pub ready_cells: usize,
    /// Layers that may be missing. Only [`Layer::Landlock`] is optional. Without it, no second layer catches a fault in
    /// the kernel's mounts.
    pub accept_missing: BTreeSet<Layer>,
    /// A control group (version 2) that is delegated to the server. Detected if not given.
    pub group: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            program: "/proc/self/exe".into(),
            arguments: vec!["__launcher".into()],
            host_id: 231_072,
            ready_cells: 2,
            accept_missing: BTreeSet::new(),
            group: None,
        }
    }
}

/// A sandbox, ready to run jobs. Clones share one launcher.
#[derive(Debug, Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    launcher: Mutex<Arc<Launcher>>,
}

/// The connection to a launcher. Dropping the last reference ends the launcher and all of its jobs.
#[derive(Debug)]
pub(crate) struct Launcher {
    control: AsyncFd<OwnedFd>,
}

impl Sandbox {
    /// Starts the launcher and raises the server's descriptor limit to the hard limit. Must be called within a tokio
    /// runtime.
    pub fn start(options: Options) -> Result<Self> {
        raise_descriptor_limit()?;
        let launcher = Mutex::new(Arc::new(launch(&options)?));
        Ok(Self { shared: Arc::new(Shared { options, launcher }) })
    }

    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Starts a program. Dropping the returned value ends it.
    pub async fn spawn(&self, job: Job) -> Result<RunningJob> {
        self.start_payload(job, Payload::Program).await
    }

    pub(crate) async fn start_payload(&self, mut job: Job, payload: Payload) -> Result<RunningJob> {
        let stdin = std::mem::take(&mut job.stdin);
        let request = JobRequest { job, payload, clock: ClockStart::Immediately, script: false };
        let mut running = self.send_request(&request).await?;
        running.provide_stdin(stdin)?;
        Ok(running)
    }

    /// Sends a job request to the launcher. Starts a new launcher if the last one has died.
    pub(crate) async fn send_request(&self, request: &JobRequest) -> Result<RunningJob> {
        validate(&request.job)?;
        let sources = request.job.spec.sources().into_iter().map(|(source, _)| source.descriptor());
        let sources: Vec<BorrowedFd<'_>> = sources.collect::<std::result::Result<_, _>>()?;
        let file = wire::seal(request)?;
        loop {
            let launcher = self.launcher();
            let (streams, mut passed) = Streams::open(request.script)?;
            let (ours, theirs) = wire::pair(SocketFlags::NONBLOCK)?;
            passed.insert(0, theirs);
            match launcher.send(&file, &passed, &sources).await {
                Ok(()) => {
                    drop(passed);
                    return RunningJob::new(ours, streams, &request.job.spec.limits, launcher);
                }
                Err(Errno::PIPE | Errno::CONNRESET) => self.replace(&launcher)?,
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn launcher(&self) -> Arc<Launcher> {
        self.shared.launcher.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts another launcher, unless a concurrent call already did.
    fn replace(&self, dead: &Arc<Launcher>) -> Result<()> {
        let mut launcher = self.shared.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&launcher, dead) {
            *launcher = Arc::new(launch(&self.shared.options)?);
        }
        Ok(())
    }
}

impl Launcher {
    /// Connects to the launcher at the other end of a socket. Must be called within a tokio runtime.
    pub(crate) fn new(control: OwnedFd) -> io::Result<Self> {
        Ok(Self { control: sys::to_async_fd(control)? })
    }

    async fn send(
        &self,
        file: &OwnedFd,
        passed: &[OwnedFd],
        sources: &[BorrowedFd<'_>],
    ) -> std::result::Result<(), Errno> {
        let descriptors = std::iter::once(file).chain(passed).map(AsFd::as_fd).chain(sources.iter().copied());
        let descriptors: Vec<_> = descriptors.collect();
        loop {
            let mut guard =
                self.control.writable().await.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            match wire::send(self.control.get_ref(), &Request::Run, &descriptors) {
                Err(Errno::AGAIN) => guard.clear_ready(),
                // The user has too many descriptors in flight. Retry: the launcher will receive some of them.
                Err(Errno::TOOMANYREFS) => tokio::time::sleep(Duration::from_millis(1)).await,
                result => return result,
            }
        }
    }
}

/// Raises the soft descriptor limit to the hard limit.
///
/// The limit also bounds how many descriptors of the server's user may be in flight through sockets. Jobs that run as
/// the same user count too, and must not exhaust it.
fn raise_descriptor_limit() -> Result<()> {
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    Ok(rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

fn launch(options: &Options) -> Result<Launcher> {
    let configuration = Configuration {
        host_id: options.host_id,
        ready_cells: options.ready_cells,
        without_landlock: options.accept_missing.contains(&Layer::Landlock),
        group: options.group.clone().map(Into::into),
    };
    let (ours, theirs) = wire::pair(SocketFlags::NONBLOCK).map_err(|errno| Error::Launcher(errno.into()))?;
    wire::send(&ours, &Request::Configure(configuration), &[]).map_err(|errno| Error::Launcher(errno.into()))?;
    spawn_launcher_thread(options, theirs).map_err(Error::Launcher)?;
    Launcher::new(ours).map_err(Error::Launcher)
}

/// Starts the launcher from a thread of its own, and waits for its exit in that thread.
///
/// The parent death signal is sent when the creating thread ends, not the process. So this thread must live as long as
/// the launcher.
fn spawn_launcher_thread(options: &Options, control: OwnedFd) -> io::Result<()> {
    let (result_sender, result_receiver) = mpsc::channel();
    let (program, arguments) = (options.program.clone(), options.arguments.clone());
    thread::Builder::new().name("launcher".into()).stack_size(256 << 10).spawn(move || {
        let child = Command::new(program).args(arguments).env_clear().stdin(control).stdout(Stdio::null()).spawn();
        match child {
            Ok(mut child) => {
                let _ = result_sender.send(Ok(()));
                let _ = child.wait();
            }
            Err(error) => {
                let _ = result_sender.send(Err(error));
            }
        }
    })?;
    result_receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
}

/// Refuses jobs that a cell cannot run, or would not run as intended.
fn validate(job: &Job) -> Result<()> {
    let spec = &job.spec;
    if job.argv.first().is_none_or(|program| program.is_empty()) {
        return Err(Error::Invalid("the job has no program"));
    }
    if spec.limits != spec.limits.raised_to_minimum() {
        return Err(Error::Invalid(
            "a job needs 16 MiB of memory, 4 processes, 32 open files and 64 KiB of temporary files at least",
        ));
    }
    let names = spec.env.iter().map(|(name, _)| name);
    if names.clone().any(|name| name.is_empty() || name.as_encoded_bytes().contains(&b'=')) {
        return Err(Error::Invalid("the name of a variable is empty or contains '='"));
    }
    let values = spec.env.iter().map(|(_, value)| value);
    let strings = job.argv.iter().chain(names).chain(values).map(OsString::as_os_str);
    let targets = spec.mounts.iter().map(crate::Mount::target);
    let proxy = match &spec.network {
        Network::None | Network::Listener { .. } => None,
        Network::Proxy { target, .. } => Some(target.as_path()),
    };
    let targets: Vec<&Path> = targets.chain(proxy).collect();
    let sources = spec.sources();
    let paths = targets.iter().copied().chain([spec.cwd.as_path()]);
    if strings.chain(paths.clone().map(Path::as_os_str)).any(|string: &OsStr| string.as_encoded_bytes().contains(&0)) {
        return Err(Error::Invalid("an argument, a variable or a path contains a NUL"));
    }
    if paths.clone().any(|path| !path.is_absolute()) {
        return Err(Error::Invalid("a path is not absolute"));
    }
    let plain = |path: &Path| path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if targets.iter().any(|target| !plain(target) || *target == Path::new("/")) {
        return Err(Error::Invalid("the target of a mount is / or contains .."));
    }
    let is_below = |path: &OsString| {
        let names = path.as_encoded_bytes().split(|byte| *byte == b'/');
        names.into_iter().all(|name| !matches!(name, b"" | b"." | b"..") && !name.contains(&0))
    };
    if !spec.mounts.iter().flat_map(crate::Mount::frozen).all(is_below) {
        return Err(Error::Invalid("a frozen entry is not a path below its folder"));
    }
    for (index, mount) in spec.mounts.iter().enumerate() {
        let later = spec.mounts[index + 1..].iter().map(crate::Mount::target).chain(proxy);
        if mount.access() == Access::ReadWrite && later.into_iter().any(|target| target.starts_with(mount.target())) {
            // An earlier job may have created a symbolic link there that leads out of the folder.
            return Err(Error::Invalid("the target of a mount is inside a folder that jobs can write to"));
        }
    }
    let mut writable = sources.iter().filter(|(_, access)| *access == Access::ReadWrite);
    if writable.any(|(folder, _)| sources.iter().any(|(source, _)| source.is_within(folder))) {
        // The same applies to sources: the caller may have followed a link that an earlier job created.
        return Err(Error::Invalid("the source of a mount is inside a folder that jobs can write to"));
    }
    if sources.len() > 200 {
        return Err(Error::Invalid("the job has more than 200 mounts"));
    }
    Ok(())
}
