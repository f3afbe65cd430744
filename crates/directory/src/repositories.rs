//! Finds the git repositories in a folder, and what git on the host follows from them.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Dir, FileType, OFlags};

use crate::{
    ErrorKind, Kind, Links, Metadata, Result, Root,
    error::{PathContext, if_exists},
    git::is_git,
    sys,
};

/// Size limit of `.git` and `commondir` files, which contain one path.
const NAMED_PATH_BYTES: u64 = 4096 + 64;

/// A `.git` of any type, or a folder elsewhere that one points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    pub path: PathBuf,
    pub metadata: Metadata,
}

impl Root {
    /// Finds every `.git` at any depth, including ignored folders, and what each points to beneath the root. Unreadable
    /// folders are skipped. Fails if there are more than `limit`.
    pub fn repositories(&self, limit: usize) -> Result<Vec<Repository>> {
        let mut repositories = BTreeMap::new();
        let mut pending = vec![PathBuf::new()];
        while let Some(folder) = pending.pop() {
            let Some(names) = self.names_for_git(&folder)? else { continue };
            for (name, is_folder) in names {
                let path = folder.join(&name);
                if !is_git(&name) {
                    pending.extend(is_folder.then_some(path));
                    continue;
                }
                for path in self.linked_paths(&path, &folder).into_iter().chain([path]) {
                    if let Ok(metadata) = self.stat(&path, Links::Keep) {
                        repositories.insert(path, metadata);
                    }
                }
                if repositories.len() > limit {
                    return Err(ErrorKind::Unsupported("the folder holds too many git repositories").at(&folder));
                }
            }
        }
        Ok(repositories.into_iter().map(|(path, metadata)| Repository { path, metadata }).collect())
    }

    /// Returns the subfolders and `.git` entries of a folder, each with whether it is a folder. Returns `None` if the
    /// folder is gone or unreadable; the root itself must be readable.
    fn names_for_git(&self, folder: &Path) -> Result<Option<Vec<(std::ffi::OsString, bool)>>> {
        let opened = match self.open_real_folder(folder, OFlags::RDONLY).and_then(Dir::new) {
            Err(_) if !folder.as_os_str().is_empty() => return Ok(None),
            opened => opened.at(folder)?,
        };
        let mut names = Vec::new();
        let mut entries = opened;
        while let Some(entry) = entries.read() {
            let entry = entry.at(folder)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let is_folder = match entry.file_type() {
                FileType::Unknown => {
                    let stat = if_exists(entries.fd().and_then(|fd| sys::stat_name(fd, name))).at(folder)?;
                    stat.is_some_and(|stat| Metadata::from(stat).kind == Kind::Folder)
                }
                kind => kind == FileType::Directory,
            };
            if is_folder || is_git(name) {
                names.push((name.to_owned(), is_folder));
            }
        }
        Ok(Some(names))
    }

    /// Returns the real paths that a `.git` points to, if they are elsewhere beneath the root: by a symbolic link, by
    /// `gitdir:` in a file, and from there by `commondir`. A folder that contains the `.git` itself does not count.
    fn linked_paths(&self, git: &Path, folder: &Path) -> Vec<PathBuf> {
        let Ok(mut real) = self.resolve(git) else { return Vec::new() };
        let mut linked_paths = vec![real.clone()];
        if let Some(named) = self.path_named_in(&real, b"gitdir: ") {
            let Ok(target) = self.resolve(&named) else { return linked_paths };
            real = target;
            linked_paths.push(real.clone());
        }
        let common = self.path_named_in(&real.join("commondir"), b"").and_then(|named| self.resolve(&named).ok());
        linked_paths.extend(common);
        linked_paths.retain(|path| !folder.starts_with(path));
        linked_paths
    }

    /// Returns the path beneath the root that a file contains, relative to the folder of the file.
    fn path_named_in(&self, file: &Path, prefix: &[u8]) -> Option<PathBuf> {
        let text = self.read(file, NAMED_PATH_BYTES).ok()?.bytes;
        let named = text.strip_prefix(prefix)?;
        let end = named.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
        let named = Path::new(OsStr::from_bytes(&named[..=end]));
        let folder = file.parent().unwrap_or(Path::new(""));
        if named.is_absolute() { self.relative(named).ok() } else { Some(folder.join(named)) }
    }
}
