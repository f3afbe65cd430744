//! Writes new contents and backups to temporary files before anything changes.

use std::{
    ffi::OsStr,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::{
    plan::{Plan, Task, Write},
    step::Step,
};
use crate::{Metadata, Result, Root, error::PathContext, read, sys};

/// How many files are written before the first one is made durable. The file system can then write them together, and
/// few descriptors are open.
const BATCH: usize = 64;

/// Stages everything that the steps need, and makes it durable.
pub(super) fn stage(root: &Root, plan: &Plan<'_>) -> Result<()> {
    let writes: Vec<_> = plan.tasks.iter().filter_map(|task| Some((task, task.write.as_ref()?))).collect();
    for batch in writes.chunks(BATCH) {
        let staged = batch.iter().map(|(task, write)| stage_one(root, task, write)).collect::<Result<Vec<_>>>()?;
        for ((task, _), file) in batch.iter().zip(staged) {
            sys::sync(file).at(target(&task.step))?;
        }
    }
    for (task, _) in writes {
        if let Step::Rewrite { path, aside, .. } = &task.step {
            // The file will be rewritten in place, so the backup needs a durable name before.
            let folder = aside.parent().unwrap_or(Path::new(""));
            root.open_real_folder(folder, OFlags::RDONLY).and_then(sys::sync).at(path)?;
        }
    }
    Ok(())
}

fn stage_one(root: &Root, task: &Task<'_>, write: &Write<'_>) -> Result<OwnedFd> {
    let (step, mode) = (&task.step, task.mode);
    let path = target(step);
    let replaced = || root.entry_ref(write.old.as_ref().map_or(path, |old| &old.path))?.open(OFlags::RDONLY);
    match step {
        Step::Add { staged, .. } => add(root, staged, write.bytes, mode).at(path),
        Step::Replace { staged, .. } => {
            replaced().and_then(|old| replace(root, staged, write.bytes, mode, &old)).at(path)
        }
        Step::Rewrite { aside, .. } => replaced().and_then(|old| copy(root, aside, &old)).at(path),
        Step::MakeFolder { .. } | Step::Remove { .. } | Step::Move { .. } => Err(Errno::INVAL).at(path),
    }
}

fn target(step: &Step) -> &Path {
    match step {
        Step::MakeFolder { path, .. }
        | Step::Remove { path, .. }
        | Step::Move { to: path, .. }
        | Step::Add { path, .. }
        | Step::Replace { path, .. }
        | Step::Rewrite { path, .. } => path,
    }
}

fn add(root: &Root, staged: &Path, bytes: &[u8], mode: Option<u32>) -> rustix::io::Result<OwnedFd> {
    let file = create(root, staged, 0o666)?;
    sys::write_at(&file, bytes, 0)?;
    if let Some(mode) = mode {
        sys::change_mode(&file, mode & 0o7777)?;
    }
    Ok(file)
}

fn replace(root: &Root, staged: &Path, bytes: &[u8], mode: Option<u32>, old: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let file = create(root, staged, 0o600)?;
    sys::write_at(&file, bytes, 0)?;
    keep_metadata(old, &file, mode)?;
    Ok(file)
}

fn copy(root: &Root, aside: &Path, old: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let file = create(root, aside, 0o600)?;
    read::in_chunks(old, |offset, chunk| sys::write_at(&file, chunk, offset))?;
    keep_metadata(old, &file, None)?;
    Ok(file)
}

fn create(root: &Root, path: &Path, mode: u32) -> rustix::io::Result<OwnedFd> {
    let entry = root.entry_ref(path)?;
    sys::create(&entry.folder, &entry.name, Mode::from_raw_mode(mode))
}

/// Copies owner, attributes and mode of an old file, as far as permitted.
fn keep_metadata(old: &OwnedFd, new: &OwnedFd, mode: Option<u32>) -> rustix::io::Result<()> {
    let had = Metadata::from(sys::stat(old)?);
    let has = Metadata::from(sys::stat(new)?);
    let mut mode = mode.unwrap_or(had.mode) & 0o7777;
    if (had.owner, had.group) != (has.owner, has.group) && !permitted(sys::change_owner(new, had.owner, had.group))? {
        // Set-user-id and set-group-id are not kept if the owner or group changes.
        if had.owner != has.owner {
            mode &= !0o4000;
        }
        if had.group != has.group && !permitted(sys::change_owner(new, has.owner, had.group))? {
            mode &= !0o2000;
        }
    }
    keep_attributes(old, new)?;
    // Set last, because a change of owner clears bits, and access control lists set some.
    sys::change_mode(new, mode)
}

fn keep_attributes(old: impl AsFd, new: impl AsFd) -> rustix::io::Result<()> {
    let names = match sys::attribute_names(&old) {
        Err(Errno::NOTSUP) => return Ok(()),
        names => names?,
    };
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        // File capabilities are not kept, as with any write.
        if name == b"security.capability" {
            continue;
        }
        let name = OsStr::from_bytes(name);
        match sys::attribute(&old, name) {
            Ok(value) => permitted(sys::set_attribute(&new, name, &value))?,
            Err(errno) => permitted(Err(errno))?,
        };
    }
    Ok(())
}

/// Returns whether an operation was permitted. Other errors are returned.
fn permitted(result: rustix::io::Result<()>) -> rustix::io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::ACCESS | Errno::NOTSUP | Errno::NODATA | Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno),
    }
}
