//! The root folder, and the resolution of paths to descriptors.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{CWD, OFlags, ResolveFlags},
    io::Errno,
};

use crate::{
    Error, ErrorKind, Identity, Metadata, Repositories, Result, SymbolicLinks,
    error::{PathContext, if_exists},
    git, sys,
};

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Follow,
    Keep,
}

/// An open folder. All paths are resolved beneath it.
#[derive(Debug)]
pub struct Root {
    folder: Arc<OwnedFd>,
    opened_as: PathBuf,
    real: PathBuf,
    identity: Identity,
    symbolic_links: SymbolicLinks,
}

/// An open folder and a name in it, as system calls that change names need them.
pub(crate) struct EntryRef {
    pub(crate) folder: OwnedFd,
    pub(crate) name: OsString,
}

/// An open file or folder whose timestamps are to be updated.
pub struct TouchHandle {
    file: OwnedFd,
    real: PathBuf,
}

impl TouchHandle {
    pub fn touch(&self) -> Result<()> {
        sys::touch(&self.file).at(&self.real)
    }
}

impl EntryRef {
    pub(crate) fn pair(&self) -> (BorrowedFd<'_>, &OsStr) {
        (self.folder.as_fd(), &self.name)
    }

    /// Returns the metadata of the entry, if it exists.
    pub(crate) fn stat(&self) -> rustix::io::Result<Option<Metadata>> {
        if_exists(sys::stat_name(&self.folder, &self.name)).map(|stat| stat.map(Metadata::from))
    }

    /// Opens the entry if it is a file. Links are not followed.
    pub(crate) fn open(&self, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        sys::open_beneath(&self.folder, Path::new(&self.name), flags, ResolveFlags::NO_SYMLINKS)
    }
}

impl Root {
    /// Opens a folder as a root. This is the only path that may be absolute and that may lead anywhere.
    pub fn open(path: &Path) -> Result<Self> {
        let folder = sys::open_folder(path).at(path)?;
        match sys::open_beneath(&folder, Path::new("."), OFlags::PATH, ResolveFlags::empty()) {
            Err(Errno::NOSYS) => {
                Err(ErrorKind::Unsupported("the system call openat2 is missing (Linux 5.6 or newer has it)").at(path))
            }
            Err(errno) => Err(ErrorKind::from(errno).at(path)),
            Ok(_) => {
                let real = path_of(&folder).at(path)?;
                let identity = Metadata::from(sys::stat(&folder).at(path)?).identity;
                let (folder, opened_as) = (Arc::new(folder), path.to_owned());
                Ok(Self { folder, opened_as, real, identity, symbolic_links: SymbolicLinks::Follow })
            }
        }
    }

    /// Returns the same root for a caller that must reach every file by its own path: no path may lead through a symbolic
    /// link, which the kernel checks when it opens the path.
    #[must_use]
    pub fn refusing_links(&self) -> Self {
        Self {
            folder: Arc::clone(&self.folder),
            opened_as: self.opened_as.clone(),
            real: self.real.clone(),
            identity: self.identity,
            symbolic_links: SymbolicLinks::Refuse,
        }
    }

    /// Whether paths may lead through symbolic links.
    pub(crate) fn symbolic_links(&self) -> SymbolicLinks {
        self.symbolic_links
    }

