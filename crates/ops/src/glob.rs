//! Choosing files by a glob.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use toolrest_core::{ErrorKind, PathFilter, Result, ToolError, WsPath};

/// The files below a folder that a glob chooses: `*` within a name, `**` over folders, `{a,b}`, `[a-z]`, `?`. A `!` in
/// front chooses all others.
#[derive(Clone, Debug)]
pub struct Glob {
    folder: WsPath,
    way: Way,
    matcher: GlobSet,
    subject: Subject,
    sense: Sense,
}

/// How a glob without a slash is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare {
    /// As a path below the folder: `*.py` is what lies directly in it.
    Path,
    /// As a name at any depth, as `rg --glob` does.
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    PathBelow,
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    Chooses,
    Leaves,
}

/// No glob that chooses paths is longer.
const MOST_BYTES: usize = 4 << 10;

impl Glob {
    /// Reads a glob for the files below a folder.
    pub fn new(pattern: &str, folder: WsPath, bare: Bare) -> Result<Self> {
        let (text, sense) = match pattern.strip_prefix('!') {
            Some(rest) => (rest, Sense::Leaves),
            None => (pattern, Sense::Chooses),
        };
        let subject = if bare == Bare::Name && !text.contains('/') { Subject::Name } else { Subject::PathBelow };
        let text = &normal(text, pattern)?;
        if text.len() > MOST_BYTES {
            let message = format!("The glob is {} bytes long; at most {MOST_BYTES} are allowed", text.len());
            return Err(ToolError::new(ErrorKind::InvalidPattern, message));
        }
        // As a set of one, because only a set says so when a glob is too much for it.
        let glob = GlobBuilder::new(text).literal_separator(true).empty_alternates(true).build();
        let matcher = glob.and_then(|glob| GlobSetBuilder::new().add(glob).build()).map_err(|error| {
            let message = format!("invalid glob '{pattern}': {}", error.kind());
            ToolError::new(ErrorKind::InvalidPattern, message)
        })?;
        let is_of_a_path = sense == Sense::Chooses && subject == Subject::PathBelow;
        let way = if is_of_a_path { Way::of(text) } else { Way::default() };
        Ok(Self { folder, way, matcher, subject, sense })
    }

    /// Whether files in folders of the folder can be chosen.
    pub fn is_deep(&self) -> bool {
        self.way.deepest != Some(0)
    }
}

/// The glob as a path below its folder: without `.` and doubled slashes; a folder stands for all that is in it. One that
/// can never choose anything is refused.
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
        self.matcher.is_match(subject) == (self.sense == Sense::Chooses)
    }

    fn enters(&self, folder: &str) -> bool {
        let Some(below) = self.folder.part_below(folder) else { return true };
        let is_too_deep = self.way.deepest.is_some_and(|deepest| below.split('/').count() > deepest);
        !is_too_deep && self.way.names.iter().zip(below.split('/')).all(|(asked_for, name)| asked_for == name)
    }
}

/// The folders that lie on the way to what a glob chooses.
#[derive(Clone, Debug, Default)]
struct Way {
    /// The names of the first ones, as far as they are known.
    names: Vec<String>,
    /// How many there are at most, where that is known.
    deepest: Option<usize>,
}

impl Way {
    fn of(pattern: &str) -> Self {
        let folders = pattern.rsplit_once('/').map_or("", |(folders, _)| folders);
        let is_plain = |name: &&str| !name.is_empty() && !name.contains(['*', '?', '[', '{', '\\']);
        let names = folders.split('/').take_while(is_plain).map(str::to_owned).collect();
        // Braces and brackets may hold slashes too.
        let is_counted = !pattern.contains("**") && (!pattern.contains('/') || !pattern.contains(['{', '[']));
        Self { names, deepest: is_counted.then(|| pattern.matches('/').count()) }
    }
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
