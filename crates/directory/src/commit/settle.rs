//! Finishing a commit or rolling it back, whatever was done of it. The failed commit itself and recovery both come here.
//!
//! Each step leaves names behind that tell how far it came, so that all of this can be interrupted at any point and
//! done again. Where somebody else has put a newer file in a place, theirs stays, and what belonged there is kept
//! beside it under a name that is not temporary.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Dir, OFlags, ResolveFlags},
    io::Errno,
};

use super::{step::Step, sweep::followed};
use crate::{
    Hash, Identity, Kind, Metadata, Result, Root,
    error::{At, found},
    read,
    root::Place,
    sys,
    temporary::kept_beside,
};

/// Removes what a commit that counts has set aside.
pub(super) fn finish(root: &Root, steps: &[Step]) -> Result<()> {
    steps.iter().flat_map(Step::leftovers).try_for_each(|path| discard(root, path).at(path))
}

/// Removes what a commit that counts right now has set aside, wherever others have moved it meanwhile.
pub(super) fn finish_at_once(root: &Root, steps: &[Step]) -> Result<()> {
    let mut is_moved = false;
    for path in steps.iter().flat_map(Step::leftovers) {
        is_moved |= !discarded(root, path).at(path)? && !steps.iter().any(|step| step.takes_away(path));
    }
    if is_moved { finish(root, &followed(root, steps)?) } else { Ok(()) }
}

/// Makes the names durable that the steps have changed: temporary ones first, so that nothing is replaced for good
/// before it is set aside for good.
pub(super) fn sync_folders(root: &Root, steps: &[Step]) -> Result<()> {
    let (first, second): (Vec<_>, Vec<_>) = steps.iter().map(Step::folders).unzip();
    let mut synced = BTreeSet::new();
    for folder in first.into_iter().flatten().chain(second.into_iter().flatten()) {
        if synced.insert(folder) {
            // A folder that is not there has been moved or removed: its names went with it.
            if let Some(opened) = found(root.open_real_folder(folder, OFlags::RDONLY)).at(folder)? {
                sys::sync(opened).at(folder)?;
            }
        }
    }
    Ok(())
}

/// Tells whether the file of a step that writes has its name, before anything is cleaned up.
pub(super) fn has_taken_effect(root: &Root, step: &Step) -> Result<bool> {
    let identity = |path: &Path| existing(root, path).at(path).map(|there| there.map(|(_, there)| there.identity));
    Ok(match step {
        Step::Add { path, staged, .. } => {
            let staged = identity(staged)?;
            staged.is_some() && staged == identity(path)?
        }
        Step::Replace { staged, aside, .. } => identity(staged)?.is_none() && identity(aside)?.is_some(),
        Step::MakeFolder { .. } | Step::Remove { .. } | Step::Move { .. } | Step::Rewrite { .. } => false,
    })
}

/// Undoes the steps, the last one first, and makes that durable. Gives the paths that others have changed.
pub(super) fn roll_back(root: &Root, steps: &[Step]) -> Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for step in steps.iter().rev() {
        undo(root, step, &mut kept)?;
    }
    sync_folders(root, steps)?;
    Ok(kept)
}

fn undo(root: &Root, step: &Step, kept: &mut Vec<PathBuf>) -> Result<()> {
    let (path, result) = match step {
        Step::MakeFolder { path, before } => (path, undo_make_folder(root, path, *before)),
        Step::Remove { path, aside } => (path, put_back(root, aside, path)),
        Step::Move { from, to, identity, aside } => (to, undo_move(root, from, to, *identity, aside.as_deref())),
        Step::Add { path, staged, hash } => (path, undo_add(root, path, staged, *hash)),
        Step::Replace { path, staged, aside, hash } => (path, undo_replace(root, path, staged, aside, *hash)),
        Step::Rewrite { path, aside, old, mode } => (path, undo_rewrite(root, path, aside, *old, *mode)),
    };
    if result.at(path)? == Undone::Kept {
        kept.push(path.clone());
    }
    Ok(())
}

/// Whether a path is as it was before the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undone {
    Restored,
    /// Somebody else has changed it, and that stays.
    Kept,
}

fn undo_make_folder(root: &Root, path: &Path, before: Option<Identity>) -> rustix::io::Result<Undone> {
    let made = existing(root, path)?.filter(|(_, there)| Some(there.identity) != before);
    let Some((place, _)) = made else { return Ok(Undone::Restored) };
    match sys::remove_folder(&place.folder, &place.name) {
        Ok(()) | Err(Errno::NOENT) => Ok(Undone::Restored),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(Undone::Kept),
        Err(errno) => Err(errno),
    }
}

fn undo_move(
    root: &Root,
    from: &Path,
    to: &Path,
    identity: Identity,
    aside: Option<&Path>,
) -> rustix::io::Result<Undone> {
    let mut undone = Undone::Restored;
    if let Some((target, metadata)) = existing(root, to)?
        && metadata.identity == identity
    {
        match found(root.place(from))?.map(|origin| sys::rename_to_free(target.pair(), origin.pair())) {
            Some(Ok(())) => {}
            None | Some(Err(Errno::EXIST)) => undone = Undone::Kept,
            Some(Err(errno)) => return Err(errno),
        }
    }
    if let Some(aside) = aside
        && put_back(root, aside, to)? == Undone::Kept
    {
        undone = Undone::Kept;
    }
    Ok(undone)
}

fn undo_add(root: &Root, path: &Path, staged: &Path, hash: Hash) -> rustix::io::Result<Undone> {
    let Some((_, staged_file)) = existing(root, staged)? else { return Ok(Undone::Restored) };
    let mut undone = Undone::Restored;
    if let Some((place, metadata)) = existing(root, path)?
        && metadata.identity == staged_file.identity
    {
        if has_content(&place, metadata, hash)? {
            sys::unlink(&place.folder, &place.name)?;
        } else {
            undone = Undone::Kept;
        }
    }
    discard(root, staged)?;
    Ok(undone)
}

