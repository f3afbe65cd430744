//! Path patterns of the `workspace` toolset.

use toolrest_core::PathFilter;

/// A path pattern, without regard to case. `*` and `%` match any characters, including slashes; a pattern with one of
/// them must match the whole path. Other patterns must be contained in the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    /// The literal parts, which must occur in the path in this order, in lower case.
    parts: Vec<String>,
    extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// The first part starts the path and the last part ends it.
    Whole,
    Anywhere,
}

const WILDCARDS: [char; 2] = ['*', '%'];

impl PathPattern {
    /// Parses a pattern. Returns `None` if it is empty, which matches all files.
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
                // The earliest match leaves the most for the following parts.
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

/// Resolves `.` and `..` from the root and removes doubled slashes.
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

/// Converts to lower case character by character: the lower case of a whole text would depend on word ends (sigma).
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
