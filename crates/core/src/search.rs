//! Searching the lines of a workspace's files: what is asked, and what is found.

use crate::json_text::{json_bytes_of, json_string_bytes};
use crate::{IgnoredFiles, Result, WsPath};
use std::{
    ops::{AddAssign, ControlFlow, Range},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// A pattern as it was given. Making it ready may take long and much memory, so that is left to whoever bounds both.
pub trait LinePattern: Send + Sync {
    /// Makes the pattern ready, or says what is wrong with it.
    fn compile(&self) -> Result<Arc<dyn LineMatcher>>;
}

/// Finds the lines of a text that match, whatever the syntax of the pattern.
pub trait LineMatcher: Send + Sync {
    /// What every matching line must hold, all of it at once; empty if nothing is known.
    fn requirements(&self) -> &[Requirement];

    /// Tells where the matching lines are, in order, until it is told to stop.
    fn find_lines(
        &self,
        text: &[u8],
        interrupt: &Interrupt,
        found: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> Result<()>;
}

/// At least one of these literals stands in every line that matches, once the capitals of ASCII are made small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The literals, in small letters where they are ASCII.
    pub literals: Vec<Vec<u8>>,
}

/// Chooses files by their path.
pub trait PathFilter: Send + Sync {
    /// Whether the file at this path is chosen.
    fn accepts(&self, path: &str) -> bool;

    /// Whether a file somewhere below the folder at this path can be chosen. Who walks need not enter the others.
    fn enters(&self, folder: &str) -> bool {
        let _ = folder;
        true
    }
}

/// What to search for, where, and how much of it.
#[derive(Clone)]
pub struct Search {
    /// Which lines to find.
    pub pattern: Arc<dyn LinePattern>,
    /// Where to look: a folder, or one file.
    pub within: WsPath,
    /// Chooses the files; without it, all of them.
    pub paths: Option<Arc<dyn PathFilter>>,
    /// What to do about files that `.gitignore` leaves out.
    pub ignored: IgnoredFiles,
    /// The most lines to find.
    pub limit: usize,
    /// How many lines to give before and after each.
    pub context: usize,
    /// The most bytes that these lines may take together, written as JSON with their paths. A first line that is longer
    /// is cut.
    pub limit_bytes: usize,
    /// When to give up.
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
    /// The lines before it, as many as were asked for.
    pub before: Vec<String>,
    /// The lines after it, as many as were asked for.
    pub after: Vec<String>,
}

impl LineMatch {
    /// What its numbers and the names of its fields take in an answer, at most.
    const FIELDS_BYTES: usize = 100;

    /// Shortens the line until it takes no more than so many bytes in an answer; what is around it goes first.
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

    /// The bytes that it takes in an answer, at most.
    pub fn json_bytes(&self) -> usize {
        let around = self.before.iter().chain(&self.after).map(|line| json_string_bytes(line) + 6);
        let own = json_string_bytes(&self.line) + json_string_bytes(self.path.as_str());
        own + around.sum::<usize>() + Self::FIELDS_BYTES
    }
}

/// A line as text. What is not UTF-8 is read as Latin-1, which can be read and typed, unlike signs that stand for what
/// could not be understood.
pub fn line_text(line: &[u8]) -> String {
    match str::from_utf8(line) {
        Ok(text) => text.to_owned(),
        Err(_) => line.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// The lines around a line of a text, up to `count` on each side. A final newline does not begin one more.
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

/// What a search found, ordered by path, then by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The lines.
    pub matches: Vec<LineMatch>,
    /// Whether there was more than the limits allow.
    pub truncated: bool,
    /// What was passed over, up to where the search ended.
    pub skipped: Skipped,
}

/// How many files a search passed over, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Files that are not text.
    pub binary: u64,
    /// Files whose text would be too large to make.
    pub too_large: u64,
    /// Files, or folders with all that is in them, that the rules of `.gitignore` left out.
    pub ignored: u64,
    /// Files and folders that could not be read.
    pub unreadable: u64,
    /// Files and folders with a name that no path can have.
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

/// Tells work on other threads to stop: because nobody waits for it any more, or because its time is up.
#[derive(Debug)]
pub struct Interrupt {
    stopped: AtomicBool,
    deadline: Instant,
}

impl Interrupt {
    /// An interrupt that comes by itself at the deadline.
    pub fn at(deadline: Instant) -> Self {
        Self { stopped: AtomicBool::new(false), deadline }
    }

    /// Stops the work.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn is_due(&self) -> bool {
        if !self.flag().load(Ordering::Relaxed) && self.is_late() {
            self.stop();
        }
        self.flag().load(Ordering::Relaxed)
    }

    /// Whether the time is up.
    pub fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// The flag itself, for engines that look at it often. Somebody else has to watch the deadline meanwhile.
    pub fn flag(&self) -> &AtomicBool {
        &self.stopped
    }
}
