//! The part of a workspace that is searched.

use crate::glob::{Bare, Glob};
use crate::locate::locate_glob;
use crate::{Case, SearchOptions, Syntax, search};
use std::sync::Arc;
use toolrest_core::{CallCx, FileType, Found, IgnoredFiles, PathFilter, Result, ToolError, WsPath};

/// A search as `rg` makes it: below a folder or in one file, by ripgrep's syntax.
pub struct TreeSearch<'a> {
    /// The regular expression.
    pub pattern: String,
    /// Whether case counts.
    pub case: Case,
    /// A folder, or one file.
    pub path: &'a WsPath,
    /// Which files of the folder; a glob without a slash is for names at any depth.
    pub glob: Option<&'a str>,
    /// Whether hidden files are searched, and those that `.gitignore` leaves out.
    pub extent: Extent,
    /// The most lines to find.
    pub limit: usize,
    /// How many lines to give before and after each.
    pub context: usize,
}

/// Which files a search passes over that were not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Whether files and folders whose name begins with a dot are searched.
    pub hidden: bool,
    /// What to do about files that `.gitignore` leaves out.
    pub ignored: IgnoredFiles,
}

/// Finds lines below a folder, or in one file.
pub async fn search_tree(cx: &CallCx, tree: TreeSearch<'_>) -> Result<Found> {
    let entry = if tree.path.is_root() { None } else { cx.workspace.stat(tree.path).await? };
    let is_file = match &entry {
        None if tree.path.is_root() => false,
        None => return Err(ToolError::file_not_found(tree.path)),
        Some(entry) => entry.file_type != FileType::Folder,
    };
    let glob = tree.glob.map(|glob| locate_glob(cx, glob, tree.path)).transpose()?;
    let (paths, ignored): (Option<Arc<dyn PathFilter>>, _) = if is_file {
        (None, IgnoredFiles::Include)
    } else {
        (Some(Arc::new(Below::new(tree.path.clone(), glob.as_deref(), tree.extent)?)), tree.extent.ignored)
    };
    let options = SearchOptions {
        pattern: tree.pattern,
        syntax: Syntax::Ripgrep,
        case: tree.case,
        within: tree.path.clone(),
        paths,
        ignored,
        limit: tree.limit,
        context: tree.context,
    };
    search(cx, options).await
}

/// Files below a folder, without what git keeps for itself.
pub struct Below {
    folder: WsPath,
    glob: Option<Glob>,
    hidden: bool,
}

impl Below {
    /// Files below a folder; a glob without a slash is for names at any depth.
    pub fn new(folder: WsPath, glob: Option<&str>, extent: Extent) -> Result<Self> {
        let glob = glob.map(|glob| Glob::new(glob, folder.clone(), Bare::Name)).transpose()?;
        Ok(Self { folder, glob, hidden: extent.hidden })
    }

    fn passes_over(&self, below: &str) -> bool {
        below.split('/').any(|name| name == ".git" || (!self.hidden && name.starts_with('.')))
    }
}

impl PathFilter for Below {
    fn accepts(&self, path: &str) -> bool {
        let Some(below) = self.folder.part_below(path) else { return false };
        !self.passes_over(below) && self.glob.as_ref().is_none_or(|glob| glob.accepts(path))
    }

    fn enters(&self, folder: &str) -> bool {
        let Some(below) = self.folder.part_below(folder) else { return true };
        !self.passes_over(below) && self.glob.as_ref().is_none_or(|glob| glob.enters(folder))
    }
}
