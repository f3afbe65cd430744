//! What a program has changed in a view of a folder.
//!
//! The view is an overlay: the folder itself lies below and stays as it is, and what the program does ends up in another
//! folder, the upper one. The kernel keeps there what was written; a device with the number 0 for what was removed; and
//! a mark on folders that hide what lies below them. Here the two are compared, and what needs no versions is taken over.

mod baseline;
mod links;
mod placing;
mod transfer;

pub use baseline::{Baseline, DirIdentities, ReplacedDirs};
pub use transfer::{NotTransferred, NotTransferredReason, Owner, PreserveRules};

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustix::{
    fs::{Dir, FileType, OFlags, Stat},
    io::Errno,
};

use crate::{
    Kind, Metadata, Result, Root,
    error::{At, if_exists},
    git, is_temporary, sys,
    walk::rules::{GIT, Layers, RULES, Rules},
};

/// The mark of a folder that hides what lies below it.
const OPAQUE: &str = "user.overlay.opaque";

/// What the owner of a folder has to be allowed.
const OWNER: u32 = 0o700;

/// Something that is not the same in the view as in the folder, or may not be: contents are not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Beneath both folders.
    pub path: PathBuf,
    /// What the program left; none where it took away what was there.
    pub upper: Option<Metadata>,
    /// What stands in the folder now.
    pub lower: Option<Metadata>,
    /// Whether the rules of git leave it out, with all that is below, or it is git's own.
    pub is_ignored: bool,
}

/// All that is not the same in the view as in the folder.
#[derive(Debug, Default)]
pub struct Differences {
    /// Sorted by path.
    pub found: Vec<Difference>,
    /// The folders among them, or above them, that others have put there.
    pub replaced_dirs: ReplacedDirs,
}

impl Root {
    /// Compares the view that has its changes in `upper` with this folder, which lies below it. Nobody may have
    /// the view open any more.
    ///
    /// Of what is ignored only the topmost is given. What is new is judged by the rules of the view. What stands in this
    /// folder must be ignored by its own rules too, so that no program can rob it of its history by writing some. What
    /// the program has closed to everybody is opened for the owner.
    pub fn differences(&self, upper: &Self, baseline: &Baseline) -> Result<Differences> {
        let mut comparison =
            Comparison { lower: self, upper, baseline, pending: Vec::new(), all: Differences::default() };
        comparison.pending.push(PendingDir {
            path: PathBuf::new(),
            shown: "/".to_owned(),
            changed: Metadata::from(sys::stat(self.folder()).at(self.real_path())?).changed,
            view: IgnoreState::default(),
            before: IgnoreState::default(),
            sides: Sides::Both,
        });
        while let Some(folder) = comparison.pending.pop() {
            comparison.compare_dir(&folder)?;
        }
        comparison.all.found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(comparison.all)
    }

    /// Compares one path, of which nothing above it was removed or hidden but by the program.
    pub fn difference_at(&self, upper: &Self, path: &Path) -> Result<Option<Difference>> {
        let lower = if_exists(self.entry_ref(path)).at(path)?.map_or(Ok(None), |place| place.stat()).at(path)?;
        let difference = |upper| Difference { path: path.to_owned(), upper, lower, is_ignored: true };
        let removed = || lower.is_some().then(|| difference(None));
        let mut hides = false;
        let mut way = PathBuf::new();
        for name in path {
            let folder = upper.open_real_folder(&way, OFlags::RDONLY).at(&way)?;
            hides |= is_opaque(&folder).at(&way)?;
            way.push(name);
            let Some(stat) = if_exists(sys::stat_name(&folder, name)).at(&way)? else {
                return Ok(if hides { removed() } else { None });
            };
            if is_whiteout(&stat) {
                return Ok(removed());
            }
            let metadata = Metadata::from(stat);
            if way == path {
                return Ok(Some(difference(Some(metadata))));
            }
            if metadata.kind != Kind::Folder {
                return Ok(removed());
            }
        }
        Ok(None)
    }
}

