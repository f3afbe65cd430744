//! Taking the steps. What was expected is checked on files that are already out of everybody's way.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use rustix::fs::{Dir, OFlags};

use super::{
    plan::{Demand, Plan, Task},
    step::Step,
};
use crate::{
    Error, ErrorKind, Hash, Identity, Metadata, Result, Root, error::At, is_temporary, read, root::Place, sys,
};

/// Takes all steps in their order. Stops at the first that fails: what was done is then to be rolled back.
pub(super) fn apply(root: &Root, plan: &Plan<'_>) -> Result<()> {
    plan.tasks.iter().try_for_each(|task| take(root, task))
}

fn take(root: &Root, task: &Task<'_>) -> Result<()> {
    match &task.step {
        Step::MakeFolder { path, .. } => {
            let place = root.place(path).at(path)?;
            // Never wider than it is to be, and never closed to this process, which may have to put files into it.
            let mode = task.mode.map(|mode| mode & 0o7777 | 0o700);
            sys::make_folder(&place.folder, &place.name, mode.unwrap_or(0o777)).at(path)?;
            let folder = || root.open_real_folder(path, OFlags::RDONLY);
            mode.map_or(Ok(()), |mode| folder().and_then(|folder| sys::change_mode(folder, mode))).at(path)
        }
        Step::Remove { path, aside } => {
            let from = root.place(path).at(path)?;
            let to = root.place(aside).at(path)?;
            sys::rename(from.pair(), to.pair()).at(path)?;
            check(root, &to, aside, task.demand, path)
        }
        Step::Move { from: path, to, aside, .. } => {
            let from = root.place(path).at(path)?;
            let target = root.place(to).at(to)?;
            if let Some(aside) = aside {
                sys::link(target.pair(), root.place(aside).at(to)?.pair()).at(to)?;
                sys::rename(from.pair(), target.pair()).at(to)?;
            } else {
                sys::rename_to_free(from.pair(), target.pair()).at(to)?;
            }
            check(root, &target, to, task.demand, path)
        }
        Step::Add { path, staged, .. } => {
            let place = root.place(path).at(path)?;
            sys::link(root.place(staged).at(path)?.pair(), place.pair()).at(path)
        }
        Step::Replace { path, staged, aside, .. } => {
            let place = root.place(path).at(path)?;
            let backup = root.place(aside).at(path)?;
            sys::link(place.pair(), backup.pair()).at(path)?;
            check(root, &backup, aside, task.demand, path)?;
            // The name set aside is new. Whoever else gave it one since wants it rewritten in place.
            let known = task.write.as_ref().and_then(|write| write.old.as_ref()).map_or(1, |old| old.links);
            let now = place.stat().at(path)?;
            let set_aside = backup.stat().at(path)?;
            if now
                .is_none_or(|now| now.links > known + 1 || Some(now.identity) != set_aside.map(|aside| aside.identity))
            {
                return Err(changed(None, path));
            }
            sys::rename(root.place(staged).at(path)?.pair(), place.pair()).at(path)
        }
        Step::Rewrite { path, old, .. } => rewrite(root, task, path, *old),
    }
}

fn rewrite(root: &Root, task: &Task<'_>, path: &Path, old: Hash) -> Result<()> {
    let Some(write) = &task.write else { return Ok(()) };
    let file = root.place(path).and_then(|place| place.open(OFlags::RDWR)).at(path)?;
    let actual = read::hash_of(&file).at(path)?;
    // The file may have got these bytes by another of its names, in this commit.
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

/// Checks what now has a name that nobody else uses. Errors are about the path it had before.
fn check(root: &Root, place: &Place, at: &Path, demand: Demand, path: &Path) -> Result<()> {
    let same = |identity: Identity| match place.stat().at(path)? {
        Some(Metadata { identity: actual, .. }) if actual == identity => Ok(()),
        _ => Err(changed(None, path)),
    };
    match demand {
        Demand::Nothing => Ok(()),
        Demand::Same(identity) => same(identity),
        Demand::Content(expected) => {
            let actual = place.open(OFlags::RDONLY).and_then(read::hash_of).at(path)?;
            if actual == expected { Ok(()) } else { Err(changed(Some(actual), path)) }
        }
        Demand::EmptyFolder(identity) => {
            same(identity)?;
            check_empty(root, at, path)
        }
    }
}

/// Checks that a folder holds nothing but what earlier steps have set aside in it.
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
