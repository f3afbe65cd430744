//! Walking through a folder and all that is below it, on several threads.
//!
//! Folders that are still to be read and files that are still to be visited wait in the order of their paths, and the
//! first of them is always taken first. So a visitor that has enough can end a walk early and still know that nothing
//! before it was missed, and little waits at any time. Nothing is held open for what waits: a folder is opened anew by
//! its path below the top, in which nothing may be a symbolic link.

mod describe;
mod files;
mod folder;
mod queue;
pub(crate) mod rules;

pub use files::{Files, Paths};
pub use rules::{IgnoreRules, Verdict};

use std::{
    ops::{AddAssign, Range},
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
    thread,
};

use rustix::{
    fs::{OFlags, ResolveFlags},
    io::Errno,
};

use crate::{Result, Root, error::At, sys};
use files::{Names, Open};
use folder::Scratch;
use queue::Queue;
use rules::Rules;

/// Decides where a walk goes, and looks at what it finds. All threads of a walk share it.
///
/// The paths that it is told of begin with what the top is shown as, then a slash.
pub trait Visitor: Sync {
    /// What one thread keeps from one visit to the next.
    type Thread: Default + Send;

    /// Whether a folder is looked into.
    fn enters(&self, folder: &str) -> bool;

    /// Learns of a folder that is looked into, and that no rule leaves out. Its path ends with a slash.
    fn reads(&self, _folder: &str) {}

    /// Whether a file is visited.
    fn accepts(&self, file: &str) -> bool;

    /// Whether nothing at this path or after it is wanted any more. Once it is so, it stays so.
    fn is_over(&self, _path: &str) -> bool {
        false
    }

    /// Looks at some files of a folder, between the first and last of which nothing else is visited.
    fn visit(&self, files: &mut Files<'_>, thread: &mut Self::Thread);

    /// Learns what of a folder is not visited, if there is such. The folder's path ends with a slash.
    fn passed_over(&self, _folder: &str, _passed_over: PassedOver, _thread: &mut Self::Thread) {}
}

/// How to walk.
#[derive(Debug, Clone, Copy)]
pub struct WalkOptions<'a> {
    /// What the path of the top is to be called, without a slash at the end.
    pub shown_as: &'a str,
    /// 1 looks only at what is directly in the folder.
    pub depth: usize,
    pub rules: Heed,
    /// How many files are visited at a time, at most.
    pub files_at_a_time: usize,
    /// What has a longer path is passed over.
    pub longest_path_bytes: usize,
    pub threads: usize,
}

/// Whether the rules of `.gitignore` and `.git/info/exclude` are heeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heed {
    Rules,
    Nothing,
}

/// How much in a folder is not visited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// Files and folders that rules leave out.
    pub ignored: u64,
    /// Names that are not UTF-8 or hold control characters, and paths that are too long.
    pub unnamed: u64,
    /// Folders, and files of rules, that cannot be read.
    pub unreadable: u64,
}

impl AddAssign for PassedOver {
    fn add_assign(&mut self, more: Self) {
        self.ignored += more.ignored;
        self.unnamed += more.unnamed;
        self.unreadable += more.unreadable;
    }
}

impl Root {
    /// Walks through a folder. Symbolic links are not followed, but for the folder's own path.
    ///
    /// Only the folder itself has to be readable. Gives what each thread has kept.
    pub fn walk<V: Visitor>(&self, folder: &Path, options: WalkOptions<'_>, visitor: &V) -> Result<Vec<V::Thread>> {
        let top = self.open_path(folder, OFlags::PATH | OFlags::DIRECTORY)?;
        let rules = match options.rules {
            Heed::Rules => Rules::above(self, &self.real_path_of(&top, folder)?, options.shown_as),
            Heed::Nothing => None,
        };
        let walk = Walk { top, options, visitor, queue: Queue::default() };
        let mut worker = Worker::new(&walk);
        worker.read_folder(&PendingDir { path: format!("{}/", options.shown_as), depth: 1, rules }).at(folder)?;
        walk.queue.add(&mut worker.found);
        // A small folder is not worth a second thread.
        while walk.queue.is_short() && worker.take_one() {}
        let others = if walk.queue.is_short() { 0 } else { options.threads.saturating_sub(1) };
        let kept = thread::scope(|scope| {
            let others: Vec<_> = (0..others).map(|_| scope.spawn(|| Worker::new(&walk).run())).collect();
            let mut kept = vec![worker.run()];
            for other in others {
                match other.join() {
                    Ok(thread) => kept.push(thread),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            kept
        });
        Ok(kept)
    }
}

/// A walk under way.
struct Walk<'a, V> {
    top: OwnedFd,
    options: WalkOptions<'a>,
    visitor: &'a V,
    queue: Queue<Task>,
}

/// What waits to be done.
enum Task {
    Read(PendingDir),
    Visit(Arc<Names>, Range<usize>),
}

/// A folder that is to be read.
struct PendingDir {
    /// As it is shown, with a slash at the end.
    path: String,
    depth: usize,
    /// The rules from above.
    rules: Option<Arc<Rules>>,
}

impl<V> Walk<'_, V> {
    /// Opens a folder by its path as it is shown: it was seen to be a folder a moment ago.
    fn open_folder(&self, path: &str, access: OFlags) -> rustix::io::Result<OwnedFd> {
        let below = path[self.options.shown_as.len() + 1..].trim_end_matches('/');
        let below = if below.is_empty() { "." } else { below };
        sys::open_beneath(&self.top, Path::new(below), access | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS)
    }
}

/// One thread of a walk.
struct Worker<'a, V: Visitor> {
    walk: &'a Walk<'a, V>,
    kept: V::Thread,
    scratch: Scratch,
    /// The folder that was worked on last.
    open: Option<Open>,
    /// What was found and does not wait yet.
    found: Vec<(String, Task)>,
}

impl<'a, V: Visitor> Worker<'a, V> {
    fn new(walk: &'a Walk<'a, V>) -> Self {
        Self { walk, kept: V::Thread::default(), scratch: Scratch::default(), open: None, found: Vec::new() }
    }

    fn run(mut self) -> V::Thread {
        // Others would wait for ever for what this thread has begun.
        let _end = queue::EndOnPanic(&self.walk.queue);
        while self.take_one() {}
        self.kept
    }

    /// Does what is first. Tells whether there was something to do.
    fn take_one(&mut self) -> bool {
        let queue = &self.walk.queue;
        let Some((path, task)) = queue.take() else { return false };
        if self.walk.visitor.is_over(&path) {
            // All that waits comes later.
            queue.clear();
        } else {
            match task {
                Task::Visit(names, range) => {
                    let walk = self.walk;
                    let open_folder = |path: &str| walk.open_folder(path, OFlags::PATH);
                    let mut files = Files::new(&names, range, &mut self.open, &open_folder);
                    walk.visitor.visit(&mut files, &mut self.kept);
                }
                Task::Read(pending) => match self.read_folder(&pending) {
                    // Gone since its parent was read, or no folder any more.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(_) => {
                        let unreadable = PassedOver { unreadable: 1, ..PassedOver::default() };
                        self.walk.visitor.passed_over(&pending.path, unreadable, &mut self.kept);
                    }
                },
            }
        }
        queue.finish(&mut self.found);
        true
    }
}
