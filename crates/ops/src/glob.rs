//! Glob patterns.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use toolrest_core::{ErrorKind, PathFilter, Result, ToolError, WsPath};

/// A glob pattern for files below a folder: `*` within a name, `**` across folders, `{a,b}`, `[a-z]`, `?`. A leading
/// `!` inverts it.
#[derive(Clone, Debug)]
pub struct Glob {
    folder: WsPath,
    bounds: FolderBounds,
    matcher: GlobSet,
    subject: Subject,
    mode: GlobMode,
}

/// The meaning of a pattern without a slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlashlessPattern {
    /// A path below the folder: `*.py` matches files directly in it.
    Path,
    /// A name at any depth, as in `rg --glob`.
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    PathBelow,
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GlobMode {
    Include,
    Exclude,
}

/// Maximum length of a pattern.
const MAX_PATTERN_BYTES: usize = 4 << 10;

impl Glob {
    /// Parses a pattern for files below a folder.
    pub fn new(pattern: &str, folder: WsPath, bare: SlashlessPattern) -> Result<Self> {
        let (text, mode) = match pattern.strip_prefix('!') {
            Some(rest) => (rest, GlobMode::Exclude),
            None => (pattern, GlobMode::Include),
        };
        let subject =
            if bare == SlashlessPattern::Name && !text.contains('/') { Subject::Name } else { Subject::PathBelow };
        let text = &normal(text, pattern)?;
        if text.len() > MAX_PATTERN_BYTES {
            let message = format!("The glob is {} bytes long; at most {MAX_PATTERN_BYTES} are allowed", text.len());
            return Err(ToolError::new(ErrorKind::InvalidPattern, message));
        }
        // A set of one pattern, because only sets report patterns that are too large.
        let glob = GlobBuilder::new(text).literal_separator(true).empty_alternates(true).build();
        let matcher = glob.and_then(|glob| GlobSetBuilder::new().add(glob).build()).map_err(|error| {
            let message = format!("invalid glob '{pattern}': {}", error.kind());
            ToolError::new(ErrorKind::InvalidPattern, message)
        })?;
        let is_of_a_path = mode == GlobMode::Include && subject == Subject::PathBelow;
        let bounds = if is_of_a_path { FolderBounds::of(text) } else { FolderBounds::default() };
        Ok(Self { folder, bounds, matcher, subject, mode })
    }

    /// Whether the pattern can match files in subfolders.
    pub fn is_deep(&self) -> bool {
        self.bounds.deepest != Some(0)
    }
}

/// Normalises a pattern: removes `.` and doubled slashes; a pattern for a folder matches its contents. A pattern that
/// cannot match anything is refused.
fn normal(text: &str, given: &str) -> Result<String> {
    let refuse = |why: &str| Err(ToolError::new(ErrorKind::InvalidPattern, format!("The glob '{given}' {why}")));
    if text.is_empty() {
        return refuse("is empty; leave it out to choose all files, or use **");
    }
    if text.split(['/', '{', '}', ',']).any(|name| name == "..") {
        return refuse("leads out of the folder that it is for; use a path without `..`");
    }
    let names: Vec<&str> = text.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let is_folder = names.is_empty() || text.ends_with('/') || text.ends_with("/.");
    Ok(if is_folder { [&names[..], &["**"]].concat() } else { names }.join("/"))
}

impl PathFilter for Glob {
    fn accepts(&self, path: &str) -> bool {
        let Some(below) = self.folder.part_below(path) else { return false };
        let subject = match self.subject {
            Subject::PathBelow => below,
            Subject::Name => below.rsplit('/').next().unwrap_or(below),
        };
        self.matcher.is_match(subject) == (self.mode == GlobMode::Include)
    }

    fn enters(&self, folder: &str) -> bool {
        let Some(below) = self.folder.part_below(folder) else { return true };
        let is_too_deep = self.bounds.deepest.is_some_and(|deepest| below.split('/').count() > deepest);
        !is_too_deep && self.bounds.names.iter().zip(below.split('/')).all(|(asked_for, name)| asked_for == name)
    }
}

/// The folders that can contain matches of a pattern.
#[derive(Clone, Debug, Default)]
struct FolderBounds {
    /// The names of the first folders, as far as they are literal.
    names: Vec<String>,
    /// Maximum depth, if there is one.
    deepest: Option<usize>,
}

impl FolderBounds {
    fn of(pattern: &str) -> Self {
        let folders = pattern.rsplit_once('/').map_or("", |(folders, _)| folders);
        let is_plain = |name: &&str| !name.is_empty() && !name.contains(['*', '?', '[', '{', '\\']);
        let names = folders.split('/').take_while(is_plain).map(str::to_owned).collect();
        // Braces and brackets may contain slashes.
        let is_counted = !pattern.contains("**") && (!pattern.contains('/') || !pattern.contains(['{', '[']));
        Self { names, deepest: is_counted.then(|| pattern.matches('/').count()) }
    }
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
