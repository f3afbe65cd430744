//! A directory that programs work in: it is scanned after they have run, and updated for the next one.
//!
//! Programs may leave anything behind: links in place of folders, pipes, names that are not text, folders without
//! permissions, trees deeper than any path. No operation follows a link or blocks on a pipe. A running program can make
//! operations fail, but not redirect them. Nothing is synced to disk.

mod removal;
mod scan;
mod size;

pub use removal::remove_tree;
pub use scan::{IgnoreStatus, ScanVisitor};
pub use size::tree_size;

use std::{
    ffi::{OsStr, OsString},
    fs::DirBuilder,
    io::Read,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::DirBuilderExt,
    },
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::{
    Content, ErrorKind, Hash, Kind, Metadata, Result, Root,
    error::{PathContext, if_exists},
    read::hash_of,
    root::EntryRef,
    sys,
};

/// The mode of new folders.
const FOLDER_MODE: u32 = 0o755;

/// The permissions that the owner of a folder needs.
const ALL_OF_OWNER: u32 = 0o700;

/// The permissions that the owner of a file needs.
const READ_AND_WRITE_OF_OWNER: u32 = 0o600;

/// A directory for programs, and one for temporary files that they do not see.
#[derive(Debug)]
pub struct CheckoutDir {
    top: Root,
    /// For files that are being written and trees that are being removed. It is on the same file system, so renames
    /// between the two are atomic.
    temporary: OwnedFd,
    next_name: AtomicU64,
}

