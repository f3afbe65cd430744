//! From changes to steps: where each path really leads, what stands there, and whether that is what was expected.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::{locate, paths::Paths, step::Step};
use crate::{
    AppliedChange, Change, CommitOptions, Contents, Effect, ErrorKind, Expect, HardLinks, Hash, Identity, Kind, Links,
    ListOptions, Metadata, Parents, Replace, Repositories, Result, Root, SymbolicLinks,
    error::{At, found},
    git, read, sys,
    temporary::temporary_in,
};

/// Whoever may write to a folder with this bit may still not rename what others have in it.
const STICKY: u32 = 0o1000;

/// A step with what is needed to take it.
pub(super) struct Task<'a> {
    pub(super) step: Step,
    pub(super) demand: Demand,
    /// The permission bits of what is made or written.
    pub(super) mode: Option<u32>,
    pub(super) write: Option<Write<'a>>,
}

/// What is checked again at the moment a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    Nothing,
    Content(Hash),
    /// The same file or folder as at the time of planning.
    Same(Identity),
    EmptyFolder(Identity),
}

/// What is written.
pub(super) struct Write<'a> {
    pub(super) bytes: &'a [u8],
    /// The file that is replaced or rewritten.
    pub(super) old: Option<OldFile>,
}

/// A file that is replaced or rewritten, as it was found when the commit was planned.
pub(super) struct OldFile {
    /// Where it lies before any step is taken.
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    /// How many names it has.
    pub(super) links: u64,
    /// Whether another file may take its place.
    can_be_replaced: bool,
}

/// The steps of a commit in the order in which they are taken, and what the caller is told.
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
            made: Paths::new(),
            written: Paths::new(),
            gone: Paths::new(),
            arrived: Paths::new(),
        };
        let mut effects = changes.iter().map(|change| planner.plan(change)).collect::<Result<Vec<_>>>()?;
        planner.separate_names(&mut effects)?;
        // Names first: what is written later may need folders that were made, moved or made way.
        planner.names.append(&mut planner.writes);
        Ok(Self { tasks: planner.names, effects })
    }

    /// Fills in what is known of the written files. It is left out where somebody has removed them already.
    pub(super) fn describe_written(&mut self, root: &Root) {
        for effect in &mut self.effects {
            if matches!(effect.effect, Effect::Created | Effect::Replaced | Effect::RewrittenInPlace) {
                let stat = root.place(&effect.path).and_then(|place| place.stat());
                effect.metadata = stat.ok().flatten().filter(|metadata| metadata.kind == Kind::File);
            }
        }
    }
}

