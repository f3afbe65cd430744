//! Makes cells, some of them before they are asked for.

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
    group::Group,
    hierarchy::Groups,
    id_map::{IdMaps, clone_tree},
};
use crate::{
    Limits, Place,
    cell::{self, ExecutionRoot, INSIDE_ID},
    step::{At, Failure, Step},
    sys::{self, Forked},
    wire::{self, Configuration, ToCell},
};

/// How many groups may turn out to be of no use before a job is refused.
const GROUPS_TRIED: usize = 4;

/// How many users of the host cells can have, so many cells there can be at once.
const USERS: u32 = 4_096;

/// A process that waits for an order, or carries one out.
pub(super) struct Cell {
    /// The user of the host that it runs as, which no other cell has: the kernel limits some things for each user.
    host_id: u32,
    pub(super) pidfd: OwnedFd,
    pub(super) socket: OwnedFd,
    pub(super) group: Option<Group>,
}

impl Cell {
    pub(super) fn kill(&self) {
        // It fails only where the cell is dead already.
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Buries it; waits where it has not died yet.
    fn bury(&self) {
        let _ = rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
    }

    fn is_alive(&self) -> bool {
        let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&Timespec::default())) == Ok(0)
    }
}

pub(super) struct Cells {
    ground: ExecutionRoot,
    /// The first user that jobs can run as.
    host_id: u32,
    /// The users that cells have.
    taken: BTreeSet<u32>,
    id_maps: IdMaps,
    groups: Option<Groups>,
    ready: Vec<Cell>,
    ready_wanted: usize,
    /// Set when a cell could not be made: the next order tries again and is told why.
    discouraged: bool,
}

impl Cells {
    pub(super) fn new(configuration: &Configuration) -> Result<Self, seccompiler::BackendError> {
        let privileged = rustix::process::geteuid().is_root();
        Ok(Self {
            ground: ExecutionRoot::survey(privileged, configuration.without_landlock)?,
            host_id: configuration.host_id,
            taken: BTreeSet::new(),
            id_maps: IdMaps::default(),
            groups: Groups::find(configuration.group.as_deref()),
            ready: Vec::new(),
            ready_wanted: configuration.ready_cells,
            discouraged: false,
        })
    }

    pub(super) const fn are_wanted(&self) -> bool {
        self.ready.len() < self.ready_wanted && !self.discouraged
    }

    /// Makes one cell ahead of an order.
    pub(super) fn prepare(&mut self) {
        if !self.are_wanted() {
            return;
        }
        match self.make() {
            Ok(cell) => self.ready.push(cell),
            Err(_) => self.discouraged = true,
        }
    }

    /// Gives a cell that has had no order yet, with the limits of a job.
    pub(super) fn take(&mut self, limits: &Limits) -> Result<Cell, Failure> {
        let mut failure = None;
        for _ in 0..GROUPS_TRIED {
            let mut cell = self.take_any()?;
            let Some(group) = &mut cell.group else { return Ok(cell) };
            match group.limit(limits) {
                Ok(()) => return Ok(cell),
                Err(errno) => failure = Some(Failure::new(Step::Group, errno)),
            }
            // More is left in the group of the jobs before than this one may have: it is used no more.
            cell.kill();
            if let Some(group) = cell.group.take() {
                cell.bury();
                group.remove();
            }
            self.dismiss(cell);
        }
        Err(failure.unwrap_or_else(|| Failure::new(Step::Group, Errno::BUSY)))
    }

    fn take_any(&mut self) -> Result<Cell, Failure> {
        while let Some(cell) = self.ready.pop() {
            if cell.is_alive() {
                return Ok(cell);
            }
            // It died of what it was to build: the next one will say why, to whom it concerns.
            self.discouraged = true;
            self.dismiss(cell);
        }
        self.make()
    }

    /// Clones of the sources that a cell can mount without having a right to them itself; nothing where the cell is to
    /// clone them.
    pub(super) fn clone_trees(&self, place: &Place, held: &[OwnedFd]) -> Result<Vec<OwnedFd>, Failure> {
        let sources = place.sources();
        if sources.len() != held.len() {
            return Err(Failure::new(Step::Order, Errno::BADMSG));
        }
        if !self.ground.privileged {
            return Ok(Vec::new());
        }
        sources.into_iter().zip(held).map(|((source, _), held)| clone_tree(held, source.label())).collect()
    }

