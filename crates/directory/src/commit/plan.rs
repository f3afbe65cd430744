//! Turns changes into steps: resolves paths, reads the current state and checks the expectations.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::{locate, paths::Paths, step::Step};
use crate::{
    AppliedChange, Change, CommitOptions, Contents, Effect, Error, ErrorKind, Expect, HardLinks, Hash, Identity, Kind,
    Links, ListOptions, Metadata, Parents, Replace, Repositories, Result, Root, SymbolicLinks,
    error::{PathContext, if_exists},
    git, read, sys,
    temporary::temporary_in,
};

/// In a folder with this bit, a user may not rename files of others.
const STICKY: u32 = 0o1000;

/// A step with everything that is needed to apply it.
pub(super) struct Task<'a> {
    pub(super) step: Step,
    pub(super) precondition: Precondition,
    /// The permission bits of what is created or written.
    pub(super) mode: Option<u32>,
    pub(super) write: Option<Write<'a>>,
}

/// A condition that is checked again when the step is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precondition {
    Nothing,
    Content(Hash),
    /// The same file or folder as during planning.
    Same(Identity),
    EmptyFolder(Identity),
}

/// The content of a write.
pub(super) struct Write<'a> {
    pub(super) bytes: &'a [u8],
    /// The file that is replaced or rewritten.
    pub(super) old: Option<OldFile>,
}

/// The file to be replaced or rewritten, as it was during planning.
pub(super) struct OldFile {
    /// Its path before any step is applied.
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    /// Number of hard links.
    pub(super) links: u64,
    /// Whether it may be replaced by another file.
    can_be_replaced: bool,
}

/// The steps of a commit in their order, and the results for the caller.
pub(super) struct Plan<'a> {
    pub(super) tasks: Vec<Task<'a>>,
    pub(super) effects: Vec<AppliedChange>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(root: &Root, changes: &'a [Change], options: &CommitOptions) -> Result<Self> {
        let mut planner = Planner {
            root,
            options,
            names: Vec::new(),
            writes: Vec::new(),
            new_folders: Paths::new(),
            written: Paths::new(),
            removed: Paths::new(),
            move_targets: Paths::new(),
        };
        let mut effects = changes.iter().map(|change| planner.plan(change)).collect::<Result<Vec<_>>>()?;
        planner.split_hard_links(&mut effects)?;
        // Steps on names come first, because writes may need folders that are created, moved or freed.
        planner.names.append(&mut planner.writes);
        Ok(Self { tasks: planner.names, effects })
    }

    /// Fills in the metadata of written files. Files that are already removed again are left out.
    pub(super) fn describe_written(&mut self, root: &Root) {
        for effect in &mut self.effects {
            if matches!(effect.effect, Effect::Created | Effect::Replaced | Effect::RewrittenInPlace) {
                let stat = root.entry_ref(&effect.path).and_then(|entry| entry.stat());
                effect.metadata = stat.ok().flatten().filter(|metadata| metadata.kind == Kind::File);
            }
        }
    }
}

/// The state of planning: what the earlier changes of the commit will have done.
struct Planner<'a, 'root> {
    root: &'root Root,
    options: &'root CommitOptions,
    names: Vec<Task<'a>>,
    writes: Vec<Task<'a>>,
    /// Folders that will be created.
    new_folders: Paths<()>,
    /// Files that will be written.
    written: Paths<()>,
    /// Paths that will be removed or moved away.
    removed: Paths<()>,
    /// Targets of moves, with their sources.
    move_targets: Paths<PathBuf>,
}

