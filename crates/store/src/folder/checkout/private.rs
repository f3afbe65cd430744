//! A folder of the server's own, for one program.

use crate::disk_fault::disk_fault;
use crate::{Scratch, scratch};
use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    time::SystemTime,
};
use toolrest_core::{Result, ToolError};
use toolrest_directory::{Links, Root};

/// A folder of the server's own, removed when it is dropped.
pub(super) struct Private(PathBuf);

impl Drop for Private {
    fn drop(&mut self) {
        scratch::remove(&self.0);
    }
}

impl Private {
    pub(super) fn new(scratch: &Scratch) -> Result<Self> {
        scratch.folder().map(Self).map_err(disk_fault)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn upper(&self) -> PathBuf {
        self.0.join("upper")
    }

    /// Makes the folders of the view for the owner of the folder, whom programs run as.
    pub(super) fn fill(&self, folder: &Path) -> io::Result<()> {
        let of = fs::metadata(folder)?;
        DirBuilder::new().mode(0o700).create(self.0.join("work"))?;
        DirBuilder::new().mode(0o700).create(self.upper())?;
        // The root of the view looks as the upper folder does.
        fs::set_permissions(self.upper(), Permissions::from_mode(of.mode() & 0o777))?;
        if fs::metadata(&self.0)?.uid() != of.uid() {
            for path in [self.0.join("work"), self.upper(), self.0.clone()] {
                chown(path, Some(of.uid()), Some(of.gid()))?;
            }
        }
        Ok(())
    }

    /// The upper folder, which the program may have closed.
    pub(super) fn open(&self) -> Result<Root> {
        let upper = self.upper();
        let mode = fs::symlink_metadata(&upper).map_err(ToolError::internal)?.mode() & 0o777;
        if mode & 0o700 != 0o700 {
            fs::set_permissions(&upper, Permissions::from_mode(mode | 0o700)).map_err(ToolError::internal)?;
        }
        Root::open(&upper).map_err(ToolError::internal)
    }

    /// This moment, by the clock that files in the folder get their times from.
    pub(super) fn moment(&self) -> Result<SystemTime> {
        let mode = fs::metadata(&self.0).map_err(ToolError::internal)?.permissions();
        fs::set_permissions(&self.0, mode).map_err(ToolError::internal)?;
        let found = Root::open(&self.0).and_then(|folder| folder.stat(Path::new(""), Links::Keep));
        found.map(|found| found.changed).map_err(ToolError::internal)
    }

    /// Forgets what was changed.
    pub(super) fn empty(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.upper())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                scratch::remove(&entry.path());
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}
