//! Creates cells, some of them ahead of requests.

use std::{
    collections::BTreeSet,
    fs,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
    net::SocketFlags,
    process::{Pid, Signal, WaitId, WaitIdOptions},
};

use super::{
    cgroup::Cgroup,
    cgroup_pool::CgroupPool,
    id_map::{IdMaps, clone_tree},
};
use crate::{
    CellSpec, Limits,
    cell::{self, CellTemplate, INSIDE_ID},
    step::{Failure, Step, StepContext},
    sys::{self, ForkResult},
    wire::{self, Configuration, ToCell},
};

/// How many unusable control groups are tried before a job is refused.
const GROUP_ATTEMPTS: usize = 4;

/// Number of host users for cells, and so the maximum number of concurrent cells.
const USERS: u32 = 4_096;

/// A process that waits for a request or runs a job.
pub(super) struct Cell {
    /// The host user of the cell. No other cell has the same one, because some kernel limits are per user.
    host_id: u32,
    pub(super) pidfd: OwnedFd,
    pub(super) socket: OwnedFd,
    pub(super) group: Option<Cgroup>,
}

impl Cell {
    pub(super) fn kill(&self) {
        // Fails only if the cell is dead already.
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Waits for the exit of the cell's process.
    fn wait_for_exit(&self) {
        let _ = rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
    }

    fn is_alive(&self) -> bool {
        let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&Timespec::default())) == Ok(0)
    }
}

pub(super) struct Cells {
    template: CellTemplate,
    /// The first host user for jobs.
    host_id: u32,
    /// The host users in use.
    used_ids: BTreeSet<u32>,
    id_maps: IdMaps,
    groups: Option<CgroupPool>,
    ready: Vec<Cell>,
    ready_target: usize,
    /// Set if a cell could not be created. The next request tries again and reports the error.
    creation_failed: bool,
}

impl Cells {
    pub(super) fn new(configuration: &Configuration) -> Result<Self, seccompiler::BackendError> {
        let privileged = rustix::process::geteuid().is_root();
        Ok(Self {
            template: CellTemplate::detect(privileged, configuration.without_landlock)?,
            host_id: configuration.host_id,
            used_ids: BTreeSet::new(),
            id_maps: IdMaps::default(),
            groups: CgroupPool::find(configuration.group.as_deref()),
            ready: Vec::new(),
            ready_target: configuration.ready_cells,
            creation_failed: false,
        })
    }

    pub(super) const fn wants_more(&self) -> bool {
        self.ready.len() < self.ready_target && !self.creation_failed
    }

    /// Creates one cell ahead of requests.
    pub(super) fn create_ahead(&mut self) {
        if !self.wants_more() {
            return;
        }
        match self.create() {
            Ok(cell) => self.ready.push(cell),
            Err(_) => self.creation_failed = true,
        }
    }

    /// Returns an unused cell with the limits of a job.
    pub(super) fn take(&mut self, limits: &Limits) -> Result<Cell, Failure> {
        let mut failure = None;
        for _ in 0..GROUP_ATTEMPTS {
            let mut cell = self.take_any()?;
            let Some(group) = &mut cell.group else { return Ok(cell) };
            match group.limit(limits) {
                Ok(()) => return Ok(cell),
                Err(errno) => failure = Some(Failure::new(Step::Group, errno)),
            }
            // Earlier jobs left more memory charged to the group than the new limit allows, so the group is discarded.
            cell.kill();
            if let Some(group) = cell.group.take() {
                cell.wait_for_exit();
                group.remove();
            }
            self.release(cell);
        }
        Err(failure.unwrap_or_else(|| Failure::new(Step::Group, Errno::BUSY)))
    }

    fn take_any(&mut self) -> Result<Cell, Failure> {
        while let Some(cell) = self.ready.pop() {
            if cell.is_alive() {
                return Ok(cell);
            }
            // The cell failed while building its file system. The next cell reports the error to its job.
            self.creation_failed = true;
            self.release(cell);
        }
        self.create()
    }

    /// Clones the sources, so that a cell can mount them without rights of its own. Returns nothing if the cell has to
    /// clone them itself.
    pub(super) fn clone_mounts(&self, spec: &CellSpec, held: &[OwnedFd]) -> Result<Vec<OwnedFd>, Failure> {
        let sources = spec.sources();
        if sources.len() != held.len() {
            return Err(Failure::new(Step::Request, Errno::BADMSG));
        }
        if !self.template.privileged {
            return Ok(Vec::new());
        }
        sources.into_iter().zip(held).map(|((source, _), held)| clone_tree(held, source.label())).collect()
    }

