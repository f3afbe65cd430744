//! Errors, each with the path it is about.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::Hash;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error at one path.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct Error {
    /// The path as the caller gave it, or the real path beneath the root, if it was resolved already.
    pub path: PathBuf,
    #[source]
    pub kind: ErrorKind,
}

/// The kind of an error.
#[derive(Debug, thiserror::Error)]
pub enum ErrorKind {
    #[error("the path leads out of the root")]
    Outside,
    #[error("no such file or folder")]
    NotFound,
    #[error("this is a folder")]
    IsFolder,
    #[error("this path, or a part of it, is not a folder")]
    NotAFolder,
    #[error("something already exists there")]
    Exists,
    /// The content is not the expected one. `actual` is `None` if there is no content to hash.
    #[error("the content is not the expected one")]
    Changed { actual: Option<Hash> },
    #[error("the folder is not empty")]
    NotEmpty,
    #[error("permission denied")]
    Denied,
    #[error("no space is left on the disk")]
    NoSpace,
    #[error("the file has {size_bytes} bytes, the limit is {limit_bytes}")]
    TooLarge { size_bytes: u64, limit_bytes: u64 },
    #[error("this is neither a file nor a folder")]
    Special,
    #[error("too many symbolic links")]
    Loop,
    /// The root refuses paths that lead through symbolic links.
    #[error("the path leads through a symbolic link")]
    ThroughLink,
    #[error("the path is not valid: {0}")]
    Invalid(&'static str),
    /// Two changes of one commit conflict with each other.
    #[error("another change of the same commit conflicts with it")]
    Overlap,
    /// The path leads into the `.git` folder of a repository, which is read-only.
    #[error("git's own files are read-only here")]
    Repository,
    /// An earlier commit was interrupted, or this one could not be rolled back. The caller must call `recover`.
    #[error("a commit was interrupted and must be recovered first")]
    Unfinished,
    /// Another process holds the lock of the root.
    #[error("another process has locked the folder")]
    Locked,
    #[error("not supported here: {0}")]
    Unsupported(&'static str),
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl ErrorKind {
    /// Returns an error of this kind at a path.
    pub(crate) fn at(self, path: impl AsRef<Path>) -> Error {
        Error { path: path.as_ref().to_owned(), kind: self }
    }
}

impl From<Errno> for ErrorKind {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotAFolder,
            Errno::ISDIR => Self::IsFolder,
            Errno::EXIST => Self::Exists,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            Errno::LOOP => Self::Loop,
            Errno::NAMETOOLONG => Self::Invalid("a name has more than 255 bytes, or the path more than 4095"),
            Errno::NXIO | Errno::NODEV => Self::Special,
            Errno::XDEV => Self::Unsupported("the change would cross from one file system to another"),
            other => Self::Io(other.into()),
        }
    }
}

/// Maps the error of a lock. `EAGAIN` means that somebody else holds it.
pub(crate) fn lock_error(errno: Errno) -> ErrorKind {
    if errno == Errno::AGAIN { ErrorKind::Locked } else { errno.into() }
}

impl From<io::Error> for ErrorKind {
    fn from(error: io::Error) -> Self {
        Errno::from_io_error(&error).map_or(Self::Io(error), Self::from)
    }
}

/// Attaches a path to the error of a system call.
pub(crate) trait PathContext<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T>;
}

impl<T> PathContext<T> for rustix::io::Result<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|errno| ErrorKind::from(errno).at(path))
    }
}

/// Maps "not found" to `None`. A parent that is not a folder, or that was replaced by a link, counts as not found.
pub(crate) fn if_exists<T>(result: rustix::io::Result<T>) -> rustix::io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(errno),
    }
}
