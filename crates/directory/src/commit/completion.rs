//! Completes a commit or rolls it back, however far it came. Used by failed commits and by recovery.
//!
//! Each step leaves names behind that show how far it came, so completion and rollback can be interrupted and repeated.
//! If somebody else has created a newer file at a path, theirs stays, and the old file is kept next to it under a name
//! that is not temporary.

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

use super::{step::Step, temporaries::follow_moved_folders};
use crate::{
    Hash, Identity, Kind, Metadata, Result, Root,
    error::{PathContext, if_exists},
    read,
    root::EntryRef,
    sys,
    temporary::kept_copy_path,
};

/// Removes the temporary files of a completed commit.
pub(super) fn finish(root: &Root, steps: &[Step]) -> Result<()> {
    steps.iter().flat_map(Step::leftovers).try_for_each(|path| discard(root, path).at(path))
}

/// Removes the temporary files of a commit that was just completed, even if others have moved their folders meanwhile.
pub(super) fn finish_now(root: &Root, steps: &[Step]) -> Result<()> {
    let mut is_moved = false;
    for path in steps.iter().flat_map(Step::leftovers) {
        is_moved |= !try_discard(root, path).at(path)? && !steps.iter().any(|step| step.removes(path));
    }
    if is_moved { finish(root, &follow_moved_folders(root, steps)?) } else { Ok(()) }
}

/// Makes changed names durable: temporary names first, so that nothing is replaced durably before its backup is
/// durable.
pub(super) fn sync_folders(root: &Root, steps: &[Step]) -> Result<()> {
    let (first, second): (Vec<_>, Vec<_>) = steps.iter().map(Step::folders).unzip();
    let mut synced = BTreeSet::new();
    for folder in first.into_iter().flatten().chain(second.into_iter().flatten()) {
        if synced.insert(folder) {
            // A missing folder was moved or removed together with its names.
            if let Some(opened) = if_exists(root.open_real_folder(folder, OFlags::RDONLY)).at(folder)? {
                sys::sync(opened).at(folder)?;
            }
        }
    }
    Ok(())
}

/// Whether the file of a write step has its final name, before anything is cleaned up.
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

/// Undoes the steps in reverse order, and makes that durable. Returns the paths that others have changed.
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
    if result.at(path)? == UndoOutcome::Kept {
        kept.push(path.clone());
    }
    Ok(())
}

/// Whether a path is in the state before the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UndoOutcome {
    Restored,
    /// Somebody else has changed it, and their change stays.
    Kept,
}

fn undo_make_folder(root: &Root, path: &Path, before: Option<Identity>) -> rustix::io::Result<UndoOutcome> {
    let made = existing(root, path)?.filter(|(_, there)| Some(there.identity) != before);
    let Some((entry, _)) = made else { return Ok(UndoOutcome::Restored) };
    match sys::remove_folder(&entry.folder, &entry.name) {
        Ok(()) | Err(Errno::NOENT) => Ok(UndoOutcome::Restored),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(UndoOutcome::Kept),
        Err(errno) => Err(errno),
    }
}

fn undo_move(
    root: &Root,
    from: &Path,
    to: &Path,
    identity: Identity,
    aside: Option<&Path>,
) -> rustix::io::Result<UndoOutcome> {
    let mut undone = UndoOutcome::Restored;
    if let Some((target, metadata)) = existing(root, to)?
        && metadata.identity == identity
    {
        match if_exists(root.entry_ref(from))?.map(|origin| sys::rename_to_free(target.pair(), origin.pair())) {
            Some(Ok(())) => {}
            None | Some(Err(Errno::EXIST)) => undone = UndoOutcome::Kept,
            Some(Err(errno)) => return Err(errno),
        }
    }
    if let Some(aside) = aside
        && put_back(root, aside, to)? == UndoOutcome::Kept
    {
        undone = UndoOutcome::Kept;
    }
    Ok(undone)
}

fn undo_add(root: &Root, path: &Path, staged: &Path, hash: Hash) -> rustix::io::Result<UndoOutcome> {
    let Some((_, staged_file)) = existing(root, staged)? else { return Ok(UndoOutcome::Restored) };
    let mut undone = UndoOutcome::Restored;
    if let Some((entry, metadata)) = existing(root, path)?
        && metadata.identity == staged_file.identity
    {
        if has_content(&entry, metadata, hash)? {
            sys::unlink(&entry.folder, &entry.name)?;
        } else {
            undone = UndoOutcome::Kept;
        }
    }
    discard(root, staged)?;
    Ok(undone)
}

