//! Where control groups can be made.
//!
//! Only folders of our own making are ever written to: one beneath the group that the launcher is in, or beneath one
//! that has been delegated to it, and in it one for each job at a time.

use std::{
    ffi::OsStr,
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags},
    process::{WaitId, WaitIdOptions},
};

use super::group::{self, Group, Version};
use crate::sys::{self, Forked};

/// How many groups are kept to be used again.
const KEPT: usize = 64;

/// A folder of ours is named after its launcher: this, its PID, and a number where a folder of that name is left.
const PREFIX: &str = "toolrest-";

const NAMES_TRIED: u32 = 8;

/// Makes groups, and keeps those that are free: making and removing them is slow, and what a job leaves in the page
/// cache would keep a removed one alive.
pub(super) struct Groups {
    bases: Vec<Base>,
    version: Version,
    free: Vec<Group>,
    made: usize,
}

impl Groups {
    /// Finds a place for groups that limit memory; none where the launcher may not make any.
    pub(super) fn find(delegated: Option<&OsStr>) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let second = delegated.map_or_else(|| second(&mounts, &own), |path| vec![PathBuf::from(path)]);
        let second = second.into_iter().find_map(|parent| Self::second(&parent).ok()?.tried());
        second.or_else(|| Self::first(&mounts, &own).ok()?.tried())
    }

    /// The same, if a process can really enter a group.
    fn tried(mut self) -> Option<Self> {
        let group = self.take().ok()?;
        let entered = match sys::clone(0) {
            Ok(Forked::Child) => {
                let entered = group.doors().iter().all(|door| rustix::io::write(door, b"0") == Ok(1));
                sys::exit(i32::from(!entered))
            }
            Err(_) => false,
            Ok(Forked::Parent { pidfd, .. }) => {
                let status = rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
                status.is_ok_and(|status| status.is_some_and(|status| status.exit_status() == Some(0)))
            }
        };
        self.give_back(group);
        entered.then_some(self)
    }

    fn second(parent: &Path) -> io::Result<Self> {
        let controllers = fs::read_to_string(parent.join("cgroup.subtree_control"))?;
        if !["memory", "pids"].iter().all(|wanted| controllers.split_whitespace().any(|word| word == *wanted)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let base = Base::make(parent)?;
        fs::write(base.path.join("cgroup.subtree_control"), "+memory +pids")?;
        Ok(Self { bases: vec![base], version: Version::Two, free: Vec::new(), made: 0 })
    }

    fn first(mounts: &str, own: &str) -> io::Result<Self> {
        let parent = |controller| first(mounts, own, controller).ok_or(io::ErrorKind::NotFound);
        let mut bases = vec![Base::make(&parent("memory")?)?];
        bases.extend(parent("pids").ok().and_then(|parent| Base::make(&parent).ok()));
        Ok(Self { bases, version: Version::One, free: Vec::new(), made: 0 })
    }

    pub(super) fn take(&mut self) -> io::Result<Group> {
        if let Some(group) = self.free.pop() {
            return Ok(group);
        }
        self.made += 1;
        let folders = self.bases.iter().map(|base| base.path.join(format!("job-{}", self.made))).collect();
        Group::make(folders, self.version)
    }

    /// Takes back a group in which no process is left.
    pub(super) fn give_back(&mut self, group: Group) {
        if self.free.len() < KEPT && group.lift().is_ok() {
            self.free.push(group);
        } else {
            group.remove();
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.free.iter().for_each(Group::remove);
    }
}

/// The folder of one launcher, removed with it.
struct Base {
    path: PathBuf,
    /// Holds a lock on the folder, which says that its launcher is alive.
    _lock: OwnedFd,
}

impl Base {
    /// Makes the folder of this launcher, and removes those of launchers that have died.
    fn make(parent: &Path) -> io::Result<Self> {
        sweep(parent)?;
        let pid = std::process::id();
        for number in 0..NAMES_TRIED {
            let path = parent.join(format!("{PREFIX}{pid}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Another launcher that sweeps can be faster, and remove it.
            if let Some(lock) = lock(&path) {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        group::remove(&self.path);
    }
}

/// Removes what launchers have left that were killed: folders with our name that nobody holds a lock on.
fn sweep(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        let name = entry.file_name();
        let numbers = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|rest| rest.split_once('-'));
        let is_ours = numbers.is_some_and(|(pid, number)| pid.parse::<u32>().is_ok() && number.parse::<u32>().is_ok());
        let Some(_lock) = is_ours.then(|| lock(&entry.path())).flatten() else { continue };
        // The kernel removes none in which there is a process.
        for job in fs::read_dir(entry.path())?.flatten() {
            let _ = fs::remove_dir(job.path());
        }
        let _ = fs::remove_dir(entry.path());
    }
    Ok(())
}

/// Locks a folder; nothing where somebody else holds the lock, or the folder is gone.
fn lock(folder: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let (held, there) = (rustix::fs::fstat(&file).ok()?, rustix::fs::stat(folder).ok()?);
    (held.st_ino == there.st_ino).then_some(file)
}

/// The group we are in, and the one above: a service manager that delegates puts its service into a group beneath.
fn second(mounts: &str, own: &str) -> Vec<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"));
    let mount = mounts.lines().filter_map(Mount::parse).find(|mount| mount.kind == "cgroup2");
    let Some(own) = path.zip(mount).and_then(|(path, mount)| mount.locate(path)) else { return Vec::new() };
    let above = own.parent().filter(|parent| parent.join("cgroup.procs").exists()).map(Path::to_path_buf);
    [Some(own), above].into_iter().flatten().collect()
}

/// The group we are in, of one controller.
fn first(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    let has = |mount: &Mount<'_>| mount.kind == "cgroup" && mount.options.split(',').any(|option| option == controller);
    mounts.lines().filter_map(Mount::parse).find(has)?.locate(path)
}

/// A line of mountinfo, as far as it matters here.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut system = system.split(' ');
        let (root, point) = (mount.next()?, mount.next()?);
        Some(Self { root, point, kind: system.next()?, options: system.nth(1)? })
    }

    /// Where a group of this hierarchy is found.
    fn locate(&self, path: &str) -> Option<PathBuf> {
        let relative = Path::new(path).strip_prefix(self.root).ok()?;
        Some(Path::new(self.point).join(relative))
    }
}

#[cfg(test)]
#[path = "hierarchy_tests.rs"]
mod hierarchy_tests;
