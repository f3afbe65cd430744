//! Where a path of the caller really leads, also where nothing is there yet.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};

use crate::{ErrorKind, Kind, Links, Result, Root, error::At, is_temporary, sys};

/// As many links in a row as the kernel follows.
const LONGEST_CHAIN_OF_LINKS: usize = 40;

/// Finds the real path that a path of the caller leads to. What is missing at its end may be made.
///
/// The kernel resolves each folder. A link at the end is followed here, as the file it names may be missing, but not
/// where `is_gone` says that the link will have been taken away.
pub(super) fn locate(root: &Root, path: &Path, links: Links, is_gone: impl Fn(&Path) -> bool) -> Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..LONGEST_CHAIN_OF_LINKS {
        check_name(&target, path)?;
        let (folder, rest) = deepest_folder(root, &target, path, &is_gone)?;
        let real = folder.join(&rest);
        if links == Links::Keep || rest.components().count() > 1 || is_gone(&real) {
            return Ok(real);
        }
        let place = root.place(&real).at(path)?;
        match place.stat().at(path)? {
            Some(metadata) if metadata.kind == Kind::Symlink => {
                let named = sys::read_link(&place.folder, &place.name).at(path)?;
                target = folder.join(PathBuf::from(OsString::from_vec(named)));
            }
            _ => return Ok(real),
        }
    }
    Err(ErrorKind::Loop.at(path))
}

/// Checks that no symbolic link is on a path, except where `is_gone` says that it will have been taken away. With
/// [`Links::Keep`] the path itself may be one.
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

/// Opens the deepest folder above a path that exists and stays, and gives its real path and the rest.
fn deepest_folder(
    root: &Root,
    target: &Path,
    path: &Path,
    is_gone: impl Fn(&Path) -> bool,
) -> Result<(PathBuf, PathBuf)> {
    for folder in target.ancestors().skip(1) {
        // A link that is taken away leads nowhere any more, and a folder may take its place.
        if is_gone(folder) {
            continue;
        }
        match root.open_path(folder, OFlags::PATH | OFlags::DIRECTORY) {
            Ok(opened) => {
                let rest = target.strip_prefix(folder).unwrap_or(target).to_owned();
                return Ok((root.real_path_of(&opened, path)?, rest));
            }
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotAFolder) => {
                // Below a folder that is missing, only plain names make sense.
                if !matches!(folder.components().next_back(), Some(Component::Normal(_))) {
                    return Err(error.kind.at(path));
                }
            }
            Err(error) => return Err(error.kind.at(path)),
        }
    }
    Err(ErrorKind::NotFound.at(path))
}

/// Checks that a path ends in a name that can be given to a file.
fn check_name(target: &Path, path: &Path) -> Result<()> {
    let kind = match target.components().next_back() {
        _ if target.is_absolute() => ErrorKind::Outside,
        Some(Component::Normal(name)) if is_temporary(name) => {
            ErrorKind::Invalid("the name is reserved for temporary files")
        }
        Some(Component::Normal(name)) if name.as_bytes().contains(&0) => ErrorKind::Invalid("it holds a NUL byte"),
        Some(Component::Normal(_)) => return Ok(()),
        Some(_) if target == path => ErrorKind::Invalid("it does not end in a name"),
        None if target == path => ErrorKind::Invalid("it is the root itself"),
        // A link that names a folder by its dots.
        _ => ErrorKind::IsFolder,
    };
    Err(kind.at(path))
}
