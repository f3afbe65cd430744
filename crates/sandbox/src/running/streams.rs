//! The pipes between the server and a job.

use std::{io, os::fd::OwnedFd};

use rustix::{io::Errno, pipe::PipeFlags};
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe::{Receiver, Sender},
};

use crate::Result;

/// Pipe writes up to this size never block on an empty pipe.
const PIPE_BYTES: usize = 4096;

/// The standard input of a job. Dropping it closes the input.
#[derive(Debug)]
pub struct Input(pub(super) Sender);

impl Input {
    /// Writes all bytes, waiting while the pipe is full.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }
}

/// The server's ends of the streams of a job.
pub(crate) struct Streams {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) script: Option<OwnedFd>,
}

impl Streams {
    /// Creates the pipes, and returns the job's ends as well.
    pub(crate) fn open(script: bool) -> Result<(Self, Vec<OwnedFd>)> {
        let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
        let ((in_reads, stdin), (stdout, out_writes), (stderr, err_writes)) = (pipe()?, pipe()?, pipe()?);
        let mut theirs = vec![in_reads, out_writes, err_writes];
        let mut ours = Self { stdin, stdout, stderr, script: None };
        if script {
            let (reads, writes) = pipe()?;
            theirs.push(reads);
            ours.script = Some(writes);
        }
        Ok((ours, theirs))
    }
}

/// Waits until a pipe is readable. Never returns if there is no pipe.
pub(super) async fn readable(pipe: Option<&Receiver>) {
    let Some(pipe) = pipe else { return std::future::pending().await };
    // The following read reports the error.
    let _ = pipe.readable().await;
}

/// Writes all bytes and closes the pipe. Small inputs are written directly, larger ones by a task.
pub(super) fn write_and_close(pipe: Option<Sender>, bytes: Vec<u8>) -> Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    if bytes.len() <= PIPE_BYTES {
        // Writes without tokio, which does not know yet that a new pipe is writable.
        match rustix::io::write(&pipe, &bytes) {
            // Nobody reads: the job has ended and needs no input.
            Ok(_) | Err(Errno::PIPE) => return Ok(()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    tokio::spawn(async move {
        // A job may stop reading early.
        let _ = pipe.write_all(&bytes).await;
    });
    Ok(())
}
