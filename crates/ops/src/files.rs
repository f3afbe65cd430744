//! Finding files by their paths.

use crate::glob::{Bare, Glob, below};
use crate::ignored::Ignored;
use crate::{heavy, list};
use toolrest_core::{CallCx, Depth, FileType, Listed, PathFilter, Result, WsPath};

/// Which files to find.
pub struct FilesOptions<'a> {
    /// Where to look.
    pub folder: &'a WsPath,
    /// Which to choose; without it, those directly in the folder.
    pub glob: Option<&'a str>,
    /// What to do about files that `.gitignore` leaves out. What is directly in a folder is always found.
    pub ignored: IgnoredFiles,
}

/// What to do about files that `.gitignore` leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredFiles {
    /// Leave them out, and count them.
    LeaveOut,
    /// Find them too.
    Include,
}

/// Files that were found, by path.
pub struct FilesFound {
    /// The files.
    pub files: Vec<Listed>,
    /// How many were left out by `.gitignore`.
    pub ignored: u64,
}

/// To look at a path is as much work as so many bytes of text.
const FILE_BYTES: usize = 32;

/// Finds files. What git keeps for itself is never found.
pub async fn files(cx: &CallCx, options: &FilesOptions<'_>) -> Result<FilesFound> {
    let folder = options.folder;
    let glob = options.glob.map(|glob| Glob::new(glob, folder.clone(), Bare::Path)).transpose()?;
    let is_deep = glob.as_ref().is_some_and(Glob::is_deep);
    let depth = if is_deep { Depth::Descendants } else { Depth::Children };
    let mut files = list(cx, folder, depth).await?;
    let ignored =
        if is_deep && options.ignored == IgnoredFiles::LeaveOut { Some(Ignored::load(cx).await?) } else { None };
    let folder = folder.clone();
    heavy::run(files.len() * FILE_BYTES, move || {
        files.retain(|file| {
            file.file_type != FileType::Folder
                && glob.as_ref().is_none_or(|glob| glob.accepts(file.path.as_str()))
                && !is_of_git(&file.path, &folder)
        });
        let before = files.len();
        files.retain(|file| ignored.as_ref().is_none_or(|ignored| !ignored.leaves_out(&file.path)));
        Ok(FilesFound { ignored: (before - files.len()) as u64, files })
    })
    .await
}

fn is_of_git(path: &WsPath, folder: &WsPath) -> bool {
    below(path.as_str(), folder).is_some_and(|below| below.split('/').any(|name| name == ".git"))
}
