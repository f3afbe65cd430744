//! The watched folders, each watched by its descriptor.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{
        Dir, FileType, OFlags, ResolveFlags,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    },
    io::{Errno, Result},
};

use super::{Event, batch::Batch};
use crate::{error::if_exists, is_temporary, sys};

/// Buffer size for events.
const BUFFER_BYTES: usize = 64 << 10;

/// Contents of repositories are not reported.
const REPOSITORY: &str = ".git";

/// Maximum depth of a path.
const MAX_DEPTH: usize = 4096;

/// One tree may use one part in this many of all inotify watches, so that others get some.
const SHARE: usize = 4;

/// The watched folders beneath a root, by the number of their watch.
pub(super) struct Tree {
    root: Arc<OwnedFd>,
    inotify: OwnedFd,
    folders: HashMap<i32, Position>,
    by_position: BTreeMap<Position, i32>,
    max_folders: usize,
    /// Folders that were moved away and may appear elsewhere, by the cookie of the move.
    moved_away: HashMap<u32, i32>,
    buffer: Vec<MaybeUninit<u8>>,
}

/// The parent folder and the name in it. The root has neither.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Position {
    above: Option<i32>,
    name: OsString,
}

/// An event as the kernel reports it.
struct RawEvent {
    watch: i32,
    flags: ReadFlags,
    move_number: u32,
    name: Option<OsString>,
}

