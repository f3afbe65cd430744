//! Changes that anybody makes beneath the root, told as they happen.

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

use crate::{ErrorKind, Result, Root, error::At};
use batch::Batch;
use tree::Tree;

/// Events that come closer together than this are told together.
const QUIET: Duration = Duration::from_millis(20);
/// Nobody waits longer than this for the first of them.
const LONGEST_DELAY: Duration = Duration::from_millis(200);

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
    /// Events were lost: anything may have changed.
    Unknown,
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watch {
    /// One end of a pipe through which nothing is ever sent: its closing ends the thread.
    _end: OwnedFd,
}

impl Root {
    /// Tells `sink` of the changes beneath the root, from now on, on a thread of its own.
    ///
    /// The folder that is held open is watched, and what lies in it without following any link, wherever their paths
    /// lead by now. Events are in the order in which they happened. Several changes of one file that come close together
    /// are told as one; a file that was removed and made again has changed. The temporary files of commits, and what git
    /// keeps in `.git`, are left out.
    pub fn watch(&self, sink: impl FnMut(Vec<Event>) + Send + 'static) -> Result<Watch> {
        let mut tree = Tree::new(self.descriptor()).at(self.real_path())?;
        tree.watch_all().map_err(|errno| match errno {
            Errno::NOSPC => TOO_MANY_FOLDERS.at(self.real_path()),
            errno => ErrorKind::from(errno).at(self.real_path()),
        })?;
        let (ended, end) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).at(self.real_path())?;
        let teller = thread::Builder::new().name("directory-watch".to_owned());
        let teller = teller.spawn(move || report(tree, &ended, sink));
        teller.map_err(|error| ErrorKind::Io(error).at(self.real_path()))?;
        Ok(Watch { _end: end })
    }
}

/// What a thread that waits for events goes on with.
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
            let left = LONGEST_DELAY.saturating_sub(first.elapsed());
            match wait(&tree, ended, Some(QUIET.min(left))) {
                Next::Events if !left.is_zero() => {}
                Next::Events | Next::Pause => break,
                Next::End => return,
            }
        }
        tree.forget_moved_away();
        let events = batch.into_events();
        if !events.is_empty() {
            sink(events);
        }
    }
}

/// Waits for events, at most for a time.
fn wait(tree: &Tree, ended: &OwnedFd, at_most: Option<Duration>) -> Next {
    let at_most = at_most.and_then(|time| Timespec::try_from(time).ok());
    let mut polled = [PollFd::new(tree.inotify(), PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
    match rustix::event::poll(&mut polled, at_most.as_ref()) {
        Ok(_) if !polled[1].revents().is_empty() => Next::End,
        Ok(0) => Next::Pause,
        Ok(_) | Err(Errno::INTR) => Next::Events,
        Err(_) => Next::End,
    }
}
