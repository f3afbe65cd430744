//! A job while it runs.

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
    Captured, Error, Limit, Limits, Report, Result, Stdin,
    sandbox::Launcher,
    sys,
    wire::{self, Command, Ending, Event},
};

pub use streams::Input;
pub(crate) use streams::Streams;
use streams::{pour, readable};

/// How much is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Which stream something was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Something that was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub stream: Stream,
    pub bytes: Vec<u8>,
}

/// A job while it runs. Dropping it ends the job.
#[derive(Debug)]
pub struct Running {
    socket: AsyncFd<OwnedFd>,
    stdin: Option<Sender>,
    listener: Option<OwnedFd>,
    script: Option<Sender>,
    stdout: Output,
    stderr: Output,
    buffer: Vec<u8>,
    started: Instant,
    ending: Option<Result<(Ending, Duration)>>,
    printed_bytes: u64,
    output_limit: u64,
    output_exceeded: bool,
    after: After,
    _launcher: Arc<Launcher>,
}

#[derive(Debug)]
struct Output {
    pipe: Option<Receiver>,
    captured: Captured,
}

/// Done once the job is over, or nobody cares for it any more; or later, by who takes it.
#[derive(Default)]
pub struct After(Option<Box<dyn FnOnce() + Send + Sync>>);

impl std::fmt::Debug for After {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("After").field(&self.0.is_some()).finish()
    }
}

impl Drop for After {
    fn drop(&mut self) {
        if let Some(after) = self.0.take() {
            after();
        }
    }
}

/// What happened first.
enum Happened {
    Printed(Stream),
    Told,
}

impl Running {
    pub(crate) fn new(socket: OwnedFd, streams: Streams, limits: &Limits, launcher: Arc<Launcher>) -> Result<Self> {
        let output = |pipe| {
            Ok::<_, io::Error>(Output {
                pipe: Some(Receiver::from_owned_fd(pipe)?),
                captured: Captured::new(limits.output_kept_bytes),
            })
        };
        Ok(Self {
            socket: sys::wait_for(socket)?,
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
            after: After::default(),
            _launcher: launcher,
        })
    }

    /// Gives the program what it is to read.
    pub(crate) fn feed(&mut self, stdin: Stdin) -> Result<()> {
        match stdin {
            Stdin::Open => {}
            Stdin::Empty => self.stdin = None,
            Stdin::Bytes(bytes) => pour(self.stdin.take(), bytes)?,
        }
        Ok(())
    }

    /// Begins the time of a job that has waited for its script.
    pub(crate) fn begin(&mut self, limits: &Limits, script: Vec<u8>, stdin: Stdin) -> Result<()> {
        self.started = Instant::now();
        self.output_limit = limits.output_bytes;
        for output in [&mut self.stdout, &mut self.stderr] {
            output.captured = Captured::new(limits.output_kept_bytes);
        }
        let begin = Command::Begin { wall: limits.wall, since: sys::time_of_files() };
        self.feed(stdin)?;
        // First what the caller waits for.
        pour(self.script.take(), script)?;
        match wire::send(self.socket.get_ref(), &begin, &[]) {
            // It is over already; how it ended is still to be read.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether the job has ended.
    pub(crate) fn is_over(&mut self) -> bool {
        if self.ending.is_none() && is_readable(self.socket.get_ref()) {
            self.hear();
        }
        self.ending.is_some()
    }

    /// Has something done once the job is over.
    pub(crate) fn afterwards(&mut self, deed: impl FnOnce() + Send + Sync + 'static) {
        self.after = After(Some(Box::new(deed)));
    }

    /// What is done once this is dropped, instead of at the end of the job: another interpreter is made to wait, which
    /// whoever still works for the same caller would rather not compete with.
    pub fn take_after(&mut self) -> After {
        std::mem::take(&mut self.after)
    }

    /// The standard input, for a job that was given [`Stdin::Open`].
    pub fn take_input(&mut self) -> Option<Input> {
        self.stdin.take().map(Input)
    }

    /// The socket that listens in the network of the job, for one with [`Network::Listener`](crate::Network::Listener);
    /// given once.
    pub async fn listener(&mut self) -> Result<TcpListener> {
        while self.listener.is_none() && self.ending.is_none() {
            told(&self.socket).await;
            self.hear();
        }
        let listener = self.listener.take().ok_or(Error::Invalid("the job has ended, or listens to nobody"))?;
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        Ok(TcpListener::from_std(listener)?)
    }

    /// Ends the job and everything it has started.
    pub fn kill(&self) {
        // It fails only where the launcher is gone, and the job with it.
        let _ = wire::send(self.socket.get_ref(), &Command::Kill, &[]);
    }

    /// What the job has printed next; `None` once it has ended. Nothing more is read while nobody asks.
    pub async fn next(&mut self) -> Option<Chunk> {
        let stream = self.advance().await?;
        Some(Chunk { stream, bytes: self.buffer.clone() })
    }

    /// Waits for the end. What the job prints is read, and kept as far as the limits say.
    pub async fn wait(mut self) -> Result<Report> {
        while self.advance().await.is_some() {}
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

    /// Reads the next piece into the buffer.
    async fn advance(&mut self) -> Option<Stream> {
        loop {
            if self.stdout.pipe.is_none() && self.stderr.pipe.is_none() && self.ending.is_some() {
                return None;
            }
            let happened = tokio::select! {
                () = readable(self.stdout.pipe.as_ref()) => Happened::Printed(Stream::Stdout),
                () = readable(self.stderr.pipe.as_ref()) => Happened::Printed(Stream::Stderr),
                () = told(&self.socket), if self.ending.is_none() => Happened::Told,
            };
            match happened {
                Happened::Told => self.hear(),
                Happened::Printed(stream) if self.read(stream) => return Some(stream),
                Happened::Printed(_) => {}
            }
        }
    }

    /// Reads what is there; false where there is nothing after all.
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
                    // What comes until it is dead is of no use to anybody.
                    (self.stdout.pipe, self.stderr.pipe) = (None, None);
                }
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => output.pipe = None,
        }
        false
    }

    fn hear(&mut self) {
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

/// Waits until the launcher has said something.
async fn told(socket: &AsyncFd<OwnedFd>) {
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
