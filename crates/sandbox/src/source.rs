//! What a job gets to see of the host.

use std::{
    ffi::OsString,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
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
    label: PathBuf,
    /// Travels beside an order, not in it, so that it is missing in what the launcher and the cells read.
    #[serde(skip)]
    held: Option<Held>,
}

#[derive(Debug, Clone)]
struct Held {
    descriptor: Arc<OwnedFd>,
    /// Device and inode, which are not given to anything else while it is open.
    identity: (u64, u64),
    /// Where it was when it was taken, without links, and by which path it was found.
    paths: Vec<PathBuf>,
}

impl Source {
    /// Opens what stands at a path. The path must be the caller's own choice: links on it are followed.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let opened = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let mut source = Self::held(Arc::new(opened.on(Step::Mount, &path)?), path.clone())?;
        if let Some(held) = &mut source.held {
            held.paths.push(path);
        }
        Ok(source)
    }

    /// Takes what is open already, with the path that names it in messages.
    pub fn held(descriptor: Arc<OwnedFd>, label: impl Into<PathBuf>) -> Result<Self> {
        let label = label.into();
        let stat = rustix::fs::fstat(&descriptor).on(Step::Mount, &label)?;
        let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let real = rustix::fs::readlink(link, Vec::new()).on(Step::Mount, &label)?;
        let paths = vec![OsString::from_vec(real.into_bytes()).into()];
        Ok(Self { label, held: Some(Held { descriptor, identity: (stat.st_dev, stat.st_ino), paths }) })
    }

    /// The path that names it in messages. It need not lead to it.
    pub fn label(&self) -> &Path {
        &self.label
    }

    /// The paths of it that are known: where it was when it was taken, and the one by which it was found, if it was found
    /// by one. None in what the launcher and the cells read.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        self.held.as_ref().map_or(&[], |held| &held.paths)
    }

    /// Whether it lies in a folder, by any of the paths.
    pub(crate) fn is_within(&self, folder: &Self) -> bool {
        let is_below = |path: &PathBuf| folder.paths().iter().any(|above| path != above && path.starts_with(above));
        self.paths().iter().any(is_below)
    }

    pub(crate) fn descriptor(&self) -> std::result::Result<BorrowedFd<'_>, Failure> {
        let held = self.held.as_ref().ok_or(Errno::BADF).on(Step::Order, &self.label)?;
        Ok(held.descriptor.as_fd())
    }
}

/// Two are the same if the same file or folder is open, by whatever path.
impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        match (&self.held, &other.held) {
            (Some(one), Some(other)) => one.identity == other.identity,
            (None, None) => self.label == other.label,
            _ => false,
        }
    }
}

impl Eq for Source {}
