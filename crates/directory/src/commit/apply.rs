//! Applies the steps of a commit. A file is first renamed or linked to a temporary name (`aside`), and its precondition
//! is checked there: others do not know that name.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use rustix::fs::{Dir, OFlags};

use super::{
    plan::{Plan, Precondition, Task},
    step::Step,
};
use crate::{
    Error, ErrorKind, Hash, Identity, Metadata, Result, Root, error::PathContext, is_temporary, read, root::EntryRef,
    sys,
};

/// Applies all steps in their order. Stops at the first failure; the caller then rolls back.
pub(super) fn apply(root: &Root, plan: &Plan<'_>) -> Result<()> {
    plan.tasks.iter().try_for_each(|task| apply_step(root, task))
}

fn apply_step(root: &Root, task: &Task<'_>) -> Result<()> {
    match &task.step {
        Step::MakeFolder { path, .. } => {
            let entry = root.entry_ref(path).at(path)?;
            // The folder is never more accessible than requested, but always writable for this process.
            let mode = task.mode.map(|mode| mode & 0o7777 | 0o700);
            sys::make_folder(&entry.folder, &entry.name, mode.unwrap_or(0o777)).at(path)?;
            let folder = || root.open_real_folder(path, OFlags::RDONLY);
            mode.map_or(Ok(()), |mode| folder().and_then(|folder| sys::change_mode(folder, mode))).at(path)
        }
        Step::Remove { path, aside } => {
            let from = root.entry_ref(path).at(path)?;
            let to = root.entry_ref(aside).at(path)?;
            sys::rename(from.pair(), to.pair()).at(path)?;
            check(root, &to, aside, task.precondition, path)
        }
        Step::Move { from: path, to, aside, .. } => {
            let from = root.entry_ref(path).at(path)?;
            let target = root.entry_ref(to).at(to)?;
            if let Some(aside) = aside {
                sys::link(target.pair(), root.entry_ref(aside).at(to)?.pair()).at(to)?;
                sys::rename(from.pair(), target.pair()).at(to)?;
            } else {
                sys::rename_to_free(from.pair(), target.pair()).at(to)?;
            }
            check(root, &target, to, task.precondition, path)
        }
        Step::Add { path, staged, .. } => {
            let entry = root.entry_ref(path).at(path)?;
            sys::link(root.entry_ref(staged).at(path)?.pair(), entry.pair()).at(path)
        }
        Step::Replace { path, staged, aside, .. } => {
            let entry = root.entry_ref(path).at(path)?;
            let backup = root.entry_ref(aside).at(path)?;
            sys::link(entry.pair(), backup.pair()).at(path)?;
            check(root, &backup, aside, task.precondition, path)?;
            // The temporary name adds one link. If there are more, somebody else added a link, and the file must be
            // rewritten in place instead.
            let links_before = task.write.as_ref().and_then(|write| write.old.as_ref()).map_or(1, |old| old.links);
            let now = entry.stat().at(path)?;
            let checked = backup.stat().at(path)?;
            if now.is_none_or(|now| {
                now.links > links_before + 1 || Some(now.identity) != checked.map(|checked| checked.identity)
            }) {
                return Err(changed(None, path));
            }
            sys::rename(root.entry_ref(staged).at(path)?.pair(), entry.pair()).at(path)
        }
        Step::Rewrite { path, old, .. } => rewrite(root, task, path, *old),
    }
}

fn rewrite(root: &Root, task: &Task<'_>, path: &Path, old: Hash) -> Result<()> {
    let Some(write) = &task.write else { return Ok(()) };
    let file = root.entry_ref(path).and_then(|entry| entry.open(OFlags::RDWR)).at(path)?;
    let actual = read::hash_of(&file).at(path)?;
    // This commit may have written the same bytes through another hard link.
    if actual != old && actual != Hash::of(write.bytes) {
        return Err(changed(Some(actual), path));
    }
    sys::write_at(&file, write.bytes, 0).at(path)?;
    sys::truncate(&file, write.bytes.len() as u64).at(path)?;
    if let Some(mode) = task.mode {
        sys::change_mode(&file, mode & 0o7777).at(path)?;
    }
    sys::sync(&file).at(path)
}

/// Checks the precondition of a step on a name that nobody else uses. Errors name the original path.
fn check(root: &Root, entry: &EntryRef, at: &Path, precondition: Precondition, path: &Path) -> Result<()> {
    let same = |identity: Identity| match entry.stat().at(path)? {
        Some(Metadata { identity: actual, .. }) if actual == identity => Ok(()),
        _ => Err(changed(None, path)),
    };
    match precondition {
        Precondition::Nothing => Ok(()),
        Precondition::Same(identity) => same(identity),
        Precondition::Content(expected) => {
            let actual = entry.open(OFlags::RDONLY).and_then(read::hash_of).at(path)?;
            if actual == expected { Ok(()) } else { Err(changed(Some(actual), path)) }
        }
        Precondition::EmptyFolder(identity) => {
            same(identity)?;
            check_empty(root, at, path)
        }
    }
}

/// Checks that a folder contains nothing but temporary files of earlier steps.
fn check_empty(root: &Root, at: &Path, path: &Path) -> Result<()> {
    let mut folder = root.open_real_folder(at, OFlags::RDONLY).and_then(Dir::new).at(path)?;
    while let Some(entry) = folder.read() {
        let entry = entry.at(path)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." && !is_temporary(name) {
            return Err(ErrorKind::NotEmpty.at(path));
        }
    }
    Ok(())
}

fn changed(actual: Option<Hash>, path: &Path) -> Error {
    ErrorKind::Changed { actual }.at(path)
}
