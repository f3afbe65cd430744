//! Compares the upper layer of an overlay with the lower folder, and transfers unversioned files.
//!
//! A program works on a view of a folder, which is an overlay: the folder is the lower layer and stays unchanged. The
//! kernel keeps in the upper layer the entries that the program wrote, a character device with the number 0 (whiteout)
//! for each entry that it removed, and an attribute (opaque) on folders that hide the lower folder.

mod baseline;
mod links;
mod placing;
mod transfer;

pub use baseline::Baseline;
pub use transfer::{NotTransferred, NotTransferredReason, Owner, TransferRules};

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
    error::{PathContext, if_exists},
    git, is_temporary, sys,
    walk::rules::{GIT, Layers, RULES, Rules},
};

/// Extended attribute of an upper folder that hides the lower folder.
const OPAQUE: &str = "user.overlay.opaque";

/// The permissions that the owner of a folder needs: read, write and search.
const OWNER: u32 = 0o700;

/// A path that may differ between the view and the folder. Contents are not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Relative to both layers.
    pub path: PathBuf,
    /// The entry in the upper layer; `None` if the program removed it.
    pub upper: Option<Metadata>,
    /// The current entry in the lower folder; `None` if it does not exist.
    pub lower: Option<Metadata>,
    /// Whether the `.gitignore` rules exclude the path with its descendants, or it is a git repository.
    pub is_ignored: bool,
    /// Whether others changed the entry in the lower folder, or replaced one of its parent directories. Always false
    /// for ignored paths.
    pub is_changed_by_others: bool,
}

impl Root {
    /// Compares the upper layer of a view with this folder, which is the lower layer. The view must not be mounted any
    /// more. Returns the differences by path.
    ///
    /// Of ignored trees only the top is returned. New files are ignored by the rules of the view. Files of the folder
    /// must be ignored by the folder's own rules too: otherwise a program could exclude versioned files from version
    /// control by writing ignore rules. Files and folders that the program made unreadable are made readable for the
    /// owner.
    pub fn differences(&self, upper: &Self, baseline: &Baseline) -> Result<Vec<Difference>> {
        let mut comparison = Comparison { lower: self, upper, baseline, pending: Vec::new(), found: Vec::new() };
        comparison.pending.push(PendingDir {
            path: PathBuf::new(),
            shown: "/".to_owned(),
            changed: Metadata::from(sys::stat(self.folder()).at(self.real_path())?).changed,
            is_replaced: false,
            view: IgnoreState::default(),
            before: IgnoreState::default(),
            sides: Sides::Both,
        });
        while let Some(folder) = comparison.pending.pop() {
            comparison.compare_dir(&folder)?;
        }
        comparison.found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(comparison.found)
    }

    /// Compares one versioned file, even in an ignored tree. Detects changes by others to the file itself, but not a
    /// replaced parent directory.
    pub fn difference_at(&self, upper: &Self, path: &Path, baseline: &Baseline) -> Result<Option<Difference>> {
        let lower = if_exists(self.entry_ref(path)).at(path)?.map_or(Ok(None), |place| place.stat()).at(path)?;
        let is_file_changed = |lower: Metadata| lower.kind != Kind::Folder && baseline.is_file_changed(&lower);
        let is_changed_by_others = lower.is_some_and(is_file_changed);
        let difference =
            |upper| Difference { path: path.to_owned(), upper, lower, is_ignored: false, is_changed_by_others };
        let removed = || lower.is_some().then(|| difference(None));
        let mut hides = false;
        let mut here = PathBuf::new();
        for name in path {
            let folder = upper.open_real_folder(&here, OFlags::RDONLY).at(&here)?;
            hides |= is_opaque(&folder).at(&here)?;
            here.push(name);
            let Some(stat) = if_exists(sys::stat_name(&folder, name)).at(&here)? else {
                return Ok(if hides { removed() } else { None });
            };
            if is_whiteout(&stat) {
                return Ok(removed());
            }
            let metadata = Metadata::from(stat);
            if here == path {
                return Ok(Some(difference(Some(metadata))));
            }
            if metadata.kind != Kind::Folder {
                return Ok(removed());
            }
        }
        Ok(None)
    }
}

/// Whether an entry of the upper layer is a whiteout: the program removed the entry of the lower layer.
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

/// Returns the names in a folder, except those of temporary files.
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

/// Opens a folder of the upper layer. Before that, restores the owner's permissions if the program removed them.
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

/// How much of a lower folder the view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    /// The entries of both layers.
    Both,
    /// The upper folder hides the lower one: entries that are not in the upper layer were removed.
    Hiding,
    /// The lower folder was removed, or replaced by something that is not a folder.
    Gone,
}

/// A folder that is to be compared.
struct PendingDir {
    path: PathBuf,
    /// The path that ignore rules are matched against, with a trailing slash.
    shown: String,
    /// The ctime of the lower entry, or of the upper folder if there is no lower entry.
    changed: SystemTime,
    /// Whether others replaced it or one of its parent directories.
    is_replaced: bool,
    /// The ignore rules of the view.
    view: IgnoreState,
    /// The ignore rules of the lower folder.
    before: IgnoreState,
    sides: Sides,
}

