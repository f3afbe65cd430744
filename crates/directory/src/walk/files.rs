//! The files that a visitor processes together.

use std::{ops::Range, os::fd::OwnedFd, path::Path, sync::Arc};

use rustix::{
    fs::{OFlags, ResolveFlags},
    io::Errno,
};

use crate::{ErrorKind, Kind, Metadata, Reader, Result, sys};

/// The names of a folder's files, sorted like their paths.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The reported path of the folder, with a slash at the end.
    pub(super) folder: String,
    /// The names, concatenated.
    pub(super) text: String,
    pub(super) ends: Vec<usize>,
}

impl Names {
    pub(super) fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    fn name(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }

    pub(super) fn path(&self, index: usize) -> String {
        [&self.folder, self.name(index)].concat()
    }
}

/// An open folder of a thread.
pub(super) struct OpenFolder {
    pub(super) names: Arc<Names>,
    pub(super) folder: OwnedFd,
}

/// Some consecutive files of one folder.
pub struct Files<'a> {
    names: &'a Arc<Names>,
    range: Range<usize>,
    open: &'a mut Option<OpenFolder>,
    open_folder: &'a dyn Fn(&str) -> rustix::io::Result<OwnedFd>,
}

impl<'a> Files<'a> {
    pub(super) fn new(
        names: &'a Arc<Names>,
        range: Range<usize>,
        open: &'a mut Option<OpenFolder>,
        open_folder: &'a dyn Fn(&str) -> rustix::io::Result<OwnedFd>,
    ) -> Self {
        Self { names, range, open, open_folder }
    }

    /// Returns the number of files; never 0.
    #[allow(clippy::len_without_is_empty, reason = "it would always say no")]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns the reported path of a file.
    pub fn path(&self, index: usize) -> String {
        self.names.path(self.range.start + index)
    }

    /// Returns the paths of these files, for later use.
    pub fn paths(&self) -> Paths {
        Paths { names: Arc::clone(self.names), range: self.range.clone() }
    }

    /// Opens a file for reading, without blocking. Returns `None` if it is gone or not a file any more.
    pub fn open(&mut self, index: usize) -> Result<Option<Reader>> {
        let index = self.range.start + index;
        match self.open_name(self.names.name(index)) {
            Ok(reader) => Ok(reader),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => Ok(None),
            Err(errno) => Err(ErrorKind::from(errno).at(self.names.path(index))),
        }
    }

    fn open_name(&mut self, name: &str) -> rustix::io::Result<Option<Reader>> {
        if !self.open.as_ref().is_some_and(|open| Arc::ptr_eq(&open.names, self.names)) {
            let folder = (self.open_folder)(&self.names.folder)?;
            *self.open = Some(OpenFolder { names: Arc::clone(self.names), folder });
        }
        let Some(OpenFolder { folder, .. }) = &self.open else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = sys::open_beneath(folder, Path::new(name), flags, ResolveFlags::NO_SYMLINKS)?;
        let metadata = Metadata::from(sys::stat(&file)?);
        Ok((metadata.kind == Kind::File).then(|| Reader::new(file, metadata)))
    }
}

/// The paths of some consecutive files of one folder.
#[derive(Debug, Clone)]
pub struct Paths {
    names: Arc<Names>,
    range: Range<usize>,
}

impl Paths {
    /// Returns the number of paths; never 0.
    #[allow(clippy::len_without_is_empty, reason = "it would always say no")]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Keeps only the first paths.
    pub fn truncate(&mut self, count: usize) {
        self.range.end = self.range.end.min(self.range.start + count);
    }

    /// Returns the first path.
    pub fn first(&self) -> String {
        self.names.path(self.range.start)
    }

    /// Returns the path of the folder, with a slash at the end.
    pub fn folder(&self) -> &str {
        &self.names.folder
    }

    /// Returns the names of the files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.range.clone().map(|index| self.names.name(index))
    }
}
