//! Files and folders of the host that are mounted in a cell.

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
    step::{Failure, Step, StepContext},
};

/// An open file or folder of the host. The mount is made from the open descriptor, so later changes of its path have no
/// effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Source {
    /// The path used in messages. It is never resolved.
    #[serde(with = "crate::job::bytes")]
    label: PathBuf,
    /// The open descriptor. It is passed next to the request, so it is `None` in the launcher and in cells.
    #[serde(skip)]
    opened: Option<OpenSource>,
}

#[derive(Debug, Clone)]
struct OpenSource {
    descriptor: Arc<OwnedFd>,
    /// Device and inode. They are not reused while the descriptor is open.
    identity: (u64, u64),
    /// The resolved path at the time of opening, and the path it was opened by.
    paths: Vec<PathBuf>,
}

impl Source {
    /// Opens a path and follows symbolic links. The path must be chosen by the caller, not by a job.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let descriptor = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let mut source = Self::from_descriptor(Arc::new(descriptor.on(Step::Mount, &path)?), path.clone())?;
        if let Some(opened) = &mut source.opened {
            opened.paths.push(path);
        }
        Ok(source)
    }

    /// Takes a descriptor that is already open. The label is used in messages.
    pub fn from_descriptor(descriptor: Arc<OwnedFd>, label: impl Into<PathBuf>) -> Result<Self> {
        let label = label.into();
        let stat = rustix::fs::fstat(&descriptor).on(Step::Mount, &label)?;
        let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let real = rustix::fs::readlink(link, Vec::new()).on(Step::Mount, &label)?;
        let paths = vec![OsString::from_vec(real.into_bytes()).into()];
        Ok(Self { label, opened: Some(OpenSource { descriptor, identity: (stat.st_dev, stat.st_ino), paths }) })
    }

    /// Returns the path used in messages. It may no longer lead to the file.
    pub fn label(&self) -> &Path {
        &self.label
    }

    /// Returns the known paths: the resolved path at the time of opening, and the path it was opened by, if any. Empty
    /// in the launcher and in cells.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        self.opened.as_ref().map_or(&[], |opened| &opened.paths)
    }

    /// Whether this source is below the folder, by any of the known paths.
    pub(crate) fn is_within(&self, folder: &Self) -> bool {
        let is_below = |path: &PathBuf| folder.paths().iter().any(|above| path != above && path.starts_with(above));
        self.paths().iter().any(is_below)
    }

    pub(crate) fn descriptor(&self) -> std::result::Result<BorrowedFd<'_>, Failure> {
        let opened = self.opened.as_ref().ok_or(Errno::BADF).on(Step::Request, &self.label)?;
        Ok(opened.descriptor.as_fd())
    }
}

/// Sources are equal if they are the same file or folder, whatever their paths.
impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        match (&self.opened, &other.opened) {
            (Some(one), Some(other)) => one.identity == other.identity,
            (None, None) => self.label == other.label,
            _ => false,
        }
    }
}

impl Eq for Source {}
