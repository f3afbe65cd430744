//! Replaces and removes entries of the folder.

use std::path::Path;

use rustix::{
    fs::{Mode, OFlags, Stat},
    io::Errno,
};

use crate::{
    Kind, Metadata, Root, commit::completion::discard, error::if_exists, root::EntryRef, sys, temporary::temporary_in,
};

/// The set-user-id and set-group-id bits, which are not transferred.
pub(super) const SET_ID: u32 = 0o6000;

pub(super) fn stat(root: &Root, path: &Path) -> rustix::io::Result<Option<Stat>> {
    match if_exists(root.entry_ref(path))? {
        Some(place) => if_exists(sys::stat_name(&place.folder, &place.name)),
        None => Ok(None),
    }
}

/// Removes what is at a path. A folder is renamed first, so that it is gone at once.
pub(super) fn take_away(root: &Root, path: &Path) -> rustix::io::Result<()> {
    if stat(root, path)?.is_none_or(|there| Metadata::from(there).kind != Kind::Folder) {
        return discard(root, path);
    }
    let aside = temporary_in(root.identity(), path.parent().unwrap_or(Path::new("")))?;
    match sys::rename_to_free(root.entry_ref(path)?.pair(), root.entry_ref(&aside)?.pair()) {
        Ok(()) => discard(root, &aside),
        // Something is mounted there, or it may not be renamed.
        Err(Errno::BUSY | Errno::XDEV | Errno::ACCESS | Errno::PERM) => discard(root, path),
        Err(errno) => Err(errno),
    }
}

/// The outcome of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// Others changed what is there: it stays.
    ChangedByOthers,
}

/// Replaces whatever is at a path in one step. What was there is checked once more before it is removed.
pub(super) fn put_in_place(
    from: (&Root, &Path),
    to: (&Root, &Path),
    is_changed: impl Fn(&Root, &Path) -> rustix::io::Result<bool>,
) -> rustix::io::Result<Put> {
    let (here, there) = (from.0.entry_ref(from.1)?, to.0.entry_ref(to.1)?);
    match sys::rename(here.pair(), there.pair()) {
        Err(Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {}
        renamed => return renamed.map(|()| Put::Done),
    }
    match sys::exchange(here.pair(), there.pair()) {
        Ok(()) => match is_changed(from.0, from.1) {
            Ok(false) => discard(from.0, from.1).map(|()| Put::Done),
            changed => {
                sys::exchange(here.pair(), there.pair())?;
                changed.map(|_| Put::ChangedByOthers)
            }
        },
        // Not every file system can exchange names.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if is_changed(to.0, to.1)? {
                return Ok(Put::ChangedByOthers);
            }
            take_away(to.0, to.1)?;
            sys::rename(here.pair(), there.pair()).map(|()| Put::Done)
        }
        Err(errno) => Err(errno),
    }
}

/// Copies a file or link to another file system, under a temporary name until it is complete.
pub(super) fn copy(root: &Root, here: &EntryRef, to: &Path, left: &Metadata) -> rustix::io::Result<()> {
    let path = temporary_in(root.identity(), to.parent().unwrap_or(Path::new("")))?;
    let staged = root.entry_ref(&path)?;
    let copied = if left.kind == Kind::Symlink {
        sys::read_link(&here.folder, &here.name)
            .and_then(|target| sys::make_link(&target, &staged.folder, &staged.name))
    } else {
        sys::create(&staged.folder, &staged.name, Mode::RUSR | Mode::WUSR).and_then(|file| {
            sys::copy(here.open(OFlags::RDONLY)?, &file)?;
            if sys::user() == 0 {
                sys::change_owner(&file, left.owner, left.group)?;
            }
            sys::change_mode(&file, left.mode & 0o7777 & !SET_ID)
        })
    };
    let done = copied.and_then(|()| put_in_place((root, &path), (root, to), |_, _| Ok(false)));
    if done.is_err() {
        let _ = sys::unlink(&staged.folder, &staged.name);
    }
    done.map(drop)
}
