//! Walks a folder and its subfolders on several threads.
//!
//! Pending folders and files are kept in path order, and the first one is always processed first. So a visitor can end
//! the walk early and know that nothing before that point was missed, and few tasks are pending at a time. Pending
//! folders are not kept open: each is opened again by its path below the top, which must contain no symbolic links.

mod describe;
mod files;
mod folder;
mod queue;
pub(crate) mod rules;

pub use files::{Files, Paths};
pub use rules::{IgnoreRules, MAX_RULES, Verdict};

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

use crate::{Result, Root, error::PathContext, sys};
use files::{Names, OpenFolder};
use folder::ReadBuffers;
use queue::Queue;
use rules::Rules;

/// Decides what a walk visits, and processes it. All threads of a walk share it.
///
/// Paths begin with `shown_as` and a slash.
pub trait Visitor: Sync {
    /// State of one thread, kept between visits.
    type Thread: Default + Send;

    /// Whether to read a folder.
    fn enters(&self, folder: &str) -> bool;

    /// Called for each folder that is read. Its path ends with a slash.
    fn on_folder(&self, _folder: &str) {}

    /// Whether to visit a file.
    fn accepts(&self, file: &str) -> bool;

    /// Whether the walk can end at this path. Once true, it must stay true.
    fn is_over(&self, _path: &str) -> bool {
        false
    }

    /// Visits some files of a folder. Nothing between the first and the last of them is left out.
    fn visit(&self, files: &mut Files<'_>, thread: &mut Self::Thread);

    /// Called with what was skipped in a folder, if anything. The folder's path ends with a slash.
    fn skipped(&self, _folder: &str, _counts: SkipCounts, _thread: &mut Self::Thread) {}
}

/// Options of a walk.
#[derive(Debug, Clone, Copy)]
pub struct WalkOptions<'a> {
    /// The prefix of reported paths, without a slash at the end.
    pub shown_as: &'a str,
    /// 1 reads only the folder itself.
    pub depth: usize,
    pub rules: IgnoreMode,
    /// Maximum number of files per visit.
    pub max_files_per_visit: usize,
    /// Entries with longer paths are skipped.
    pub max_path_bytes: usize,
    pub threads: usize,
}

/// Whether the rules of `.gitignore` and `.git/info/exclude` apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreMode {
    Respect,
    Disregard,
}

/// Number of entries of a folder that were not visited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkipCounts {
    /// Files and folders that rules ignore.
    pub ignored: u64,
    /// Names that are not UTF-8 or contain control characters, and paths that are too long.
    pub unnamed: u64,
    /// Folders and rule files that cannot be read.
    pub unreadable: u64,
}

impl AddAssign for SkipCounts {
    fn add_assign(&mut self, more: Self) {
        self.ignored += more.ignored;
        self.unnamed += more.unnamed;
        self.unreadable += more.unreadable;
    }
}

impl Root {
    /// Walks a folder. Symbolic links are not followed, except in the given path.
    ///
    /// Only the folder itself must be readable. Returns the state of each thread.
    pub fn walk<V: Visitor>(&self, folder: &Path, options: WalkOptions<'_>, visitor: &V) -> Result<Vec<V::Thread>> {
        let top = self.open_path(folder, OFlags::PATH | OFlags::DIRECTORY)?;
        let rules = match options.rules {
            IgnoreMode::Respect => Rules::above(self, &self.real_path_of(&top, folder)?, options.shown_as),
            IgnoreMode::Disregard => None,
        };
        let walk = Walk { top, options, visitor, queue: Queue::default() };
        let mut worker = Worker::new(&walk);
        worker.read_folder(&PendingDir { path: format!("{}/", options.shown_as), depth: 1, rules }).at(folder)?;
        walk.queue.add(&mut worker.found);
        // A small folder needs no second thread.
        while walk.queue.is_short() && worker.run_next() {}
        let others = if walk.queue.is_short() { 0 } else { options.threads.saturating_sub(1) };
        let result = thread::scope(|scope| {
            let others: Vec<_> = (0..others).map(|_| scope.spawn(|| Worker::new(&walk).run())).collect();
            let mut result = vec![worker.run()];
            for other in others {
                match other.join() {
                    Ok(thread) => result.push(thread),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            result
        });
        Ok(result)
    }
}

/// The shared state of a walk.
struct Walk<'a, V> {
    top: OwnedFd,
    options: WalkOptions<'a>,
    visitor: &'a V,
    queue: Queue<Task>,
}

/// A pending task.
enum Task {
    Read(PendingDir),
    Visit(Arc<Names>, Range<usize>),
}

/// A folder to be read.
struct PendingDir {
    /// As reported, with a slash at the end.
    path: String,
    depth: usize,
    /// The rules of the folders above.
    rules: Option<Arc<Rules>>,
}

impl<V> Walk<'_, V> {
    /// Opens a folder by its reported path, without following links.
    fn open_folder(&self, path: &str, access: OFlags) -> rustix::io::Result<OwnedFd> {
        let below = path[self.options.shown_as.len() + 1..].trim_end_matches('/');
        let below = if below.is_empty() { "." } else { below };
        sys::open_beneath(&self.top, Path::new(below), access | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS)
    }
}

/// A thread of a walk.
struct Worker<'a, V: Visitor> {
    walk: &'a Walk<'a, V>,
    result: V::Thread,
    buffers: ReadBuffers,
    /// The folder that was used last.
    open: Option<OpenFolder>,
    /// New tasks, not yet in the queue.
    found: Vec<(String, Task)>,
}

impl<'a, V: Visitor> Worker<'a, V> {
    fn new(walk: &'a Walk<'a, V>) -> Self {
        Self { walk, result: V::Thread::default(), buffers: ReadBuffers::default(), open: None, found: Vec::new() }
    }

    fn run(mut self) -> V::Thread {
        // If this thread panics, the others must not wait for its tasks.
        let _end = queue::EndOnPanic(&self.walk.queue);
        while self.run_next() {}
        self.result
    }

    /// Runs the first task. Returns false if there are no more.
    fn run_next(&mut self) -> bool {
        let queue = &self.walk.queue;
        let Some((path, task)) = queue.take() else { return false };
        if self.walk.visitor.is_over(&path) {
            // All pending tasks are at later paths.
            queue.clear();
        } else {
            match task {
                Task::Visit(names, range) => {
                    let walk = self.walk;
                    let open_folder = |path: &str| walk.open_folder(path, OFlags::PATH);
                    let mut files = Files::new(&names, range, &mut self.open, &open_folder);
                    walk.visitor.visit(&mut files, &mut self.result);
                }
                Task::Read(pending) => match self.read_folder(&pending) {
                    // The folder was removed or replaced after its parent was read.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(_) => {
                        let unreadable = SkipCounts { unreadable: 1, ..SkipCounts::default() };
                        self.walk.visitor.skipped(&pending.path, unreadable, &mut self.result);
                    }
                },
            }
        }
        queue.finish(&mut self.found);
        true
    }
}
