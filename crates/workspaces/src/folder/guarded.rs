//! Files and folders of the server that no workspace may show.
//!
//! Bind mounts can show a folder, or a part of it, at several paths. So the paths of a guarded folder in all mounts are
//! compared with the folder to be opened.

use rustix::fs::{Mode, OFlags};
use std::{
    fs, io,
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

/// A file or folder of the server that no workspace may show.
#[derive(Clone, Debug)]
pub struct GuardedPath {
    /// Where it is, or where it will be created.
    pub path: PathBuf,
    /// Its description in the refusal: "the server's own data".
    pub what: &'static str,
    /// The setting or option that moves it elsewhere, for the refusal.
    pub setting: &'static str,
}

impl GuardedPath {
    /// A folder in which the server keeps its data.
    pub fn data(path: PathBuf) -> Self {
        Self { path, what: "the server's own data", setting: "the setting server.data_dir (--data-dir)" }
    }
}

/// Returns the first guarded file or folder that the folder at `opened` shows: it is the same, inside it, or above it.
///
/// One that does not exist yet is guarded where it would be created. A path that cannot be checked is an error.
pub(super) fn shown_by<'a>(
    opened: &Path,
    guarded: impl IntoIterator<Item = &'a GuardedPath>,
) -> io::Result<Option<&'a GuardedPath>> {
    let mounts = mounts(&fs::read_to_string("/proc/self/mountinfo")?)?;
    for guarded in guarded {
        for MountedPath { path, mount } in locations(&guarded.path)? {
            let seen = shown_at(&path, mount, &mounts);
            if seen.iter().any(|seen| seen.starts_with(opened) || opened.starts_with(seen)) {
                return Ok(Some(guarded));
            }
        }
    }
    Ok(None)
}

/// A real path, and the mount that it is on.
struct MountedPath {
    path: PathBuf,
    mount: u64,
}

/// Returns the target of a path, and the path of its last name: a symbolic link there could be replaced.
fn locations(path: &Path) -> io::Result<Vec<MountedPath>> {
    let mut locations = vec![locate(path)?];
    locations.extend(named_in(path)?);
    Ok(locations)
}

/// Returns the real path of what is at a path, or would be created there.
fn locate(path: &Path) -> io::Result<MountedPath> {
    // Not opened for reading, which could block or be forbidden.
    let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(io::Error::from);
    let missing = match opened {
        Ok(file) => {
            let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
            return Ok(MountedPath { path, mount: mount_id(file.as_fd())? });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => error,
        Err(error) => return Err(error),
    };
    if let Ok(target) = fs::read_link(path) {
        return locate(&parent(path).join(target));
    }
    named_in(path)?.ok_or(missing)
}

/// Returns the last name of a path, in the real path of its folder; none for a path without a name.
fn named_in(path: &Path) -> io::Result<Option<MountedPath>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let folder = locate(parent(path))?;
    Ok(Some(MountedPath { path: folder.path.join(name), ..folder }))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the paths at which mounts show a folder, or a part of it.
fn shown_at(path: &Path, mount: u64, mounts: &[Mount]) -> Vec<PathBuf> {
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

/// Decodes a path of the table, in which spaces, tabs, newlines and backslashes are octal numbers (`\040`).
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