    /// Maps the owners of the clones to the user of a cell.
    pub(super) fn map_trees(&mut self, cell: &Cell, place: &Place, trees: &[OwnedFd]) -> Result<(), Failure> {
        let mut sources = place.sources().into_iter().zip(trees);
        sources.try_for_each(|((source, access), tree)| self.id_maps.map(tree, access, source.label(), cell.host_id))
    }

    /// Lets the job open its own streams by name, as shells do with `/dev/stderr`.
    pub(super) fn hand_over(&self, cell: &Cell, streams: &[OwnedFd]) -> rustix::io::Result<()> {
        use rustix::fs::{Gid, Uid};
        if self.ground.privileged {
            let (user, group) = (Uid::from_raw(cell.host_id), Gid::from_raw(cell.host_id));
            for stream in streams {
                rustix::fs::fchown(stream, Some(user), Some(group))?;
            }
        }
        Ok(())
    }

    /// Takes back a cell that has died.
    pub(super) fn dismiss(&mut self, mut cell: Cell) {
        cell.bury();
        self.taken.remove(&cell.host_id);
        if let (Some(groups), Some(group)) = (&mut self.groups, cell.group.take()) {
            groups.give_back(group);
        }
    }

    /// The user of the host for another cell.
    fn free_user(&self) -> Result<u32, Failure> {
        let mut users = self.host_id..self.host_id.saturating_add(USERS);
        users.find(|user| !self.taken.contains(user)).ok_or(Errno::AGAIN).at(Step::Identity)
    }

    /// A job has run: making cells is worth trying.
    pub(super) const fn encourage(&mut self) {
        self.discouraged = false;
    }

    fn make(&mut self) -> Result<Cell, Failure> {
        let (ours, theirs) = wire::pair(SocketFlags::empty()).at(Step::Fork)?;
        rustix::io::ioctl_fionbio(&ours, true).at(Step::Fork)?;
        let host_id = self.free_user()?;
        let forked = if self.ground.privileged {
            // What the kernel charges to the owner of namespaces is not to be root's.
            sys::clone_as(host_id, sys::ALL_NAMESPACES)
        } else {
            sys::clone(sys::ALL_NAMESPACES)
        };
        match forked.at(Step::Namespaces)? {
            Forked::Child => cell::live(&theirs, &self.ground),
            Forked::Parent { pid, pidfd } => {
                self.taken.insert(host_id);
                let mut cell = Cell { host_id, pidfd, socket: ours, group: None };
                let ready = self.admit(pid, &mut cell);
                if let Err(failure) = ready {
                    cell.kill();
                    self.dismiss(cell);
                    return Err(failure);
                }
                Ok(cell)
            }
        }
    }

    fn admit(&mut self, pid: Pid, cell: &mut Cell) -> Result<(), Failure> {
        let pid = pid.as_raw_nonzero();
        let (user, group) = if self.ground.privileged {
            (cell.host_id, cell.host_id)
        } else {
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
        };
        let write = |name: &str, text: String| {
            let written = fs::write(format!("/proc/{pid}/{name}"), text);
            written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)).on(Step::Identity, name)
        };
        if !self.ground.privileged {
            // The kernel lets nobody else than root give a group without this.
            write("setgroups", "deny".into())?;
        }
        write("uid_map", format!("{INSIDE_ID} {user} 1"))?;
        write("gid_map", format!("{INSIDE_ID} {group} 1"))?;
        if let Some(groups) = &mut self.groups {
            // Where groups can be made, no job runs without one.
            let group = groups.take().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
            cell.group = Some(group.at(Step::Group)?);
        }
        let doors = cell.group.as_ref().map_or(&[][..], Group::doors);
        let doors: Vec<_> = doors.iter().map(AsFd::as_fd).collect();
        wire::send(&cell.socket, &ToCell::Build, &doors).at(Step::Order)
    }

    /// Ends the cells that have had no order, and removes the groups.
    pub(super) fn close(&mut self) {
        for cell in std::mem::take(&mut self.ready) {
            cell.kill();
            self.dismiss(cell);
        }
        self.groups = None;
    }
}
