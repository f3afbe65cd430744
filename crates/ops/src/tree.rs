//! The files below a folder, for listings that show a whole tree.

use crate::glob::{Glob, SlashlessPattern};
use crate::locate::locate_glob;
use crate::search::{FolderFilter, SkipRules};
use std::{sync::Arc, time::Instant};
use toolrest_core::{CallCx, Depth, Find, FindResult, IgnoredFiles, PathFilter, Result, WsPath};

/// Finds all files below a folder, or those that a glob matches; a glob without a slash matches names at any depth. The
/// contents of `.git` are never found, nor what `.gitignore` excludes.
pub async fn tree_files(cx: &CallCx, folder: &WsPath, glob: Option<&str>, limit: usize) -> Result<FindResult> {
    let skip = SkipRules { hidden: true, ignored: IgnoredFiles::LeaveOut };
    let glob = glob.map(|glob| locate_glob(cx, glob, folder)).transpose()?;
    if let Some(glob) = &glob {
        // Checked here too, so that the error is about the glob.
        Glob::new(glob, folder.clone(), SlashlessPattern::Name)?;
    }
    let filter: Arc<dyn PathFilter> = Arc::new(FolderFilter::new(folder.clone(), glob.as_deref(), skip)?);
    let deadline = Instant::now() + cx.limits.search_timeout;
    let find = Find {
        folder: folder.clone(),
        depth: Depth::Descendants,
        paths: Some(filter),
        ignored: IgnoredFiles::LeaveOut,
        limit,
        deadline,
    };
    cx.workspace.find(find).await
}
