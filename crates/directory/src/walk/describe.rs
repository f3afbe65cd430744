//! Reads the metadata of files that a walk has found.

use std::{os::fd::OwnedFd, path::Path, thread};

use rustix::fs::{OFlags, ResolveFlags};

use super::Paths;
use crate::{Kind, Metadata, Result, Root, sys};

/// Minimum number of files per thread.
const FILES_PER_THREAD: usize = 2000;

impl Root {
    /// Returns the metadata of files that a walk has found, in their order. It is `None` for files that are gone or
    /// replaced by something else.
    pub fn describe(
        &self,
        folder: &Path,
        shown_as: &str,
        files: &[Paths],
        threads: usize,
    ) -> Result<Vec<Option<Metadata>>> {
        let top = self.open_path(folder, OFlags::PATH | OFlags::DIRECTORY)?;
        let total: usize = files.iter().map(Paths::len).sum();
        let share = total.div_ceil(threads.max(1)).max(FILES_PER_THREAD);
        let mut shares = Vec::new();
        let (mut begin, mut count) = (0, 0);
        for (index, paths) in files.iter().enumerate() {
            count += paths.len();
            if count >= share || index + 1 == files.len() {
                shares.push(&files[begin..=index]);
                (begin, count) = (index + 1, 0);
            }
        }
        let describe = |share: &[Paths]| -> Vec<Option<Metadata>> {
            share.iter().flat_map(|paths| of_one_folder(&top, shown_as, paths)).collect()
        };
        if let [only] = shares[..] {
            return Ok(describe(only));
        }
        Ok(thread::scope(|scope| {
            let workers: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| describe(share))).collect();
            let join = |worker: thread::ScopedJoinHandle<'_, Vec<_>>| match worker.join() {
                Ok(described) => described,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            workers.into_iter().flat_map(join).collect()
        }))
    }
}

fn of_one_folder(top: &OwnedFd, shown_as: &str, paths: &Paths) -> Vec<Option<Metadata>> {
    let below = paths.folder()[shown_as.len() + 1..].trim_end_matches('/');
    let below = if below.is_empty() { "." } else { below };
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let Ok(folder) = sys::open_beneath(top, Path::new(below), flags, ResolveFlags::NO_SYMLINKS) else {
        return vec![None; paths.len()];
    };
    let describe = |name: &str| {
        let metadata = Metadata::from(sys::stat_name(&folder, name.as_ref()).ok()?);
        (metadata.kind == Kind::File).then_some(metadata)
    };
    paths.names().map(describe).collect()
}
