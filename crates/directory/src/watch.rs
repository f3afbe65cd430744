//! Watches changes beneath the root, by any process.

mod batch;
mod tree;

use std::{
    os::fd::OwnedFd,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
    pipe::PipeFlags,
};

use crate::{ErrorKind, Result, Root, error::PathContext};
use batch::Batch;
use tree::Tree;

/// Events within this interval are reported together.
const QUIET_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum delay of an event.
const MAX_DELAY: Duration = Duration::from_millis(200);

const TOO_MANY_FOLDERS: ErrorKind =
    ErrorKind::Unsupported("it has more folders than may be watched; the limit is fs.inotify.max_user_watches");

/// A change beneath the root. Paths are relative to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Created(PathBuf),
    Changed(PathBuf),
    Removed(PathBuf),
    Moved {
        from: PathBuf,
        to: PathBuf,
    },
    /// Events were lost. Anything may have changed.
    Unknown,
}

/// A watch. It ends when dropped.
#[derive(Debug)]
pub struct Watch {
    /// One end of a pipe that is never written to. Closing it ends the thread.
    _end: OwnedFd,
}

impl Root {
    /// Passes changes beneath the root to `sink`, from now on, on a separate thread.
    ///
    /// The open folder and its subfolders are watched, without following links, even if they are moved. Events are in
    /// order. Several changes of one file within a short time are merged; a file that was removed and created again is
    /// reported as changed. Temporary files of commits and the contents of `.git` are left out.
    pub fn watch(&self, sink: impl FnMut(Vec<Event>) + Send + 'static) -> Result<Watch> {
        let mut tree = Tree::new(self.descriptor()).at(self.real_path())?;
        tree.watch_all().map_err(|errno| match errno {
            Errno::NOSPC => TOO_MANY_FOLDERS.at(self.real_path()),
            errno => ErrorKind::from(errno).at(self.real_path()),
        })?;
        let (ended, end) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).at(self.real_path())?;
        let builder = thread::Builder::new().name("directory-watch".to_owned());
        let spawned = builder.spawn(move || report(tree, &ended, sink));
        spawned.map_err(|error| ErrorKind::Io(error).at(self.real_path()))?;
        Ok(Watch { _end: end })
    }
}

/// Why a wait has ended.
enum Next {
    Events,
    Pause,
    End,
}

fn report(mut tree: Tree, ended: &OwnedFd, mut sink: impl FnMut(Vec<Event>)) {
    while matches!(wait(&tree, ended, None), Next::Events) {
        let mut batch = Batch::default();
        let first = Instant::now();
        loop {
            tree.read(&mut batch);
            let left = MAX_DELAY.saturating_sub(first.elapsed());
            match wait(&tree, ended, Some(QUIET_INTERVAL.min(left))) {
                Next::Events if !left.is_zero() => {}
                Next::Events | Next::Pause => break,
                Next::End => return,
            }
        }
        tree.unwatch_moved_away();
        let events = batch.into_events();
        if !events.is_empty() {
            sink(events);
        }
    }
}

/// Waits for events, up to a maximum time.
fn wait(tree: &Tree, ended: &OwnedFd, timeout: Option<Duration>) -> Next {
    let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
    let mut polled = [PollFd::new(tree.inotify(), PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
    match rustix::event::poll(&mut polled, timeout.as_ref()) {
        Ok(_) if !polled[1].revents().is_empty() => Next::End,
        Ok(0) => Next::Pause,
        Ok(_) | Err(Errno::INTR) => Next::Events,
        Err(_) => Next::End,
    }
}
