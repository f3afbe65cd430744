//! The names of the files that a commit stages and sets aside.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::{Hash, Identity};

const PREFIX: &str = ".toolrest~";
/// Eight digits that say whose it is, and the rest to make it unforeseeable.
const DIGITS: usize = 32;

/// Tells whether a name is one that a commit gives to its temporary files.
///
/// Such files are neither listed nor watched, and a commit does not take their names.
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_bytes()
        .strip_prefix(PREFIX.as_bytes())
        .is_some_and(|rest| rest.len() == DIGITS && rest.iter().all(u8::is_ascii_hexdigit))
}

/// Tells whether a temporary name was given by a commit of this root, and not of one that lies above or below it.
pub(crate) fn is_temporary_of(root: Identity, name: &OsStr) -> bool {
    is_temporary(name) && name.as_bytes().starts_with(prefix_of(root).as_bytes())
}

/// Makes a name in a folder that nobody can foresee.
pub(crate) fn temporary_in(root: Identity, folder: &Path) -> rustix::io::Result<PathBuf> {
    Ok(folder.join(format!("{}{:024x}", prefix_of(root), random()? >> 32)))
}

fn prefix_of(root: Identity) -> String {
    let digest = Hash::of(&[root.device.to_le_bytes(), root.inode.to_le_bytes()].concat());
    format!("{PREFIX}{}", &digest.to_string()[..8])
}

/// Makes the name under which something is kept that could not go back to its place.
pub(crate) fn kept_beside(path: &Path) -> rustix::io::Result<PathBuf> {
    // A long name is cut, so that the ending still fits.
    const LONGEST_STEM_BYTES: usize = 200;
    let stem = path.file_name().unwrap_or_default().as_bytes();
    let mut name = stem[..stem.len().min(LONGEST_STEM_BYTES)].to_vec();
    name.extend_from_slice(format!(".before-{:08x}", random()? >> 96).as_bytes());
    Ok(path.with_file_name(OsStr::from_bytes(&name)))
}

fn random() -> rustix::io::Result<u128> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
    Ok(u128::from_ne_bytes(random))
}
