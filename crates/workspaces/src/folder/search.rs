//! Searches the files of a folder.

use super::contents::{Contents, Outcome};
use super::disk::below_root;
use super::errors::{Attempt, to_tool_error};
use super::walk;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use toolrest_core::{
    Depth, ErrorKind, Interrupt, LineMatcher, Result, Search, SearchResult, Skipped, ToolError, WsPath,
};
use toolrest_directory::{ErrorKind as DiskError, Files, Reader, Root, SkipCounts, Visitor, WalkOptions};
use toolrest_store::search::{FoundLines, stopped};

/// Number of files that a thread takes at a time. Few, so that a search for a common text ends soon.
const FILES_AT_A_TIME: usize = 16;

/// Searches below a folder, or in one file.
pub fn search(
    root: &Root,
    search: &Search,
    matcher: &dyn LineMatcher,
    interrupt: &Interrupt,
    threads: usize,
) -> Result<SearchResult> {
    let within = &search.within;
    let searching = SearchVisitor {
        search,
        matcher,
        interrupt,
        progress: Mutex::default(),
        has_end: AtomicBool::new(false),
        was_stopped: AtomicBool::new(false),
    };
    let options = WalkOptions {
        max_files_per_visit: FILES_AT_A_TIME,
        ..walk::options(within, Depth::Descendants, search.ignored, threads)
    };
    match root.walk(below_root(within), options, &searching) {
        Ok(_) => searching.result(),
        Err(error) if matches!(error.kind, DiskError::NotAFolder) => {
            let file =
                root.open_reader(below_root(within)).map_err(|error| to_tool_error(&error, within, Attempt::Read))?;
            let mut found = FoundLines::default();
            searching.search_file(file, || within.clone(), &mut found, &mut Contents::default())?;
            Ok(FoundLines::together([found], search))
        }
        Err(error) => Err(to_tool_error(&error, within, Attempt::Read)),
    }
}

struct SearchVisitor<'a> {
    search: &'a Search,
    matcher: &'a dyn LineMatcher,
    interrupt: &'a Interrupt,
    progress: Mutex<Progress>,
    /// Whether [`Progress::end`] is set. Checked without the lock.
    has_end: AtomicBool,
    was_stopped: AtomicBool,
}

/// The state of a search.
#[derive(Default)]
struct Progress {
    /// The matches so far. The key is the path of the first file of a batch, or of the folder for skipped entries.
    found: BTreeMap<String, FoundLines>,
    lines: usize,
    bytes: usize,
    /// The last key that can be part of the answer. Set once enough was found, or a file failed.
    end: Option<String>,
    /// The error whose path sorts first.
    failure: Option<(String, ToolError)>,
}

impl Visitor for SearchVisitor<'_> {
    type Thread = Contents;

    fn enters(&self, folder: &str) -> bool {
        // `.git` folders are searched only if `within` is one or is in one.
        !folder.ends_with("/.git") && self.search.paths.as_ref().is_none_or(|paths| paths.enters(folder))
    }

    fn accepts(&self, file: &str) -> bool {
        self.search.paths.as_ref().is_none_or(|paths| paths.accepts(file))
    }

    fn is_over(&self, path: &str) -> bool {
        if self.interrupt.is_due() {
            self.was_stopped.store(true, Ordering::Relaxed);
            return true;
        }
        self.is_behind_end(path)
    }

    fn visit(&self, files: &mut Files<'_>, contents: &mut Contents) {
        let mut found = FoundLines::default();
        let first = files.path(0);
        for place in 0..files.len() {
            if found.is_full(self.search) || self.is_behind_end(&first) {
                break;
            }
            let searched = match files.open(place) {
                Ok(None) => Ok(()),
                Ok(Some(file)) => {
                    self.search_file(file, || WsPath::from_normal(files.path(place)), &mut found, contents)
                }
                Err(_) => {
                    found.skipped.unreadable += 1;
                    Ok(())
                }
            };
            match searched {
                Ok(()) => {}
                Err(error) if error.kind == ErrorKind::Cancelled => {
                    self.was_stopped.store(true, Ordering::Relaxed);
                    return;
                }
                Err(error) => return self.fail(first, error),
            }
        }
        self.keep(first, found);
    }

    fn skipped(&self, folder: &str, skipped: SkipCounts, _: &mut Contents) {
        let SkipCounts { ignored, unnamed, unreadable } = skipped;
        let skipped = Skipped { ignored, unnamed, unreadable, ..Skipped::default() };
        self.keep(folder.to_owned(), FoundLines { skipped, ..FoundLines::default() });
    }
}

impl SearchVisitor<'_> {
    fn search_file(
        &self,
        file: Reader,
        path: impl Fn() -> WsPath,
        found: &mut FoundLines,
        contents: &mut Contents,
    ) -> Result<()> {
        let outcome = contents.in_pieces(file, self.search.context, self.interrupt, |piece| {
            found.search(&piece, &path, self.search, self.matcher, self.interrupt)?;
            Ok(!found.is_full(self.search))
        })?;
        match outcome {
            Outcome::Text => {}
            Outcome::Binary => found.skipped.binary += 1,
            Outcome::TooLarge => found.skipped.too_large += 1,
            Outcome::Unreadable => found.skipped.unreadable += 1,
        }
        Ok(())
    }

    fn is_behind_end(&self, path: &str) -> bool {
        self.has_end.load(Ordering::Relaxed) && self.progress().end.as_deref().is_some_and(|end| path > end)
    }

    /// Adds the matches of a batch, and sets the end once there are enough.
    fn keep(&self, path: String, found: FoundLines) {
        if found.matches.is_empty() && found.skipped == Skipped::default() {
            return;
        }
        let mut progress = self.progress();
        progress.lines += found.matches.len();
        progress.bytes += found.bytes;
        let may_end = found.is_cut;
        progress.found.insert(path, found);
        if may_end || progress.lines > self.search.limit || progress.bytes > self.search.limit_bytes {
            self.find_end(&mut progress);
        }
    }

    /// Finds the key up to which there are enough matches, and removes the matches after it.
    fn find_end(&self, progress: &mut Progress) {
        let (mut lines, mut bytes) = (0, 0);
        let is_enough = |(path, found): (&String, &FoundLines)| {
            lines += found.matches.len();
            bytes += found.bytes;
            let is_enough = found.is_cut || lines > self.search.limit || bytes > self.search.limit_bytes;
            is_enough.then(|| path.clone())
        };
        let Some(end) = progress.found.iter().find_map(is_enough) else { return };
        progress.found.retain(|path, _| *path <= end);
        (progress.lines, progress.bytes) = (lines, bytes);
        self.end_at(progress, end);
    }

    fn fail(&self, path: String, error: ToolError) {
        let mut progress = self.progress();
        if progress.failure.as_ref().is_none_or(|(first, _)| path < *first) {
            progress.failure = Some((path.clone(), error));
        }
        self.end_at(&mut progress, path);
    }

    fn end_at(&self, progress: &mut Progress, path: String) {
        if progress.end.as_ref().is_none_or(|end| path < *end) {
            progress.end = Some(path);
        }
        self.has_end.store(true, Ordering::Relaxed);
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn result(self) -> Result<SearchResult> {
        let progress = self.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.was_stopped.into_inner() {
            return Err(stopped());
        }
        match progress.failure {
            // A failure after the last match of the answer is not reported.
            Some((path, error)) if progress.end.is_none_or(|end| path <= end) => Err(error),
            _ => Ok(FoundLines::together(progress.found.into_values(), self.search)),
        }
    }
}