    /// Returns the absolute path that the root had when it was opened, without symbolic links.
    pub fn real_path(&self) -> &Path {
        &self.real
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the descriptor of the folder, for callers that must use exactly this folder.
    pub fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.folder)
    }

    /// Returns the metadata of the root.
    pub fn metadata(&self) -> Result<Metadata> {
        Ok(sys::stat(&self.folder).at(&self.real)?.into())
    }

    /// Returns the descriptor of the root.
    pub(crate) fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Turns an absolute path inside the root into a relative one. Relative paths are returned unchanged.
    ///
    /// The path is not resolved here; that happens when it is opened.
    pub fn relative(&self, path: &Path) -> Result<PathBuf> {
        if path.is_relative() {
            return Ok(path.to_owned());
        }
        [&self.real, &self.opened_as]
            .iter()
            .find_map(|root| path.strip_prefix(root).ok())
            .map(Path::to_owned)
            .ok_or_else(|| ErrorKind::Outside.at(path))
    }

    /// Follows all symbolic links, and returns the real path relative to the root. The root itself is the empty path.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf> {
        let file = self.open_path(path, OFlags::PATH)?;
        self.real_path_of(&file, path)
    }

    /// Returns the metadata of a path.
    pub fn stat(&self, path: &Path, links: Links) -> Result<Metadata> {
        let flags = match links {
            Links::Follow => OFlags::PATH,
            Links::Keep => OFlags::PATH | OFlags::NOFOLLOW,
        };
        Ok(sys::stat(self.open_path(path, flags)?).at(path)?.into())
    }

    /// Returns the metadata of a real path, which must contain no symbolic links, or `None` if nothing is there.
    pub fn stat_real(&self, real: &Path) -> Result<Option<Metadata>> {
        match self.entry_ref(real).and_then(|entry| entry.stat()) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            described => described.at(real),
        }
    }

    /// Returns the metadata of a path, following links, if that needs no disk access.
    pub fn stat_cached(&self, path: &Path) -> Option<Metadata> {
        let file = self.open_cached(path, OFlags::PATH)?;
        sys::stat(file).ok().map(Metadata::from)
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, path: &Path) -> Result<Vec<u8>> {
        let link = self.open_path(path, OFlags::PATH | OFlags::NOFOLLOW)?;
        sys::read_link(&link, OsStr::new("")).at(path)
    }

    /// Opens a file or folder in order to update its timestamps.
    pub fn open_for_touch(&self, path: &Path, repositories: Repositories) -> Result<TouchHandle> {
        let file = self.open_path(path, OFlags::PATH)?;
        let real = self.real_path_of(&file, path)?;
        if repositories == Repositories::ReadOnly && git::leads_into(&real) {
            return Err(ErrorKind::Repository.at(real));
        }
        Ok(TouchHandle { file, real })
    }

    /// Opens a path given by the caller. Symbolic links that stay inside the root are followed, unless the root refuses them.
    pub(crate) fn open_path(&self, path: &Path, flags: OFlags) -> Result<OwnedFd> {
        let checked = checked(path)?;
        sys::open_beneath(&self.folder, checked, flags, self.resolve_flags()).map_err(|errno| match errno {
            Errno::LOOP if self.symbolic_links == SymbolicLinks::Refuse => ErrorKind::ThroughLink.at(path),
            errno => open_error(errno, path),
        })
    }

    fn resolve_flags(&self) -> ResolveFlags {
        match self.symbolic_links {
            SymbolicLinks::Follow => ResolveFlags::empty(),
            SymbolicLinks::Refuse => ResolveFlags::NO_SYMLINKS,
        }
    }

    /// Opens a path if everything on it is cached.
    pub(crate) fn open_cached(&self, path: &Path, flags: OFlags) -> Option<OwnedFd> {
        sys::open_beneath(&self.folder, checked(path).ok()?, flags, ResolveFlags::CACHED | self.resolve_flags()).ok()
    }

    /// Opens a folder by its real path, which must contain no symbolic links.
    pub(crate) fn open_real_folder(&self, real: &Path, access: OFlags) -> rustix::io::Result<OwnedFd> {
        let path = if real.as_os_str().is_empty() { Path::new(".") } else { real };
        sys::open_beneath(&self.folder, path, access | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS)
    }

    /// Opens the parent folder of a real path.
    pub(crate) fn entry_ref(&self, real: &Path) -> rustix::io::Result<EntryRef> {
        let name = real.file_name().ok_or(Errno::INVAL)?.to_owned();
        let folder = self.open_real_folder(real.parent().unwrap_or(Path::new("")), OFlags::PATH)?;
        Ok(EntryRef { folder, name })
    }

    /// Returns the path of a descriptor, relative to the root.
    pub(crate) fn real_path_of(&self, file: &OwnedFd, path: &Path) -> Result<PathBuf> {
        // The kernel marks the path of a deleted file with a suffix that a real name could have too.
        if sys::stat(file).at(path)?.st_nlink == 0 {
            return Err(ErrorKind::NotFound.at(path));
        }
        let root = path_of(&self.folder).at(path)?;
        let real = path_of(file).at(path)?;
        real.strip_prefix(root).map(Path::to_owned).map_err(|_| ErrorKind::Outside.at(path))
    }
}

/// Maps the error of opening a caller's path.
pub(crate) fn open_error(errno: Errno, path: &Path) -> Error {
    match errno {
        // The kernel's error for a path that would leave the folder.
        Errno::XDEV => ErrorKind::Outside,
        Errno::INVAL => ErrorKind::Invalid("it contains a NUL byte"),
        errno => errno.into(),
    }
    .at(path)
}

/// Refuses paths that cannot be beneath the root, and turns the empty path into `.`.
fn checked(path: &Path) -> Result<&Path> {
    match path.components().next() {
        None => Ok(Path::new(".")),
        Some(Component::RootDir | Component::Prefix(_)) => Err(ErrorKind::Outside.at(path)),
        Some(_) if path.as_os_str().as_bytes().contains(&0) => {
            Err(ErrorKind::Invalid("it contains a NUL byte").at(path))
        }
        Some(_) => Ok(path),
    }
}

fn path_of(file: &OwnedFd) -> rustix::io::Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    sys::read_link(CWD, OsStr::new(&link)).map(|path| PathBuf::from(OsString::from_vec(path)))
}