/// Whether something in the upper folder only says that what is below it is gone.
fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn is_opaque(folder: &OwnedFd) -> rustix::io::Result<bool> {
    match sys::attribute(folder, OsStr::new(OPAQUE)) {
        Ok(value) => Ok(value == b"y"),
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// The names in a folder, but for those of files that are only there for a moment.
fn names(folder: &OwnedFd) -> rustix::io::Result<Vec<OsString>> {
    names_that(folder, |name| !is_temporary(name))
}

fn names_that(folder: &OwnedFd, is_wanted: impl Fn(&OsStr) -> bool) -> rustix::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    let mut entries = Dir::read_from(folder)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." && is_wanted(name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Opens a folder of the program's, which is given to its owner again if it was closed.
fn open_for_owner(upper: &Root, path: &Path) -> rustix::io::Result<OwnedFd> {
    if path.file_name().is_some() {
        let place = upper.entry_ref(path)?;
        let mode = Metadata::from(sys::stat_name(&place.folder, &place.name)?).mode;
        if mode & OWNER != OWNER {
            sys::change_mode_of(&place.folder, &place.name, mode | OWNER)?;
        }
    }
    upper.open_real_folder(path, OFlags::RDONLY)
}

/// Which of the two folders a path is looked at in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    Both,
    /// What lies below is hidden: all of it that is not in the upper folder too is gone.
    Hiding,
    /// All that lies below is gone.
    Gone,
}

/// A folder that is to be compared.
struct PendingDir {
    path: PathBuf,
    /// The path as rules see it, with a slash at the end.
    shown: String,
    /// The ctime of the folder below.
    changed: SystemTime,
    /// The rules of the view.
    view: IgnoreState,
    /// Those of the folder below.
    before: IgnoreState,
    sides: Sides,
}

/// What the rules of one side say.
#[derive(Clone, Default)]
struct IgnoreState {
    rules: Option<Arc<Rules>>,
    /// Whether a folder above is left out, and so all that is in it.
    leaves_all_out: bool,
}

impl IgnoreState {
    fn leaves_out(&self, path: &str, is_folder: bool) -> bool {
        self.leaves_all_out || self.rules.as_ref().is_some_and(|rules| rules.ignores(path, is_folder))
    }

    fn below(&self, path: &str) -> Self {
        Self { rules: self.rules.clone(), leaves_all_out: self.leaves_out(path, true) }
    }
}

struct Comparison<'a> {
    lower: &'a Root,
    upper: &'a Root,
    baseline: &'a Baseline,
    pending: Vec<PendingDir>,
    all: Differences,
}

/// A folder that is being compared.
struct RuleFiles<'a> {
    pending: &'a PendingDir,
    view: IgnoreState,
    before: IgnoreState,
    hides: bool,
}

