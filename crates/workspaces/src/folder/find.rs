//! Finds files of a folder by their paths.

use super::disk::{below_root, timestamp};
use super::walk;
use std::sync::atomic::{AtomicBool, Ordering};
use toolrest_core::{ErrorKind, Find, FindResult, FoundFile, Interrupt, Result, ToolError, WsPath};
use toolrest_directory::{Files, Metadata, Paths, Root, SkipCounts, Visitor};

/// Finds files.
pub fn find(root: &Root, find: &Find, interrupt: &Interrupt, threads: usize) -> Result<FindResult> {
    let options = walk::options(&find.folder, find.depth, find.ignored, threads);
    let failed = |error| walk::failed(&error, &find.folder);
    let finding = FindVisitor { find, interrupt, was_stopped: AtomicBool::new(false) };
    let kept = root.walk(below_root(&find.folder), options, &finding).map_err(failed)?;
    if finding.was_stopped.into_inner() {
        return Err(ToolError::new(ErrorKind::Cancelled, "Looking for files was stopped"));
    }
    let mut found = FindResult::default();
    let mut files: Vec<Paths> = Vec::new();
    for FoundFiles { files: more, skipped } in kept {
        files.extend(more);
        found.ignored += skipped.ignored;
        found.unreadable += skipped.unreadable;
        found.unnamed += skipped.unnamed;
    }
    found.total = files.iter().map(Paths::len).sum();
    files.sort_by_cached_key(Paths::first);
    truncate(&mut files, find.limit);
    let described = root.describe(below_root(&find.folder), options.shown_as, &files, threads).map_err(failed)?;
    let mut described = described.into_iter();
    for paths in &files {
        for (name, metadata) in paths.names().zip(&mut described) {
            match metadata {
                Some(metadata) => found.files.push(file([paths.folder(), name].concat(), &metadata)),
                None => found.total -= 1,
            }
        }
    }
    Ok(found)
}

fn file(path: String, metadata: &Metadata) -> FoundFile {
    FoundFile {
        path: WsPath::from_normal(path),
        size: i64::try_from(metadata.size_bytes).unwrap_or(i64::MAX),
        updated_at: timestamp(metadata.modified),
    }
}

fn truncate(files: &mut Vec<Paths>, limit: usize) {
    let mut left = limit;
    files.retain_mut(|paths| {
        paths.truncate(left);
        left -= paths.len();
        paths.len() > 0
    });
}

struct FindVisitor<'a> {
    find: &'a Find,
    interrupt: &'a Interrupt,
    was_stopped: AtomicBool,
}

#[derive(Default)]
struct FoundFiles {
    files: Vec<Paths>,
    skipped: SkipCounts,
}

impl Visitor for FindVisitor<'_> {
    type Thread = FoundFiles;

    fn enters(&self, folder: &str) -> bool {
        self.find.paths.as_ref().is_none_or(|paths| paths.enters(folder))
    }

    fn accepts(&self, file: &str) -> bool {
        self.find.paths.as_ref().is_none_or(|paths| paths.accepts(file))
    }

    fn is_over(&self, _: &str) -> bool {
        let is_due = self.interrupt.is_due();
        if is_due {
            self.was_stopped.store(true, Ordering::Relaxed);
        }
        is_due
    }

    fn visit(&self, files: &mut Files<'_>, kept: &mut FoundFiles) {
        kept.files.push(files.paths());
    }

    fn skipped(&self, _: &str, skipped: SkipCounts, kept: &mut FoundFiles) {
        kept.skipped += skipped;
    }
}
