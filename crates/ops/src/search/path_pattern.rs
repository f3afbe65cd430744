//! Choosing files by specification 000's path patterns.

use toolrest_core::PathFilter;

/// A path pattern without regard to case: `*` and `%` stand for any characters, slashes too, and then the whole path
/// must fit. Without one the path must only contain the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    /// What must stand in the path one after the other, in small letters.
    parts: Vec<String>,
    extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// The first part begins the path and the last one ends it.
    Whole,
    Anywhere,
}

const WILDCARDS: [char; 2] = ['*', '%'];

impl PathPattern {
    /// Reads a pattern; none if it is empty, which chooses all files.
    pub fn parse(pattern: &str) -> Option<Self> {
        let mut text = lowercase(&resolved(pattern.trim()));
        if text.is_empty() {
            return None;
        }
        if !text.contains(WILDCARDS) {
            return Some(Self { parts: vec![text], extent: Extent::Anywhere });
        }
        if !text.starts_with('/') && !text.starts_with(WILDCARDS) {
            text.insert(0, '/');
        }
        Some(Self { parts: text.split(WILDCARDS).map(str::to_owned).collect(), extent: Extent::Whole })
    }

    fn accepts_lowercase(&self, path: &str) -> bool {
        match (&self.parts[..], self.extent) {
            ([first, between @ .., last], Extent::Whole) => {
                let Some(mut rest) =
                    path.strip_prefix(first.as_str()).and_then(|rest| rest.strip_suffix(last.as_str()))
                else {
                    return false;
                };
                // The earliest place is the best for what follows.
                between.iter().all(|part| match rest.split_once(part.as_str()) {
                    Some((_, after)) => {
                        rest = after;
                        true
                    }
                    None => false,
                })
            }
            (parts, _) => parts.iter().all(|part| path.contains(part.as_str())),
        }
    }
}

/// The pattern with `.` and `..` resolved as from the root, and without doubled slashes.
fn resolved(text: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    let is_from_root = ["/", "./", "../"].iter().any(|start| text.starts_with(start)) || text == "..";
    let start = if is_from_root { "/" } else { "" };
    let end = if text.ends_with('/') && !names.is_empty() { "/" } else { "" };
    format!("{start}{}{end}", names.join("/"))
}

/// Letter by letter: the small form of a sigma would else depend on whether a word ends there.
fn lowercase(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

impl PathFilter for PathPattern {
    fn accepts(&self, path: &str) -> bool {
        self.accepts_lowercase(&lowercase(path))
    }
}

#[cfg(test)]
#[path = "path_pattern_tests.rs"]
mod tests;
