//! A folder that programs work in: looked over after they have run, and brought back to what it should hold.
//!
//! Programs may leave anything behind: links where folders were, pipes, names that are no text, folders that nobody may
//! enter, trees deeper than a path can say. Nothing here follows a link or waits for a pipe, and a program that still
//! runs can make it fail but not lead it elsewhere. Nothing is made durable.

mod removal;
mod scan;

pub use removal::remove_tree;
pub use scan::{IgnoreStatus, ScanVisitor};

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
    error::{At, if_exists},
    read::hash_of,
    root::EntryRef,
    sys,
};

/// The mode of folders in it.
const FOLDER_MODE: u32 = 0o755;

/// What the owner must be allowed to do in a folder.
const ALL_OF_OWNER: u32 = 0o700;

/// What the owner must be allowed to do with a file.
const READ_AND_WRITE_OF_OWNER: u32 = 0o600;

/// A folder for programs, and one beside it that they do not see.
#[derive(Debug)]
pub struct CheckoutDir {
    top: Root,
    /// On the same file system: what is written appears whole, and what is removed is gone at once.
    aside: OwnedFd,
    next_name: AtomicU64,
}

impl CheckoutDir {
    /// Creates a directory for programs in a folder of its own.
    pub fn create(folder: &Path) -> Result<Self> {
        let (top, aside) = (folder.join("files"), folder.join("aside"));
        for folder in [&top, &aside] {
            let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder);
            made.map_err(|error| ErrorKind::from(error).at(folder))?;
        }
        let opened = sys::open_folder(&aside).at(&aside)?;
        Ok(Self { top: Root::open(&top)?, aside: opened, next_name: AtomicU64::new(0) })
    }

    /// The folder that programs work in.
    pub fn top(&self) -> &Root {
        &self.top
    }

    /// Describes what stands at a path, a symbolic link itself included.
    pub fn stat(&self, path: &Path) -> Result<Option<Metadata>> {
        match self.entry_ref(path) {
            Ok(place) => place.stat().at(path),
            Err(errno) => if_exists(Err(errno)).at(path),
        }
    }

    /// Reads a file of at most so many bytes. Its metadata is of before it was read.
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

    /// Hashes a file, whatever its size. Its metadata is of before it was read.
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
            // Root can read it all the same, but the next program is not root.
            sys::change_mode(&file, metadata.mode | READ_AND_WRITE_OF_OWNER).at(path)?;
            metadata = Metadata::from(sys::stat(&file).at(path)?);
        }
        match metadata.kind {
            Kind::File => Ok((file, metadata)),
            Kind::Folder => Err(ErrorKind::IsFolder.at(path)),
            Kind::Symlink | Kind::Other => Err(ErrorKind::Special.at(path)),
        }
    }

    /// Makes a folder and those above it. Whatever else stood in the way is gone.
    pub fn make_folder(&self, path: &Path) -> Result<Metadata> {
        let place = self.room_for(path)?;
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

    /// Gives a file these bytes and this mode. Whatever else stood there is gone; who has it open keeps what it was.
    pub fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<Metadata> {
        let place = self.room_for(path)?;
        self.write_at(&place, bytes, mode).at(path)
    }

    fn write_at(&self, place: &EntryRef, bytes: &[u8], mode: u32) -> rustix::io::Result<Metadata> {
        let (file, is_aside) = match sys::create(&place.folder, &place.name, Mode::from_raw_mode(mode)) {
            Err(Errno::EXIST) => {
                let name = self.new_name();
                let file = sys::create(&self.aside, &name, Mode::from_raw_mode(mode))?;
                (file, Some(name))
            }
            created => (created?, None),
        };
        sys::write_at(&file, bytes, 0)?;
        if let Some(name) = is_aside {
            let from = (self.aside.as_fd(), &*name);
            if sys::rename(from, place.pair()).is_err() {
                self.clear_place(place)?;
                sys::rename(from, place.pair())?;
            }
        }
        let mut metadata = Metadata::from(sys::stat(&file)?);
        if metadata.mode != mode {
            // The process may mask modes.
            sys::change_mode(&file, mode)?;
            metadata = sys::stat(&file)?.into();
        }
        Ok(metadata)
    }

    /// Removes whatever stands at a path, with all that is below it.
    pub fn clear(&self, path: &Path) -> Result<()> {
        match if_exists(self.entry_ref(path)).at(path)? {
            None => Ok(()),
            Some(place) => self.clear_place(&place).at(path),
        }
    }

    /// Removes a folder if it is empty. Tells whether nothing is there any more.
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
        removal::move_out(place.pair(), (self.aside.as_fd(), &name))?;
        removal::remove_tree_at(&self.aside, &name)
    }

    /// A name in the folder aside that nothing has.
    fn new_name(&self) -> OsString {
        self.next_name.fetch_add(1, Ordering::Relaxed).to_string().into()
    }

    /// Opens the folder that a path lies in, also one that was closed to its owner.
    fn entry_ref(&self, path: &Path) -> rustix::io::Result<EntryRef> {
        match self.top.entry_ref(path) {
            Err(Errno::ACCESS) => {
                self.allow_owner(path.parent().unwrap_or(Path::new("")))?;
                self.top.entry_ref(path)
            }
            other => other,
        }
    }

    /// Opens the folder that a path lies in, and makes it where it is missing or something else.
    fn room_for(&self, path: &Path) -> Result<EntryRef> {
        match self.entry_ref(path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                let above = path.parent().filter(|above| !above.as_os_str().is_empty());
                self.make_folder(above.ok_or_else(|| ErrorKind::NotFound.at(path))?)?;
                self.entry_ref(path).at(path)
            }
            other => other.at(path),
        }
    }

    /// Gives the owner all rights on the folders on the way to a folder and on itself.
    fn allow_owner(&self, folder: &Path) -> rustix::io::Result<()> {
        // Even its own path cannot be looked up in a folder that is closed.
        allow_owner(self.top.folder())?;
        let mut way: Vec<&Path> = folder.ancestors().filter(|above| !above.as_os_str().is_empty()).collect();
        way.reverse();
        for folder in way {
            allow_owner(&self.top.open_real_folder(folder, OFlags::PATH)?)?;
        }
        Ok(())
    }
}

/// Gives the owner all rights on a folder that is open for its path.
fn allow_owner(folder: &OwnedFd) -> rustix::io::Result<()> {
    let mode = Metadata::from(sys::stat(folder)?).mode;
    if mode & ALL_OF_OWNER == ALL_OF_OWNER {
        return Ok(());
    }
    sys::change_mode_of_path(folder, mode | ALL_OF_OWNER)
}

/// Whether a name in a folder is the folder itself or the one above.
fn is_dots(name: &OsStr) -> bool {
    name == "." || name == ".."
}