    /// Maps the owners of the clones to the user of a cell.
    pub(super) fn map_mounts(&mut self, cell: &Cell, spec: &CellSpec, trees: &[OwnedFd]) -> Result<(), Failure> {
        let mut sources = spec.sources().into_iter().zip(trees);
        sources.try_for_each(|((source, access), tree)| self.id_maps.map(tree, access, source.label(), cell.host_id))
    }

    /// Gives the streams to the cell's user, so that the job can open them by name, such as `/dev/stderr`.
    pub(super) fn give_streams(&self, cell: &Cell, streams: &[OwnedFd]) -> rustix::io::Result<()> {
        use rustix::fs::{Gid, Uid};
        if self.template.privileged {
            let (user, group) = (Uid::from_raw(cell.host_id), Gid::from_raw(cell.host_id));
            for stream in streams {
                rustix::fs::fchown(stream, Some(user), Some(group))?;
            }
        }
        Ok(())
    }

    /// Releases the resources of a cell that has died.
    pub(super) fn release(&mut self, mut cell: Cell) {
        cell.wait_for_exit();
        self.used_ids.remove(&cell.host_id);
        if let (Some(groups), Some(group)) = (&mut self.groups, cell.group.take()) {
            groups.release(group);
        }
    }

    /// Returns an unused host user.
    fn free_host_id(&self) -> Result<u32, Failure> {
        let mut users = self.host_id..self.host_id.saturating_add(USERS);
        users.find(|user| !self.used_ids.contains(user)).ok_or(Errno::AGAIN).at(Step::Identity)
    }

    /// Allows creating cells ahead of requests again, after a job has run.
    pub(super) const fn allow_creation(&mut self) {
        self.creation_failed = false;
    }

    fn create(&mut self) -> Result<Cell, Failure> {
        let (ours, theirs) = wire::pair(SocketFlags::empty()).at(Step::Fork)?;
        rustix::io::ioctl_fionbio(&ours, true).at(Step::Fork)?;
        let host_id = self.free_host_id()?;
        let forked = if self.template.privileged {
            // Kernel resources are charged to the owner of the namespaces, which must not be root.
            sys::clone_as(host_id, sys::ALL_NAMESPACES)
        } else {
            sys::clone(sys::ALL_NAMESPACES)
        };
        match forked.at(Step::Namespaces)? {
            ForkResult::Child => cell::run(&theirs, &self.template),
            ForkResult::Parent { pid, pidfd } => {
                self.used_ids.insert(host_id);
                let mut cell = Cell { host_id, pidfd, socket: ours, group: None };
                let ready = self.set_up(pid, &mut cell);
                if let Err(failure) = ready {
                    cell.kill();
                    self.release(cell);
                    return Err(failure);
                }
                Ok(cell)
            }
        }
    }

    fn set_up(&mut self, pid: Pid, cell: &mut Cell) -> Result<(), Failure> {
        let pid = pid.as_raw_nonzero();
        let (user, group) = if self.template.privileged {
            (cell.host_id, cell.host_id)
        } else {
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
        };
        let write = |name: &str, text: String| {
            let written = fs::write(format!("/proc/{pid}/{name}"), text);
            written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)).on(Step::Identity, name)
        };
        if !self.template.privileged {
            // Without root, the kernel requires this before a group mapping can be written.
            write("setgroups", "deny".into())?;
        }
        write("uid_map", format!("{INSIDE_ID} {user} 1"))?;
        write("gid_map", format!("{INSIDE_ID} {group} 1"))?;
        if let Some(groups) = &mut self.groups {
            // If control groups are available, no job runs without one.
            let group = groups.take().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
            cell.group = Some(group.at(Step::Group)?);
        }
        let procs_files = cell.group.as_ref().map_or(&[][..], Cgroup::procs_files);
        let procs_files: Vec<_> = procs_files.iter().map(AsFd::as_fd).collect();
        wire::send(&cell.socket, &ToCell::Build, &procs_files).at(Step::Request)
    }

    /// Ends the unused cells and removes the control groups.
    pub(super) fn shut_down(&mut self) {
        for cell in std::mem::take(&mut self.ready) {
            cell.kill();
            self.release(cell);
        }
        self.groups = None;
    }
}
