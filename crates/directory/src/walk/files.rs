//! The files that a visitor looks at together.

use std::{ops::Range, os::fd::OwnedFd, path::Path, sync::Arc};

use rustix::{
    fs::{OFlags, ResolveFlags},
    io::Errno,
};

use crate::{ErrorKind, Kind, Metadata, Reader, Result, sys};

/// The names of a folder's files, sorted as their paths are.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The folder's path as it is shown, with a slash at the end.
    pub(super) folder: String,
    /// One after the other.
    pub(super) text: String,
    pub(super) ends: Vec<usize>,
}

impl Names {
    pub(super) fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    fn name(&self, place: usize) -> &str {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[place]]
    }

    pub(super) fn path(&self, place: usize) -> String {
        [&self.folder, self.name(place)].concat()
    }
}

/// A folder that a thread holds open.
pub(super) struct Open {
    pub(super) names: Arc<Names>,
    pub(super) folder: OwnedFd,
}

/// Some files of one folder that follow each other.
pub struct Files<'a> {
    names: &'a Arc<Names>,
    range: Range<usize>,
    open: &'a mut Option<Open>,
    open_folder: &'a dyn Fn(&str) -> rustix::io::Result<OwnedFd>,
}

impl<'a> Files<'a> {
    pub(super) fn new(
        names: &'a Arc<Names>,
        range: Range<usize>,
        open: &'a mut Option<Open>,
        open_folder: &'a dyn Fn(&str) -> rustix::io::Result<OwnedFd>,
    ) -> Self {
        Self { names, range, open, open_folder }
    }

    /// How many there are; never none.
    #[allow(clippy::len_without_is_empty, reason = "it would always say no")]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// The path of one of them, as it is shown.
    pub fn path(&self, place: usize) -> String {
        self.names.path(self.range.start + place)
    }

    /// The same files, to be looked at later by their paths.
    pub fn paths(&self) -> Paths {
        Paths { names: Arc::clone(self.names), range: self.range.clone() }
    }

    /// Opens one of them for reading; none if it is gone or no file any more. Nothing waits for what is no file.
    pub fn open(&mut self, place: usize) -> Result<Option<Reader>> {
        let place = self.range.start + place;
        match self.open_name(self.names.name(place)) {
            Ok(reader) => Ok(reader),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => Ok(None),
            Err(errno) => Err(ErrorKind::from(errno).at(self.names.path(place))),
        }
    }

    fn open_name(&mut self, name: &str) -> rustix::io::Result<Option<Reader>> {
        if !self.open.as_ref().is_some_and(|open| Arc::ptr_eq(&open.names, self.names)) {
            let folder = (self.open_folder)(&self.names.folder)?;
            *self.open = Some(Open { names: Arc::clone(self.names), folder });
        }
        let Some(Open { folder, .. }) = &self.open else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = sys::open_beneath(folder, Path::new(name), flags, ResolveFlags::NO_SYMLINKS)?;
        let metadata = Metadata::from(sys::stat(&file)?);
        Ok((metadata.kind == Kind::File).then(|| Reader::new(file, metadata)))
    }
}

/// The paths of some files of one folder that follow each other.
#[derive(Debug, Clone)]
pub struct Paths {
    names: Arc<Names>,
    range: Range<usize>,
}

impl Paths {
    /// How many there are; never none.
    #[allow(clippy::len_without_is_empty, reason = "it would always say no")]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// The first ones, as many as that.
    pub fn truncate(&mut self, count: usize) {
        self.range.end = self.range.end.min(self.range.start + count);
    }

    /// The path of the first one, as it is shown.
    pub fn first(&self) -> String {
        self.names.path(self.range.start)
    }

    /// The path of the folder that they all lie in, as it is shown, with a slash at the end.
    pub fn folder(&self) -> &str {
        &self.names.folder
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.range.clone().map(|place| self.names.name(place))
    }
}
