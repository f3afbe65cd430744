//! A running job.

mod streams;

use std::{
    io,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
};
use tokio::{
    io::unix::AsyncFd,
    net::{
        TcpListener,
        unix::pipe::{Receiver, Sender},
    },
};

use crate::{
    CapturedOutput, Error, Limit, Limits, Report, Result, Stdin,
    sandbox::Launcher,
    sys,
    wire::{self, Command, Event, JobEnd},
};

pub use streams::Input;
pub(crate) use streams::Streams;
use streams::{readable, write_and_close};

/// Read size.
const CHUNK_BYTES: usize = 64 << 10;

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub stream: Stream,
    pub bytes: Vec<u8>,
}

/// A running job. Dropping it ends the job.
#[derive(Debug)]
pub struct RunningJob {
    socket: AsyncFd<OwnedFd>,
    stdin: Option<Sender>,
    listener: Option<OwnedFd>,
    script: Option<Sender>,
    stdout: Output,
    stderr: Output,
    buffer: Vec<u8>,
    started: Instant,
    ending: Option<Result<(JobEnd, Duration)>>,
    printed_bytes: u64,
    output_limit: u64,
    output_exceeded: bool,
    refill: PoolRefill,
    _launcher: Arc<Launcher>,
}

#[derive(Debug)]
struct Output {
    pipe: Option<Receiver>,
    captured: CapturedOutput,
}

/// Starts the next idle interpreter of a pool when dropped.
#[derive(Default)]
pub struct PoolRefill(Option<Box<dyn FnOnce() + Send + Sync>>);

impl std::fmt::Debug for PoolRefill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PoolRefill").field(&self.0.is_some()).finish()
    }
}

impl Drop for PoolRefill {
    fn drop(&mut self) {
        if let Some(refill) = self.0.take() {
            refill();
        }
    }
}

/// What became ready first.
enum Ready {
    Output(Stream),
    Message,
}

impl RunningJob {
    pub(crate) fn new(socket: OwnedFd, streams: Streams, limits: &Limits, launcher: Arc<Launcher>) -> Result<Self> {
        let output = |pipe| {
            Ok::<_, io::Error>(Output {
                pipe: Some(Receiver::from_owned_fd(pipe)?),
                captured: CapturedOutput::new(limits.output_kept_bytes),
            })
        };
        Ok(Self {
            socket: sys::to_async_fd(socket)?,
            stdin: Some(Sender::from_owned_fd(streams.stdin)?),
            listener: None,
            script: streams.script.map(Sender::from_owned_fd).transpose()?,
            stdout: output(streams.stdout)?,
            stderr: output(streams.stderr)?,
            buffer: Vec::new(),
            started: Instant::now(),
            ending: None,
            printed_bytes: 0,
            output_limit: limits.output_bytes,
            output_exceeded: false,
            refill: PoolRefill::default(),
            _launcher: launcher,
        })
    }

    /// Sets up the standard input of the program.
    pub(crate) fn provide_stdin(&mut self, stdin: Stdin) -> Result<()> {
        match stdin {
            Stdin::Open => {}
            Stdin::Empty => self.stdin = None,
            Stdin::Bytes(bytes) => write_and_close(self.stdin.take(), bytes)?,
        }
        Ok(())
    }

