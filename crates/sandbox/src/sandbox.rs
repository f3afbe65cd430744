//! The server's side: starts the launcher and gives it orders.

#![allow(clippy::disallowed_methods, reason = "this is the one place that spawns")]

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
    Access, Error, Job, Layer, Network, Result, Running,
    running::Streams,
    sys,
    wire::{self, Act, Clock, Configuration, Order, Request},
};

/// How the sandbox is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that calls [`launcher_main`](crate::launcher_main) when it is given the arguments: by default the
    /// one that is running.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// As root, each job runs as a user and group of the host of its own, of which this is the first. They should own
    /// nothing and run nothing else. There are as many as jobs at once, 4096 at most.
    pub host_id: u32,
    /// How many cells are made ready before there is an order.
    pub ready_cells: usize,
    /// Layers that may be missing. Only [`Layer::Landlock`] can be done without; whoever names it accepts that a
    /// fault in the kernel's mounts is no longer caught by a second layer.
    pub accept_missing: BTreeSet<Layer>,
    /// A control group, version 2, that was delegated to the server; found where it is not given.
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

/// The connection to a launcher. It ends, and all of its jobs, when nothing holds this any more.
#[derive(Debug)]
pub(crate) struct Launcher {
    control: AsyncFd<OwnedFd>,
}

impl Sandbox {
    /// Starts the launcher. Must be called within a tokio runtime. Raises the number of descriptors that the server may
    /// have to what it may be raised to.
    pub fn start(options: Options) -> Result<Self> {
        raise_descriptors()?;
        let launcher = Mutex::new(Arc::new(launch(&options)?));
        Ok(Self { shared: Arc::new(Shared { options, launcher }) })
    }

    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Runs a program. It ends when what is returned is dropped.
    pub async fn spawn(&self, job: Job) -> Result<Running> {
        self.start_act(job, Act::Program).await
    }

    pub(crate) async fn start_act(&self, mut job: Job, act: Act) -> Result<Running> {
        let stdin = std::mem::take(&mut job.stdin);
        let order = Order { job, act, clock: Clock::Now, script: false };
        let mut running = self.order(&order).await?;
        running.feed(stdin)?;
        Ok(running)
    }

