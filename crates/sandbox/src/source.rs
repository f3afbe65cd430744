//! What a job gets to see of the host.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{
    Result,
    step::{At, Failure, Step},
};

/// A file or folder of the host, held open. What is mounted is what was opened, whatever its path leads to by then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Source {
    /// Names it in messages; nothing is looked up by it.
    #[serde(with = "crate::job::bytes")]
    path: PathBuf,
    /// Travels beside an order, not in it, so that it is missing in what the launcher and the cells read.
    #[serde(skip)]
    held: Option<Held>,
}

#[derive(Debug, Clone)]
struct Held {
    descriptor: Arc<OwnedFd>,
    /// Device and inode, which are not given to anything else while it is open.
    identity: (u64, u64),
}

impl Source {
    /// Opens what stands at a path. The path must be the caller's own choice: links on it are followed.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let opened = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        Self::held(Arc::new(opened.on(Step::Mount, &path)?), path)
    }

    /// Takes what is open already, with the path that names it in messages.
    pub fn held(descriptor: Arc<OwnedFd>, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let stat = rustix::fs::fstat(&descriptor).on(Step::Mount, &path)?;
        Ok(Self { path, held: Some(Held { descriptor, identity: (stat.st_dev, stat.st_ino) }) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn descriptor(&self) -> std::result::Result<BorrowedFd<'_>, Failure> {
        let held = self.held.as_ref().ok_or(Errno::BADF).on(Step::Order, &self.path)?;
        Ok(held.descriptor.as_fd())
    }
}

/// Two are the same if the same file or folder is open, by whatever path.
impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        match (&self.held, &other.held) {
            (Some(one), Some(other)) => one.identity == other.identity,
            (None, None) => self.path == other.path,
            _ => false,
        }
    }
}

impl Eq for Source {}