    /// Sends the script to an idle interpreter and starts its clock.
    pub(crate) fn send_script(&mut self, limits: &Limits, script: Vec<u8>, stdin: Stdin) -> Result<()> {
        self.started = Instant::now();
        self.output_limit = limits.output_bytes;
        for output in [&mut self.stdout, &mut self.stderr] {
            output.captured = CapturedOutput::new(limits.output_kept_bytes);
        }
        let begin = Command::Begin { wall: limits.wall, since: sys::file_clock_now() };
        self.provide_stdin(stdin)?;
        // The script is sent first, because the caller waits for its result.
        write_and_close(self.script.take(), script)?;
        match wire::send(self.socket.get_ref(), &begin, &[]) {
            // The job has ended already. Its result is still to be received.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(crate) fn is_over(&mut self) -> bool {
        if self.ending.is_none() && is_readable(self.socket.get_ref()) {
            self.receive_event();
        }
        self.ending.is_some()
    }

    /// Sets the action that refills the pool when the job has ended.
    pub(crate) fn set_refill(&mut self, refill: impl FnOnce() + Send + Sync + 'static) {
        self.refill = PoolRefill(Some(Box::new(refill)));
    }

    /// Takes the action that refills the pool, so that the caller can delay it. Starting the next interpreter would
    /// otherwise compete with work that is left to do for the same call.
    pub fn take_refill(&mut self) -> PoolRefill {
        std::mem::take(&mut self.refill)
    }

    /// Takes the standard input of a job that was started with [`Stdin::Open`].
    pub fn take_input(&mut self) -> Option<Input> {
        self.stdin.take().map(Input)
    }

    /// Returns the listening socket in the network of a job with [`Network::Listener`](crate::Network::Listener). It
    /// can be taken once.
    pub async fn listener(&mut self) -> Result<TcpListener> {
        while self.listener.is_none() && self.ending.is_none() {
            wait_for_message(&self.socket).await;
            self.receive_event();
        }
        let listener = self.listener.take().ok_or(Error::Invalid("the job has ended, or has no listener"))?;
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        Ok(TcpListener::from_std(listener)?)
    }

    /// Kills the job with all its processes.
    pub fn kill(&self) {
        // Sending fails only if the launcher has died, and the job with it.
        let _ = wire::send(self.socket.get_ref(), &Command::Kill, &[]);
    }

    /// Returns the next output, or `None` once the job has ended. Output is read only while this is awaited.
    pub async fn next(&mut self) -> Option<Chunk> {
        let stream = self.read_next().await?;
        Some(Chunk { stream, bytes: self.buffer.clone() })
    }

    /// Waits for the end of the job and returns its report, with the output up to its limits.
    pub async fn wait(mut self) -> Result<Report> {
        while self.read_next().await.is_some() {}
        let (ending, duration) = self.ending.take().unwrap_or(Err(Error::LauncherGone))?;
        let limit_hit = if self.output_exceeded { Some(Limit::Output) } else { ending.limit_hit };
        Ok(Report {
            exit: ending.exit,
            duration,
            cpu: ending.cpu,
            limit_hit,
            enforced_by: ending.enforced_by,
            stdout: std::mem::take(&mut self.stdout.captured).finish(),
            stderr: std::mem::take(&mut self.stderr.captured).finish(),
        })
    }

    /// Reads the next piece of output into the buffer.
    async fn read_next(&mut self) -> Option<Stream> {
        loop {
            if self.stdout.pipe.is_none() && self.stderr.pipe.is_none() && self.ending.is_some() {
                return None;
            }
            let ready = tokio::select! {
                () = readable(self.stdout.pipe.as_ref()) => Ready::Output(Stream::Stdout),
                () = readable(self.stderr.pipe.as_ref()) => Ready::Output(Stream::Stderr),
                () = wait_for_message(&self.socket), if self.ending.is_none() => Ready::Message,
            };
            match ready {
                Ready::Message => self.receive_event(),
                Ready::Output(stream) if self.read(stream) => return Some(stream),
                Ready::Output(_) => {}
            }
        }
    }

    /// Reads available output. Returns false if there was none.
    fn read(&mut self, stream: Stream) -> bool {
        let output = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let Some(pipe) = &output.pipe else { return false };
        self.buffer.clear();
        self.buffer.reserve(CHUNK_BYTES);
        match pipe.try_read_buf(&mut self.buffer) {
            Ok(0) => output.pipe = None,
            Ok(count) => {
                output.captured.push(&self.buffer);
                self.printed_bytes += count as u64;
                if self.printed_bytes > self.output_limit {
                    self.output_exceeded = true;
                    self.kill();
                    // Output that arrives after the kill is dropped.
                    (self.stdout.pipe, self.stderr.pipe) = (None, None);
                }
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => output.pipe = None,
        }
        false
    }

    fn receive_event(&mut self) {
        self.ending = match wire::receive::<Event>(self.socket.get_ref()) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok(Some((Event::Listening, descriptors))) => {
                self.listener = descriptors.into_iter().next();
                return;
            }
            Ok(Some((Event::Ended(ending), _))) => Some(Ok((ending, self.started.elapsed()))),
            Ok(Some((Event::Failed(failure), _))) => Some(Err(failure.into())),
            Ok(None) | Err(_) => Some(Err(Error::LauncherGone)),
        };
    }
}

/// Waits for a message from the launcher.
async fn wait_for_message(socket: &AsyncFd<OwnedFd>) {
    if let Ok(mut guard) = socket.readable().await
        && !is_readable(socket.get_ref())
    {
        guard.clear_ready();
    }
}

fn is_readable(socket: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&Timespec::default())) != Ok(0)
}

#[cfg(test)]
#[path = "running_tests.rs"]
mod running_tests;
