//! Finding files by their paths.

use crate::glob::{Glob, SlashlessPattern};
use crate::list::{max_entries, too_many};
use crate::locate::locate_glob;
use std::{sync::Arc, time::Instant};
use toolrest_core::{CallCx, Depth, Find, FindResult, IgnoredFiles, PathFilter, Result, WsPath};

/// Options of [`files`].
pub struct FilesOptions<'a> {
    /// The folder.
    pub folder: &'a WsPath,
    /// The glob pattern; without it, the files directly in the folder.
    pub glob: Option<&'a str>,
    /// Whether to find files that `.gitignore` excludes. Files directly in the folder are always found.
    pub ignored: IgnoredFiles,
    /// Maximum number of files to return; all are counted.
    pub limit: usize,
}

/// Finds files. The contents of `.git` are never found.
pub async fn files(cx: &CallCx, options: &FilesOptions<'_>) -> Result<FindResult> {
    let folder = options.folder.clone();
    let glob = match options.glob {
        Some(glob) => Some(Glob::new(&locate_glob(cx, glob, &folder)?, folder.clone(), SlashlessPattern::Path)?),
        None => None,
    };
    let is_deep = glob.as_ref().is_some_and(Glob::is_deep);
    let (depth, ignored) =
        if is_deep { (Depth::Descendants, options.ignored) } else { (Depth::Children, IgnoredFiles::Include) };
    let paths = Arc::new(FileFilter { folder: folder.clone(), glob });
    let deadline = Instant::now() + cx.limits.search_timeout;
    let find = Find { folder, depth, paths: Some(paths), ignored, limit: options.limit, deadline };
    let mut found = cx.workspace.find(find).await?;
    for warning in std::mem::take(&mut found.warnings) {
        cx.warn(warning);
    }
    Ok(found)
}

/// Finds files. It is an error if they do not all fit into an answer.
pub async fn all_files(cx: &CallCx, folder: &WsPath, glob: Option<&str>, ignored: IgnoredFiles) -> Result<FindResult> {
    let limit = max_entries(cx);
    let found = files(cx, &FilesOptions { folder, glob, ignored, limit }).await?;
    if found.total > limit { Err(too_many(folder, limit)) } else { Ok(found) }
}

/// A filter for files below a folder, without the contents of `.git`.
struct FileFilter {
    folder: WsPath,
    glob: Option<Glob>,
}

impl FileFilter {
    fn is_of_git(&self, path: &str) -> bool {
        self.folder.part_below(path).is_some_and(|below| below.split('/').any(|name| name == ".git"))
    }
}

impl PathFilter for FileFilter {
    fn accepts(&self, path: &str) -> bool {
        self.glob.as_ref().is_none_or(|glob| glob.accepts(path)) && !self.is_of_git(path)
    }

    fn enters(&self, folder: &str) -> bool {
        self.glob.as_ref().is_none_or(|glob| glob.enters(folder)) && !self.is_of_git(folder)
    }
}
