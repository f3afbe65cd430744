//! Reads one folder of a walk.

use std::{ffi::OsStr, mem::MaybeUninit, ops::Range, os::fd::OwnedFd, os::unix::ffi::OsStrExt, sync::Arc};

use rustix::{
    fs::{FileType, OFlags, RawDir},
    io::Errno,
};

use super::{
    IgnoreMode, PendingDir, SkipCounts, Task, Visitor, Worker,
    files::{Names, OpenFolder},
    rules::{self, Rules},
};
use crate::{Kind, Metadata, error::if_exists, is_temporary, sys};

/// Buffer size for directory entries.
const BUFFER_BYTES: usize = 64 << 10;

/// Reused buffers.
#[derive(Default)]
pub(super) struct ReadBuffers {
    buffer: Vec<u8>,
    /// The names of a folder's entries, concatenated. Names of folders end with a slash.
    text: String,
    entries: Vec<Range<usize>>,
    /// The path of the current entry.
    path: String,
}

/// Properties of a folder that are found while reading it.
#[derive(Default)]
struct FolderContents {
    rules: bool,
    git: bool,
    unnamed: u64,
}

impl<V: Visitor> Worker<'_, V> {
    /// Reads a folder, and enqueues what is wanted.
    pub(super) fn read_folder(&mut self, pending: &PendingDir) -> rustix::io::Result<()> {
        let walk = self.walk;
        let folder = walk.open_folder(&pending.path, OFlags::RDONLY)?;
        walk.visitor.on_folder(&pending.path);
        let max_name_bytes = walk.options.max_path_bytes.saturating_sub(pending.path.len());
        let contents = self.buffers.read(&folder, max_name_bytes)?;
        let mut skipped = SkipCounts { unnamed: contents.unnamed, ..SkipCounts::default() };
        let rules = match walk.options.rules {
            IgnoreMode::Disregard => None,
            IgnoreMode::Respect => {
                let here = rules::RuleFiles { has_rules: contents.rules, has_git: contents.git };
                let read = Rules::of_folder(&folder, here, pending.rules.clone(), pending.path.len());
                skipped.unreadable += u64::from(read.is_unreadable);
                read.rules
            }
        };
        let is_deepest = pending.depth >= walk.options.depth;
        let ReadBuffers { text, entries, path, .. } = &mut self.buffers;
        path.clear();
        path.push_str(&pending.path);
        entries.retain(|entry| {
            let name = &text[entry.clone()];
            path.truncate(pending.path.len());
            path.push_str(name.trim_end_matches('/'));
            let is_folder = name.ends_with('/');
            let is_wanted =
                if is_folder { !is_deepest && walk.visitor.enters(path) } else { walk.visitor.accepts(path) };
            let is_ignored = is_wanted && rules.as_ref().is_some_and(|rules| rules.ignores(path, is_folder));
            skipped.ignored += u64::from(is_ignored);
            is_wanted && !is_ignored
        });
        if skipped != SkipCounts::default() {
            walk.visitor.skipped(&pending.path, skipped, &mut self.result);
        }
        entries.sort_unstable_by(|one, other| text[one.clone()].cmp(&text[other.clone()]));
        self.enqueue(pending, folder, rules.as_ref());
        Ok(())
    }

    /// Enqueues consecutive files together, as long as no folder is between them.
    fn enqueue(&mut self, pending: &PendingDir, folder: OwnedFd, rules: Option<&Arc<Rules>>) {
        let ReadBuffers { text, entries, .. } = &self.buffers;
        let mut names = Names { folder: pending.path.clone(), ..Names::default() };
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut run_start = 0;
        let mut end_run = |start: &mut usize, end: usize| {
            if *start < end {
                runs.push(*start..end);
            }
            *start = end;
        };
        for name in entries.iter().map(|entry| &text[entry.clone()]) {
            if name.ends_with('/') {
                end_run(&mut run_start, names.ends.len());
                let path = [&pending.path, name].concat();
                let below = PendingDir { path: path.clone(), depth: pending.depth + 1, rules: rules.cloned() };
                self.found.push((path, Task::Read(below)));
            } else {
                names.push(name);
                if names.ends.len() - run_start == self.walk.options.max_files_per_visit {
                    end_run(&mut run_start, names.ends.len());
                }
            }
        }
        end_run(&mut run_start, names.ends.len());
        if !runs.is_empty() {
            let names = Arc::new(names);
            self.found
                .extend(runs.into_iter().map(|run| (names.path(run.start), Task::Visit(Arc::clone(&names), run))));
            self.open = Some(OpenFolder { names, folder });
        }
    }
}

impl ReadBuffers {
    /// Reads the names of files and folders.
    fn read(&mut self, folder: &OwnedFd, max_name_bytes: usize) -> rustix::io::Result<FolderContents> {
        self.buffer.reserve(BUFFER_BYTES);
        self.text.clear();
        self.entries.clear();
        let mut contents = FolderContents::default();
        let buffer: &mut [MaybeUninit<u8>] = self.buffer.spare_capacity_mut();
        let mut entries = RawDir::new(folder, buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                // The folder was removed while it was read.
                Err(Errno::NOENT) => break,
                other => other?,
            };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            contents.git |= name == b".git";
            let kind = match entry.file_type() {
                FileType::Unknown => match if_exists(sys::stat_name(folder, OsStr::from_bytes(name)))? {
                    Some(stat) => Metadata::from(stat).kind,
                    None => continue,
                },
                known => Kind::of(known),
            };
            if !matches!(kind, Kind::File | Kind::Folder) || is_temporary(OsStr::from_bytes(name)) {
                continue;
            }
            contents.rules |= kind == Kind::File && name == b".gitignore";
            match str::from_utf8(name) {
                Ok(name) if name.len() <= max_name_bytes && !name.chars().any(char::is_control) => {
                    let start = self.text.len();
                    self.text.push_str(name);
                    if kind == Kind::Folder {
                        self.text.push('/');
                    }
                    self.entries.push(start..self.text.len());
                }
                _ => contents.unnamed += 1,
            }
        }
        Ok(contents)
    }
}
