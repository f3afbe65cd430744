//! Searching lines in files: the request, the matcher and the result.

use crate::json_text::{json_bytes_of, json_string_bytes};
use crate::{IgnoredFiles, Notice, Result, WsPath};
use std::{
    ops::{AddAssign, ControlFlow, Range},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// A search pattern before compilation. Compiling may take much time and memory, so the caller chooses when and where.
pub trait LinePattern: Send + Sync {
    /// Compiles the pattern.
    fn compile(&self) -> Result<Arc<dyn LineMatcher>>;
}

/// A compiled pattern of any syntax, which finds matching lines.
pub trait LineMatcher: Send + Sync {
    /// Returns requirements that every matching line fulfils; empty if none are known.
    fn requirements(&self) -> &[Requirement];

    /// Calls `found` with the range of each matching line, in order, until `found` returns `Break`.
    fn find_lines(
        &self,
        text: &[u8],
        interrupt: &Interrupt,
        found: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> Result<()>;
}

/// Literals of which every matching line contains at least one, after ASCII letters are converted to lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The literals; their ASCII letters are in lower case.
    pub literals: Vec<Vec<u8>>,
}

/// A filter of files by their paths.
pub trait PathFilter: Send + Sync {
    /// Whether the file at this path passes.
    fn accepts(&self, path: &str) -> bool;

    /// Whether a file below this folder can pass. A walk skips other folders.
    fn enters(&self, folder: &str) -> bool {
        let _ = folder;
        true
    }
}

/// A search request.
#[derive(Clone)]
pub struct Search {
    /// The pattern of the lines.
    pub pattern: Arc<dyn LinePattern>,
    /// The folder or file to search.
    pub within: WsPath,
    /// The files to search; all if there is no filter.
    pub paths: Option<Arc<dyn PathFilter>>,
    /// Whether to search files that `.gitignore` excludes.
    pub ignored: IgnoredFiles,
    /// Maximum number of lines.
    pub limit: usize,
    /// Number of lines to return before and after each match.
    pub context: usize,
    /// Maximum size of all lines together, written as JSON with their paths. If the first line alone is longer, it is
    /// cut.
    pub limit_bytes: usize,
    /// When the search ends with an error.
    pub deadline: Instant,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineMatch {
    /// The file.
    pub path: WsPath,
    /// The line's number, counted from 1.
    pub line_number: u64,
    /// The line without its newline.
    pub line: String,
    /// The lines before it, up to the requested number.
    pub before: Vec<String>,
    /// The lines after it, up to the requested number.
    pub after: Vec<String>,
}

impl LineMatch {
    /// Maximum size of its numbers and field names in an answer.
    const FIELDS_BYTES: usize = 100;

    /// Cuts the line so that the match fits into `limit_bytes` of an answer. The lines around it are removed.
    pub fn cut_to(&mut self, limit_bytes: usize) {
        self.before.clear();
        self.after.clear();
        let mut left = limit_bytes.saturating_sub(json_string_bytes(self.path.as_str()) + Self::FIELDS_BYTES + 2);
        let fits = |byte: &u8| match left.checked_sub(json_bytes_of(*byte)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        };
        let fitting = self.line.bytes().take_while(fits).count();
        let end = (0..=fitting).rev().find(|end| self.line.is_char_boundary(*end)).unwrap_or(0);
        self.line.truncate(end);
    }

    /// Returns the maximum size that it takes in an answer.
    pub fn json_bytes(&self) -> usize {
        let around = self.before.iter().chain(&self.after).map(|line| json_string_bytes(line) + 6);
        let own = json_string_bytes(&self.line) + json_string_bytes(self.path.as_str());
        own + around.sum::<usize>() + Self::FIELDS_BYTES
    }
}

/// Converts a line to text. A line that is not UTF-8 is decoded as Latin-1, because replacement characters could not be
/// copied into an edit.
pub fn line_text(line: &[u8]) -> String {
    match str::from_utf8(line) {
        Ok(text) => text.to_owned(),
        Err(_) => line.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// Returns up to `count` lines before and after a line. A final newline does not start another line.
pub fn lines_around(text: &[u8], line: &Range<usize>, count: usize) -> (Vec<String>, Vec<String>) {
    let before = match line.start.checked_sub(1) {
        Some(newline) => text[..newline].rsplit(|byte| *byte == b'\n').take(count).map(line_text).collect::<Vec<_>>(),
        None => Vec::new(),
    };
    let rest = text.get(line.end + 1..).unwrap_or_default();
    let rest = rest.strip_suffix(b"\n").unwrap_or(rest);
    let after = if text.len() > line.end + 1 {
        rest.split(|byte| *byte == b'\n').take(count).map(line_text).collect()
    } else {
        Vec::new()
    };
    (before.into_iter().rev().collect(), after)
}

/// The result of a search, sorted by path, then by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// The lines.
    pub matches: Vec<LineMatch>,
    /// Whether the limits left out matches.
    pub truncated: bool,
    /// Files that were not searched, up to where the search ended.
    pub skipped: Skipped,
    /// What the caller must know about the result.
    pub warnings: Vec<Notice>,
}

/// Numbers of files that a search skipped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Files that are not text.
    pub binary: u64,
    /// JSON files that are too large when formatted.
    pub too_large: u64,
    /// Files and folders that `.gitignore` excludes. A folder counts as one.
    pub ignored: u64,
    /// Files and folders that could not be read.
    pub unreadable: u64,
    /// Files and folders with invalid names.
    pub unnamed: u64,
}

impl AddAssign for Skipped {
    fn add_assign(&mut self, more: Self) {
        self.binary += more.binary;
        self.too_large += more.too_large;
        self.ignored += more.ignored;
        self.unreadable += more.unreadable;
        self.unnamed += more.unnamed;
    }
}

/// A signal that stops work on other threads, sent by hand or by a deadline.
#[derive(Debug)]
pub struct Interrupt {
    stopped: AtomicBool,
    deadline: Instant,
}

impl Interrupt {
    /// Creates an interrupt that is set at the deadline.
    pub fn at(deadline: Instant) -> Self {
        Self { stopped: AtomicBool::new(false), deadline }
    }

    /// Sets the interrupt.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the work must stop.
    pub fn is_due(&self) -> bool {
        if !self.flag().load(Ordering::Relaxed) && self.is_late() {
            self.stop();
        }
        self.flag().load(Ordering::Relaxed)
    }

    /// Whether the deadline has passed.
    pub fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Returns the flag, for code that polls it often. The flag alone does not observe the deadline.
    pub fn flag(&self) -> &AtomicBool {
        &self.stopped
    }
}
