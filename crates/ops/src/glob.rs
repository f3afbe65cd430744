//! Choosing files by a glob.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use toolrest_core::{ErrorKind, PathFilter, Result, ToolError, WsPath};

/// The files below a folder that a glob chooses: `*` within a name, `**` over folders, `{a,b}`, `[a-z]`, `?`. A `!` in
/// front chooses all others.
#[derive(Clone, Debug)]
pub struct Glob {
    folder: WsPath,
    pattern: String,
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
        let text = text.strip_prefix("./").unwrap_or(text).trim_start_matches('/');
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
        Ok(Self { folder, pattern: text.to_owned(), matcher, subject, sense })
    }

    /// Whether files in folders of the folder can be chosen.
    pub fn is_deep(&self) -> bool {
        let spans_folders = self.pattern.contains('/') || self.pattern.contains("**");
        self.sense == Sense::Leaves || self.subject == Subject::Name || spans_folders
    }
}

impl PathFilter for Glob {
    fn accepts(&self, path: &str) -> bool {
        let Some(below) = below(path, &self.folder) else { return false };
        let subject = match self.subject {
            Subject::PathBelow => below,
            Subject::Name => below.rsplit('/').next().unwrap_or(below),
        };
        self.matcher.is_match(subject) == (self.sense == Sense::Chooses)
    }
}

/// The part of a path below a folder.
pub(crate) fn below<'a>(path: &'a str, folder: &WsPath) -> Option<&'a str> {
    let above = if folder.is_root() { "" } else { folder.as_str() };
    path.strip_prefix(above)?.strip_prefix('/').filter(|rest| !rest.is_empty())
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