impl CheckoutDir {
    /// Creates a directory for programs in a folder of its own.
    pub fn create(folder: &Path) -> Result<Self> {
        let (top, temporary) = (folder.join("files"), folder.join("aside"));
        for folder in [&top, &temporary] {
            let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder);
            made.map_err(|error| ErrorKind::from(error).at(folder))?;
        }
        let opened = sys::open_folder(&temporary).at(&temporary)?;
        Ok(Self { top: Root::open(&top)?, temporary: opened, next_name: AtomicU64::new(0) })
    }

    /// Returns the folder that programs work in.
    pub fn top(&self) -> &Root {
        &self.top
    }

    /// Returns the metadata of what is at a path, without following a symbolic link.
    pub fn stat(&self, path: &Path) -> Result<Option<Metadata>> {
        match self.entry_ref(path) {
            Ok(place) => place.stat().at(path),
            Err(errno) => if_exists(Err(errno)).at(path),
        }
    }

    /// Reads a file of at most so many bytes. The metadata is from before the read.
    pub fn read(&self, path: &Path, limit_bytes: u64) -> Result<Content> {
        let (file, metadata) = self.open_file(path)?;
        let too_large = |size_bytes| ErrorKind::TooLarge { size_bytes, limit_bytes }.at(path);
        if metadata.size_bytes > limit_bytes {
            return Err(too_large(metadata.size_bytes));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.size_bytes).unwrap_or(0));
        let read = std::fs::File::from(file).take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes);
        match read {
            Err(error) => Err(ErrorKind::Io(error).at(path)),
            Ok(count) if count as u64 > limit_bytes => Err(too_large(count as u64)),
            Ok(_) => Ok(Content { hash: Hash::of(&bytes), bytes, metadata }),
        }
    }

    /// Hashes a file of any size. The metadata is from before the read.
    pub fn hash(&self, path: &Path) -> Result<(Hash, Metadata)> {
        let (file, metadata) = self.open_file(path)?;
        Ok((hash_of(&file).at(path)?, metadata))
    }

    fn open_file(&self, path: &Path) -> Result<(OwnedFd, Metadata)> {
        let place = self.entry_ref(path).at(path)?;
        let file = match place.open(OFlags::RDONLY) {
            Err(Errno::ACCESS) => {
                let (name, flags) = (Path::new(&place.name), OFlags::PATH | OFlags::NOFOLLOW);
                let file = sys::open_beneath(&place.folder, name, flags, ResolveFlags::NO_SYMLINKS).at(path)?;
                let mode = Metadata::from(sys::stat(&file).at(path)?).mode;
                sys::change_mode_of_path(&file, mode | 0o400).at(path)?;
                place.open(OFlags::RDONLY).at(path)?
            }
            opened => opened.at(path)?,
        };
        let mut metadata = Metadata::from(sys::stat(&file).at(path)?);
        if metadata.kind == Kind::File && metadata.mode & READ_AND_WRITE_OF_OWNER != READ_AND_WRITE_OF_OWNER {
            // The server may run as root, which can read it; the next program does not.
            sys::change_mode(&file, metadata.mode | READ_AND_WRITE_OF_OWNER).at(path)?;
            metadata = Metadata::from(sys::stat(&file).at(path)?);
        }
        match metadata.kind {
            Kind::File => Ok((file, metadata)),
            Kind::Folder => Err(ErrorKind::IsFolder.at(path)),
            Kind::Symlink | Kind::Other => Err(ErrorKind::Special.at(path)),
        }
    }

    /// Creates a folder and those above it, and removes whatever else is at their paths.
    pub fn make_folder(&self, path: &Path) -> Result<Metadata> {
        let place = self.open_or_create_parent(path)?;
        match sys::make_folder(&place.folder, &place.name, FOLDER_MODE) {
            Err(Errno::EXIST) if place.stat().at(path)?.is_some_and(|there| there.kind != Kind::Folder) => {
                self.clear_place(&place).at(path)?;
                sys::make_folder(&place.folder, &place.name, FOLDER_MODE).at(path)?;
            }
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(ErrorKind::from(errno).at(path)),
        }
        place.stat().at(path)?.ok_or_else(|| ErrorKind::NotFound.at(path))
    }

    /// Writes a new file with these bytes and this mode, in place of whatever is at the path. Programs that have the old
    /// file open keep it.
    pub fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<Metadata> {
        let place = self.open_or_create_parent(path)?;
        self.write_at(&place, bytes, mode).at(path)
    }

    fn write_at(&self, place: &EntryRef, bytes: &[u8], mode: u32) -> rustix::io::Result<Metadata> {
        let (file, temporary_name) = match sys::create(&place.folder, &place.name, Mode::from_raw_mode(mode)) {
            Err(Errno::EXIST) => {
                let name = self.new_name();
                let file = sys::create(&self.temporary, &name, Mode::from_raw_mode(mode))?;
                (file, Some(name))
            }
            created => (created?, None),
        };
        sys::write_at(&file, bytes, 0)?;
        if let Some(name) = temporary_name {
            let from = (self.temporary.as_fd(), &*name);
            if sys::rename(from, place.pair()).is_err() {
                self.clear_place(place)?;
                sys::rename(from, place.pair())?;
            }
        }
        let mut metadata = Metadata::from(sys::stat(&file)?);
        if metadata.mode != mode {
            // The umask of the process may have changed the mode.
            sys::change_mode(&file, mode)?;
            metadata = sys::stat(&file)?.into();
        }
        Ok(metadata)
    }

    /// Removes whatever is at a path, with all that is below it.
    pub fn clear(&self, path: &Path) -> Result<()> {
        match if_exists(self.entry_ref(path)).at(path)? {
            None => Ok(()),
            Some(place) => self.clear_place(&place).at(path),
        }
    }

    /// Removes a folder if it is empty. Returns whether nothing is at the path any more.
    pub fn remove_empty_folder(&self, path: &Path) -> Result<bool> {
        let Some(place) = if_exists(self.entry_ref(path)).at(path)? else { return Ok(true) };
        match sys::remove_folder(&place.folder, &place.name) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(ErrorKind::from(errno).at(path)),
        }
    }

    fn clear_place(&self, place: &EntryRef) -> rustix::io::Result<()> {
        match sys::unlink(&place.folder, &place.name) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
        let name = self.new_name();
        removal::move_out(place.pair(), (self.temporary.as_fd(), &name))?;
        removal::remove_tree_at(&self.temporary, &name)
    }

    /// Returns a new name for a temporary file.
    fn new_name(&self) -> OsString {
        self.next_name.fetch_add(1, Ordering::Relaxed).to_string().into()
    }

    /// Opens the folder that a path is in, and gives its owner the permissions for that.
    fn entry_ref(&self, path: &Path) -> rustix::io::Result<EntryRef> {
        match self.top.entry_ref(path) {
            Err(Errno::ACCESS) => {
                self.allow_owner(path.parent().unwrap_or(Path::new("")))?;
                self.top.entry_ref(path)
            }
            other => other,
        }
    }

    /// Opens the folder that a path is in. Creates it if it is missing or something else.
    fn open_or_create_parent(&self, path: &Path) -> Result<EntryRef> {
        match self.entry_ref(path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                let above = path.parent().filter(|above| !above.as_os_str().is_empty());
                self.make_folder(above.ok_or_else(|| ErrorKind::NotFound.at(path))?)?;
                self.entry_ref(path).at(path)
            }
            other => other.at(path),
        }
    }

    /// Gives the owner all permissions on a folder and on those above it.
    fn allow_owner(&self, folder: &Path) -> rustix::io::Result<()> {
        // Without permissions on the top folder, no path in it can be opened.
        allow_owner(self.top.folder())?;
        let mut above: Vec<&Path> = folder.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
        above.reverse();
        for folder in above {
            allow_owner(&self.top.open_real_folder(folder, OFlags::PATH)?)?;
        }
        Ok(())
    }
}

/// Gives the owner all permissions on a folder that is open with `O_PATH`.
fn allow_owner(folder: &OwnedFd) -> rustix::io::Result<()> {
    let mode = Metadata::from(sys::stat(folder)?).mode;
    if mode & ALL_OF_OWNER == ALL_OF_OWNER {
        return Ok(());
    }
    sys::change_mode_of_path(folder, mode | ALL_OF_OWNER)
}

/// Whether a name is `.` or `..`.
fn is_dots(name: &OsStr) -> bool {
    name == "." || name == ".."
}
