//! Messages between the server, the launcher and the cells (the isolated processes that run one job each). Each packet
//! carries one message and its descriptors.

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

use crate::{Exit, Failure, Job, Limit, LimitEnforcers};

/// Maximum packet size. Job requests can be longer and are passed in a file.
const PACKET_BYTES: usize = 4096;

/// Maximum number of descriptors per packet (a kernel limit).
const PACKET_DESCRIPTORS: usize = 253;

/// Messages from the server to the launcher, on the control socket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Always the first message.
    Configure(Configuration),
    /// Starts a job. Descriptors: the file with the [`JobRequest`], the job's socket, its streams (and script), and the
    /// sources of its mounts.
    Run,
}

/// Configuration of the launcher.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Configuration {
    /// The first host ID (user and group) for jobs; used only if the server runs as root.
    pub(crate) host_id: u32,
    /// Number of cells that are created ahead of requests.
    pub(crate) ready_cells: usize,
    /// Whether jobs may run without Landlock if the kernel lacks it.
    pub(crate) without_landlock: bool,
    /// The control group (version 2) to create groups in. Detected if not given.
    pub(crate) group: Option<OsString>,
}

/// A request to run a job in a cell.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JobRequest {
    pub(crate) job: Job,
    pub(crate) payload: Payload,
    pub(crate) clock: ClockStart,
    /// Whether the descriptors include that of a script.
    pub(crate) script: bool,
}

impl JobRequest {
    /// Returns the number of stream descriptors: the standard streams, and the script.
    pub(crate) fn streams(&self) -> usize {
        3 + usize::from(self.script)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Payload {
    Program,
    /// Runs the canary instead of a program.
    Canary(crate::canary::CanaryTargets),
}

/// When the wall-time limit of a job starts to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClockStart {
    Immediately,
    OnScript,
}

/// Messages from the server to the launcher, on the socket of a job. Closing the socket ends the job.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Starts the wall-time limit of an interpreter that was started in advance. Files created since `since`, a time of
    /// `sys::file_clock_now`, count towards the job's limits.
    Begin {
        wall: Duration,
        since: Duration,
    },
    Kill,
}

/// Messages to the server, on the socket of a job.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// Carries the socket on which the server accepts connections of the job.
    Listening,
    Failed(Failure),
    Ended(JobEnd),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct JobEnd {
    pub(crate) exit: Exit,
    pub(crate) limit_hit: Option<Limit>,
    pub(crate) cpu: Duration,
    pub(crate) enforced_by: LimitEnforcers,
}

/// Messages from the launcher to a cell.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToCell {
    /// The user mapping is set; the cell can build its file system. Carries the `cgroup.procs` files of its control
    /// group.
    Build,
    /// Runs a job. Descriptors: the file with the [`JobRequest`], the socket of the job, its streams, and its mounts.
    /// For root the mounts are clones of the sources, otherwise the sources themselves.
    Run { duties: WatchdogDuties, enforced_by: LimitEnforcers },
    /// The script has arrived. Files created since `since`, a time of `sys::file_clock_now`, count towards the job's
    /// limits.
    Begin { since: Duration },
}

/// The limits that only the watchdog enforces.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WatchdogDuties {
    pub(crate) memory: bool,
    pub(crate) processes: bool,
}

/// Messages from PID 1 to the prepared process that becomes the program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToProgram {
    /// Carries the file with the [`JobRequest`] and the streams.
    Go,
}

/// Messages from a cell to the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromCell {
    /// The mounts are complete. From now on the job cannot be retried in another cell.
    Started,
    Failed(Failure),
    /// The program has ended, and all its processes are gone.
    Ended {
        exit: Exit,
        limit_hit: Option<Limit>,
        cpu: Duration,
    },
}

/// Creates a socket pair that preserves packet boundaries.
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

/// Receives a message. Returns `None` if the other end is closed.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> Result<Option<(T, Vec<OwnedFd>)>> {
    let mut packet = [0; PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PACKET_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let mut buffers = [IoSliceMut::new(&mut packet)];
        match rustix::net::recvmsg(&socket, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => break message.bytes,
            // ECONNRESET: the other end was closed with unread data. It is reported once, and earlier messages are
            // still readable.
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

/// Writes a message of any length into a sealed, immutable file.
pub(crate) fn seal(message: &impl Serialize) -> Result<OwnedFd> {
    let bytes = postcard::to_allocvec(message).map_err(|_| Errno::MSGSIZE)?;
    let file = rustix::fs::memfd_create(c"toolrest-request", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut written = 0;
    while written < bytes.len() {
        written += rustix::io::pwrite(&file, &bytes[written..], written as u64)?;
    }
    let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// Reads a message that [`seal`] wrote.
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