impl<'a> Planner<'a, '_> {
    fn plan(&mut self, change: &'a Change) -> Result<AppliedChange> {
        let (path, effect) = match change {
            Change::Write { path, bytes, expect, mode, parents } => {
                self.write(path, bytes, *expect, *mode, *parents)?
            }
            Change::Remove { path, expect } => (self.remove(path, *expect)?, Effect::Removed),
            Change::RemoveFolder { path, contents } => (self.remove_folder(path, *contents)?, Effect::Removed),
            Change::Clear { path } => (self.clear(path)?, Effect::Removed),
            Change::Move { from, to, replace, parents } => (self.move_to(from, to, *replace, *parents)?, Effect::Moved),
            Change::MakeFolder { path, mode, parents } => (self.make_folder(path, *mode, *parents)?, Effect::Created),
        };
        Ok(AppliedChange { path, effect, metadata: None })
    }

    fn write(
        &mut self,
        path: &Path,
        bytes: &'a [u8],
        expect: Expect,
        mode: Option<u32>,
        parents: Parents,
    ) -> Result<(PathBuf, Effect)> {
        let real = self.locate(path, Links::Follow)?;
        // A link that is removed by an earlier change would lead to a file that must not be touched.
        let link_is_gone = self.removed.cover(path) && !self.removed.cover(&real);
        if link_is_gone || self.written.contains(&real) {
            return Err(ErrorKind::Overlap.at(path));
        }
        if self.new_folders.contains(&real) {
            return Err(ErrorKind::IsFolder.at(path));
        }
        let hash = Hash::of(bytes);
        let (step, effect, old) = match self.find_planned(&real, path)? {
            None => {
                if let Expect::Hash(_) = expect {
                    return Err(ErrorKind::NotFound.at(path));
                }
                self.plan_parents(&real, path, parents)?;
                let staged = self.temporary_for(&real)?;
                (Step::Add { path: real.clone(), staged, hash }, Effect::Created, None)
            }
            Some((disk, metadata)) => {
                match metadata.kind {
                    Kind::File => {}
                    Kind::Folder => return Err(ErrorKind::IsFolder.at(path)),
                    // A link inside something that is moved. Its future target is unknown.
                    Kind::Symlink => return Err(ErrorKind::Overlap.at(path)),
                    Kind::Other => return Err(ErrorKind::Special.at(path)),
                }
                let entry = self.root.entry_ref(&disk).at(path)?;
                sys::check_writable(&entry.folder, &entry.name).at(path)?;
                let aside = self.temporary_for(&real)?;
                let keeps_links = metadata.links > 1 && self.options.hard_links == HardLinks::Keep;
                let can_be_replaced = !self.cannot_be_replaced(&disk, &metadata, path)?;
                let (step, effect) = if keeps_links || !can_be_replaced {
                    let old = self.check_content(&disk, expect, path, HashNeeded::Always)?.unwrap_or(hash);
                    let mode = metadata.mode;
                    (Step::Rewrite { path: real.clone(), aside, old, mode }, Effect::RewrittenInPlace)
                } else {
                    self.check_content(&disk, expect, path, HashNeeded::IfExpected)?;
                    let staged = self.temporary_for(&real)?;
                    (Step::Replace { path: real.clone(), staged, aside, hash }, Effect::Replaced)
                };
                let (identity, links) = (metadata.identity, metadata.links);
                (step, effect, Some(OldFile { path: disk, identity, links, can_be_replaced }))
            }
        };
        self.written.insert(real.clone(), ());
        let precondition = content_precondition(expect);
        self.writes.push(Task { step, precondition, mode, write: Some(Write { bytes, old }) });
        Ok((real, effect))
    }

    /// Replaces files instead of rewriting them, if the commit writes different contents to two hard links of one file.
    fn split_hard_links(&mut self, effects: &mut [AppliedChange]) -> Result<()> {
        let mut contents: BTreeMap<Identity, BTreeSet<&[u8]>> = BTreeMap::new();
        for write in self.writes.iter().filter_map(|task| task.write.as_ref()) {
            if let Some(old) = &write.old {
                contents.entry(old.identity).or_default().insert(write.bytes);
            }
        }
        let mut replaced: BTreeSet<PathBuf> = BTreeSet::new();
        for index in 0..self.writes.len() {
            let Task { step: Step::Rewrite { path, aside, .. }, write: Some(write), .. } = &self.writes[index] else {
                continue;
            };
            let Some(old) = write.old.as_ref().filter(|old| contents.get(&old.identity).is_some_and(|it| it.len() > 1))
            else {
                continue;
            };
            if !old.can_be_replaced {
                return Err(ErrorKind::Overlap.at(path));
            }
            let (path, aside, hash) = (path.clone(), aside.clone(), Hash::of(write.bytes));
            let staged = self.temporary_for(&path)?;
            replaced.insert(path.clone());
            self.writes[index].step = Step::Replace { path, staged, aside, hash };
        }
        for effect in effects.iter_mut().filter(|effect| effect.effect == Effect::RewrittenInPlace) {
            if replaced.contains(&effect.path) {
                effect.effect = Effect::Replaced;
            }
        }
        Ok(())
    }

    /// Whether the process may write to a file but not replace it, because the folder is sticky and both belong to
    /// others.
    fn cannot_be_replaced(&self, disk: &Path, file: &Metadata, path: &Path) -> Result<bool> {
        let user = sys::user();
        if user == 0 || user == file.owner {
            return Ok(false);
        }
        let parent = disk.parent().unwrap_or(Path::new(""));
        let folder = self.root.open_real_folder(parent, OFlags::PATH).and_then(sys::stat).at(path)?;
        let folder = Metadata::from(folder);
        Ok(folder.mode & STICKY != 0 && user != folder.owner)
    }

    fn remove(&mut self, path: &Path, expect: Expect) -> Result<PathBuf> {
        let (real, metadata) = self.locate_for_removal(path)?;
        match metadata.kind {
            Kind::Folder => return Err(ErrorKind::IsFolder.at(path)),
            Kind::Other if matches!(expect, Expect::Hash(_)) => return Err(ErrorKind::Special.at(path)),
            Kind::File | Kind::Symlink | Kind::Other => {}
        }
        self.check_content(&real, expect, path, HashNeeded::IfExpected)?;
        // The target of a link can be checked only now. It may be another one when the step is applied.
        let precondition = match (metadata.kind, content_precondition(expect)) {
            (Kind::File, precondition @ Precondition::Content(_)) => precondition,
            _ => Precondition::Same(metadata.identity),
        };
        self.plan_removal(real, precondition)
    }

    fn remove_folder(&mut self, path: &Path, contents: Contents) -> Result<PathBuf> {
        let (real, metadata) = self.locate_for_removal(path)?;
        if metadata.kind != Kind::Folder {
            return Err(ErrorKind::NotAFolder.at(path));
        }
        let precondition = match contents {
            Contents::Nothing => {
                let listing = self.root.list(&real, ListOptions::default())?;
                if listing.entries.iter().any(|entry| !self.removed.contains(&real.join(&entry.path))) {
                    return Err(ErrorKind::NotEmpty.at(path));
                }
                Precondition::EmptyFolder(metadata.identity)
            }
            Contents::Anything => {
                self.check_deletable(&real, path)?;
                Precondition::Same(metadata.identity)
            }
        };
        self.plan_removal(real, precondition)
    }

    fn clear(&mut self, path: &Path) -> Result<PathBuf> {
        let real = self.locate_anywhere(path, Links::Keep)?;
        let metadata = self.metadata_for_removal(&real, path)?;
        self.plan_removal(real, Precondition::Same(metadata.identity))
    }

    /// Checks that all subfolders can be emptied. That happens after the commit is complete, when it is too late to
    /// refuse.
    fn check_deletable(&self, real: &Path, path: &Path) -> Result<()> {
        let listing = self.root.list(real, ListOptions { depth: usize::MAX, limit: usize::MAX })?;
        if let Some(skipped) = listing.skipped.into_iter().next() {
            return Err(skipped.error);
        }
        let below =
            listing.entries.iter().filter(|entry| entry.kind == Kind::Folder).map(|entry| real.join(&entry.path));
        for folder in below.chain([real.to_owned()]) {
            let entry = self.root.entry_ref(&folder).at(path)?;
            sys::check_writable(&entry.folder, &entry.name).at(&folder)?;
        }
        Ok(())
    }

    fn plan_removal(&mut self, real: PathBuf, precondition: Precondition) -> Result<PathBuf> {
        let aside = temporary_in(self.root.identity(), real.parent().unwrap_or(Path::new(""))).at(&real)?;
        self.names.push(Task {
            step: Step::Remove { path: real.clone(), aside },
            precondition,
            mode: None,
            write: None,
        });
        self.removed.insert(real.clone(), ());
        Ok(real)
    }

    fn move_to(&mut self, from: &Path, to: &Path, replace: Replace, parents: Parents) -> Result<PathBuf> {
        let (real_from, disk, moved) = self.locate_to_move(from)?;
        if self.removed.any_at_or_below(&real_from) {
            return Err(ErrorKind::Overlap.at(from));
        }
        let real_to = self.locate(to, Links::Keep)?;
        if real_to == real_from {
            return Err(ErrorKind::Exists.at(to));
        }
        if real_to.starts_with(&real_from) {
            return Err(ErrorKind::Invalid("a folder cannot be moved into itself").at(to));
        }
        if self.written.touch(&real_to) || self.move_targets.touch(&real_to) {
            return Err(ErrorKind::Overlap.at(to));
        }
        let aside = match self.find_planned(&real_to, to)? {
            _ if self.new_folders.contains(&real_to) => return Err(ErrorKind::Exists.at(to)),
            None => {
                self.plan_parents(&real_to, to, parents)?;
                None
            }
            Some((_, there)) => match replace {
                Replace::Refuse => return Err(ErrorKind::Exists.at(to)),
                Replace::File if there.identity == moved.identity => return Err(ErrorKind::Exists.at(to)),
                Replace::File if there.kind == Kind::Folder => return Err(ErrorKind::IsFolder.at(to)),
                Replace::File if moved.kind == Kind::Folder => return Err(ErrorKind::NotAFolder.at(to)),
                Replace::File => Some(self.temporary_for(&real_to)?),
            },
        };
        let step = Step::Move { from: real_from.clone(), to: real_to.clone(), identity: moved.identity, aside };
        self.names.push(Task { step, precondition: Precondition::Same(moved.identity), mode: None, write: None });
        self.move_targets.remove(&real_from);
        self.removed.insert(real_from, ());
        self.move_targets.insert(real_to.clone(), disk);
        Ok(real_to)
    }

    /// Locates the source of a move, and its path on disk before any step. A file moved by an earlier change may be
    /// moved again, so that two files can be swapped.
    fn locate_to_move(&self, path: &Path) -> Result<(PathBuf, PathBuf, Metadata)> {
        let real = self.locate(path, Links::Keep)?;
        if self.move_targets.contains(&real) && !self.written.touch(&real) && !self.new_folders.touch(&real) {
            let there = self.find_planned(&real, path)?.filter(|(_, metadata)| metadata.kind == Kind::File);
            return there.map(|(disk, metadata)| (real, disk, metadata)).ok_or_else(|| ErrorKind::Overlap.at(path));
        }
        let (real, metadata) = self.locate_for_removal(path)?;
        Ok((real.clone(), real, metadata))
    }

    fn make_folder(&mut self, path: &Path, mode: Option<u32>, parents: Parents) -> Result<PathBuf> {
        let real = self.locate(path, Links::Keep)?;
        let taken = self.new_folders.contains(&real) || self.written.contains(&real);
        if taken || self.find_planned(&real, path)?.is_some() {
            return Err(ErrorKind::Exists.at(path));
        }
        self.plan_parents(&real, path, parents)?;
        self.plan_folder(real.clone(), mode)?;
        Ok(real)
    }

    fn plan_folder(&mut self, real: PathBuf, mode: Option<u32>) -> Result<()> {
        let there =
            if_exists(self.root.entry_ref(&real)).at(&real)?.map_or(Ok(None), |entry| entry.stat()).at(&real)?;
        let step = Step::MakeFolder { path: real.clone(), before: there.map(|metadata| metadata.identity) };
        self.names.push(Task { step, precondition: Precondition::Nothing, mode, write: None });
        self.new_folders.insert(real, ());
        Ok(())
    }

    /// Plans the creation of missing parent folders.
    fn plan_parents(&mut self, real: &Path, path: &Path, parents: Parents) -> Result<()> {
        let mut missing = Vec::new();
        for folder in folders_above(real) {
            if folder.as_os_str().is_empty() || self.new_folders.contains(folder) {
                break;
            }
            if self.written.contains(folder) {
                return Err(ErrorKind::NotAFolder.at(path));
            }
            match self.find_planned(folder, path)? {
                Some((_, metadata)) if metadata.kind == Kind::Folder => break,
                Some(_) => return Err(ErrorKind::NotAFolder.at(path)),
                None => missing.push(folder.to_owned()),
            }
        }
        if !missing.is_empty() && parents == Parents::Required {
            return Err(ErrorKind::NotFound.at(path));
        }
        missing.into_iter().rev().try_for_each(|folder| self.plan_folder(folder, None))
    }

    /// Resolves the path of a change, and checks that it is not in a read-only repository. Used by every change except
    /// `Clear`.
    fn locate(&self, path: &Path, links: Links) -> Result<PathBuf> {
        let real = self.locate_anywhere(path, links)?;
        if self.options.repositories == Repositories::ReadOnly && git::leads_into(&real) {
            return Err(ErrorKind::Repository.at(path));
        }
        Ok(real)
    }

    /// Resolves a path, which may be in a repository.
    fn locate_anywhere(&self, path: &Path, links: Links) -> Result<PathBuf> {
        let is_gone = |real: &Path| self.removed.cover(real);
        if self.root.symbolic_links() == SymbolicLinks::Refuse {
            let through_link = |error: Error| match error.kind {
                ErrorKind::Changed { .. } => ErrorKind::ThroughLink.at(path),
                _ => error,
            };
            return locate::locate_without_links(self.root, path, links, is_gone).map_err(through_link);
        }
        match self.options.symbolic_links {
            SymbolicLinks::Follow => locate::locate(self.root, path, links, is_gone),
            SymbolicLinks::Refuse => locate::locate_without_links(self.root, path, links, is_gone),
        }
    }

    /// Locates what a change removes.
    fn locate_for_removal(&self, path: &Path) -> Result<(PathBuf, Metadata)> {
        let real = self.locate(path, Links::Keep)?;
        let metadata = self.metadata_for_removal(&real, path)?;
        Ok((real, metadata))
    }

    /// Returns the metadata of what a change removes. Refuses if an earlier change affects it.
    fn metadata_for_removal(&self, real: &Path, path: &Path) -> Result<Metadata> {
        if self.written.touch(real) || self.move_targets.touch(real) || self.new_folders.touch(real) {
            return Err(ErrorKind::Overlap.at(path));
        }
        self.find_planned(real, path)?.map(|(_, metadata)| metadata).ok_or_else(|| ErrorKind::NotFound.at(path))
    }

    /// Checks an expectation, and returns the hash if it was computed.
    fn check_content(&self, disk: &Path, expect: Expect, path: &Path, hash_needed: HashNeeded) -> Result<Option<Hash>> {
        match (expect, hash_needed) {
            (Expect::Absent, _) => Err(ErrorKind::Exists.at(path)),
            (Expect::Anything, HashNeeded::IfExpected) => Ok(None),
            (Expect::Anything | Expect::Hash(_), _) => {
                let reader = self.root.open_reader(disk)?;
                let actual = read::hash_of(reader.into_file()).at(path)?;
                match expect {
                    Expect::Hash(expected) if expected != actual => {
                        Err(ErrorKind::Changed { actual: Some(actual) }.at(path))
                    }
                    _ => Ok(Some(actual)),
                }
            }
        }
    }

    /// Returns what will be at a real path when the change is applied, and where it is on disk until then.
    fn find_planned(&self, real: &Path, path: &Path) -> Result<Option<(PathBuf, Metadata)>> {
        let disk = match self.move_targets.at_or_above(real) {
            Some((to, from)) if to == real => from.clone(),
            Some((to, from)) => from.join(real.strip_prefix(to).unwrap_or(real)),
            None if self.removed.cover(real) => return Ok(None),
            None => real.to_owned(),
        };
        let stat = if_exists(self.root.entry_ref(&disk)).at(path)?.map_or(Ok(None), |entry| entry.stat()).at(path)?;
        Ok(stat.map(|metadata| (disk, metadata)))
    }

    /// Returns a temporary path near a path, in an existing folder that this commit does not remove.
    fn temporary_for(&self, real: &Path) -> Result<PathBuf> {
        let stays = |folder: &&Path| {
            !self.new_folders.contains(folder) && !self.removed.cover(folder) && !self.move_targets.cover(folder)
        };
        temporary_in(self.root.identity(), folders_above(real).find(stays).unwrap_or(Path::new(""))).at(real)
    }
}

/// Whether the hash of a file is needed even if none is expected.
#[derive(Clone, Copy)]
enum HashNeeded {
    Always,
    IfExpected,
}

fn content_precondition(expect: Expect) -> Precondition {
    match expect {
        Expect::Hash(hash) => Precondition::Content(hash),
        Expect::Absent | Expect::Anything => Precondition::Nothing,
    }
}

fn folders_above(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip(1)
}
