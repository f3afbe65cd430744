//! Transfers what has no versions from the upper layer to the folder: ignored trees, links, files over the limits.
//!
//! Transfers run under the folder lock, before or after a commit. A whole tree is created, replaced or removed in one step,
//! so that a crash leaves the old or the new one. Where the program changed only some files of a folder, this holds for
//! each file. Every folder is opened by its real path, without following symbolic links, and entries are changed through
//! its descriptor: nothing outside of the two folders is touched.
//!
//! A file that others changed since the program started stays, and the program's version becomes a conflict copy. A tree
//! in which others changed anything is not removed or replaced as a whole.

use std::{
    ffi::{OsStr, OsString},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{OFlags, Stat},
    io::Errno,
};

use super::{
    OWNER,
    baseline::{Baseline, is_changed_below, is_changed_since},
    is_opaque, is_whiteout,
    links::{CopiedLinks, unshare},
    names, open_for_owner,
    placing::{Put, SET_ID, put_in_place, stat, take_away},
};
use crate::{
    ErrorKind, FolderLock, Kind, Metadata, Result, Root,
    commit::{Leftovers, completion::discard},
    error::{PathContext, if_exists},
    git::{self, Check, ObjectFormat, Rule},
    root::EntryRef,
    sys,
    temporary::temporary_in,
};

/// Maximum size of files that are compared or checked for what git would execute.
const COMPARED_BYTES: usize = 1 << 20;

/// Maximum size of an index that is checked: it has about 100 bytes for each file.
const INDEX_BYTES: usize = 256 << 20;

/// Maximum number of files that are synced one by one. For more, the whole file system is synced.
const MAX_SYNCED_ONE_BY_ONE: usize = 64;

/// Something that was not transferred.
#[derive(Debug)]
pub struct NotTransferred {
    /// Its destination.
    pub path: PathBuf,
    pub why: NotTransferredReason,
}

/// Why something is not transferred.
#[derive(Debug)]
pub enum NotTransferredReason {
    /// A pipe, a socket or a device.
    Special,
    /// Git would execute what it says.
    GitConfig,
    /// Somebody else changed what is there. What the program left, if anything, became a conflict copy.
    ChangedByOthers {
        kept_as: Option<PathBuf>,
    },
    /// Somebody else changed a file in the repository that the program changed too: the repository stays as it is.
    RepositoryChanged,
    Failed(ErrorKind),
}

/// What a transfer preserves in the folder.
pub struct TransferRules<'a> {
    /// Paths in transferred trees that a commit has changed already.
    pub committed: &'a [PathBuf],
    /// The state since which changes by others are preserved.
    pub baseline: &'a Baseline,
    /// Returns the path of the conflict copy for a path.
    pub conflict_path: &'a dyn Fn(&Path) -> Option<PathBuf>,
}