impl Comparison<'_> {
    fn compare_dir(&mut self, pending: &PendingDir) -> Result<()> {
        let path = &pending.path;
        let upper = match pending.sides {
            Sides::Gone => None,
            Sides::Both | Sides::Hiding => match open_for_owner(self.upper, path) {
                // No path in the folder below could be so long either.
                Err(Errno::NAMETOOLONG) => return Ok(()),
                opened => Some(opened.at(path)?),
            },
        };
        // Of what nobody may look into, the program has seen nothing either.
        let lower = self.lower.open_real_folder(path, OFlags::RDONLY).ok();
        let hides = pending.sides == Sides::Hiding || upper.as_ref().map_or(Ok(false), is_opaque).at(path)?;

        let mut in_upper: BTreeMap<OsString, Stat> = BTreeMap::new();
        for name in upper.as_ref().map_or(Ok(Vec::new()), names).at(path)? {
            if let Some(stat) =
                upper.as_ref().map_or(Ok(None), |folder| if_exists(sys::stat_name(folder, &name))).at(path)?
            {
                in_upper.insert(name, stat);
            }
        }
        let in_lower = |name: &str| {
            lower.as_ref().filter(|folder| matches!(if_exists(sys::stat_name(folder, name.as_ref())), Ok(Some(_))))
        };
        let in_view = |name: &str| {
            let own = in_upper.get(OsStr::new(name));
            let is_gone = hides || own.is_some_and(is_whiteout);
            let mut layers: Vec<&OwnedFd> = Vec::new();
            layers.extend(upper.as_ref().filter(|_| own.is_some_and(|stat| !is_whiteout(stat))));
            layers.extend(in_lower(name).filter(|_| !is_gone && (own.is_none() || name == GIT)));
            layers
        };
        let judge = |above: &IgnoreState, layers: &Layers<'_>| IgnoreState {
            rules: Rules::of_layers(layers, above.rules.clone(), pending.shown.len()),
            ..*above
        };
        let of_lower = |name: &str| in_lower(name).into_iter().collect();
        let before = judge(&pending.before, &Layers { rules: of_lower(RULES), git: of_lower(GIT) });
        let view = judge(&pending.view, &Layers { rules: in_view(RULES), git: in_view(GIT) });
        let here = RuleFiles { pending, view, before, hides };

        if let Some(folder) = lower.as_ref().filter(|_| hides || pending.sides == Sides::Gone) {
            for name in names(folder).at(path)? {
                if in_upper.contains_key(&name) {
                    continue;
                }
                if let Some(stat) = if_exists(sys::stat_name(folder, &name)).at(path)? {
                    self.removed(&here, &name, stat.into());
                }
            }
        }
        for (name, stat) in &in_upper {
            let below = lower.as_ref().map_or(Ok(None), |folder| if_exists(sys::stat_name(folder, name))).at(path)?;
            let below = below.map(Metadata::from);
            match below {
                None if is_whiteout(stat) => {}
                Some(below) if is_whiteout(stat) => self.removed(&here, name, below),
                _ => self.left(&here, name, Metadata::from(*stat), below)?,
            }
            if let Some(folder) = upper.as_ref().filter(|_| stat.st_mode & 0o400 == 0 && !is_whiteout(stat)) {
                open_file_for_owner(folder, name, stat).at(path)?;
            }
        }
        Ok(())
    }

    /// Notes what is gone, with all that is below.
    fn removed(&mut self, here: &RuleFiles<'_>, name: &OsStr, lower: Metadata) {
        let is_folder = lower.kind == Kind::Folder;
        let is_ignored = here.ignored_before(name, is_folder);
        let path = here.pending.path.join(name);
        if is_folder {
            self.note_if_replaced(&path, &lower, here.pending.changed);
        }
        if is_folder && !is_ignored {
            self.pending.push(here.below(name, &lower, Sides::Gone));
        }
        self.all.found.push(Difference { path, upper: None, lower: Some(lower), is_ignored });
    }

    /// Notes what the program left.
    fn left(&mut self, here: &RuleFiles<'_>, name: &OsStr, upper: Metadata, lower: Option<Metadata>) -> Result<()> {
        let is_folder = upper.kind == Kind::Folder;
        let folder_below = lower.filter(|lower| lower.kind == Kind::Folder);
        let on_folder = folder_below.is_some();
        let is_ignored = here.ignores(name, is_folder) && (lower.is_none() || here.ignored_before(name, on_folder));
        let is_same_folder = is_folder && folder_below.is_some_and(|lower| lower.mode == upper.mode);
        let path = here.pending.path.join(name);
        if let Some(folder_below) = folder_below {
            self.note_if_replaced(&path, &folder_below, here.pending.changed);
            if is_ignored && is_folder {
                self.note_replaced_below(&path, folder_below.changed)?;
            }
        }
        if is_ignored || !is_same_folder {
            self.all.found.push(Difference { path, upper: Some(upper), lower, is_ignored });
        }
        if is_ignored {
            return Ok(());
        }
        let below = lower.as_ref().unwrap_or(&upper);
        match (is_folder, on_folder) {
            (true, true) if !here.hides => self.pending.push(here.below(name, below, Sides::Both)),
            (true, _) => self.pending.push(here.below(name, below, Sides::Hiding)),
            (false, true) => self.pending.push(here.below(name, below, Sides::Gone)),
            (false, false) => {}
        }
        Ok(())
    }

    /// Notes a folder if others have put it there; `above` is the ctime of the one that it lies in.
    fn note_if_replaced(&mut self, path: &Path, there: &Metadata, above: SystemTime) {
        if self.baseline.is_replaced(path, there, Some(above)) {
            self.all.replaced_dirs.0.insert(path.to_owned());
        }
    }

    /// Notes which folders others have put there, of those in an ignored tree that the program has changed something in.
    fn note_replaced_below(&mut self, path: &Path, changed: SystemTime) -> Result<()> {
        let mut pending = vec![(path.to_owned(), changed)];
        while let Some((folder, changed)) = pending.pop() {
            let upper = match open_for_owner(self.upper, &folder) {
                // No path in the folder below could be so long either.
                Err(Errno::NAMETOOLONG) => continue,
                opened => opened.at(&folder)?,
            };
            let Ok(lower) = self.lower.open_real_folder(&folder, OFlags::PATH) else { continue };
            for name in names(&upper).at(&folder)? {
                let path = folder.join(&name);
                let is_folder = |stat: Stat| Some(Metadata::from(stat)).filter(|there| there.kind == Kind::Folder);
                let there = if_exists(sys::stat_name(&lower, &name)).at(&path)?.and_then(is_folder);
                let Some(there) = there else { continue };
                self.note_if_replaced(&path, &there, changed);
                if if_exists(sys::stat_name(&upper, &name)).at(&path)?.and_then(is_folder).is_some() {
                    pending.push((path, there.changed));
                }
            }
        }
        Ok(())
    }
}

impl RuleFiles<'_> {
    fn ignores(&self, name: &OsStr, is_folder: bool) -> bool {
        git::is_git(name) || self.view.leaves_out(&self.shown(name), is_folder)
    }

    /// Whether what stands in the folder below is ignored there.
    fn ignored_before(&self, name: &OsStr, is_folder: bool) -> bool {
        git::is_git(name) || self.before.leaves_out(&self.shown(name), is_folder)
    }

    fn shown(&self, name: &OsStr) -> String {
        format!("{}{}", self.pending.shown, name.to_string_lossy())
    }

    fn below(&self, name: &OsStr, folder: &Metadata, sides: Sides) -> PendingDir {
        let shown = self.shown(name);
        let (view, before) = (self.view.below(&shown), self.before.below(&shown));
        let (path, changed) = (self.pending.path.join(name), folder.changed);
        PendingDir { path, shown: format!("{shown}/"), changed, view, before, sides }
    }
}

/// Lets the owner read a file of the program's.
fn open_file_for_owner(folder: &OwnedFd, name: &OsStr, stat: &Stat) -> rustix::io::Result<()> {
    let metadata = Metadata::from(*stat);
    if metadata.kind == Kind::File { sys::change_mode_of(folder, name, metadata.mode | 0o400) } else { Ok(()) }
}

#[cfg(test)]
#[path = "layer/layer_tests.rs"]
mod tests;
