//! What the server, the launcher and the cells say to each other: one message a packet, descriptors beside it.

use std::{
    ffi::OsString,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    fs::{MemfdFlags, SealFlags},
    io::{Errno, Result},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, SocketFlags, SocketType,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Enforced, Exit, Failure, Job, Limit};

/// What fits into a packet. Orders, which can be longer, go into a file of their own.
const PACKET_BYTES: usize = 4096;

/// How many descriptors a packet can carry: as many as the kernel allows.
const PACKET_DESCRIPTORS: usize = 253;

/// Server to launcher, on the control socket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The first message.
    Configure(Configuration),
    /// With [`Order`] in a file, the job's socket, its three streams, the script for an interpreter, and the sources of
    /// its mounts.
    Run,
}

/// How the launcher works.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Configuration {
    /// As root: the first of the users of the host that jobs run as.
    pub(crate) host_id: u32,
    /// How many cells wait for orders.
    pub(crate) ready_cells: usize,
    /// Whether jobs may run where the kernel has no Landlock.
    pub(crate) without_landlock: bool,
    /// The control group, version 2, in which groups may be made; found where it is not given.
    pub(crate) group: Option<OsString>,
}

/// What a cell is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) job: Job,
    pub(crate) act: Act,
    pub(crate) clock: Clock,
    pub(crate) script: bool,
}

impl Order {
    /// How many streams go with it: the standard ones, and the script.
    pub(crate) fn streams(&self) -> usize {
        3 + usize::from(self.script)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Act {
    Program,
    /// Instead of a program: try to get out, and tell what came of it.
    Canary(crate::canary::Bait),
}

/// When the time of a job begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Clock {
    Now,
    OnBegin,
}

/// Server to launcher, on the socket of a job. The end of the socket ends the job.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Its time begins, and this is how long it has. What was made from then on, by the clock of files, is its own.
    Begin {
        wall: Duration,
        since: Duration,
    },
    Kill,
}

/// To the server, on the socket of a job.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// With the socket on which the server can accept connections of the job.
    Listening,
    Failed(Failure),
    Ended(Ending),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Ending {
    pub(crate) exit: Exit,
    pub(crate) limit_hit: Option<Limit>,
    pub(crate) cpu: Duration,
    pub(crate) enforced_by: Enforced,
}

/// Launcher to cell.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToCell {
    /// The cell has its user, and can build. With the doors of the control group that it is to enter.
    Build,
    /// With the [`Order`], the socket of the job, the streams, the script, and what is to be mounted: as root clones of
    /// the sources, else the sources themselves.
    Run { watch: Watched, enforced_by: Enforced },
    /// The job has its script; what was made from then on, by the clock of files, is its own.
    Begin { since: Duration },
}

/// What nobody but PID 1 can see to.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Watched {
    pub(crate) memory: bool,
    pub(crate) processes: bool,
}

/// PID 1 to the process that is to become the program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToProgram {
    /// With the [`Order`] and the streams.
    Go,
}

/// Cell to launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromCell {
    /// What the job needs is in place: no other cell can have it from now on.
    Begun,
    Failed(Failure),
    /// No process but PID 1 is left.
    Ended {
        exit: Exit,
        limit_hit: Option<Limit>,
        cpu: Duration,
    },
}

/// Makes two ends of a channel that keeps packets apart.
pub(crate) fn pair(flags: SocketFlags) -> Result<(OwnedFd, OwnedFd)> {
    let flags = flags | SocketFlags::CLOEXEC;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

pub(crate) fn send(socket: impl AsFd, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
    let bytes = postcard::to_allocvec(message).map_err(|_| Errno::MSGSIZE)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PACKET_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    let sent = rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(&socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)
    })?;
    if sent == bytes.len() { Ok(()) } else { Err(Errno::MSGSIZE) }
}

/// Receives a message; `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> Result<Option<(T, Vec<OwnedFd>)>> {
    let mut packet = [0; PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PACKET_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let mut buffers = [IoSliceMut::new(&mut packet)];
        match rustix::net::recvmsg(&socket, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => break message.bytes,
            // The other end was closed with something in it that was not read, which is told once. What was said before
            // is still there.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(errno) => return Err(errno),
        }
    };
    if length == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let message = postcard::from_bytes(&packet[..length]).map_err(|_| Errno::BADMSG)?;
    Ok(Some((message, descriptors)))
}

/// Writes a message of any length into a file that nobody can change any more.
pub(crate) fn seal(message: &impl Serialize) -> Result<OwnedFd> {
    let bytes = postcard::to_allocvec(message).map_err(|_| Errno::MSGSIZE)?;
    let file = rustix::fs::memfd_create(c"toolrest-order", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut written = 0;
    while written < bytes.len() {
        written += rustix::io::pwrite(&file, &bytes[written..], written as u64)?;
    }
    let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// Reads what [`seal`] wrote.
pub(crate) fn unseal<T: DeserializeOwned>(file: impl AsFd) -> Result<T> {
    let size = rustix::fs::fstat(&file)?.st_size;
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| Errno::FBIG)?];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::pread(&file, &mut bytes[filled..], filled as u64)? {
            0 => return Err(Errno::BADMSG),
            count => filled += count,
        }
    }
    postcard::from_bytes(&bytes).map_err(|_| Errno::BADMSG)
}