/// Knows what earlier changes of the same commit will have done when a change takes effect.
struct Planner<'a, 'root> {
    root: &'root Root,
    options: &'root CommitOptions,
    names: Vec<Task<'a>>,
    writes: Vec<Task<'a>>,
    /// Folders that will be made.
    made: Paths<()>,
    /// Files that will be written.
    written: Paths<()>,
    /// Paths that will be removed or moved away.
    gone: Paths<()>,
    /// Paths that something will be moved to, and from where.
    arrived: Paths<PathBuf>,
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
        // A link that earlier changes take away would lead to a file that must not be touched.
        let link_is_gone = self.gone.cover(path) && !self.gone.cover(&real);
        if link_is_gone || self.written.contains(&real) {
            return Err(ErrorKind::Overlap.at(path));
        }
        if self.made.contains(&real) {
            return Err(ErrorKind::IsFolder.at(path));
        }
        let hash = Hash::of(bytes);
        let (step, effect, old) = match self.look(&real, path)? {
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
                    // A link in something that is moved: where it will lead is not known yet.
                    Kind::Symlink => return Err(ErrorKind::Overlap.at(path)),
                    Kind::Other => return Err(ErrorKind::Special.at(path)),
                }
                let place = self.root.place(&disk).at(path)?;
                sys::check_writable(&place.folder, &place.name).at(path)?;
                let aside = self.temporary_for(&real)?;
                let keeps_links = metadata.links > 1 && self.options.hard_links == HardLinks::Keep;
                let can_be_replaced = !self.keeps_its_name(&disk, &metadata, path)?;
                let (step, effect) = if keeps_links || !can_be_replaced {
                    let old = self.check_content(&disk, expect, path, Needed::Always)?.unwrap_or(hash);
                    let mode = metadata.mode;
                    (Step::Rewrite { path: real.clone(), aside, old, mode }, Effect::RewrittenInPlace)
                } else {
                    self.check_content(&disk, expect, path, Needed::WhereExpected)?;
                    let staged = self.temporary_for(&real)?;
                    (Step::Replace { path: real.clone(), staged, aside, hash }, Effect::Replaced)
                };
                let (identity, links) = (metadata.identity, metadata.links);
                (step, effect, Some(OldFile { path: disk, identity, links, can_be_replaced }))
            }
        };
        self.written.insert(real.clone(), ());
        let demand = content_demand(expect);
        self.writes.push(Task { step, demand, mode, write: Some(Write { bytes, old }) });
        Ok((real, effect))
    }

    /// Replaces files instead of rewriting them where one commit gives different contents to two names of one file.
    fn separate_names(&mut self, effects: &mut [AppliedChange]) -> Result<()> {
        let mut contents: BTreeMap<Identity, BTreeSet<&[u8]>> = BTreeMap::new();
        for write in self.writes.iter().filter_map(|task| task.write.as_ref()) {
            if let Some(old) = &write.old {
                contents.entry(old.identity).or_default().insert(write.bytes);
            }
        }
        let mut replaced: BTreeSet<PathBuf> = BTreeSet::new();
        for place in 0..self.writes.len() {
            let Task { step: Step::Rewrite { path, aside, .. }, write: Some(write), .. } = &self.writes[place] else {
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
            self.writes[place].step = Step::Replace { path, staged, aside, hash };
        }
        for effect in effects.iter_mut().filter(|effect| effect.effect == Effect::RewrittenInPlace) {
            if replaced.contains(&effect.path) {
                effect.effect = Effect::Replaced;
            }
        }
        Ok(())
    }

    /// Whether the process may write to a file but not put another in its place, because the folder is sticky and both
    /// belong to others.
    fn keeps_its_name(&self, disk: &Path, file: &Metadata, path: &Path) -> Result<bool> {
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
        let (real, metadata) = self.locate_to_take_away(path)?;
        match metadata.kind {
            Kind::Folder => return Err(ErrorKind::IsFolder.at(path)),
            Kind::Other if matches!(expect, Expect::Hash(_)) => return Err(ErrorKind::Special.at(path)),
            Kind::File | Kind::Symlink | Kind::Other => {}
        }
        self.check_content(&real, expect, path, Needed::WhereExpected)?;
        // What a link leads to can only be checked now: when it is taken away, it may lead elsewhere.
        let demand = match (metadata.kind, content_demand(expect)) {
            (Kind::File, demand @ Demand::Content(_)) => demand,
            _ => Demand::Same(metadata.identity),
        };
        self.take_away(real, demand)
    }

    fn remove_folder(&mut self, path: &Path, contents: Contents) -> Result<PathBuf> {
        let (real, metadata) = self.locate_to_take_away(path)?;
        if metadata.kind != Kind::Folder {
            return Err(ErrorKind::NotAFolder.at(path));
        }
        let demand = match contents {
            Contents::Nothing => {
                let listing = self.root.list(&real, ListOptions::default())?;
                if listing.entries.iter().any(|entry| !self.gone.contains(&real.join(&entry.path))) {
                    return Err(ErrorKind::NotEmpty.at(path));
                }
                Demand::EmptyFolder(metadata.identity)
            }
            Contents::Anything => {
                self.check_deletable(&real, path)?;
                Demand::Same(metadata.identity)
            }
        };
        self.take_away(real, demand)
    }

    fn clear(&mut self, path: &Path) -> Result<PathBuf> {
        let real = self.locate_anywhere(path, Links::Keep)?;
        let metadata = self.look_to_take_away(&real, path)?;
        self.take_away(real, Demand::Same(metadata.identity))
    }

    /// Checks that all folders below can be emptied. That happens only after the commit counts, when it is too late
    /// to refuse.
    fn check_deletable(&self, real: &Path, path: &Path) -> Result<()> {
        let listing = self.root.list(real, ListOptions { depth: usize::MAX, limit: usize::MAX })?;
        if let Some(skipped) = listing.skipped.into_iter().next() {
            return Err(skipped.error);
        }
        let below =
            listing.entries.iter().filter(|entry| entry.kind == Kind::Folder).map(|entry| real.join(&entry.path));
        for folder in below.chain([real.to_owned()]) {
            let place = self.root.place(&folder).at(path)?;
            sys::check_writable(&place.folder, &place.name).at(&folder)?;
        }
        Ok(())
    }

    fn take_away(&mut self, real: PathBuf, demand: Demand) -> Result<PathBuf> {
        let aside = temporary_in(self.root.identity(), real.parent().unwrap_or(Path::new(""))).at(&real)?;
        self.names.push(Task { step: Step::Remove { path: real.clone(), aside }, demand, mode: None, write: None });
        self.gone.insert(real.clone(), ());
        Ok(real)
    }

    fn move_to(&mut self, from: &Path, to: &Path, replace: Replace, parents: Parents) -> Result<PathBuf> {
        let (real_from, disk, moved) = self.locate_to_move(from)?;
        if self.gone.any_at_or_below(&real_from) {
            return Err(ErrorKind::Overlap.at(from));
        }
        let real_to = self.locate(to, Links::Keep)?;
        if real_to == real_from {
            return Err(ErrorKind::Exists.at(to));
        }
        if real_to.starts_with(&real_from) {
            return Err(ErrorKind::Invalid("a folder cannot be moved into itself").at(to));
        }
        if self.written.touch(&real_to) || self.arrived.touch(&real_to) {
            return Err(ErrorKind::Overlap.at(to));
        }
        let aside = match self.look(&real_to, to)? {
            _ if self.made.contains(&real_to) => return Err(ErrorKind::Exists.at(to)),
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
        self.names.push(Task { step, demand: Demand::Same(moved.identity), mode: None, write: None });
        self.arrived.remove(&real_from);
        self.gone.insert(real_from, ());
        self.arrived.insert(real_to.clone(), disk);
        Ok(real_to)
    }

    /// Finds what a change moves, and where it lies on the disk before any step is taken. A file that an earlier change
    /// has moved may be moved on: so two files can change places.
    fn locate_to_move(&self, path: &Path) -> Result<(PathBuf, PathBuf, Metadata)> {
        let real = self.locate(path, Links::Keep)?;
        if self.arrived.contains(&real) && !self.written.touch(&real) && !self.made.touch(&real) {
            let there = self.look(&real, path)?.filter(|(_, metadata)| metadata.kind == Kind::File);
            return there.map(|(disk, metadata)| (real, disk, metadata)).ok_or_else(|| ErrorKind::Overlap.at(path));
        }
        let (real, metadata) = self.locate_to_take_away(path)?;
        Ok((real.clone(), real, metadata))
    }

    fn make_folder(&mut self, path: &Path, mode: Option<u32>, parents: Parents) -> Result<PathBuf> {
        let real = self.locate(path, Links::Keep)?;
        let taken = self.made.contains(&real) || self.written.contains(&real);
        if taken || self.look(&real, path)?.is_some() {
            return Err(ErrorKind::Exists.at(path));
        }
        self.plan_parents(&real, path, parents)?;
        self.plan_folder(real.clone(), mode)?;
        Ok(real)
    }

    fn plan_folder(&mut self, real: PathBuf, mode: Option<u32>) -> Result<()> {
        let there = found(self.root.place(&real)).at(&real)?.map_or(Ok(None), |place| place.stat()).at(&real)?;
        let step = Step::MakeFolder { path: real.clone(), before: there.map(|metadata| metadata.identity) };
        self.names.push(Task { step, demand: Demand::Nothing, mode, write: None });
        self.made.insert(real, ());
        Ok(())
    }

    /// Sees to it that the folder exists in which a path lies.
    fn plan_parents(&mut self, real: &Path, path: &Path, parents: Parents) -> Result<()> {
        let mut missing = Vec::new();
        for folder in folders_above(real) {
            if folder.as_os_str().is_empty() || self.made.contains(folder) {
                break;
            }
            if self.written.contains(folder) {
                return Err(ErrorKind::NotAFolder.at(path));
            }
            match self.look(folder, path)? {
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

    /// Finds where a path of a change really leads to. Every change passes here, except those that clear a path.
    fn locate(&self, path: &Path, links: Links) -> Result<PathBuf> {
        let real = self.locate_anywhere(path, links)?;
        if self.options.repositories == Repositories::ReadOnly && git::leads_into(&real) {
            return Err(ErrorKind::Repository.at(path));
        }
        Ok(real)
    }

    /// Finds where a path really leads to, be it into a repository.
    fn locate_anywhere(&self, path: &Path, links: Links) -> Result<PathBuf> {
        let is_gone = |real: &Path| self.gone.cover(real);
        match self.options.symbolic_links {
            SymbolicLinks::Follow => locate::locate(self.root, path, links, is_gone),
            SymbolicLinks::Refuse => locate::locate_without_links(self.root, path, links, is_gone),
        }
    }

    /// Finds what a change takes away.
    fn locate_to_take_away(&self, path: &Path) -> Result<(PathBuf, Metadata)> {
        let real = self.locate(path, Links::Keep)?;
        let metadata = self.look_to_take_away(&real, path)?;
        Ok((real, metadata))
    }

    /// Describes what a change takes away, and refuses where an earlier one has something to do with it.
    fn look_to_take_away(&self, real: &Path, path: &Path) -> Result<Metadata> {
        if self.written.touch(real) || self.arrived.touch(real) || self.made.touch(real) {
            return Err(ErrorKind::Overlap.at(path));
        }
        self.look(real, path)?.map(|(_, metadata)| metadata).ok_or_else(|| ErrorKind::NotFound.at(path))
    }

    /// Checks an expectation, and gives the hash where it had to be found out.
    fn check_content(&self, disk: &Path, expect: Expect, path: &Path, needed: Needed) -> Result<Option<Hash>> {
        match (expect, needed) {
            (Expect::Absent, _) => Err(ErrorKind::Exists.at(path)),
            (Expect::Anything, Needed::WhereExpected) => Ok(None),
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

    /// Finds what will stand at a real path, and where it lies on the disk until then.
    fn look(&self, real: &Path, path: &Path) -> Result<Option<(PathBuf, Metadata)>> {
        let disk = match self.arrived.at_or_above(real) {
            Some((to, from)) if to == real => from.clone(),
            Some((to, from)) => from.join(real.strip_prefix(to).unwrap_or(real)),
            None if self.gone.cover(real) => return Ok(None),
            None => real.to_owned(),
        };
        let stat = found(self.root.place(&disk)).at(path)?.map_or(Ok(None), |place| place.stat()).at(path)?;
        Ok(stat.map(|metadata| (disk, metadata)))
    }

    /// Makes a temporary name near a path, in a folder that exists and that no change of this commit takes away.
    fn temporary_for(&self, real: &Path) -> Result<PathBuf> {
        let stays =
            |folder: &&Path| !self.made.contains(folder) && !self.gone.cover(folder) && !self.arrived.cover(folder);
        temporary_in(self.root.identity(), folders_above(real).find(stays).unwrap_or(Path::new(""))).at(real)
    }
}

/// Whether the hash of a file is needed even where none is expected.
#[derive(Clone, Copy)]
enum Needed {
    Always,
    WhereExpected,
}

fn content_demand(expect: Expect) -> Demand {
    match expect {
        Expect::Hash(hash) => Demand::Content(hash),
        Expect::Absent | Expect::Anything => Demand::Nothing,
    }
}

fn folders_above(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip(1)
}