impl FolderLock<'_> {
    /// Removes what is at a path, with all that is below it.
    pub fn clear(&mut self, path: &Path) -> Result<()> {
        self.run_without_commit(|root| take_away(root, path).at(path).map(|()| ((), Leftovers::None)))
    }

    /// Transfers what is at a path of the upper layer, with all that is below it, to a path of this root. It replaces
    /// what is there, except what others changed and what is committed.
    ///
    /// Extended attributes, the set-user-id and set-group-id bits, and what git would execute are not transferred.
    pub fn transfer(
        &mut self,
        upper: &Root,
        from: &Path,
        to: &Path,
        rules: &TransferRules<'_>,
    ) -> Result<Vec<NotTransferred>> {
        self.run_without_commit(|root| {
            for path in rules.committed.iter().filter(|path| path.starts_with(from)) {
                discard(upper, path).at(path)?;
            }
            let (pending, made, not_transferred, copied) = (Vec::new(), Vec::new(), Vec::new(), CopiedLinks::default());
            let mut work = Transfer { root, upper, rules, pending, made, not_transferred, copied };
            match work.make_parents(from, to) {
                Ok(()) => work.pending.push((from.to_owned(), to.to_owned())),
                Err(error) => work.leave(to, NotTransferredReason::Failed(error.kind)),
            }
            while let Some((from, to)) = work.pending.pop() {
                if let Err(errno) = work.transfer_entry(&from, &to) {
                    work.leave(&to, NotTransferredReason::Failed(errno.into()));
                }
            }
            apply_all_permissions(root, &work.made).at(to)?;
            let has_failed = work
                .not_transferred
                .iter()
                .any(|not_transferred| matches!(not_transferred.why, NotTransferredReason::Failed(_)));
            Ok((work.not_transferred, if has_failed { Leftovers::Possible } else { Leftovers::None }))
        })
    }

    /// Syncs what was transferred to these paths.
    pub fn make_durable(&mut self, paths: &[PathBuf]) -> Result<()> {
        let root = self.root();
        if paths.len() > MAX_SYNCED_ONE_BY_ONE {
            return root.open_real_folder(Path::new(""), OFlags::RDONLY).and_then(sys::sync_all).at(root.real_path());
        }
        for path in paths {
            let folder = path.parent().unwrap_or(Path::new(""));
            let sync_file = root.entry_ref(path).and_then(|place| place.open(OFlags::RDONLY)).and_then(sys::sync);
            let sync_folder = || root.open_real_folder(folder, OFlags::RDONLY).and_then(sys::sync);
            match sync_file {
                // A link has only its name. Somebody else has removed or closed the others.
                Ok(()) | Err(Errno::LOOP | Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
                failed => failed.at(path)?,
            }
            if_exists(sync_folder()).at(folder)?;
        }
        Ok(())
    }

    /// Applies the permissions of what a program left to what is at a path, and the owner if it is new.
    pub fn apply_permissions(&mut self, path: &Path, left: &Metadata, owner: Owner) -> Result<()> {
        let owner = (owner == Owner::AsLeft).then_some((left.owner, left.group));
        let mode = if left.kind == Kind::Folder { left.mode | OWNER } else { left.mode };
        apply_permissions(self.root(), path, mode, owner).at(path)
    }
}

/// The owner that something gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The owner that it has.
    Same,
    /// The user that the program ran as, if this process may change owners.
    AsLeft,
}

fn apply_permissions(root: &Root, path: &Path, mode: u32, owner: Option<(u32, u32)>) -> rustix::io::Result<()> {
    let place = root.entry_ref(path)?;
    let Some(now) = place.stat()?.filter(|now| matches!(now.kind, Kind::File | Kind::Folder)) else { return Ok(()) };
    if let Some((owner, group)) = owner.filter(|owner| sys::user() == 0 && *owner != (now.owner, now.group)) {
        sys::change_owner_of(&place.folder, &place.name, owner, group)?;
    }
    let mode = mode & 0o7777 & !SET_ID;
    if mode == now.mode { Ok(()) } else { sys::change_mode_of(&place.folder, &place.name, mode) }
}

/// Applies the modes of folders from the bottom up: a mode may forbid to enter the folder.
fn apply_all_permissions(root: &Root, made: &[(PathBuf, u32)]) -> rustix::io::Result<()> {
    made.iter().rev().try_for_each(|(path, mode)| apply_permissions(root, path, *mode, None))
}

struct Transfer<'a> {
    root: &'a Root,
    upper: &'a Root,
    rules: &'a TransferRules<'a>,
    /// What is still to be transferred, and where to.
    pending: Vec<(PathBuf, PathBuf)>,
    /// Folders that were created or merged, with the modes that they get at the end.
    made: Vec<(PathBuf, u32)>,
    not_transferred: Vec<NotTransferred>,
    copied: CopiedLinks,
}