fn undo_replace(root: &Root, path: &Path, staged: &Path, aside: &Path, hash: Hash) -> rustix::io::Result<Undone> {
    if existing(root, staged)?.is_some() {
        // Nothing was replaced. The staged file goes last, as it is the proof of that.
        discard(root, aside)?;
        discard(root, staged)?;
        return Ok(Undone::Restored);
    }
    if let (Some((backup, _)), Some((place, metadata))) = (existing(root, aside)?, existing(root, path)?)
        && has_content(&place, metadata, hash)?
    {
        sys::rename(backup.pair(), place.pair())?;
    }
    // Where the names led to one file, the rename did nothing; where somebody else's file is there, it stays.
    put_back(root, aside, path)
}

fn undo_rewrite(root: &Root, path: &Path, aside: &Path, old: Hash, mode: u32) -> rustix::io::Result<Undone> {
    let Some((backup, metadata)) = existing(root, aside)? else { return Ok(Undone::Restored) };
    // A copy that is not whole is one that was never needed: bytes change in place only when all is staged.
    if !has_content(&backup, metadata, old)? {
        discard(root, aside)?;
        return Ok(Undone::Restored);
    }
    let Some((place, now)) = existing(root, path)?.filter(|(_, now)| now.kind == Kind::File) else {
        return put_back(root, aside, path);
    };
    let file = place.open(OFlags::RDWR)?;
    if !has_content(&place, now, old)? {
        read::in_chunks(backup.open(OFlags::RDONLY)?, |offset, chunk| sys::write_at(&file, chunk, offset))?;
        sys::truncate(&file, metadata.size_bytes)?;
    }
    if now.mode != mode {
        sys::change_mode(&file, mode)?;
    }
    sys::sync(&file)?;
    discard(root, aside)?;
    Ok(Undone::Restored)
}

/// Gives what was set aside its old path again, if that is free and there is something.
fn put_back(root: &Root, aside: &Path, path: &Path) -> rustix::io::Result<Undone> {
    let Some((backup, metadata)) = existing(root, aside)? else { return Ok(Undone::Restored) };
    if let Some(place) = found(root.place(path))? {
        if place.stat()?.is_some_and(|there| there.identity == metadata.identity) {
            discard(root, aside)?;
            return Ok(Undone::Restored);
        }
        match sys::rename_to_free(backup.pair(), place.pair()) {
            Ok(()) => return Ok(Undone::Restored),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    let kept = kept_beside(&aside.with_file_name(path.file_name().unwrap_or_default()))?;
    sys::rename_to_free(backup.pair(), root.place(&kept)?.pair())?;
    Ok(Undone::Kept)
}

fn existing(root: &Root, path: &Path) -> rustix::io::Result<Option<(Place, Metadata)>> {
    let Some(place) = found(root.place(path))? else { return Ok(None) };
    Ok(place.stat()?.map(|metadata| (place, metadata)))
}

fn has_content(place: &Place, metadata: Metadata, hash: Hash) -> rustix::io::Result<bool> {
    Ok(metadata.kind == Kind::File && place.open(OFlags::RDONLY).and_then(read::hash_of)? == hash)
}

/// Removes a temporary file, or a folder with all that is in it. One that may not be removed stays: nobody sees it, and
/// no commit is to wait for it for ever.
pub(crate) fn discard(root: &Root, path: &Path) -> rustix::io::Result<()> {
    discarded(root, path).map(drop)
}

/// The same; tells whether it was there.
fn discarded(root: &Root, path: &Path) -> rustix::io::Result<bool> {
    let Some(place) = found(root.place(path))? else { return Ok(false) };
    let removed = match sys::unlink(&place.folder, &place.name) {
        Err(Errno::ISDIR) => discard_folder(root, path),
        removed => removed,
    };
    match removed {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
        Ok(()) | Err(Errno::PERM | Errno::ACCESS) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// A folder that is being emptied, with the folders in it that are still there.
struct Level {
    identity: Identity,
    below: Vec<OsString>,
}

/// Empties a folder from the bottom up, with one descriptor open at a time. It goes down and up by single names: what was
/// set aside at every depth has a path that is longer than any may be.
fn discard_folder(root: &Root, path: &Path) -> rustix::io::Result<()> {
    let mut at = root.open_real_folder(path, OFlags::RDONLY)?;
    let mut levels = vec![discard_files(&at)?];
    while let Some(level) = levels.last() {
        if let Some(name) = level.below.last() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            at = sys::open_beneath(&at, Path::new(name), flags, ResolveFlags::NO_SYMLINKS)?;
            levels.push(discard_files(&at)?);
            continue;
        }
        levels.pop();
        let Some(above) = levels.last_mut() else { break };
        at = sys::open_above(&at)?;
        if Metadata::from(sys::stat(&at)?).identity != above.identity {
            // Somebody has moved it away: what is there now is not ours.
            return Err(Errno::NOENT);
        }
        if let Some(name) = above.below.pop() {
            sys::remove_folder(&at, &name)?;
        }
    }
    let place = root.place(path)?;
    sys::remove_folder(&place.folder, &place.name)
}

/// Removes all files of a folder.
fn discard_files(folder: &OwnedFd) -> rustix::io::Result<Level> {
    let identity = Metadata::from(sys::stat(folder)?).identity;
    let mut below = Vec::new();
    let mut entries = Dir::read_from(folder)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        match sys::unlink(folder, name) {
            Err(Errno::ISDIR) => below.push(name.to_owned()),
            result => result?,
        }
    }
    Ok(Level { identity, below })
}