fn undo_replace(root: &Root, path: &Path, staged: &Path, aside: &Path, hash: Hash) -> rustix::io::Result<UndoOutcome> {
    if existing(root, staged)?.is_some() {
        // Nothing was replaced. The staged file proves that, so it is removed last.
        discard(root, aside)?;
        discard(root, staged)?;
        return Ok(UndoOutcome::Restored);
    }
    if let (Some((backup, _)), Some((entry, metadata))) = (existing(root, aside)?, existing(root, path)?)
        && has_content(&entry, metadata, hash)?
    {
        sys::rename(backup.pair(), entry.pair())?;
    }
    // If both names were the same file, the rename did nothing. A file that somebody else created stays.
    put_back(root, aside, path)
}

fn undo_rewrite(root: &Root, path: &Path, aside: &Path, old: Hash, mode: u32) -> rustix::io::Result<UndoOutcome> {
    let Some((backup, metadata)) = existing(root, aside)? else { return Ok(UndoOutcome::Restored) };
    // An incomplete copy was never needed: files are rewritten only after everything is staged.
    if !has_content(&backup, metadata, old)? {
        discard(root, aside)?;
        return Ok(UndoOutcome::Restored);
    }
    let Some((entry, now)) = existing(root, path)?.filter(|(_, now)| now.kind == Kind::File) else {
        return put_back(root, aside, path);
    };
    let file = entry.open(OFlags::RDWR)?;
    if !has_content(&entry, now, old)? {
        read::in_chunks(backup.open(OFlags::RDONLY)?, |offset, chunk| sys::write_at(&file, chunk, offset))?;
        sys::truncate(&file, metadata.size_bytes)?;
    }
    if now.mode != mode {
        sys::change_mode(&file, mode)?;
    }
    sys::sync(&file)?;
    discard(root, aside)?;
    Ok(UndoOutcome::Restored)
}

/// Moves a file that was set aside back to its path, if that is free.
fn put_back(root: &Root, aside: &Path, path: &Path) -> rustix::io::Result<UndoOutcome> {
    let Some((backup, metadata)) = existing(root, aside)? else { return Ok(UndoOutcome::Restored) };
    if let Some(entry) = if_exists(root.entry_ref(path))? {
        if entry.stat()?.is_some_and(|there| there.identity == metadata.identity) {
            discard(root, aside)?;
            return Ok(UndoOutcome::Restored);
        }
        match sys::rename_to_free(backup.pair(), entry.pair()) {
            Ok(()) => return Ok(UndoOutcome::Restored),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    let kept = kept_copy_path(&aside.with_file_name(path.file_name().unwrap_or_default()))?;
    sys::rename_to_free(backup.pair(), root.entry_ref(&kept)?.pair())?;
    Ok(UndoOutcome::Kept)
}

fn existing(root: &Root, path: &Path) -> rustix::io::Result<Option<(EntryRef, Metadata)>> {
    let Some(entry) = if_exists(root.entry_ref(path))? else { return Ok(None) };
    Ok(entry.stat()?.map(|metadata| (entry, metadata)))
}

fn has_content(entry: &EntryRef, metadata: Metadata, hash: Hash) -> rustix::io::Result<bool> {
    Ok(metadata.kind == Kind::File && entry.open(OFlags::RDONLY).and_then(read::hash_of)? == hash)
}

/// Removes a temporary file or folder. If removal is not permitted it stays: it is invisible, and must not block
/// commits forever.
pub(crate) fn discard(root: &Root, path: &Path) -> rustix::io::Result<()> {
    try_discard(root, path).map(drop)
}

/// Removes a temporary file or folder. Returns whether it existed.
fn try_discard(root: &Root, path: &Path) -> rustix::io::Result<bool> {
    let Some(entry) = if_exists(root.entry_ref(path))? else { return Ok(false) };
    let removed = match sys::unlink(&entry.folder, &entry.name) {
        Err(Errno::ISDIR) => discard_folder(root, path),
        removed => removed,
    };
    match removed {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
        Ok(()) | Err(Errno::PERM | Errno::ACCESS) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// A folder that is being emptied, with its remaining subfolders.
struct Level {
    identity: Identity,
    below: Vec<OsString>,
}

/// Empties a folder bottom-up with one open descriptor. It moves by single names, because nested folders that were set
/// aside can have a path longer than the limit.
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
            // The folder was moved away, and its new parent is not ours.
            return Err(Errno::NOENT);
        }
        if let Some(name) = above.below.pop() {
            sys::remove_folder(&at, &name)?;
        }
    }
    let entry = root.entry_ref(path)?;
    sys::remove_folder(&entry.folder, &entry.name)
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
