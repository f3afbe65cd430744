//! The control group of one job at a time.

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

/// How often it is tried to remove a group in which a process has just ended.
const REMOVALS_TRIED: u32 = 100;

/// The part of its memory that a job may have in the buffers of TCP sockets, where they are counted apart.
const TCP_SHARE: u64 = 8;

/// A group of our own making.
#[derive(Debug)]
pub(super) struct Group {
    /// One folder in version 2; in version 1 one for memory and one, if there is one, for processes.
    pub(super) folders: Vec<PathBuf>,
    pub(super) version: Version,
    /// How often the limits had been hit before the job, since groups are used again.
    before: Hits,
    /// What a process enters by.
    doors: Vec<OwnedFd>,
    /// Rings when the memory has run out, in version 1, which would kill one process only.
    alarm: Option<OwnedFd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// How often a limit was hit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Hits {
    memory: u64,
    processes: u64,
}

/// Which limits a job has hit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub(super) memory: bool,
    pub(super) processes: bool,
}

impl Group {
    pub(super) fn make(folders: Vec<PathBuf>, version: Version) -> io::Result<Self> {
        let mut group = Self { folders: Vec::new(), version, before: Hits::default(), doors: Vec::new(), alarm: None };
        let made = folders.into_iter().try_for_each(|folder| group.add(folder));
        let made = made.and_then(|()| {
            group.alarm = (version == Version::One).then(|| alarm(&group.folders[0])).transpose()?;
            Ok(())
        });
        if let Err(error) = made {
            group.remove();
            return Err(error);
        }
        Ok(group)
    }

    fn add(&mut self, folder: PathBuf) -> io::Result<()> {
        fs::create_dir(&folder)?;
        let procs = folder.join("cgroup.procs");
        self.folders.push(folder);
        self.doors.push(fs::OpenOptions::new().write(true).open(procs)?.into());
        Ok(())
    }

    /// The files that a process which writes a nought to them enters by: it waits for the kernel then, and not the
    /// launcher.
    pub(super) fn doors(&self) -> &[OwnedFd] {
        &self.doors
    }

    pub(super) fn alarm(&self) -> Option<&OwnedFd> {
        self.alarm.as_ref()
    }

    /// Sets the limits of a job before it begins.
    pub(super) fn limit(&mut self, limits: &Limits) -> Result<(), Errno> {
        let memory = limits.memory_bytes.to_string();
        match self.version {
            Version::One => {
                // Memory and swap together may never be less than memory alone, so that the order depends.
                let swap = self.folders[0].join("memory.memsw.limit_in_bytes");
                let _ = write(swap.clone(), "-1");
                write(self.folders[0].join("memory.limit_in_bytes"), &memory)?;
                let _ = write(swap, &memory);
                // The buffers of TCP sockets are counted apart in version 1, and come out of what the whole host has.
                let tcp = (limits.memory_bytes / TCP_SHARE).to_string();
                let _ = write(self.folders[0].join("memory.kmem.tcp.limit_in_bytes"), &tcp);
            }
            Version::Two => {
                write(self.folders[0].join("memory.max"), &memory)?;
                let _ = write(self.folders[0].join("memory.swap.max"), "0");
                let _ = write(self.folders[0].join("memory.oom.group"), "1");
            }
        }
        if let Some(folder) = self.counting() {
            write(folder.join("pids.max"), &limits.processes.to_string())?;
        }
        self.before = self.hits();
        if let Some(alarm) = &self.alarm {
            // It may have rung for the last job.
            let _ = rustix::io::read(alarm, &mut [0; 8]);
        }
        Ok(())
    }

    /// Lifts the limits of a job that is over: a cell enters before it is known what the next job may use.
    pub(super) fn lift(&self) -> Result<(), Errno> {
        match self.version {
            Version::One => {
                let _ = write(self.folders[0].join("memory.memsw.limit_in_bytes"), "-1");
                let _ = write(self.folders[0].join("memory.kmem.tcp.limit_in_bytes"), "-1");
                write(self.folders[0].join("memory.limit_in_bytes"), "-1")?;
            }
            Version::Two => write(self.folders[0].join("memory.max"), "max")?,
        }
        self.counting().map_or(Ok(()), |folder| write(folder.join("pids.max"), "max"))
    }

    /// Which limits were hit since they were set.
    pub(super) fn hit(&self) -> Hit {
        let now = self.hits();
        Hit { memory: now.memory > self.before.memory, processes: now.processes > self.before.processes }
    }

    pub(super) fn enforcer(&self) -> Enforcer {
        match self.version {
            Version::One => Enforcer::CgroupV1,
            Version::Two => Enforcer::CgroupV2,
        }
    }

    /// Whether it limits processes too.
    pub(super) fn counts_processes(&self) -> bool {
        self.counting().is_some()
    }

    fn counting(&self) -> Option<&PathBuf> {
        match self.version {
            Version::One => self.folders.get(1),
            Version::Two => self.folders.first(),
        }
    }

    fn hits(&self) -> Hits {
        let events = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let processes = self.counting().map_or(0, |folder| number(folder.join("pids.events"), "max"));
        Hits { memory: number(self.folders[0].join(events), "oom_kill"), processes }
    }

    /// Removes it, once no process is in it any more.
    pub(super) fn remove(&self) {
        for folder in &self.folders {
            remove(folder);
        }
    }
}

/// Removes the folder of a group. The kernel refuses while a process is in it, and one that was just killed is so for a
/// moment.
#[allow(clippy::disallowed_methods, reason = "the kernel gives no sign when it can be removed")]
pub(super) fn remove(folder: &Path) {
    for _ in 0..REMOVALS_TRIED {
        match fs::remove_dir(folder) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => thread::sleep(Duration::from_millis(2)),
            // Where it cannot be removed now, the next launcher tries again.
            Ok(()) | Err(_) => return,
        }
    }
}

fn alarm(folder: &Path) -> io::Result<OwnedFd> {
    let alarm = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let control = fs::File::open(folder.join("memory.oom_control"))?;
    let (rings, asked) = (alarm.as_raw_fd(), control.as_raw_fd());
    fs::write(folder.join("cgroup.event_control"), format!("{rings} {asked}"))?;
    Ok(alarm)
}

fn write(path: PathBuf, text: &str) -> Result<(), Errno> {
    fs::write(path, text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The number after a name in a file of names and numbers; none is zero.
fn number(path: PathBuf, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
