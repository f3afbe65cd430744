//! Reading one folder of a walk.

use std::{ffi::OsStr, mem::MaybeUninit, ops::Range, os::fd::OwnedFd, os::unix::ffi::OsStrExt, sync::Arc};

use rustix::{
    fs::{FileType, OFlags, RawDir},
    io::Errno,
};

use super::{
    Heed, PassedOver, PendingDir, Task, Visitor, Worker,
    files::{Names, Open},
    rules::{self, Rules},
};
use crate::{Kind, Metadata, error::found, is_temporary, sys};

/// Room for the entries that the kernel gives at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// What reading folders needs again and again.
#[derive(Default)]
pub(super) struct Scratch {
    buffer: Vec<u8>,
    /// The names of a folder, one after the other, those of folders with a slash at the end.
    text: String,
    entries: Vec<Range<usize>>,
    /// The path that is being looked at.
    path: String,
}

/// What a folder holds beside what is visited.
#[derive(Default)]
struct Seen {
    rules: bool,
    git: bool,
    unnamed: u64,
}

impl<V: Visitor> Worker<'_, V> {
    /// Reads a folder: what is in it and wanted waits from then on.
    pub(super) fn read_folder(&mut self, pending: &PendingDir) -> rustix::io::Result<()> {
        let walk = self.walk;
        let folder = walk.open_folder(&pending.path, OFlags::RDONLY)?;
        walk.visitor.reads(&pending.path);
        let longest_name_bytes = walk.options.longest_path_bytes.saturating_sub(pending.path.len());
        let seen = self.scratch.read(&folder, longest_name_bytes)?;
        let mut passed_over = PassedOver { unnamed: seen.unnamed, ..PassedOver::default() };
        let rules = match walk.options.rules {
            Heed::Nothing => None,
            Heed::Rules => {
                let here = rules::Here { has_rules: seen.rules, has_git: seen.git };
                let read = Rules::of_folder(&folder, here, pending.rules.clone(), pending.path.len());
                passed_over.unreadable += u64::from(read.is_unreadable);
                read.rules
            }
        };
        let is_deepest = pending.depth >= walk.options.depth;
        let Scratch { text, entries, path, .. } = &mut self.scratch;
        path.clear();
        path.push_str(&pending.path);
        entries.retain(|entry| {
            let name = &text[entry.clone()];
            path.truncate(pending.path.len());
            path.push_str(name.trim_end_matches('/'));
            let is_folder = name.ends_with('/');
            let is_wanted =
                if is_folder { !is_deepest && walk.visitor.enters(path) } else { walk.visitor.accepts(path) };
            let is_ignored = is_wanted && rules.as_ref().is_some_and(|rules| rules.leave_out(path, is_folder));
            passed_over.ignored += u64::from(is_ignored);
            is_wanted && !is_ignored
        });
        if passed_over != PassedOver::default() {
            walk.visitor.passed_over(&pending.path, passed_over, &mut self.kept);
        }
        entries.sort_unstable_by(|one, other| text[one.clone()].cmp(&text[other.clone()]));
        self.enqueue(pending, folder, rules.as_ref());
        Ok(())
    }

    /// Lets files wait together as far as no folder comes between.
    fn enqueue(&mut self, pending: &PendingDir, folder: OwnedFd, rules: Option<&Arc<Rules>>) {
        let Scratch { text, entries, .. } = &self.scratch;
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
                if names.ends.len() - run_start == self.walk.options.files_at_a_time {
                    end_run(&mut run_start, names.ends.len());
                }
            }
        }
        end_run(&mut run_start, names.ends.len());
        if !runs.is_empty() {
            let names = Arc::new(names);
            self.found
                .extend(runs.into_iter().map(|run| (names.path(run.start), Task::Visit(Arc::clone(&names), run))));
            self.open = Some(Open { names, folder });
        }
    }
}

impl Scratch {
    /// Reads the names of files and folders.
    fn read(&mut self, folder: &OwnedFd, longest_name_bytes: usize) -> rustix::io::Result<Seen> {
        self.buffer.reserve(BUFFER_BYTES);
        self.text.clear();
        self.entries.clear();
        let mut seen = Seen::default();
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
            seen.git |= name == b".git";
            let kind = match entry.file_type() {
                FileType::Unknown => match found(sys::stat_name(folder, OsStr::from_bytes(name)))? {
                    Some(stat) => Metadata::from(stat).kind,
                    None => continue,
                },
                known => Kind::of(known),
            };
            if !matches!(kind, Kind::File | Kind::Folder) || is_temporary(OsStr::from_bytes(name)) {
                continue;
            }
            seen.rules |= kind == Kind::File && name == b".gitignore";
            match str::from_utf8(name) {
                Ok(name) if name.len() <= longest_name_bytes && !name.chars().any(char::is_control) => {
                    let start = self.text.len();
                    self.text.push_str(name);
                    if kind == Kind::Folder {
                        self.text.push('/');
                    }
                    self.entries.push(start..self.text.len());
                }
                _ => seen.unnamed += 1,
            }
        }
        Ok(seen)
    }
}
