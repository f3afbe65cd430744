//! The folders that are watched, each by its descriptor.

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
use crate::{error::found, is_temporary, sys};

/// Room for the events that the kernel gives at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// Where git keeps what is its own.
const REPOSITORY: &str = ".git";

/// How many folders a path can lead through, at most.
const DEEPEST: usize = 4096;

/// One tree gets at most this part of all folders that the server may watch, so that others are left some.
const SHARE: usize = 4;

/// The folders beneath a root that are watched. Each is known by the number of its watch.
pub(super) struct Tree {
    root: Arc<OwnedFd>,
    inotify: OwnedFd,
    folders: HashMap<i32, Place>,
    by_place: BTreeMap<Place, i32>,
    most_folders: usize,
    /// Folders that have left their place and may turn up at another one, by the number of the move.
    leaving: HashMap<u32, i32>,
    buffer: Vec<MaybeUninit<u8>>,
}

/// The folder above, and the name in it; the root has neither.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    above: Option<i32>,
    name: OsString,
}

/// An event as the kernel tells it.
struct Raw {
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
            by_place: BTreeMap::new(),
            most_folders: watches_of_user() / SHARE,
            leaving: HashMap::new(),
            buffer,
        })
    }

    pub(super) fn inotify(&self) -> &OwnedFd {
        &self.inotify
    }

    /// Watches the root and all folders below it.
    pub(super) fn watch_all(&mut self) -> Result<()> {
        self.watch_below(Place { above: None, name: OsString::new() }, PathBuf::new(), |_| {})
    }

    /// Reads what has happened.
    pub(super) fn read(&mut self, batch: &mut Batch) {
        for raw in self.read_raw() {
            self.take_in(raw, batch);
        }
    }

    /// Stops watching the folders that were moved out of the root.
    pub(super) fn forget_moved_away(&mut self) {
        let mut pending: Vec<i32> = self.leaving.drain().map(|(_, watch)| watch).collect();
        while let Some(watch) = pending.pop() {
            let first = Place { above: Some(watch), name: OsString::new() };
            let below = self.by_place.range(first..).take_while(|(place, _)| place.above == Some(watch));
            pending.extend(below.map(|(_, watch)| *watch));
            self.forget(watch);
            // It is gone already where the folder is.
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
    }

    fn read_raw(&mut self) -> Vec<Raw> {
        let mut events = Vec::new();
        let mut reader = Reader::new(&self.inotify, &mut self.buffer);
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
            events.push(Raw { watch: event.wd(), flags: event.events(), move_number: event.cookie(), name });
            if reader.is_buffer_empty() {
                break;
            }
        }
        events
    }

    fn take_in(&mut self, raw: Raw, batch: &mut Batch) {
        let Raw { watch, flags, move_number, name } = raw;
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            // Folders may have been made that nobody watches.
            let _ = self.watch_all();
            batch.add(Event::Unknown);
            return;
        }
        if flags.contains(ReadFlags::IGNORED) {
            self.forget(watch);
            return;
        }
        // What happens to a folder itself is told by the one above it.
        let (Some(folder), Some(name)) = (self.path(watch), name) else { return };
        let path = folder.join(&name);
        let place = Place { above: Some(watch), name: name.clone() };
        let is_folder = flags.contains(ReadFlags::ISDIR);
        if flags.contains(ReadFlags::MOVED_FROM) {
            if is_hidden(&name) {
                return;
            }
            if is_folder {
                self.let_leave(move_number, &place);
            }
            batch.add_moved_from(move_number, path);
        } else if is_hidden(&name) {
            // A file that goes to a hidden name is removed, which is told already.
        } else if flags.contains(ReadFlags::MOVED_TO) {
            match batch.take_moved_from(move_number) {
                Some(from) => batch.add(Event::Moved { from, to: path.clone() }),
                // It comes from outside or from a temporary name, and may be new or have replaced an old one.
                None => batch.add(Event::Changed(path.clone())),
            }
            if is_folder {
                self.let_arrive(move_number, place, path, batch);
            }
        } else if flags.contains(ReadFlags::CREATE) {
            batch.add(Event::Created(path.clone()));
            if is_folder {
                self.watch_new(place, path, batch);
            }
        } else if flags.contains(ReadFlags::DELETE) {
            batch.add(Event::Removed(path));
        } else {
            batch.add(Event::Changed(path));
        }
    }

    /// Watches a folder that is new, and tells what was put into it before it was watched.
    fn watch_new(&mut self, place: Place, path: PathBuf, batch: &mut Batch) {
        if self.watch_below(place, path, |path| batch.add(Event::Created(path))).is_err() {
            batch.add(Event::Unknown);
        }
    }

    /// Watches a folder and all that are below it. Those that are gone by now, or that nobody may read, are left out.
    fn watch_below(&mut self, top: Place, path: PathBuf, mut entry_found: impl FnMut(PathBuf)) -> Result<()> {
        let mut pending = vec![(top, path)];
        while let Some((place, path)) = pending.pop() {
            let (watch, folder) = match self.watch_folder(place, &path) {
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
                    FileType::Unknown => found(sys::stat_name(entries.fd()?, name))?
                        .is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
                    known => known == FileType::Directory,
                };
                let path = path.join(name);
                if is_folder {
                    pending.push((Place { above: Some(watch), name: name.to_owned() }, path.clone()));
                }
                entry_found(path);
            }
        }
        Ok(())
    }

    /// Watches one folder. It is opened without following any link, and watched by its descriptor. Fails with `NOSPC`
    /// where there are too many, as the kernel does.
    fn watch_folder(&mut self, place: Place, path: &Path) -> Result<(i32, OwnedFd)> {
        if self.folders.len() >= self.most_folders {
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
        self.put(watch, place);
        Ok((watch, folder))
    }

    /// Notes where a folder is.
    fn put(&mut self, watch: i32, place: Place) {
        self.forget(watch);
        self.by_place.insert(place.clone(), watch);
        self.folders.insert(watch, place);
    }

    fn forget(&mut self, watch: i32) {
        if let Some(place) = self.folders.remove(&watch)
            && self.by_place.get(&place) == Some(&watch)
        {
            self.by_place.remove(&place);
        }
    }

    /// The path of a folder, relative to the root; none where it does not lead there.
    fn path(&self, watch: i32) -> Option<PathBuf> {
        let mut names = Vec::new();
        let mut place = self.folders.get(&watch)?;
        while let Some(above) = place.above {
            if names.len() == DEEPEST {
                return None;
            }
            names.push(&place.name);
            place = self.folders.get(&above)?;
        }
        Some(names.into_iter().rev().collect())
    }

    /// Notes that a folder has left its place.
    fn let_leave(&mut self, move_number: u32, place: &Place) {
        let left = self.by_place.remove(place);
        self.leaving.extend(left.map(|watch| (move_number, watch)));
    }

    /// Notes where a folder has turned up. What stands there by now counts: events are told late, and two folders that
    /// are exchanged are told as two moves.
    fn let_arrive(&mut self, move_number: u32, place: Place, path: PathBuf, batch: &mut Batch) {
        let expected = self.leaving.remove(&move_number);
        let known = self.folders.len();
        match (self.watch_folder(place.clone(), &path), expected) {
            // All that is below it came along.
            (Ok((watch, _)), Some(expected)) if watch == expected => {}
            (Ok(_), other) => {
                if let Some((watch, place)) = other.and_then(|watch| Some((watch, self.folders.get(&watch)?.clone()))) {
                    self.put(watch, place);
                }
                if self.folders.len() > known {
                    self.watch_new(place, path, batch);
                }
            }
            // It has gone on already, which is told next.
            (Err(_), Some(expected)) => self.put(expected, place),
            (Err(Errno::NOSPC), None) => batch.add(Event::Unknown),
            (Err(_), None) => {}
        }
    }
}

/// How many folders all processes of the server's user can watch together.
fn watches_of_user() -> usize {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    // Where it cannot be read, the kernel still refuses what is too much.
    limit.ok().and_then(|limit| limit.trim().parse().ok()).unwrap_or(usize::MAX)
}

/// Whether nobody is told of what has a name.
fn is_hidden(name: &OsStr) -> bool {
    is_temporary(name) || name == REPOSITORY
}
