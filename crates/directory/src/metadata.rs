//! Metadata of files.

use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Stat};

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    File,
    Folder,
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

/// Identifies a file independently of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    pub kind: Kind,
    pub size_bytes: u64,
    pub modified: SystemTime,
    /// When the content, the names or the permissions last changed (ctime). Programs cannot set it.
    pub changed: SystemTime,
    /// The permission bits, with set-user-id, set-group-id and sticky.
    pub mode: u32,
    pub owner: u32,
    pub group: u32,
    pub identity: Identity,
    /// Number of hard links.
    pub links: u64,
}

impl Metadata {
    /// Whether the owner may execute the file.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }
}

impl Kind {
    pub(crate) fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Symlink,
            _ => Self::Other,
        }
    }
}

impl From<Stat> for Metadata {
    // The types of the fields differ between architectures; the values fit on all.
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, clippy::useless_conversion)]
    fn from(stat: Stat) -> Self {
        Self {
            kind: Kind::of(FileType::from_raw_mode(stat.st_mode)),
            size_bytes: stat.st_size as u64,
            modified: instant(stat.st_mtime, stat.st_mtime_nsec as u32),
            changed: instant(stat.st_ctime, stat.st_ctime_nsec as u32),
            mode: stat.st_mode & 0o7777,
            owner: stat.st_uid,
            group: stat.st_gid,
            identity: Identity { device: stat.st_dev, inode: stat.st_ino },
            links: u64::from(stat.st_nlink),
        }
    }
}

fn instant(seconds: i64, nanoseconds: u32) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start =
        if seconds < 0 { SystemTime::UNIX_EPOCH.checked_sub(whole) } else { SystemTime::UNIX_EPOCH.checked_add(whole) };
    start
        .and_then(|start| start.checked_add(Duration::from_nanos(u64::from(nanoseconds))))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}
