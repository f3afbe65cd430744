//! The pipes between the server and a job.

use std::{io, os::fd::OwnedFd};

use rustix::{io::Errno, pipe::PipeFlags};
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe::{Receiver, Sender},
};

use crate::Result;

/// What is surely taken by a pipe at once.
const PIPE_BYTES: usize = 4096;

/// The standard input of a job. Dropping it ends the input.
#[derive(Debug)]
pub struct Input(pub(super) Sender);

impl Input {
    /// Waits until the job has room for all of it.
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
    /// Makes the streams, and gives the ends that belong to the job.
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

/// Waits until a pipe can be read from; for ever where there is none.
pub(super) async fn readable(pipe: Option<&Receiver>) {
    let Some(pipe) = pipe else { return std::future::pending().await };
    // A failure shows again when the pipe is read from.
    let _ = pipe.readable().await;
}

/// Writes all bytes and closes the pipe: at once if they surely fit, else while the job reads.
pub(super) fn pour(pipe: Option<Sender>, bytes: Vec<u8>) -> Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    if bytes.len() <= PIPE_BYTES {
        // Past tokio, which does not know yet that a new pipe can be written to.
        match rustix::io::write(&pipe, &bytes) {
            // With nobody left to read, the job is gone and needs no input.
            Ok(_) | Err(Errno::PIPE) => return Ok(()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    tokio::spawn(async move {
        // A job that stops reading has what it wanted.
        let _ = pipe.write_all(&bytes).await;
    });
    Ok(())
}
