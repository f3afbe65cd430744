//! Resolves a caller's path to a real path, even if nothing is there yet.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};

use crate::{ErrorKind, Kind, Links, Result, Root, error::PathContext, is_temporary, sys};

/// Maximum number of links in a chain, like in the kernel.
const LONGEST_CHAIN_OF_LINKS: usize = 40;

/// Resolves a caller's path to a real path. Missing names at its end are allowed.
///
/// The kernel resolves each folder. A link at the end is resolved here, because its target may be missing, unless
/// `is_gone` says that the commit removes the link.
pub(super) fn locate(root: &Root, path: &Path, links: Links, is_gone: impl Fn(&Path) -> bool) -> Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..LONGEST_CHAIN_OF_LINKS {
        check_name(&target, path)?;
        let (folder, rest) = deepest_folder(root, &target, path, &is_gone)?;
        let real = folder.join(&rest);
        if links == Links::Keep || rest.components().count() > 1 || is_gone(&real) {
            return Ok(real);
        }
        let entry = root.entry_ref(&real).at(path)?;
        match entry.stat().at(path)? {
            Some(metadata) if metadata.kind == Kind::Symlink => {
                let named = sys::read_link(&entry.folder, &entry.name).at(path)?;
                target = folder.join(PathBuf::from(OsString::from_vec(named)));
            }
            _ => return Ok(real),
        }
    }
    Err(ErrorKind::Loop.at(path))
}

/// Checks that a path contains no symbolic link, except where `is_gone` says that the commit removes it. With
/// [`Links::Keep`] the path itself may be a link.
pub(super) fn locate_without_links(
    root: &Root,
    path: &Path,
    links: Links,
    is_gone: impl Fn(&Path) -> bool,
) -> Result<PathBuf> {
    check_name(path, path)?;
    let changed = || ErrorKind::Changed { actual: None }.at(path);
    for folder in path.ancestors().skip(1).filter(|folder| !is_gone(folder)) {
        match root.open_real_folder(folder, OFlags::PATH) {
            Ok(_) => break,
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(Errno::LOOP) => return Err(changed()),
            Err(errno) => return Err(ErrorKind::from(errno).at(path)),
        }
    }
    let is_link = || Ok(root.stat_real(path)?.is_some_and(|there| there.kind == Kind::Symlink));
    if links == Links::Follow && !is_gone(path) && is_link()? { Err(changed()) } else { Ok(path.to_owned()) }
}

/// Opens the deepest folder on a path that exists and is not removed. Returns its real path and the rest.
fn deepest_folder(
    root: &Root,
    target: &Path,
    path: &Path,
    is_gone: impl Fn(&Path) -> bool,
) -> Result<(PathBuf, PathBuf)> {
    for folder in target.ancestors().skip(1) {
        // A link that the commit removes leads nowhere, and a folder may replace it.
        if is_gone(folder) {
            continue;
        }
        match root.open_path(folder, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(opened) => {
                let rest = target.strip_prefix(folder).unwrap_or(target).to_owned();
                return Ok((root.real_path_of(&opened, path)?, rest));
            }
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotAFolder) => {
                // Below a missing folder, only plain names are possible.
                if !matches!(folder.components().next_back(), Some(Component::Normal(_))) {
                    return Err(error.kind.at(path));
                }
            }
            Err(error) => return Err(error.kind.at(path)),
        }
    }
    Err(ErrorKind::NotFound.at(path))
}

/// Checks that a path ends in a valid file name.
fn check_name(target: &Path, path: &Path) -> Result<()> {
    let kind = match target.components().next_back() {
        _ if target.is_absolute() => ErrorKind::Outside,
        Some(Component::Normal(name)) if is_temporary(name) => {
            ErrorKind::Invalid("the name is reserved for temporary files")
        }
        Some(Component::Normal(name)) if name.as_bytes().contains(&0) => ErrorKind::Invalid("it contains a NUL byte"),
        Some(Component::Normal(_)) => return Ok(()),
        Some(_) if target == path => ErrorKind::Invalid("it does not end in a name"),
        None if target == path => ErrorKind::Invalid("it is the root itself"),
        // A link whose target ends in dots.
        _ => ErrorKind::IsFolder,
    };
    Err(kind.at(path))
}
