//! Finding files by their paths.

use crate::glob::{Bare, Glob};
use crate::list::{entries_most, too_many};
use crate::locate::locate_glob;
use std::{sync::Arc, time::Instant};
use toolrest_core::{CallCx, Depth, Find, FindResult, IgnoredFiles, PathFilter, Result, WsPath};

/// Which files to find.
pub struct FilesOptions<'a> {
    /// Where to look.
    pub folder: &'a WsPath,
    /// Which to choose; without it, those directly in the folder.
    pub glob: Option<&'a str>,
    /// What to do about files that `.gitignore` leaves out. What is directly in a folder is always found.
    pub ignored: IgnoredFiles,
    /// The most files to give; all of them are counted.
    pub limit: usize,
}

/// Finds files. What git keeps for itself is never found.
pub async fn files(cx: &CallCx, options: &FilesOptions<'_>) -> Result<FindResult> {
    let folder = options.folder.clone();
    let glob = match options.glob {
        Some(glob) => Some(Glob::new(&locate_glob(cx, glob, &folder)?, folder.clone(), Bare::Path)?),
        None => None,
    };
    let is_deep = glob.as_ref().is_some_and(Glob::is_deep);
    let (depth, ignored) =
        if is_deep { (Depth::Descendants, options.ignored) } else { (Depth::Children, IgnoredFiles::Include) };
    let paths = Arc::new(Chosen { folder: folder.clone(), glob });
    let deadline = Instant::now() + cx.limits.search_timeout;
    cx.workspace.find(Find { folder, depth, paths: Some(paths), ignored, limit: options.limit, deadline }).await
}

/// Finds files, all of them or none.
pub async fn all_files(cx: &CallCx, folder: &WsPath, glob: Option<&str>, ignored: IgnoredFiles) -> Result<FindResult> {
    let limit = entries_most(cx);
    let found = files(cx, &FilesOptions { folder, glob, ignored, limit }).await?;
    if found.total > limit { Err(too_many(folder, limit)) } else { Ok(found) }
}

/// Files below a folder, without what git keeps for itself.
struct Chosen {
    folder: WsPath,
    glob: Option<Glob>,
}

impl Chosen {
    fn is_of_git(&self, path: &str) -> bool {
        self.folder.part_below(path).is_some_and(|below| below.split('/').any(|name| name == ".git"))
    }
}

impl PathFilter for Chosen {
    fn accepts(&self, path: &str) -> bool {
        self.glob.as_ref().is_none_or(|glob| glob.accepts(path)) && !self.is_of_git(path)
    }

    fn enters(&self, folder: &str) -> bool {
        self.glob.as_ref().is_none_or(|glob| glob.enters(folder)) && !self.is_of_git(folder)
    }
}