impl Transfer<'_> {
    fn leave(&mut self, path: &Path, why: NotTransferredReason) {
        self.not_transferred.push(NotTransferred { path: path.to_owned(), why });
    }

    /// Creates the missing folders above a path, with the permissions that they have in the upper layer.
    fn make_parents(&mut self, from: &Path, to: &Path) -> Result<()> {
        let missing = |folder: &&Path| matches!(if_exists(self.root.open_real_folder(folder, OFlags::PATH)), Ok(None));
        let above: Vec<&Path> = to.ancestors().skip(1).take_while(missing).collect();
        for (level, folder) in above.iter().enumerate().rev() {
            let left = from.ancestors().nth(level + 1).map_or(Ok(None), |left| stat(self.upper, left)).at(folder)?;
            let mode = left.map_or(0o755, |left| Metadata::from(left).mode);
            self.make_folder(folder, mode, left.map(Metadata::from).as_ref()).at(folder)?;
        }
        Ok(())
    }

    fn transfer_entry(&mut self, from: &Path, to: &Path) -> rustix::io::Result<()> {
        let Some(stat) = stat(self.upper, from)? else { return Ok(()) };
        let there = self.root.entry_ref(to)?.stat()?;
        let left = Metadata::from(stat);
        if to.file_name().is_some_and(git::is_git) && self.is_changed_on_both_sides(from, to)? {
            self.leave(to, NotTransferredReason::RepositoryChanged);
            return Ok(());
        }
        if self.is_kept_from_git(from, to, &stat, there.as_ref())? {
            self.leave(to, NotTransferredReason::GitConfig);
            return Ok(());
        }
        // Repositories are compared as a whole, above.
        if !git::is_within(to) && self.is_changed_by_others(from, &left, to, there.as_ref())? {
            let kept_as = if is_whiteout(&stat) { None } else { (self.rules.conflict_path)(to) };
            self.pending.extend(kept_as.iter().map(|kept_as| (from.to_owned(), kept_as.clone())));
            self.leave(to, NotTransferredReason::ChangedByOthers { kept_as });
            return Ok(());
        }
        if is_whiteout(&stat) {
            return take_away(self.root, to);
        }
        let on_folder = there.is_some_and(|there| there.kind == Kind::Folder);
        match left.kind {
            Kind::Other => {
                self.leave(to, NotTransferredReason::Special);
                Ok(())
            }
            Kind::File | Kind::Symlink => self.transfer_file(from, to, &left),
            Kind::Folder if on_folder && !self.is_replaced_whole(from, to)? => {
                let hides = is_opaque(&open_for_owner(self.upper, from)?)?;
                self.merge(from, to, &left, hides)
            }
            Kind::Folder => self.transfer_folder(from, to, &left),
        }
    }

    /// Whether a folder is replaced as a whole, because the program removed it and created another one.
    fn is_replaced_whole(&self, from: &Path, to: &Path) -> rustix::io::Result<bool> {
        let is_git = to.file_name().is_some_and(git::is_git) || git::is_within(to);
        Ok(!is_git
            && !self.holds_committed(to)
            && is_opaque(&open_for_owner(self.upper, from)?)?
            && !self.is_changed(to)?)
    }

    /// Whether others changed what would be replaced at a path, and not to the same content.
    fn is_changed_by_others(
        &self,
        from: &Path,
        left: &Metadata,
        to: &Path,
        there: Option<&Metadata>,
    ) -> rustix::io::Result<bool> {
        let Some(there) = there else { return Ok(false) };
        if there.kind == Kind::Folder {
            return Ok(left.kind != Kind::Folder && self.is_changed(to)?);
        }
        if !self.rules.baseline.is_changed(there) {
            return Ok(false);
        }
        if left.kind == Kind::File && there.kind == Kind::File && left.size_bytes == there.size_bytes {
            let (mine, theirs) = (read_small(&self.upper.entry_ref(from)?)?, read_small(&self.root.entry_ref(to)?)?);
            return Ok(mine.is_none() || mine != theirs);
        }
        Ok(true)
    }

    /// Whether others changed something at or below a path.
    fn is_changed(&self, path: &Path) -> rustix::io::Result<bool> {
        is_changed_since(self.root, path, self.rules.baseline)
    }

    /// Whether others changed anything at or below a path that the program changed too.
    fn is_changed_on_both_sides(&self, from: &Path, to: &Path) -> rustix::io::Result<bool> {
        let mut pending = vec![(from.to_owned(), to.to_owned())];
        while let Some((from, to)) = pending.pop() {
            let (Some(left), Some(there)) = (stat(self.upper, &from)?, stat(self.root, &to)?) else { continue };
            let (left, there) = (Metadata::from(left), Metadata::from(there));
            // It is never transferred.
            if git::rule(&to) == Rule::Fixed {
                continue;
            }
            if left.kind != Kind::Folder || there.kind != Kind::Folder {
                if self.is_changed_by_others(&from, &left, &to, Some(&there))? {
                    return Ok(true);
                }
                continue;
            }
            let folder = open_for_owner(self.upper, &from)?;
            if is_opaque(&folder)? && self.is_changed(&to)? {
                return Ok(true);
            }
            pending.extend(names(&folder)?.into_iter().map(|name| (from.join(&name), to.join(&name))));
        }
        Ok(false)
    }

    /// Whether a commit has changed something at or below a path.
    fn holds_committed(&self, path: &Path) -> bool {
        self.rules.committed.iter().any(|committed| committed.starts_with(path))
    }

    /// Whether something is not transferred because git would execute what it says, unless it is what is there.
    fn is_kept_from_git(
        &self,
        from: &Path,
        to: &Path,
        stat: &Stat,
        there: Option<&Metadata>,
    ) -> rustix::io::Result<bool> {
        let left = Metadata::from(*stat);
        let is_repository = to.file_name().is_some_and(git::is_git);
        let rule = git::rule(to);
        let both_folders = left.kind == Kind::Folder && there.is_some_and(|there| there.kind == Kind::Folder);
        let is_suspect = match left.kind {
            // A whole repository may be removed.
            _ if is_whiteout(stat) => rule == Rule::Fixed,
            // Their entries are checked one by one.
            Kind::Folder => rule == Rule::Fixed && !both_folders,
            Kind::Symlink => is_repository || git::is_within(to),
            Kind::File | Kind::Other => is_repository || rule != Rule::Free,
        };
        if !is_suspect {
            return Ok(false);
        }
        if left.kind == Kind::File {
            let limit_bytes = if rule == Rule::Checked(Check::Index) { INDEX_BYTES } else { COMPARED_BYTES };
            let Some(text) = read_up_to(limit_bytes, &self.upper.entry_ref(from)?)? else { return Ok(true) };
            let there = there.filter(|there| there.kind == Kind::File);
            let before = if there.is_some() { read_small(&self.root.entry_ref(to)?)? } else { None };
            let is_harmless = match rule {
                Rule::Free => is_repository && git::leads_to_nested(&text),
                Rule::Fixed => git::is_usual_in_worktree(to, &text),
                Rule::Checked(check) => check.is_harmless(&text, before.as_deref(), self.object_format(to)?),
            };
            let adds_no_right = |there: &Metadata| there.mode & !0o111 | left.mode & 0o111 == there.mode;
            let is_same = before == Some(text) && there.is_some_and(adds_no_right);
            return Ok(!is_harmless && !is_same);
        }
        Ok(true)
    }

    /// Returns the object format of the repository that a path is in, by the configuration in the folder, which programs
    /// cannot change; none if it is unknown.
    fn object_format(&self, path: &Path) -> rustix::io::Result<Option<ObjectFormat>> {
        for folder in path.ancestors().skip(1).take_while(|folder| git::leads_into(folder)) {
            let Some(place) = if_exists(self.root.entry_ref(&folder.join("config")))? else { continue };
            match place.stat()? {
                None => {}
                Some(there) if there.kind == Kind::File => {
                    return Ok(read_small(&place)?.and_then(|config| ObjectFormat::of_config(&config)));
                }
                Some(_) => return Ok(None),
            }
        }
        Ok(Some(ObjectFormat::Sha1))
    }

    /// Transfers the entries of a folder to one that exists. If it hides that one, entries of that are removed first.
    fn merge(&mut self, from: &Path, to: &Path, left: &Metadata, hides: bool) -> rustix::io::Result<()> {
        let folder = open_for_owner(self.upper, from)?;
        if hides {
            for name in names(&self.root.open_real_folder(to, OFlags::RDONLY)?)? {
                let path = to.join(&name);
                if git::rule(&path) == Rule::Fixed || self.holds_committed(&path) {
                    continue;
                }
                if git::is_within(&path) || !self.is_changed(&path)? {
                    take_away(self.root, &path)?;
                } else if if_exists(sys::stat_name(&folder, &name))?.is_none() {
                    self.leave(&path, NotTransferredReason::ChangedByOthers { kept_as: None });
                }
            }
        }
        self.made.push((to.to_owned(), left.mode | OWNER));
        self.add_entries(&folder, from, to)
    }

    /// Transfers a folder to a path at which there is none, or one that it replaces.
    fn transfer_folder(&mut self, from: &Path, to: &Path, left: &Metadata) -> rustix::io::Result<()> {
        let hides = is_opaque(&open_for_owner(self.upper, from)?)?;
        let mut not_transferred = Vec::new();
        let fits = self.prepare_whole(from, to, &mut not_transferred);
        self.not_transferred.append(&mut not_transferred);
        // Others may have changed the folder while this was prepared.
        let there = stat(self.root, to)?.map(Metadata::from);
        let put = match fits {
            Ok(()) => match self.put_folder_in_place((self.upper, from), to, there.as_ref()) {
                Err(Errno::XDEV) => self.copy_folder(from, to)?,
                put => put?,
            },
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO)) => return Err(errno),
            Err(_) if self.is_changed(to)? => Put::ChangedByOthers,
            // The transfer of single entries reports what prevents that of the whole.
            Err(_) => {
                take_away(self.root, to)?;
                self.make_folder(to, left.mode, Some(left))?;
                return self.add_entries(&open_for_owner(self.upper, from)?, from, to);
            }
        };
        if put == Put::Done {
            return Ok(());
        }
        let now = stat(self.root, to)?.map(Metadata::from).filter(|now| now.kind == Kind::Folder);
        if there.is_none_or(|there| now.is_none_or(|now| now.identity != there.identity)) {
            self.pending.push((from.to_owned(), to.to_owned()));
            return Ok(());
        }
        // The attribute that it hides the folder was removed with the others.
        self.merge(from, to, left, hides)
    }

    /// Replaces whatever is at a path by a folder, unless others changed it.
    fn put_folder_in_place(
        &self,
        from: (&Root, &Path),
        to: &Path,
        there: Option<&Metadata>,
    ) -> rustix::io::Result<Put> {
        // A rename renews the ctime of the directory, but not of what is in it.
        put_in_place(from, (self.root, to), |root, path| {
            let now = stat(root, path)?.map(Metadata::from);
            let Some((there, now)) = there.zip(now).filter(|(there, now)| there.identity == now.identity) else {
                return Ok(true);
            };
            let baseline = self.rules.baseline;
            Ok(baseline.is_changed(there) || now.kind == Kind::Folder && is_changed_below(root, path, baseline)?)
        })
    }

    /// Copies a prepared folder to another file system, under a temporary name until it is complete.
    fn copy_folder(&self, from: &Path, to: &Path) -> rustix::io::Result<Put> {
        let staged = temporary_in(self.root.identity(), to.parent().unwrap_or(Path::new("")))?;
        let put = self.copy_tree(from, &staged).and_then(|()| {
            let there = stat(self.root, to)?.map(Metadata::from);
            self.put_folder_in_place((self.root, &staged), to, there.as_ref())
        });
        if put != Ok(Put::Done) {
            discard(self.root, &staged)?;
        }
        put
    }

    fn copy_tree(&self, from: &Path, to: &Path) -> rustix::io::Result<()> {
        let mut pending = vec![(from.to_owned(), to.to_owned())];
        let (mut made, mut copied) = (Vec::new(), CopiedLinks::default());
        while let Some((from, to)) = pending.pop() {
            let Some(left) = stat(self.upper, &from)?.map(Metadata::from) else { continue };
            if left.kind != Kind::Folder {
                copied.copy(self.root, &self.upper.entry_ref(&from)?, &to, &left)?;
                continue;
            }
            let place = self.root.entry_ref(&to)?;
            sys::make_folder(&place.folder, &place.name, OWNER)?;
            apply_permissions(self.root, &to, OWNER, Some((left.owner, left.group)))?;
            let names = names(&open_for_owner(self.upper, &from)?)?;
            pending.extend(names.into_iter().map(|name| (from.join(&name), to.join(&name))));
            made.push((to, left.mode | OWNER));
        }
        apply_all_permissions(self.root, &made)
    }

    fn make_folder(&mut self, to: &Path, mode: u32, left: Option<&Metadata>) -> rustix::io::Result<()> {
        let place = self.root.entry_ref(to)?;
        sys::make_folder(&place.folder, &place.name, OWNER)?;
        apply_permissions(self.root, to, OWNER, left.map(|left| (left.owner, left.group)))?;
        self.made.push((to.to_owned(), mode | OWNER));
        Ok(())
    }

    fn add_entries(&mut self, folder: &OwnedFd, from: &Path, to: &Path) -> rustix::io::Result<()> {
        let all = names(folder)?;
        self.pending.extend(all.into_iter().map(|name| (from.join(&name), to.join(&name))));
        Ok(())
    }

    fn transfer_file(&mut self, from: &Path, to: &Path, left: &Metadata) -> rustix::io::Result<()> {
        let here = self.upper.entry_ref(from)?;
        if git::is_within(to) {
            unshare(self.upper, from, left)?;
        }
        if left.kind == Kind::File {
            prepare_file(&here.folder, &here.name, left)?;
        }
        match put_in_place((self.upper, from), (self.root, to), |_, _| Ok(false)) {
            Err(Errno::XDEV) => self.copied.copy(self.root, &here, to, left),
            taken => taken.map(drop),
        }
    }

    /// Prepares a folder of the upper layer to be transferred as a whole: removes whiteouts, attributes and all that is
    /// not transferred.
    fn prepare_whole(
        &self,
        from: &Path,
        to: &Path,
        not_transferred: &mut Vec<NotTransferred>,
    ) -> rustix::io::Result<()> {
        let mut pending = vec![PathBuf::new()];
        while let Some(below) = pending.pop() {
            let path = joined(from, &below);
            let folder = open_for_owner(self.upper, &path)?;
            let place = self.upper.entry_ref(&path)?;
            sys::strip_attributes(&place.folder, &place.name)?;
            let mode = Metadata::from(sys::stat(&folder)?).mode;
            if mode & SET_ID != 0 {
                sys::change_mode(&folder, mode & !SET_ID)?;
            }
            for name in all_names(&folder)? {
                let stat = sys::stat_name(&folder, &name)?;
                let left = Metadata::from(stat);
                let (inside, target) = (path.join(&name), joined(to, &below).join(&name));
                if is_whiteout(&stat) || crate::is_temporary(&name) {
                    discard(self.upper, &inside)?;
                } else if self.is_kept_from_git(&inside, &target, &stat, None)? {
                    discard(self.upper, &inside)?;
                    not_transferred.push(NotTransferred { path: target, why: NotTransferredReason::GitConfig });
                } else {
                    match left.kind {
                        Kind::Folder => pending.push(below.join(&name)),
                        Kind::File => {
                            if git::is_within(&target) {
                                unshare(self.upper, &inside, &left)?;
                            }
                            prepare_file(&folder, &name, &left)?;
                        }
                        Kind::Symlink => {}
                        Kind::Other => {
                            discard(self.upper, &inside)?;
                            not_transferred.push(NotTransferred { path: target, why: NotTransferredReason::Special });
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn joined(folder: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { folder.to_owned() } else { folder.join(below) }
}

/// Removes the bits and attributes of a file that are not transferred.
fn prepare_file(folder: &OwnedFd, name: &OsStr, left: &Metadata) -> rustix::io::Result<()> {
    if left.mode & SET_ID != 0 {
        sys::change_mode_of(folder, name, left.mode & !SET_ID)?;
    }
    match sys::strip_attributes(folder, name) {
        Err(Errno::ACCESS) => {
            // Its owner may not write to it.
            sys::change_mode_of(folder, name, left.mode & !SET_ID | 0o200)?;
            sys::strip_attributes(folder, name)?;
            sys::change_mode_of(folder, name, left.mode & !SET_ID)
        }
        stripped => stripped,
    }
}

/// Returns the content of a file; none if it is too large to be compared.
fn read_small(place: &EntryRef) -> rustix::io::Result<Option<Vec<u8>>> {
    read_up_to(COMPARED_BYTES, place)
}

/// Returns the content of a file; none if it is larger.
fn read_up_to(limit_bytes: usize, place: &EntryRef) -> rustix::io::Result<Option<Vec<u8>>> {
    let file = place.open(OFlags::RDONLY)?;
    let size = usize::try_from(sys::stat(&file)?.st_size).unwrap_or(usize::MAX);
    if size > limit_bytes {
        return Ok(None);
    }
    let mut text = vec![0; size + 1];
    let length = sys::read_at(file, &mut text, 0)?;
    text.truncate(length);
    Ok((length <= size).then_some(text))
}

/// Returns all names in a folder, also those of temporary files.
fn all_names(folder: &OwnedFd) -> rustix::io::Result<Vec<OsString>> {
    super::names_that(folder, |_| true)
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
