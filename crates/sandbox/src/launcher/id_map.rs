//! Id-mapped mounts, in which the owner of a folder appears as the user that the job runs as.
//!
//! Used only by root. Its jobs run as host users that own nothing, so that limits apply per job and an escape gains no
//! rights. What the jobs write must still belong to the owner of the folder.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    mount::OpenTreeFlags,
    process::{Signal, WaitId, WaitIdOptions},
};

use crate::{
    Access,
    cell::mount_attributes,
    step::{Failure, Step, StepContext},
    sys::{self, Depth, ForkResult, MountAttributes},
};

/// Maximum number of cached namespaces.
const KEPT: usize = 1_024;

#[derive(Default)]
pub(super) struct IdMaps {
    /// User namespaces by the user and group that they map, and the host user they map to.
    namespaces: HashMap<(u32, u32, u32), OwnedFd>,
}

impl IdMaps {
    /// Maps the owner of a cloned mount to the host user of a cell. The path is used in errors only.
    pub(super) fn map(&mut self, tree: &OwnedFd, access: Access, path: &Path, host_id: u32) -> Result<(), Failure> {
        let owner = rustix::fs::fstat(tree).on(Step::Mount, path)?;
        let map = self.namespace(owner.st_uid, owner.st_gid, host_id)?;
        let set = mount_attributes(access);
        let mapped = MountAttributes { set, id_map: Some(map) };
        match sys::set_mount(tree, c"", Depth::One, mapped) {
            // A read-only mount works without a mapping: what everybody may read can be read. Some file systems support
            // no mappings.
            Err(Errno::INVAL) if access == Access::ReadOnly => {
                sys::set_mount(tree, c"", Depth::One, MountAttributes { set, id_map: None }).on(Step::Mount, path)
            }
            done => done.on(Step::IdMap, path),
        }
    }

    fn namespace(&mut self, user: u32, group: u32, host_id: u32) -> Result<BorrowedFd<'_>, Failure> {
        if self.namespaces.len() > KEPT {
            self.namespaces.clear();
        }
        let namespace = match self.namespaces.entry((user, group, host_id)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(make(user, group, host_id).at(Step::IdMap)?),
        };
        Ok((*namespace).as_fd())
    }
}

/// Clones an open source as a mount for a cell. The path is used in errors only.
pub(super) fn clone_tree(held: &OwnedFd, path: &Path) -> Result<OwnedFd, Failure> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    match rustix::mount::open_tree(held, "", flags) {
        // The user is root, but lacks the capability to mount, as in some containers.
        Err(Errno::PERM) => Err(Errno::PERM).on(Step::IdMap, path),
        tree => tree.on(Step::Mount, path),
    }
}

/// Creates a user namespace without processes.
fn make(user: u32, group: u32, host_id: u32) -> rustix::io::Result<OwnedFd> {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match sys::clone(sys::USER_NAMESPACE)? {
        ForkResult::Child => {
            drop(theirs);
            // Waits until it is killed or the launcher ends.
            let _ = rustix::io::read(&ours, &mut [0]);
            sys::exit(0)
        }
        ForkResult::Parent { pid, pidfd } => {
            let pid = pid.as_raw_nonzero();
            let write = |name: &str, id: u32| {
                fs::write(format!("/proc/{pid}/{name}"), format!("{id} {host_id} 1"))
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            };
            let namespace = write("uid_map", user).and_then(|()| write("gid_map", group)).and_then(|()| {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                rustix::fs::open(format!("/proc/{pid}/ns/user"), flags, Mode::empty())
            });
            let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
            let _ = rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
            namespace
        }
    }
}
