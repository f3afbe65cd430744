//! Where control groups can be made.
//!
//! Only folders of our own making are ever written to: one beneath the group that the launcher is in, or beneath one
//! that has been delegated to it, and in it one for each job at a time.

use std::{
    ffi::OsStr,
    fs, io,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use rustix::process::{WaitId, WaitIdOptions};

use super::group::{Group, Version};
use crate::sys::{self, Forked};

/// How many groups are kept to be used again.
const KEPT: usize = 64;

const PREFIX: &str = "toolrest-";

/// Makes groups, and keeps those that are free: making and removing them is slow, and what a job leaves in the page
/// cache would keep a removed one alive.
pub(super) struct Groups {
    bases: Vec<PathBuf>,
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
        let group = self.take()?;
        let entered = match sys::clone(0).ok()? {
            Forked::Child => {
                let entered = group.doors().iter().all(|door| rustix::io::write(door, b"0") == Ok(1));
                sys::exit(i32::from(!entered))
            }
            Forked::Parent { pidfd, .. } => {
                let status = rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
                status.is_ok_and(|status| status.is_some_and(|status| status.exit_status() == Some(0)))
            }
        };
        self.give_back(group);
        if entered {
            return Some(self);
        }
        self.remove();
        None
    }

    fn second(parent: &Path) -> io::Result<Self> {
        let controllers = fs::read_to_string(parent.join("cgroup.subtree_control"))?;
        if !["memory", "pids"].iter().all(|wanted| controllers.split_whitespace().any(|word| word == *wanted)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let base = make_base(parent)?;
        fs::write(base.join("cgroup.subtree_control"), "+memory +pids")?;
        Ok(Self { bases: vec![base], version: Version::Two, free: Vec::new(), made: 0 })
    }

    fn first(mounts: &str, own: &str) -> io::Result<Self> {
        let parent = |controller| first(mounts, own, controller).ok_or(io::ErrorKind::NotFound);
        let mut bases = vec![make_base(&parent("memory")?)?];
        bases.extend(parent("pids").ok().and_then(|parent| make_base(&parent).ok()));
        Ok(Self { bases, version: Version::One, free: Vec::new(), made: 0 })
    }

    pub(super) fn take(&mut self) -> Option<Group> {
        if let Some(group) = self.free.pop() {
            return Some(group);
        }
        self.made += 1;
        let folders = self.bases.iter().map(|base| base.join(format!("job-{}", self.made))).collect();
        Group::make(folders, self.version).ok()
    }

    /// Takes back a group in which no process is left.
    pub(super) fn give_back(&mut self, group: Group) {
        if self.free.len() < KEPT && group.lift().is_ok() {
            self.free.push(group);
        } else {
            let _ = group.remove();
        }
    }

    pub(super) fn remove(self) {
        for group in &self.free {
            let _ = group.remove();
        }
        for base in &self.bases {
            let _ = fs::remove_dir(base);
        }
    }
}

/// Makes the folder of this launcher, and removes those of launchers that were killed.
fn make_base(parent: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(parent)?.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            for job in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(job.path());
            }
            let _ = fs::remove_dir(entry.path());
        }
    }
    let base = parent.join(format!("{PREFIX}{}", std::process::id()));
    fs::create_dir(&base)?;
    Ok(base)
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
