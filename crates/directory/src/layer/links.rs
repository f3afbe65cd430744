//! Creates the hard links that a program created in its view.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};

use super::placing::{Put, copy, put_in_place};
use crate::{
    FolderLock, Identity, Kind, Metadata, Root,
    commit::{Leftovers, completion::discard},
    error::if_exists,
    git, read,
    root::EntryRef,
    sys,
    temporary::temporary_in,
};

impl FolderLock<'_> {
    /// Links the names of each group to one file, if their files have the same content. Names whose content others changed
    /// meanwhile, and those that cannot be linked, stay as they are.
    pub fn link_names(&mut self, groups: &[Vec<PathBuf>]) -> crate::Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        self.run_without_commit(|root| {
            let mut leftovers = Leftovers::None;
            for names in groups {
                let Some((first, others)) = names.split_first() else { continue };
                for other in others {
                    if link_name(root, first, other).is_err() {
                        leftovers = Leftovers::Possible;
                    }
                }
            }
            Ok(((), leftovers))
        })
    }
}

/// Links one name to the file of another.
fn link_name(root: &Root, first: &Path, other: &Path) -> rustix::io::Result<()> {
    let (Some(source), Some(target)) = (if_exists(root.entry_ref(first))?, if_exists(root.entry_ref(other))?) else {
        return Ok(());
    };
    let (Some(one), Some(two)) = (source.stat()?, target.stat()?) else { return Ok(()) };
    let rights = |file: &Metadata| (file.kind, file.mode, file.owner, file.group);
    if one.identity == two.identity || one.kind != Kind::File || rights(&one) != rights(&two) {
        return Ok(());
    }
    let path = temporary_in(root.identity(), other.parent().unwrap_or(Path::new("")))?;
    let staged = root.entry_ref(&path)?;
    if sys::link(source.pair(), staged.pair()).is_err() {
        return Ok(());
    }
    // The old file has a temporary name while it is compared, so nobody can change it by its name meanwhile.
    let linked = match sys::exchange(staged.pair(), target.pair()) {
        Ok(()) => match is_same(&staged, &target) {
            Ok(true) => Ok(()),
            different => {
                // If this fails, the changes of others stay at the temporary name.
                sys::exchange(staged.pair(), target.pair())?;
                different.map(drop)
            }
        },
        // Not every file system can exchange names.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    };
    discard(root, &path)?;
    linked
}

fn is_same(one: &EntryRef, other: &EntryRef) -> rustix::io::Result<bool> {
    let (one, other) = (one.open(OFlags::RDONLY)?, other.open(OFlags::RDONLY)?);
    let size = |file| sys::stat(file).map(|stat| stat.st_size);
    Ok(size(&one)? == size(&other)? && read::hash_of(&one)? == read::hash_of(&other)?)
}

/// Replaces one of several names of a file in the upper layer by a copy, so that no other name shares the transferred file.
pub(super) fn unshare(upper: &Root, path: &Path, left: &Metadata) -> rustix::io::Result<()> {
    if left.kind == Kind::File && left.links > 1 { copy(upper, &upper.entry_ref(path)?, path, left) } else { Ok(()) }
}

/// Files with several names that were copied to another file system.
#[derive(Default)]
pub(super) struct CopiedLinks(HashMap<Identity, (PathBuf, Identity)>);

impl CopiedLinks {
    /// Copies a file to another file system; links it if another name of it was copied before.
    pub(super) fn copy(&mut self, root: &Root, here: &EntryRef, to: &Path, left: &Metadata) -> rustix::io::Result<()> {
        let is_shared = left.kind == Kind::File && left.links > 1 && !git::is_within(to);
        if is_shared
            && let Some((first, identity)) = self.0.get(&left.identity)
            && link_again(root, first, *identity, to).unwrap_or(false)
        {
            return Ok(());
        }
        copy(root, here, to, left)?;
        if is_shared && let Some(copied) = root.entry_ref(to)?.stat()? {
            self.0.insert(left.identity, (to.to_owned(), copied.identity));
        }
        Ok(())
    }
}

/// Replaces whatever is at a path by another name of a file. Returns whether that was possible.
fn link_again(root: &Root, first: &Path, identity: Identity, to: &Path) -> rustix::io::Result<bool> {
    let path = temporary_in(root.identity(), to.parent().unwrap_or(Path::new("")))?;
    let (source, staged) = (root.entry_ref(first)?, root.entry_ref(&path)?);
    sys::link(source.pair(), staged.pair())?;
    let is_it = staged.stat()?.is_some_and(|linked| linked.identity == identity);
    let linked =
        if is_it { put_in_place((root, &path), (root, to), |_, _| Ok(false)) } else { Ok(Put::ChangedByOthers) };
    if linked != Ok(Put::Done) {
        discard(root, &path)?;
    }
    linked.map(|put| put == Put::Done)
}
