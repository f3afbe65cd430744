//! Searching below a folder, as `rg` does.

use crate::glob::{Glob, SlashlessPattern};
use crate::locate::locate_glob;
use crate::{Case, SearchOptions, Syntax, search};
use std::sync::Arc;
use toolrest_core::{CallCx, FileType, IgnoredFiles, PathFilter, Result, SearchResult, ToolError, WsPath};

/// A search below a folder or in one file, in ripgrep's syntax.
pub struct TreeSearch<'a> {
    /// The regular expression.
    pub pattern: String,
    /// Whether upper and lower case are distinguished.
    pub case: Case,
    /// A folder, or one file.
    pub path: &'a WsPath,
    /// The files of the folder; a pattern without a slash matches names at any depth.
    pub glob: Option<&'a str>,
    /// Which files a search includes, except for files that the caller named.
    pub extent: SkipRules,
    /// Maximum number of lines.
    pub limit: usize,
    /// Number of lines to return before and after each match.
    pub context: usize,
}

/// Which files a search passes over that were not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkipRules {
    /// Whether to search files and folders whose names begin with a dot.
    pub hidden: bool,
    /// Whether to search files that `.gitignore` excludes.
    pub ignored: IgnoredFiles,
}

/// Finds lines below a folder, or in one file.
pub async fn search_tree(cx: &CallCx, tree: TreeSearch<'_>) -> Result<SearchResult> {
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
        (Some(Arc::new(FolderFilter::new(tree.path.clone(), glob.as_deref(), tree.extent)?)), tree.extent.ignored)
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

/// A filter for files below a folder, without the contents of `.git`.
pub struct FolderFilter {
    folder: WsPath,
    glob: Option<Glob>,
    hidden: bool,
}

impl FolderFilter {
    /// Creates a filter; a pattern without a slash matches names at any depth.
    pub fn new(folder: WsPath, glob: Option<&str>, extent: SkipRules) -> Result<Self> {
        let glob = glob.map(|glob| Glob::new(glob, folder.clone(), SlashlessPattern::Name)).transpose()?;
        Ok(Self { folder, glob, hidden: extent.hidden })
    }

    fn passes_over(&self, below: &str) -> bool {
        below.split('/').any(|name| name == ".git" || (!self.hidden && name.starts_with('.')))
    }
}

impl PathFilter for FolderFilter {
    fn accepts(&self, path: &str) -> bool {
        let Some(below) = self.folder.part_below(path) else { return false };
        !self.passes_over(below) && self.glob.as_ref().is_none_or(|glob| glob.accepts(path))
    }

    fn enters(&self, folder: &str) -> bool {
        let Some(below) = self.folder.part_below(folder) else { return true };
        !self.passes_over(below) && self.glob.as_ref().is_none_or(|glob| glob.enters(folder))
    }
}