impl Tree {
    pub(super) fn new(root: Arc<OwnedFd>) -> Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        Ok(Self {
            root,
            inotify,
            folders: HashMap::new(),
            by_position: BTreeMap::new(),
            max_folders: watches_of_user() / SHARE,
            moved_away: HashMap::new(),
            buffer,
        })
    }

    pub(super) fn inotify(&self) -> &OwnedFd {
        &self.inotify
    }

    /// Watches the root and all folders below it.
    pub(super) fn watch_all(&mut self) -> Result<()> {
        self.watch_below(Position { above: None, name: OsString::new() }, PathBuf::new(), |_| {})
    }

    /// Reads and handles pending events.
    pub(super) fn read(&mut self, batch: &mut Batch) {
        for raw in self.read_raw() {
            self.handle(raw, batch);
        }
    }

    /// Stops watching the folders that were moved out of the root.
    pub(super) fn unwatch_moved_away(&mut self) {
        let mut pending: Vec<i32> = self.moved_away.drain().map(|(_, watch)| watch).collect();
        while let Some(watch) = pending.pop() {
            let first = Position { above: Some(watch), name: OsString::new() };
            let below = self.by_position.range(first..).take_while(|(position, _)| position.above == Some(watch));
            pending.extend(below.map(|(_, watch)| *watch));
            self.forget(watch);
            // Fails only if the folder is gone.
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
    }

    fn read_raw(&mut self) -> Vec<RawEvent> {
        let mut events = Vec::new();
        let mut reader = Reader::new(&self.inotify, &mut self.buffer);
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
            events.push(RawEvent { watch: event.wd(), flags: event.events(), move_number: event.cookie(), name });
            if reader.is_buffer_empty() {
                break;
            }
        }
        events
    }

    fn handle(&mut self, raw: RawEvent, batch: &mut Batch) {
        let RawEvent { watch, flags, move_number, name } = raw;
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            // New folders may have been missed.
            let _ = self.watch_all();
            batch.add(Event::Unknown);
            return;
        }
        if flags.contains(ReadFlags::IGNORED) {
            self.forget(watch);
            return;
        }
        // Events of a folder itself are reported by its parent.
        let (Some(folder), Some(name)) = (self.path(watch), name) else { return };
        let path = folder.join(&name);
        let position = Position { above: Some(watch), name: name.clone() };
        let is_folder = flags.contains(ReadFlags::ISDIR);
        if flags.contains(ReadFlags::MOVED_FROM) {
            if is_hidden(&name) {
                return;
            }
            if is_folder {
                self.record_move_from(move_number, &position);
            }
            batch.add_moved_from(move_number, path);
        } else if is_hidden(&name) {
            // A file that gets a hidden name was removed, and that is already reported.
        } else if flags.contains(ReadFlags::MOVED_TO) {
            match batch.take_moved_from(move_number) {
                Some(from) => batch.add(Event::Moved { from, to: path.clone() }),
                // It comes from outside or from a temporary name. It may be new or replace an old file.
                None => batch.add(Event::Changed(path.clone())),
            }
            if is_folder {
                self.record_move_to(move_number, position, path, batch);
            }
        } else if flags.contains(ReadFlags::CREATE) {
            batch.add(Event::Created(path.clone()));
            if is_folder {
                self.watch_new(position, path, batch);
            }
        } else if flags.contains(ReadFlags::DELETE) {
            batch.add(Event::Removed(path));
        } else {
            batch.add(Event::Changed(path));
        }
    }

    /// Watches a new folder, and reports what was created in it before.
    fn watch_new(&mut self, position: Position, path: PathBuf, batch: &mut Batch) {
        if self.watch_below(position, path, |path| batch.add(Event::Created(path))).is_err() {
            batch.add(Event::Unknown);
        }
    }

    /// Watches a folder and its subfolders. Folders that are gone or unreadable are skipped.
    fn watch_below(&mut self, top: Position, path: PathBuf, mut entry_found: impl FnMut(PathBuf)) -> Result<()> {
        let mut pending = vec![(top, path)];
        while let Some((position, path)) = pending.pop() {
            let (watch, folder) = match self.watch_folder(position, &path) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NAMETOOLONG)
                    if !path.as_os_str().is_empty() =>
                {
                    continue;
                }
                watched => watched?,
            };
            let mut entries = Dir::new(folder)?;
            while let Some(entry) = entries.read() {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." || is_hidden(name) {
                    continue;
                }
                let is_folder = match entry.file_type() {
                    FileType::Unknown => if_exists(sys::stat_name(entries.fd()?, name))?
                        .is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
                    known => known == FileType::Directory,
                };
                let path = path.join(name);
                if is_folder {
                    pending.push((Position { above: Some(watch), name: name.to_owned() }, path.clone()));
                }
                entry_found(path);
            }
        }
        Ok(())
    }

    /// Watches one folder by its descriptor, opened without following links. Fails with `NOSPC` if there are too many
    /// watches, like the kernel.
    fn watch_folder(&mut self, position: Position, path: &Path) -> Result<(i32, OwnedFd)> {
        if self.folders.len() >= self.max_folders {
            return Err(Errno::NOSPC);
        }
        let beneath = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = sys::open_beneath(&self.root, beneath, flags, ResolveFlags::NO_SYMLINKS)?;
        let wanted = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        let link = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let watch = inotify::add_watch(&self.inotify, link, wanted)?;
        self.record(watch, position);
        Ok((watch, folder))
    }

    /// Records the position of a folder.
    fn record(&mut self, watch: i32, position: Position) {
        self.forget(watch);
        self.by_position.insert(position.clone(), watch);
        self.folders.insert(watch, position);
    }

    fn forget(&mut self, watch: i32) {
        if let Some(position) = self.folders.remove(&watch)
            && self.by_position.get(&position) == Some(&watch)
        {
            self.by_position.remove(&position);
        }
    }

    /// Returns the path of a folder relative to the root, or `None` if it is not beneath it.
    fn path(&self, watch: i32) -> Option<PathBuf> {
        let mut names = Vec::new();
        let mut position = self.folders.get(&watch)?;
        while let Some(above) = position.above {
            if names.len() == MAX_DEPTH {
                return None;
            }
            names.push(&position.name);
            position = self.folders.get(&above)?;
        }
        Some(names.into_iter().rev().collect())
    }

    /// Records that a folder was moved away.
    fn record_move_from(&mut self, move_number: u32, position: &Position) {
        let left = self.by_position.remove(position);
        self.moved_away.extend(left.map(|watch| (move_number, watch)));
    }

    /// Records the new position of a moved folder. The current state of the disk decides: events are late, and a swap
    /// of two folders is reported as two moves.
    fn record_move_to(&mut self, move_number: u32, position: Position, path: PathBuf, batch: &mut Batch) {
        let expected = self.moved_away.remove(&move_number);
        let known = self.folders.len();
        match (self.watch_folder(position.clone(), &path), expected) {
            // Its subfolders moved with it.
            (Ok((watch, _)), Some(expected)) if watch == expected => {}
            (Ok(_), other) => {
                if let Some((watch, position)) =
                    other.and_then(|watch| Some((watch, self.folders.get(&watch)?.clone())))
                {
                    self.record(watch, position);
                }
                if self.folders.len() > known {
                    self.watch_new(position, path, batch);
                }
            }
            // It was moved again already. The next event reports that.
            (Err(_), Some(expected)) => self.record(expected, position),
            (Err(Errno::NOSPC), None) => batch.add(Event::Unknown),
            (Err(_), None) => {}
        }
    }
}

/// Returns how many folders all processes of the server's user can watch together.
fn watches_of_user() -> usize {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    // If the limit cannot be read, the kernel still enforces it.
    limit.ok().and_then(|limit| limit.trim().parse().ok()).unwrap_or(usize::MAX)
}

/// Whether changes of a name are not reported.
fn is_hidden(name: &OsStr) -> bool {
    is_temporary(name) || name == REPOSITORY
}
