//! Names of temporary files that commits create.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::{Hash, Identity};

const PREFIX: &str = ".toolrest~";
/// Eight digits identify the root; the rest is random.
const DIGITS: usize = 32;

/// Whether a name is one of a commit's temporary files.
///
/// Such files are neither listed nor watched, and commits refuse to create them.
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_bytes()
        .strip_prefix(PREFIX.as_bytes())
        .is_some_and(|rest| rest.len() == DIGITS && rest.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a temporary name belongs to this root, and not to a root above or below it.
pub(crate) fn is_temporary_of(root: Identity, name: &OsStr) -> bool {
    is_temporary(name) && name.as_bytes().starts_with(prefix_of(root).as_bytes())
}

/// Returns an unpredictable temporary path in a folder.
pub(crate) fn temporary_in(root: Identity, folder: &Path) -> rustix::io::Result<PathBuf> {
    Ok(folder.join(format!("{}{:024x}", prefix_of(root), random()? >> 32)))
}

fn prefix_of(root: Identity) -> String {
    let digest = Hash::of(&[root.device.to_le_bytes(), root.inode.to_le_bytes()].concat());
    format!("{PREFIX}{}", &digest.to_string()[..8])
}

/// Returns a path for a file that could not be restored to its original path.
pub(crate) fn kept_copy_path(path: &Path) -> rustix::io::Result<PathBuf> {
    // Long names are cut, so that the suffix fits.
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
