//! Folders that no workspace may show, because the server keeps its own data in them.
//!
//! A folder can be seen at several paths at once: bind mounts show it, or a part of it, somewhere else. So the paths of
//! all mounts that show a guarded folder are compared with the folder that is to be opened, not only its own path.

use std::{
    fs::{self, File},
    io,
    os::fd::{AsFd, AsRawFd},
    path::{Path, PathBuf},
};

/// One mount, as `/proc/self/mountinfo` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    /// Device of the file system, as `major:minor`.
    device: String,
    /// The folder of the file system that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

/// Whether the folder at `opened` shows one of the guarded folders: is the same, lies in it, or holds it.
///
/// A guarded folder that does not exist cannot be shown. Any other failure to look is an error.
pub(super) fn shows_guarded(opened: &Path, guarded: &[PathBuf]) -> io::Result<bool> {
    let mounts = mounts(&fs::read_to_string("/proc/self/mountinfo")?)?;
    for folder in guarded {
        let folder = match File::open(folder) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let path = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
        let seen = seen_at(&path, mount_id(folder.as_fd())?, &mounts);
        if seen.iter().any(|seen| seen.starts_with(opened) || opened.starts_with(seen)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The paths at which a folder, or a part of it, can be seen.
fn seen_at(path: &Path, mount: u64, mounts: &[Mount]) -> Vec<PathBuf> {
    let mut seen = vec![path.to_owned()];
    let own = mounts.iter().find(|other| other.id == mount);
    let Some((own, below)) = own.and_then(|own| Some((own, path.strip_prefix(&own.point).ok()?))) else { return seen };
    let inside = own.root.join(below);
    for other in mounts.iter().filter(|other| other.device == own.device) {
        if let Ok(below) = inside.strip_prefix(&other.root) {
            seen.push(other.point.join(below));
        } else if other.root.starts_with(&inside) {
            seen.push(other.point.clone());
        }
    }
    seen
}

fn mount_id(file: std::os::fd::BorrowedFd<'_>) -> io::Result<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    id.ok_or_else(|| io::Error::other("/proc/self/fdinfo names no mount"))
}

/// Reads the table of mounts.
fn mounts(table: &str) -> io::Result<Vec<Mount>> {
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split(' ').take(5).collect();
        let [id, _parent, device, root, point] = fields[..] else { return None };
        Some(Mount { id: id.parse().ok()?, device: device.to_owned(), root: unescaped(root), point: unescaped(point) })
    };
    let parsed: Option<Vec<Mount>> = table.lines().map(parse).collect();
    parsed.ok_or_else(|| io::Error::other("/proc/self/mountinfo has a line that cannot be read"))
}

/// A path of the table: spaces, tabs, newlines and backslashes are written as octal numbers (`\040`).
fn unescaped(text: &str) -> PathBuf {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let octal = (*first == b'\\').then(|| after.get(..3)).flatten().and_then(|digits| str::from_utf8(digits).ok());
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
#[path = "guarded_tests.rs"]
mod tests;
