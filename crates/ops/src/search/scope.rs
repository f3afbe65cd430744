//! The part of a workspace that is searched.

use crate::glob::{Bare, Glob, below};
use crate::ignored::{Ignored, NotIgnored};
use crate::{Case, SearchOptions, Syntax, search};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use toolrest_core::{CallCx, FileType, Found, PathFilter, Result, ToolError, WsPath};

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
    /// Whether files are searched that `.gitignore` leaves out.
    pub ignored: bool,
}

/// Finds lines below a folder; tells also how many files `.gitignore` left out, up to where the search ended.
pub async fn search_tree(cx: &CallCx, tree: TreeSearch<'_>) -> Result<(Found, u64)> {
    let entry = if tree.path.is_root() { None } else { cx.workspace.stat(tree.path).await? };
    let is_file = match &entry {
        None if tree.path.is_root() => false,
        None => return Err(ToolError::file_not_found(tree.path)),
        Some(entry) => entry.file_type != FileType::Folder,
    };
    let options = |paths: Arc<dyn PathFilter>| SearchOptions {
        pattern: tree.pattern.clone(),
        syntax: Syntax::Ripgrep,
        case: tree.case,
        paths: Some(paths),
        limit: tree.limit,
        context: tree.context,
    };
    if is_file {
        return Ok((search(cx, options(Arc::new(OneFile(tree.path.clone())))).await?, 0));
    }
    let glob = tree.glob.map(|glob| Glob::new(glob, tree.path.clone(), Bare::Name)).transpose()?;
    let chosen = Arc::new(Below { folder: tree.path.clone(), glob, hidden: tree.extent.hidden });
    if tree.extent.ignored {
        return Ok((search(cx, options(chosen)).await?, 0));
    }
    let filter = Arc::new(NotIgnored { chosen, ignored: Ignored::load(cx).await?, left_out: AtomicU64::new(0) });
    let found = search(cx, options(Arc::<NotIgnored>::clone(&filter))).await?;
    Ok((found, filter.left_out.load(Ordering::Relaxed)))
}

struct OneFile(WsPath);

impl PathFilter for OneFile {
    fn accepts(&self, path: &str) -> bool {
        path == self.0.as_str()
    }
}

/// Files below a folder, without what git keeps for itself.
struct Below {
    folder: WsPath,
    glob: Option<Glob>,
    hidden: bool,
}

impl PathFilter for Below {
    fn accepts(&self, path: &str) -> bool {
        let Some(below) = below(path, &self.folder) else { return false };
        let is_passed_over = |name: &str| name == ".git" || (!self.hidden && name.starts_with('.'));
        !below.split('/').any(is_passed_over) && self.glob.as_ref().is_none_or(|glob| glob.accepts(path))
    }
}