/// The `.gitignore` rules of the view or of the lower folder.
#[derive(Clone, Default)]
struct IgnoreState {
    rules: Option<Arc<Rules>>,
    /// Whether the folder or one of its parents is ignored, and so all descendants.
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
    found: Vec<Difference>,
}

/// A folder that is being compared, with its ignore rules.
struct ComparedFolder<'a> {
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
                // A path this long cannot be opened in the lower folder either, so the subtree is skipped.
                Err(Errno::NAMETOOLONG) => return Ok(()),
                opened => Some(opened.at(path)?),
            },
        };
        // A lower folder that cannot be opened counts as absent: the program could not read it either.
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
        let here = ComparedFolder { pending, view, before, hides };

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
                _ => self.left(&here, name, Metadata::from(*stat), below),
            }
            if let Some(folder) = upper.as_ref().filter(|_| stat.st_mode & 0o400 == 0 && !is_whiteout(stat)) {
                open_file_for_owner(folder, name, stat).at(path)?;
            }
        }
        Ok(())
    }

    /// Adds an entry that the program removed, and queues a folder that is not ignored.
    fn removed(&mut self, here: &ComparedFolder<'_>, name: &OsStr, lower: Metadata) {
        let is_folder = lower.kind == Kind::Folder;
        let is_ignored = here.ignored_before(name, is_folder);
        let path = here.pending.path.join(name);
        let is_changed_by_others = self.is_changed_by_others(here, &path, &lower, is_ignored);
        if is_folder && !is_ignored {
            self.pending.push(here.below(name, &lower, Sides::Gone, is_changed_by_others));
        }
        self.found.push(Difference { path, upper: None, lower: Some(lower), is_ignored, is_changed_by_others });
    }

    /// Adds an entry that the program created or changed, and queues a folder that is not ignored.
    fn left(&mut self, here: &ComparedFolder<'_>, name: &OsStr, upper: Metadata, lower: Option<Metadata>) {
        let is_folder = upper.kind == Kind::Folder;
        let folder_below = lower.filter(|lower| lower.kind == Kind::Folder);
        let on_folder = folder_below.is_some();
        let is_ignored = here.ignores(name, is_folder) && (lower.is_none() || here.ignored_before(name, on_folder));
        let is_same_folder = is_folder && folder_below.is_some_and(|lower| lower.mode == upper.mode);
        let path = here.pending.path.join(name);
        let is_changed_by_others =
            lower.is_some_and(|lower| self.is_changed_by_others(here, &path, &lower, is_ignored));
        if is_ignored || !is_same_folder {
            self.found.push(Difference { path, upper: Some(upper), lower, is_ignored, is_changed_by_others });
        }
        if is_ignored {
            return;
        }
        let sides = match (is_folder, on_folder) {
            (true, true) if !here.hides => Sides::Both,
            (true, _) => Sides::Hiding,
            (false, true) => Sides::Gone,
            (false, false) => return,
        };
        let below = lower.as_ref().unwrap_or(&upper);
        self.pending.push(here.below(name, below, sides, is_changed_by_others));
    }

    /// Whether others changed a file of the folder, or replaced a directory. Always false for ignored trees, which are
    /// checked when they are transferred.
    fn is_changed_by_others(&self, here: &ComparedFolder<'_>, path: &Path, lower: &Metadata, is_ignored: bool) -> bool {
        let PendingDir { changed, is_replaced, .. } = here.pending;
        match lower.kind {
            _ if is_ignored => false,
            Kind::Folder => *is_replaced || self.baseline.is_replaced(path, lower, *changed),
            _ => self.baseline.is_file_changed(lower) || *is_replaced,
        }
    }
}

impl ComparedFolder<'_> {
    fn ignores(&self, name: &OsStr, is_folder: bool) -> bool {
        git::is_git(name) || self.view.leaves_out(&self.shown(name), is_folder)
    }

    /// Whether the rules of the lower folder ignore an entry.
    fn ignored_before(&self, name: &OsStr, is_folder: bool) -> bool {
        git::is_git(name) || self.before.leaves_out(&self.shown(name), is_folder)
    }

    fn shown(&self, name: &OsStr) -> String {
        format!("{}{}", self.pending.shown, name.to_string_lossy())
    }

    fn below(&self, name: &OsStr, folder: &Metadata, sides: Sides, is_replaced: bool) -> PendingDir {
        let shown = self.shown(name);
        let (view, before) = (self.view.below(&shown), self.before.below(&shown));
        let (path, changed) = (self.pending.path.join(name), folder.changed);
        PendingDir { path, shown: format!("{shown}/"), changed, is_replaced, view, before, sides }
    }
}

/// Makes a file of the upper layer readable for its owner.
fn open_file_for_owner(folder: &OwnedFd, name: &OsStr, stat: &Stat) -> rustix::io::Result<()> {
    let metadata = Metadata::from(*stat);
    if metadata.kind == Kind::File { sys::change_mode_of(folder, name, metadata.mode | 0o400) } else { Ok(()) }
}

#[cfg(test)]
#[path = "layer/layer_tests.rs"]
mod tests;
