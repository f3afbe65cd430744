//! Paths inside a workspace.

use crate::{ErrorKind, Result, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{borrow::Borrow, fmt};

/// Maximum length of the name of a file or folder.
pub const MAX_NAME_BYTES: usize = 255;

/// Maximum length of a path. PostgreSQL cannot index entries over about 2,700 bytes, and the key of a listing contains
/// the path of a folder and a name.
pub const MAX_PATH_BYTES: usize = 2048;

/// A normalised absolute path from the workspace's root: `/`, or `/a/b` without a slash at the end.
///
/// Names are not changed: neither case, nor spaces, nor Unicode form. Two paths are equal if their bytes are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WsPath(String);

impl WsPath {
    /// Returns the root folder.
    #[must_use]
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// Parses a path like POSIX with the root as the working directory: slashes collapse, `.` and `..` are resolved,
    /// and `/..` is `/`. White space is a part of names.
    pub fn posix(text: &str) -> Result<Self> {
        let path = resolved(text)?;
        check_length(&path)?;
        Ok(Self(path))
    }

    /// Parses a path relative to the root. An absolute path, or `..` beyond the root, is an error.
    pub fn relative(text: &str) -> Result<Self> {
        if text.starts_with('/') {
            return Err(outside(text));
        }
        Self::within(text)
    }

    /// Parses a path from the root, with or without a leading slash. `..` beyond the root is an error.
    pub fn within(text: &str) -> Result<Self> {
        let mut depth = 0usize;
        for name in text.split('/') {
            depth = match name {
                "" | "." => depth,
                ".." => depth.checked_sub(1).ok_or_else(|| outside(text))?,
                _ => depth + 1,
            };
        }
        Self::posix(text)
    }

    /// Returns the path relative to the root, without the leading slash; `.` for the root itself.
    pub fn without_slash(&self) -> &str {
        if self.is_root() { "." } else { &self.0[1..] }
    }

    /// Creates a path from text that is normalised, such as text from a database.
    pub fn from_normal(path: String) -> Self {
        debug_assert!(path.starts_with('/') && (path.len() == 1 || !path.ends_with('/')), "not normal: {path:?}");
        Self(path)
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root folder.
    pub fn is_root(&self) -> bool {
        self.0 == "/"
    }

    /// Returns the last name; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the parent folder; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let end = self.0.rfind('/').unwrap_or(0);
        Some(if end == 0 { Self::root() } else { Self(self.0[..end].to_owned()) })
    }

    /// Returns the folders above this path, from the root down.
    pub fn ancestors(&self) -> Vec<Self> {
        self.folders_above().map(|folder| Self(folder.to_owned())).collect()
    }

    /// Returns the folders above this path as text, from the root down.
    pub fn folders_above(&self) -> impl DoubleEndedIterator<Item = &str> {
        let path = if self.is_root() { "" } else { &self.0 };
        path.match_indices('/').map(|(end, slash)| if end == 0 { slash } else { &path[..end] })
    }

    /// Returns the path of a name in this folder.
    pub fn join(&self, name: &str) -> Result<Self> {
        check_name(name)?;
        let path = if self.is_root() { format!("/{name}") } else { format!("{}/{name}", self.0) };
        check_length(&path)?;
        Ok(Self(path))
    }

    /// Returns the path of something below this folder, given its relative path.
    pub fn descend(&self, below: &str) -> Result<Self> {
        below.split('/').try_for_each(check_name)?;
        let path = if self.is_root() { format!("/{below}") } else { format!("{}/{below}", self.0) };
        check_length(&path)?;
        Ok(Self(path))
    }

    /// Whether this path is below the folder, at any depth.
    pub fn is_below(&self, folder: &Self) -> bool {
        if folder.is_root() {
            return !self.is_root();
        }
        self.0.strip_prefix(&folder.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the part of a path below this folder; `None` if the path is not below it.
    pub fn part_below<'a>(&self, path: &'a str) -> Option<&'a str> {
        let above = if self.is_root() { "" } else { &self.0 };
        path.strip_prefix(above)?.strip_prefix('/').filter(|rest| !rest.is_empty())
    }

    /// Returns the half-open range, in byte order, of exactly the paths below this folder.
    pub fn below_range(&self) -> (String, String) {
        let folder = if self.is_root() { "" } else { &self.0 };
        // '0' is the byte after '/'.
        (format!("{folder}/"), format!("{folder}0"))
    }

    /// Returns the new path after a move of `from`, which is this path or a folder above it, to `to`.
    #[must_use]
    pub fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        if self == from {
            return Some(to.clone());
        }
        if !self.is_below(from) {
            return None;
        }
        let rest = &self.0[from.0.len()..];
        Some(Self(format!("{}{rest}", to.0)))
    }
}

impl Borrow<str> for WsPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn resolved(text: &str) -> Result<String> {
    let mut names: Vec<&str> = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => {
                check_name(name)?;
                names.push(name);
            }
        }
    }
    Ok(format!("/{}", names.join("/")))
}

fn outside(path: &str) -> ToolError {
    ToolError::new(ErrorKind::OutsideWorkspace, format!("Path outside workspace: {path}"))
}

fn check_length(path: &str) -> Result<()> {
    if path.len() > MAX_PATH_BYTES {
        let message = format!("Path is {} bytes long; at most {MAX_PATH_BYTES} are allowed", path.len());
        return Err(ToolError::new(ErrorKind::InvalidPath, message));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    if let Some(control) = name.chars().find(|c| c.is_control()) {
        let message = format!("Path has the control character U+{:04X} in {name:?}; remove it", u32::from(control));
        return Err(ToolError::new(ErrorKind::InvalidPath, message));
    }
    if name.len() > MAX_NAME_BYTES {
        let message = format!("Name is {} bytes long; at most {MAX_NAME_BYTES} are allowed: {name:?}", name.len());
        return Err(ToolError::new(ErrorKind::InvalidPath, message));
    }
    Ok(())
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
