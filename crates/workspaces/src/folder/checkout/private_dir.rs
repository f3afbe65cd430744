//! A private directory of the server for one program.

use crate::{Scratch, scratch};
use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    time::SystemTime,
};
use toolrest_core::{Result, ToolError};
use toolrest_directory::{Metadata, Root};
use toolrest_store::disk_fault::disk_fault;

/// A private directory, removed when it is dropped.
pub(super) struct PrivateDir {
    path: PathBuf,
    root: Root,
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        scratch::remove(&self.path);
    }
}

impl PrivateDir {
    pub(super) fn new(scratch: &Scratch) -> Result<Self> {
        let path = scratch.folder().map_err(disk_fault)?;
        let root = Root::open(&path).map_err(ToolError::internal)?;
        Ok(Self { path, root })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    fn upper(&self) -> PathBuf {
        self.path.join("upper")
    }

    /// Creates the upper layer and the kernel's work folder for the owner of the workspace's folder, whom programs run as.
    pub(super) fn create_layers(&self, of: &Metadata) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(self.path.join("work"))?;
        DirBuilder::new().mode(0o700).create(self.upper())?;
        // The root of the view has the permissions of the upper layer.
        fs::set_permissions(self.upper(), Permissions::from_mode(of.mode & 0o777))?;
        if fs::metadata(&self.path)?.uid() != of.owner {
            for path in [self.path.join("work"), self.upper(), self.path.clone()] {
                chown(path, Some(of.owner), Some(of.group))?;
            }
        }
        Ok(())
    }

    /// Opens the upper layer, whose permissions the program may have taken away.
    pub(super) fn open_upper(&self) -> Result<Root> {
        let upper = self.upper();
        let mode = fs::symlink_metadata(&upper).map_err(ToolError::internal)?.mode() & 0o777;
        if mode & 0o700 != 0o700 {
            fs::set_permissions(&upper, Permissions::from_mode(mode | 0o700)).map_err(ToolError::internal)?;
        }
        Root::open(&upper).map_err(ToolError::internal)
    }

    /// Returns the current time of the clock that file times are taken from.
    pub(super) fn file_time(&self) -> Result<SystemTime> {
        let mode = fs::metadata(&self.path).map_err(ToolError::internal)?.permissions();
        fs::set_permissions(&self.path, mode).map_err(ToolError::internal)?;
        self.root.metadata().map(|found| found.changed).map_err(ToolError::internal)
    }

    /// Removes all changes.
    pub(super) fn empty_upper(&self) -> io::Result<()> {
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
