//! Finds a control group to create job groups in, and keeps a pool of unused job groups.
//!
//! The launcher writes only to folders that it created itself: a launcher folder below its own group or a delegated
//! group, and in that folder one group per concurrent job.

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

use super::cgroup::{self, Cgroup, Version};
use crate::sys::{self, ForkResult};

/// Maximum number of free groups.
const MAX_FREE: usize = 64;

/// Prefix of the launcher's folder: `toolrest-PID-NUMBER`. The number differs if a folder of a dead launcher with
/// the same PID still exists.
const PREFIX: &str = "toolrest-";

const NAME_ATTEMPTS: u32 = 8;

/// A pool of control groups. They are reused, because creating and removing them is slow, and page cache charged to a
/// removed group would keep it alive in the kernel.
pub(super) struct CgroupPool {
    parents: Vec<LauncherGroup>,
    version: Version,
    free: Vec<Cgroup>,
    created: usize,
}

impl CgroupPool {
    /// Finds a hierarchy in which groups that limit memory can be created. Returns `None` if there is none.
    pub(super) fn find(delegated: Option<&OsStr>) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
        let v2 = delegated.map_or_else(|| v2(&mounts, &memberships), |path| vec![PathBuf::from(path)]);
        let v2 = v2.into_iter().find_map(|parent| Self::v2(&parent).ok()?.verified());
        v2.or_else(|| Self::v1(&mounts, &memberships).ok()?.verified())
    }

    /// Returns the pool if a process can really join one of its groups.
    fn verified(mut self) -> Option<Self> {
        let group = self.take().ok()?;
        let entered = match sys::clone(0) {
            Ok(ForkResult::Child) => {
                let entered = group.procs_files().iter().all(|procs_file| rustix::io::write(procs_file, b"0") == Ok(1));
                sys::exit(i32::from(!entered))
            }
            Err(_) => false,
            Ok(ForkResult::Parent { pidfd, .. }) => {
                let status = rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
                status.is_ok_and(|status| status.is_some_and(|status| status.exit_status() == Some(0)))
            }
        };
        self.release(group);
        entered.then_some(self)
    }

    fn v2(parent: &Path) -> io::Result<Self> {
        let controllers = fs::read_to_string(parent.join("cgroup.subtree_control"))?;
        if !["memory", "pids"].iter().all(|wanted| controllers.split_whitespace().any(|word| word == *wanted)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let folder = LauncherGroup::create(parent)?;
        fs::write(folder.path.join("cgroup.subtree_control"), "+memory +pids")?;
        Ok(Self { parents: vec![folder], version: Version::Two, free: Vec::new(), created: 0 })
    }

    fn v1(mounts: &str, memberships: &str) -> io::Result<Self> {
        let parent = |controller| v1(mounts, memberships, controller).ok_or(io::ErrorKind::NotFound);
        let mut parents = vec![LauncherGroup::create(&parent("memory")?)?];
        parents.extend(parent("pids").ok().and_then(|parent| LauncherGroup::create(&parent).ok()));
        Ok(Self { parents, version: Version::One, free: Vec::new(), created: 0 })
    }

    pub(super) fn take(&mut self) -> io::Result<Cgroup> {
        if let Some(group) = self.free.pop() {
            return Ok(group);
        }
        self.created += 1;
        let folders = self.parents.iter().map(|folder| folder.path.join(format!("job-{}", self.created))).collect();
        Cgroup::create(folders, self.version)
    }

    /// Takes back a group without processes.
    pub(super) fn release(&mut self, group: Cgroup) {
        if self.free.len() < MAX_FREE && group.clear_limits().is_ok() {
            self.free.push(group);
        } else {
            group.remove();
        }
    }
}

impl Drop for CgroupPool {
    fn drop(&mut self) {
        self.free.iter().for_each(Cgroup::remove);
    }
}

/// The folder of one launcher. Removed when dropped.
struct LauncherGroup {
    path: PathBuf,
    /// A lock on the folder, which marks its launcher as alive.
    _lock: OwnedFd,
}

impl LauncherGroup {
    /// Creates the folder of this launcher, and removes the folders of dead launchers.
    fn create(parent: &Path) -> io::Result<Self> {
        remove_stale(parent)?;
        let pid = std::process::id();
        for number in 0..NAME_ATTEMPTS {
            let path = parent.join(format!("{PREFIX}{pid}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // A concurrent launcher may remove the folder before it is locked.
            if let Some(lock) = lock(&path) {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for LauncherGroup {
    fn drop(&mut self) {
        cgroup::remove(&self.path);
    }
}

/// Removes the folders of dead launchers: those with our prefix that are not locked.
fn remove_stale(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        let name = entry.file_name();
        let numbers = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|rest| rest.split_once('-'));
        let is_ours = numbers.is_some_and(|(pid, number)| pid.parse::<u32>().is_ok() && number.parse::<u32>().is_ok());
        let Some(_lock) = is_ours.then(|| lock(&entry.path())).flatten() else { continue };
        // The kernel refuses to remove groups that have processes.
        for job in fs::read_dir(entry.path())?.flatten() {
            let _ = fs::remove_dir(job.path());
        }
        let _ = fs::remove_dir(entry.path());
    }
    Ok(())
}

/// Locks a folder. Returns `None` if it is locked already or gone.
fn lock(folder: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    // The lock is valid only if the path still has the same inode: another launcher may have removed the folder before
    // it was locked.
    let (held, there) = (rustix::fs::fstat(&file).ok()?, rustix::fs::stat(folder).ok()?);
    (held.st_ino == there.st_ino).then_some(file)
}

/// Returns the launcher's group and its parent, because service managers may put a service into a group below the
/// delegated one.
fn v2(mounts: &str, memberships: &str) -> Vec<PathBuf> {
    let path = memberships.lines().find_map(|line| line.strip_prefix("0::"));
    let mount = mounts.lines().filter_map(Mount::parse).find(|mount| mount.kind == "cgroup2");
    let Some(own) = path.zip(mount).and_then(|(path, mount)| mount.locate(path)) else { return Vec::new() };
    let above = own.parent().filter(|parent| parent.join("cgroup.procs").exists()).map(Path::to_path_buf);
    [Some(own), above].into_iter().flatten().collect()
}

/// Returns the launcher's group of one controller.
fn v1(mounts: &str, memberships: &str, controller: &str) -> Option<PathBuf> {
    let path = memberships.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    let has = |mount: &Mount<'_>| mount.kind == "cgroup" && mount.options.split(',').any(|option| option == controller);
    mounts.lines().filter_map(Mount::parse).find(has)?.locate(path)
}

/// The needed fields of a line of mountinfo.
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

    /// Returns the path of a group in this hierarchy.
    fn locate(&self, path: &str) -> Option<PathBuf> {
        let relative = Path::new(path).strip_prefix(self.root).ok()?;
        Some(Path::new(self.point).join(relative))
    }
}

#[cfg(test)]
#[path = "cgroup_pool_tests.rs"]
mod cgroup_pool_tests;
