//! A control group, used by one job at a time.

use std::{
    fs, io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    event::{EventfdFlags, eventfd},
    io::Errno,
};

use crate::{Enforcer, Limits};

/// How often the removal of a group is tried. A group stays busy shortly after its last process has ended.
const REMOVALS_TRIED: u32 = 100;

/// TCP buffers may take one part in this many of the memory limit, where the kernel counts them separately.
const TCP_SHARE: u64 = 8;

/// A control group created by this launcher.
#[derive(Debug)]
pub(super) struct Cgroup {
    /// Version 2: one folder. Version 1: the folder of the memory controller and, if available, that of the pids
    /// controller.
    pub(super) folders: Vec<PathBuf>,
    pub(super) version: Version,
    /// The counters before the job, because groups are reused.
    hits_before: HitCounters,
    /// The open `cgroup.procs` files.
    procs_files: Vec<OwnedFd>,
    /// Signals an out-of-memory event. Version 1 only, which would kill just one process.
    oom_event: Option<OwnedFd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// Counters of limit hits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct HitCounters {
    memory: u64,
    processes: u64,
}

/// Which limits a job has hit.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitsHit {
    pub(super) memory: bool,
    pub(super) processes: bool,
}

impl Cgroup {
    pub(super) fn create(folders: Vec<PathBuf>, version: Version) -> io::Result<Self> {
        let mut group = Self {
            folders: Vec::new(),
            version,
            hits_before: HitCounters::default(),
            procs_files: Vec::new(),
            oom_event: None,
        };
        let created = folders.into_iter().try_for_each(|folder| group.add(folder));
        let created = created.and_then(|()| {
            group.oom_event = (version == Version::One).then(|| oom_event(&group.folders[0])).transpose()?;
            Ok(())
        });
        if let Err(error) = created {
            group.remove();
            return Err(error);
        }
        Ok(group)
    }

    fn add(&mut self, folder: PathBuf) -> io::Result<()> {
        fs::create_dir(&folder)?;
        let procs = folder.join("cgroup.procs");
        self.folders.push(folder);
        self.procs_files.push(fs::OpenOptions::new().write(true).open(procs)?.into());
        Ok(())
    }

    /// Returns the `cgroup.procs` files. A process joins by writing 0 to them. The cell does that itself, so that the
    /// launcher does not wait for the kernel.
    pub(super) fn procs_files(&self) -> &[OwnedFd] {
        &self.procs_files
    }

    pub(super) fn oom_event(&self) -> Option<&OwnedFd> {
        self.oom_event.as_ref()
    }

    /// Sets the limits of a job before it starts.
    pub(super) fn limit(&mut self, limits: &Limits) -> Result<(), Errno> {
        let memory = limits.memory_bytes.to_string();
        match self.version {
            Version::One => {
                // The limit of memory and swap must not be below the memory limit, so it is removed first and set last.
                let swap = self.folders[0].join("memory.memsw.limit_in_bytes");
                let _ = write(swap.clone(), "-1");
                write(self.folders[0].join("memory.limit_in_bytes"), &memory)?;
                let _ = write(swap, &memory);
                // Version 1 counts TCP buffers separately; they use the host's TCP memory.
                let tcp = (limits.memory_bytes / TCP_SHARE).to_string();
                let _ = write(self.folders[0].join("memory.kmem.tcp.limit_in_bytes"), &tcp);
            }
            Version::Two => {
                write(self.folders[0].join("memory.max"), &memory)?;
                let _ = write(self.folders[0].join("memory.swap.max"), "0");
                let _ = write(self.folders[0].join("memory.oom.group"), "1");
            }
        }
        if let Some(folder) = self.pids_folder() {
            write(folder.join("pids.max"), &limits.processes.to_string())?;
        }
        self.hits_before = self.read_hits();
        if let Some(oom_event) = &self.oom_event {
            // Clear an event of the previous job.
            let _ = rustix::io::read(oom_event, &mut [0; 8]);
        }
        Ok(())
    }

    /// Removes the limits after a job. The next cell joins before the limits of its job are known.
    pub(super) fn clear_limits(&self) -> Result<(), Errno> {
        match self.version {
            Version::One => {
                let _ = write(self.folders[0].join("memory.memsw.limit_in_bytes"), "-1");
                let _ = write(self.folders[0].join("memory.kmem.tcp.limit_in_bytes"), "-1");
                write(self.folders[0].join("memory.limit_in_bytes"), "-1")?;
            }
            Version::Two => write(self.folders[0].join("memory.max"), "max")?,
        }
        self.pids_folder().map_or(Ok(()), |folder| write(folder.join("pids.max"), "max"))
    }

    /// Returns the limits that were hit since they were set.
    pub(super) fn limits_hit(&self) -> LimitsHit {
        let now = self.read_hits();
        LimitsHit {
            memory: now.memory > self.hits_before.memory,
            processes: now.processes > self.hits_before.processes,
        }
    }

    pub(super) fn enforcer(&self) -> Enforcer {
        match self.version {
            Version::One => Enforcer::CgroupV1,
            Version::Two => Enforcer::CgroupV2,
        }
    }

    /// Whether the group also limits the number of processes.
    pub(super) fn counts_processes(&self) -> bool {
        self.pids_folder().is_some()
    }

    fn pids_folder(&self) -> Option<&PathBuf> {
        match self.version {
            Version::One => self.folders.get(1),
            Version::Two => self.folders.first(),
        }
    }

    fn read_hits(&self) -> HitCounters {
        let events = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let processes = self.pids_folder().map_or(0, |folder| number(folder.join("pids.events"), "max"));
        HitCounters { memory: number(self.folders[0].join(events), "oom_kill"), processes }
    }

    /// Removes the group's folders.
    pub(super) fn remove(&self) {
        for folder in &self.folders {
            remove(folder);
        }
    }
}

/// Removes the folder of a group. The kernel refuses while the group has processes, and a killed process stays in it
/// for a moment.
#[allow(clippy::disallowed_methods, reason = "the kernel gives no sign when it can be removed")]
pub(super) fn remove(folder: &Path) {
    for _ in 0..REMOVALS_TRIED {
        match fs::remove_dir(folder) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => thread::sleep(Duration::from_millis(2)),
            // If it fails, the next launcher removes the group.
            Ok(()) | Err(_) => return,
        }
    }
}

fn oom_event(folder: &Path) -> io::Result<OwnedFd> {
    let oom_event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let control = fs::File::open(folder.join("memory.oom_control"))?;
    let (rings, asked) = (oom_event.as_raw_fd(), control.as_raw_fd());
    fs::write(folder.join("cgroup.event_control"), format!("{rings} {asked}"))?;
    Ok(oom_event)
}

fn write(path: PathBuf, text: &str) -> Result<(), Errno> {
    fs::write(path, text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Returns the number after a name in a file of names and numbers, or 0.
fn number(path: PathBuf, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