    /// Gives an order to the launcher; to a new one if the last has died.
    pub(crate) async fn order(&self, order: &Order) -> Result<Running> {
        check(&order.job)?;
        let sources = order.job.place.sources().into_iter().map(|(source, _)| source.descriptor());
        let sources: Vec<BorrowedFd<'_>> = sources.collect::<std::result::Result<_, _>>()?;
        let file = wire::seal(order)?;
        loop {
            let launcher = self.launcher();
            let (streams, mut parcel) = Streams::open(order.script)?;
            let (ours, theirs) = wire::pair(SocketFlags::NONBLOCK)?;
            parcel.insert(0, theirs);
            match launcher.send(&file, &parcel, &sources).await {
                Ok(()) => {
                    drop(parcel);
                    return Running::new(ours, streams, &order.job.place.limits, launcher);
                }
                Err(Errno::PIPE | Errno::CONNRESET) => self.replace(&launcher)?,
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn launcher(&self) -> Arc<Launcher> {
        self.shared.launcher.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts another launcher, unless somebody has done so already.
    fn replace(&self, dead: &Arc<Launcher>) -> Result<()> {
        let mut launcher = self.shared.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&launcher, dead) {
            *launcher = Arc::new(launch(&self.shared.options)?);
        }
        Ok(())
    }
}

impl Launcher {
    /// The launcher at the other end of a socket. Must be called within a tokio runtime.
    pub(crate) fn new(control: OwnedFd) -> io::Result<Self> {
        Ok(Self { control: sys::wait_for(control)? })
    }

    async fn send(
        &self,
        file: &OwnedFd,
        parcel: &[OwnedFd],
        sources: &[BorrowedFd<'_>],
    ) -> std::result::Result<(), Errno> {
        let descriptors = std::iter::once(file).chain(parcel).map(AsFd::as_fd).chain(sources.iter().copied());
        let descriptors: Vec<_> = descriptors.collect();
        loop {
            let mut guard =
                self.control.writable().await.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            match wire::send(self.control.get_ref(), &Request::Run, &descriptors) {
                Err(Errno::AGAIN) => guard.clear_ready(),
                // More descriptors are on their way than the kernel allows a user: the launcher will take some.
                Err(Errno::TOOMANYREFS) => tokio::time::sleep(Duration::from_millis(1)).await,
                result => return result,
            }
        }
    }
}

/// Not for the descriptors of the server alone: the limit is also how many of its user's may be on their way through
/// sockets before it can send none. Those of jobs count too where they run as the same user, and must not fill it up.
fn raise_descriptors() -> Result<()> {
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
    keep(options, theirs).map_err(Error::Launcher)?;
    Launcher::new(ours).map_err(Error::Launcher)
}

/// Starts the launcher in a thread of its own, which buries it: the kernel ends a child that has asked for it when the
/// thread that made it ends, not the process.
fn keep(options: &Options, control: OwnedFd) -> io::Result<()> {
    let (tell, told) = mpsc::channel();
    let (program, arguments) = (options.program.clone(), options.arguments.clone());
    thread::Builder::new().name("launcher".into()).stack_size(256 << 10).spawn(move || {
        let child = Command::new(program).args(arguments).env_clear().stdin(control).stdout(Stdio::null()).spawn();
        match child {
            Ok(mut child) => {
                let _ = tell.send(Ok(()));
                let _ = child.wait();
            }
            Err(error) => {
                let _ = tell.send(Err(error));
            }
        }
    })?;
    told.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
}

/// Refuses what no cell could carry out, or what it would carry out otherwise than it was meant.
fn check(job: &Job) -> Result<()> {
    let place = &job.place;
    if job.argv.first().is_none_or(|program| program.is_empty()) {
        return Err(Error::Invalid("there is no program"));
    }
    if place.limits != place.limits.raised() {
        return Err(Error::Invalid(
            "a job needs 16 MiB of memory, 4 processes, 32 open files and 64 KiB of temporary files at least",
        ));
    }
    let names = place.env.iter().map(|(name, _)| name);
    if names.clone().any(|name| name.is_empty() || name.as_encoded_bytes().contains(&b'=')) {
        return Err(Error::Invalid("the name of a variable is empty or has a '=' in it"));
    }
    let values = place.env.iter().map(|(_, value)| value);
    let strings = job.argv.iter().chain(names).chain(values).map(OsString::as_os_str);
    let targets = place.mounts.iter().map(crate::Mount::target);
    let proxy = match &place.network {
        Network::None | Network::Listener { .. } => None,
        Network::Proxy { target, .. } => Some(target.as_path()),
    };
    let targets: Vec<&Path> = targets.chain(proxy).collect();
    let sources = place.sources();
    let paths = targets.iter().copied().chain([place.cwd.as_path()]);
    if strings.chain(paths.clone().map(Path::as_os_str)).any(|string: &OsStr| string.as_encoded_bytes().contains(&0)) {
        return Err(Error::Invalid("an argument, a variable or a path has a NUL in it"));
    }
    if paths.clone().any(|path| !path.is_absolute()) {
        return Err(Error::Invalid("a path is not absolute"));
    }
    let plain = |path: &Path| path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if targets.iter().any(|target| !plain(target) || *target == Path::new("/")) {
        return Err(Error::Invalid("a folder can be mounted neither on / nor through .."));
    }
    let is_below = |path: &OsString| {
        let names = path.as_encoded_bytes().split(|byte| *byte == b'/');
        names.into_iter().all(|name| !matches!(name, b"" | b"." | b"..") && !name.contains(&0))
    };
    if !place.mounts.iter().flat_map(crate::Mount::frozen).all(is_below) {
        return Err(Error::Invalid("what is frozen in a folder is not a path below it"));
    }
    for (index, mount) in place.mounts.iter().enumerate() {
        let later = place.mounts[index + 1..].iter().map(crate::Mount::target).chain(proxy);
        if mount.access() == Access::ReadWrite && later.into_iter().any(|target| target.starts_with(mount.target())) {
            // An earlier job could have put a link there that leads out.
            return Err(Error::Invalid("nothing can be mounted within a folder that jobs write to"));
        }
    }
    let mut writable = sources.iter().filter(|(_, access)| *access == Access::ReadWrite);
    if writable.any(|(folder, _)| sources.iter().any(|(source, _)| source.is_within(folder))) {
        // The same for what is mounted: whoever opened it may have followed a link that an earlier job has put there.
        return Err(Error::Invalid("nothing can be mounted from within a folder that jobs write to"));
    }
    if sources.len() > 200 {
        return Err(Error::Invalid("there are more than 200 folders to mount"));
    }
    Ok(())
}
