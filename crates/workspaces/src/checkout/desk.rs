//! One folder of a workspace's files, for one program at a time.

use super::edits::{EditReader, Edits};
use super::merge::{Merge, Proposal};
use super::notes::{Note, Noted, Stamp};
use super::renames::Renames;
use super::sight::Sight;
use super::tree::{Row, Tree, Version, What};
use crate::scratch::held;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::Path,
    time::SystemTime,
};
use toolrest_core::{
    CallId, Content, ContentHash, HeldFolder, KeepLimits, LeftOut, LeftOutReason, Result, ToolError, WsPath,
};
use toolrest_directory::Workbench;
use toolrest_store::disk_fault::storage_full;
use toolrest_store::file_list::{ListedSince, Moment};

/// How many files and folders there are in a small one.
const SMALL: usize = 64;

/// A folder, and what is known of it.
pub(super) struct Desk {
    bench: Workbench,
    /// The workspace as of the moment.
    tree: Tree,
    moment: Option<Moment>,
    /// What the folder was made from, where the workspace has gone on.
    before: HashMap<WsPath, Option<Row>>,
    notes: HashMap<WsPath, Note>,
    /// No program ran from when the notes were taken until then.
    quiet_since: SystemTime,
    /// When the program got the folder.
    handed_over: SystemTime,
    looks: u64,
    /// Whether the folder is as the notes say.
    is_settled: bool,
    /// Whether a program may still run in it.
    is_running: bool,
    /// Where a program that still runs came before a change of others: it is settled at its next look.
    skipped: HashSet<WsPath>,
    work: Work,
}

/// What a program did, from the look at the folder until it is settled.
#[derive(Default)]
struct Work {
    sight: Sight,
    edits: Edits,
    renames: Renames,
}

/// What the folder was made from, and what the workspace is now.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) tree: &'a Tree,
    pub(super) notes: &'a HashMap<WsPath, Note>,
    before: &'a HashMap<WsPath, Option<Row>>,
}

impl<'a> Base<'a> {
    /// What the folder was made from.
    pub(super) fn row(&self, path: &WsPath) -> Option<&'a Row> {
        self.before.get(path).map_or_else(|| self.tree.get(path), Option::as_ref)
    }

    pub(super) fn is_noted_folder(&self, path: &WsPath) -> bool {
        self.notes.get(path).is_some_and(|note| note.what == Noted::Folder)
    }

    pub(super) fn is_noted_file(&self, path: &WsPath) -> bool {
        self.noted_hash(path).is_some()
    }

    pub(super) fn noted_hash(&self, path: &WsPath) -> Option<ContentHash> {
        self.notes.get(path).and_then(|note| if let Noted::File(hash) = note.what { Some(hash) } else { None })
    }
}

/// Whether a program left something to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Nothing,
    Something,
}

/// A file that is to be written.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) path: WsPath,
    pub(super) version: Version,
}

impl Desk {
    /// Makes an empty one in a folder of its own.
    pub(super) fn make(folder: &Path) -> Result<Self> {
        Ok(Self {
            bench: Workbench::make(folder).map_err(unusable)?,
            tree: Tree::default(),
            moment: None,
            before: HashMap::new(),
            notes: HashMap::new(),
            quiet_since: SystemTime::UNIX_EPOCH,
            handed_over: SystemTime::UNIX_EPOCH,
            looks: 0,
            is_settled: true,
            is_running: false,
            skipped: HashSet::new(),
            work: Work::default(),
        })
    }

    /// The folder that programs work in.
    pub(super) fn folder(&self) -> HeldFolder {
        held(self.bench.top())
    }

    /// Whether a look at it takes no time worth mentioning.
    pub(super) fn is_small(&self) -> bool {
        self.notes.len() <= SMALL
    }

    /// Whether it is as the workspace was when it was last asked for.
    pub(super) fn has_nothing_to_do(&self) -> bool {
        self.is_settled && self.before.is_empty()
    }

    /// The moment that the workspace is known of.
    pub(super) fn moment(&self) -> Option<Moment> {
        self.moment
    }

    /// Learns what the workspace holds now.
    pub(super) fn learn(&mut self, listed: ListedSince) {
        self.moment = Some(listed.moment);
        for (path, row) in self.tree.update(listed.listed) {
            self.before.entry(path).or_insert(row);
        }
    }

    fn base(&self) -> Base<'_> {
        Base { tree: &self.tree, notes: &self.notes, before: &self.before }
    }

    /// Begins to change the folder: until it is settled, it is not known what it holds.
    fn unsettle(&mut self) -> bool {
        std::mem::replace(&mut self.is_settled, false)
    }

    /// Makes the folder ready for another program, and hands it over if nothing is to be written: what the last one did
    /// that was not checked in is forgotten. That is looked for where the folder was not settled since, or that is in
    /// doubt.
    pub(super) fn make_ready(&mut self, is_doubtful: bool) -> Result<Vec<Wanted>> {
        self.is_running = false;
        if self.unsettle() && !is_doubtful {
            self.work = Work::default();
        } else {
            self.look()?;
            self.forget_work()?;
        }
        let wanted = self.arrange()?;
        if wanted.is_empty() {
            self.settle()?;
            self.hand_over()?;
        }
        Ok(wanted)
    }

    /// Looks at what a program did that has ended. If there is nothing to see, that is settled.
    pub(super) fn look_for_the_last_time(&mut self) -> Result<Seen> {
        // What is written to mapped memory after a look need not show in any time: all that the program ever changed is
        // read once more.
        self.quiet_since = self.handed_over;
        self.look()?;
        if !self.work.sight.is_empty() {
            return Ok(Seen::Something);
        }
        self.settle()?;
        Ok(Seen::Nothing)
    }

    /// Looks at what a program did.
    pub(super) fn look(&mut self) -> Result<()> {
        self.unsettle();
        self.looks += 1;
        let quiet_until = SystemTime::now();
        let sight = Sight::of(&self.bench, &mut self.notes, self.looks, self.quiet_since).map_err(unusable)?;
        self.quiet_since = quiet_until;
        self.work = Work { sight, ..Work::default() };
        Ok(())
    }

    /// Removes what a program made, and lets the rest be written anew.
    fn forget_work(&mut self) -> Result<()> {
        let Work { sight, .. } = &mut self.work;
        // What only may have changed is looked into.
        sight.files.retain(|path, stamp| {
            let known = self.notes.get(path).filter(|note| note.stamp == *stamp);
            !known.is_some_and(|note| holds(&self.bench, path, note))
        });
        let is_tracked = |path: &WsPath| self.notes.get(path).is_some_and(|note| note.what.is_tracked());
        let new = sight.files.keys().chain(sight.folders.keys()).filter(|path| !is_tracked(path));
        let mut new: Vec<&WsPath> = new.collect();
        new.sort_unstable_by(|one, other| other.cmp(one));
        for path in new {
            let place = Path::new(path.without_slash());
            if let Some(stamp) = sight.folders.get(path) {
                if !self.bench.remove_empty_folder(place).map_err(unusable)? {
                    // What is left out may stay, and so what it is in.
                    let note = Note::new(*stamp, Noted::LeftOut, self.looks);
                    self.notes.insert(path.clone(), note);
                }
            } else {
                self.bench.clear(place).map_err(unusable)?;
            }
        }
        for path in sight.files.keys().chain(&sight.vanished).chain(&sight.blocked) {
            self.notes.remove(path);
        }
        sight.blocked.extend(std::mem::take(&mut sight.files).into_keys());
        sight.blocked.append(&mut sight.vanished);
        for path in sight.blocked.iter().filter(|path| self.tree.seen(path).is_none()) {
            // Others removed it meanwhile, and without a note nobody else does.
            self.bench.clear(Path::new(path.without_slash())).map_err(unusable)?;
        }
        sight.folders.clear();
        sight.left_out.clear();
        Ok(())
    }

    /// The most bytes that [`Desk::read_work`] reads.
    pub(super) fn work_bytes(&self, keep: KeepLimits) -> u64 {
        let sizes = self.work.sight.files.values().map(Stamp::size_bytes);
        sizes.filter(|size| *size <= keep.file_bytes).sum::<u64>().min(keep.commit_bytes)
    }

    /// Reads what a program wrote. Tells of which contents the originals are needed to understand it.
    pub(super) fn read_work(&mut self, keep: KeepLimits) -> Vec<Version> {
        // What was read for a commit that others came before went with it.
        self.work.edits = Edits::default();
        let base = Base { tree: &self.tree, notes: &self.notes, before: &self.before };
        let renames = Renames::find(&self.work.sight, &base);
        let reader = EditReader { bench: &self.bench, base, keep, quiet_since: self.quiet_since };
        let edits = reader.read(&self.work.sight, &renames);
        let origins = edits.files.keys().filter_map(|path| renames.origin(path));
        let needed = origins.flat_map(|origin| [base.row(&origin), base.tree.get(&origin)]);
        let needed = needed.flatten().filter_map(|row| row.file().copied()).filter(|version| !version.is_plain());
        let needed = needed.collect();
        (self.work.edits, self.work.renames) = (edits, renames);
        needed
    }

    /// What becomes of what a program did.
    pub(super) fn propose(&mut self, originals: &HashMap<ContentHash, Content>, call: CallId) -> Result<Proposal> {
        let base = Base { tree: &self.tree, notes: &self.notes, before: &self.before };
        let Work { sight, edits: Edits { files, moved, .. }, renames } = &mut self.work;
        Merge::new(base, sight, moved, renames, originals, call).propose(files)
    }

    /// What the last program left that is not kept.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let mut left_out = self.work.sight.left_out.clone();
        let refused = self.work.edits.refused.iter();
        left_out.extend(refused.map(|(path, (_, reason))| LeftOut { path: path.to_string(), reason: *reason }));
        left_out.sort_by(|one, other| one.path.cmp(&other.path));
        left_out
    }

    /// Notes what the program left, now that it is committed, and arranges the rest.
    pub(super) fn accept_work(&mut self) -> Result<Vec<Wanted>> {
        let Work { sight, edits, .. } = &mut self.work;
        let seen_in = self.looks;
        let mut note = |path: &WsPath, stamp: Stamp, what| {
            self.notes.insert(path.clone(), Note::new(stamp, what, seen_in));
        };
        for (path, edit) in &edits.files {
            note(path, edit.stamp, Noted::File(edit.hash));
        }
        for (path, (stamp, hash)) in &edits.same {
            note(path, *stamp, Noted::File(*hash));
        }
        for (path, stamp) in &sight.folders {
            note(path, *stamp, Noted::Folder);
        }
        for (path, (stamp, reason)) in &edits.refused {
            if self.tree.seen(path).is_some() {
                sight.blocked.insert(path.clone());
            } else if *reason == LeftOutReason::TooMuch {
                // It is new the next time, when there may be room.
                self.notes.remove(path);
            } else {
                self.notes.insert(path.clone(), Note::new(*stamp, Noted::LeftOut, seen_in));
            }
        }
        let stands = |path: &WsPath| sight.files.contains_key(path) || sight.folders.contains_key(path);
        for path in sight.vanished.iter().filter(|path| !stands(path)).chain(&sight.blocked) {
            self.notes.remove(path);
        }
        self.is_running = true;
        self.arrange()
    }

    /// Removes and makes folders, and removes files, as the workspace has it. Tells what is to be written.
    pub(super) fn arrange(&mut self) -> Result<Vec<Wanted>> {
        let Work { sight, edits, .. } = &self.work;
        let worked_on = sight.files.keys().chain(sight.folders.keys()).chain(&sight.vanished).chain(&sight.blocked);
        let paths: BTreeSet<WsPath> = self.before.keys().chain(worked_on).cloned().collect();
        let is_refused = |path: &WsPath| edits.refused.contains_key(path);
        for path in paths.iter().rev() {
            let wanted = self.tree.seen(path).map(Row::is_folder);
            let known = self.notes.get(path).filter(|note| note.what.is_tracked());
            let Some(known) = known.filter(|_| !is_refused(path)) else { continue };
            let is_folder = known.what == Noted::Folder;
            if wanted == Some(is_folder) {
                continue;
            }
            if is_touched(&self.bench, path, known)? {
                self.skipped.insert(path.clone());
                continue;
            }
            let place = Path::new(path.without_slash());
            if !is_folder {
                self.bench.clear(place).map_err(unusable)?;
                self.notes.remove(path);
            } else if self.bench.remove_empty_folder(place).map_err(unusable)? {
                self.notes.remove(path);
            } else if let Some(note) = self.notes.get_mut(path) {
                note.what = Noted::LeftOut;
            }
        }
        let mut wanted = Vec::new();
        for path in &paths {
            match self.tree.seen(path).map(|row| row.what) {
                Some(What::Folder) => self.make_folder(path)?,
                Some(What::File(version)) if !self.shows(path, &version) => {
                    wanted.push(Wanted { path: path.clone(), version });
                }
                _ => {}
            }
        }
        Ok(wanted)
    }

    fn make_folder(&mut self, path: &WsPath) -> Result<()> {
        if self.base().is_noted_folder(path) {
            return Ok(());
        }
        let made = self.bench.make_folder(Path::new(path.without_slash())).map_err(unusable)?;
        let note = Note::new(Stamp::from(&made), Noted::Folder, self.looks);
        self.notes.insert(path.clone(), note);
        Ok(())
    }

    /// Whether the folder is known to show a version.
    fn shows(&self, path: &WsPath, version: &Version) -> bool {
        let Some(note) = self.notes.get(path) else { return false };
        note.stamp.is_executable() == version.is_executable
            && version.is_plain()
            && note.what == Noted::File(version.blob)
    }

    /// Writes files, but not where a program that still runs came first. Contents that are missing are told by their
    /// paths.
    pub(super) fn write(&mut self, wanted: &[Wanted], stored: &HashMap<ContentHash, Vec<u8>>) -> Result<Vec<WsPath>> {
        let mut missing = Vec::new();
        for Wanted { path, version } in wanted {
            let Some(bytes) = stored.get(&version.blob) else {
                missing.push(path.clone());
                continue;
            };
            let place = Path::new(path.without_slash());
            let shown;
            let (bytes, hash) = if version.is_plain() {
                (bytes, version.blob)
            } else {
                shown = Content::from_stored(version.form, bytes.clone())?.shown(version.file_type);
                (&shown, ContentHash::of(&shown))
            };
            if let Some(known) = self.notes.get(path).filter(|known| known.what.is_tracked()) {
                if known.what == Noted::File(hash) && known.stamp.is_executable() == version.is_executable {
                    continue;
                }
                if is_touched(&self.bench, path, known)? {
                    self.skipped.insert(path.clone());
                    continue;
                }
            } else if self.is_running
                && !self.work.sight.blocked.contains(path)
                && self.bench.stat(place).map_err(unusable)?.is_some()
            {
                self.skipped.insert(path.clone());
                continue;
            }
            let written = self.bench.write(place, bytes, version.mode()).map_err(unusable)?;
            let note = Note::new(Stamp::from(&written), Noted::File(hash), self.looks);
            self.notes.insert(path.clone(), note);
        }
        Ok(missing)
    }

    /// Ends a change of the folder: it shows the workspace as it is known.
    #[allow(clippy::unnecessary_wraps, reason = "all that is done with a desk may fail")]
    pub(super) fn settle(&mut self) -> Result<()> {
        let skipped = std::mem::take(&mut self.skipped);
        self.before.retain(|path, _| skipped.contains(path));
        self.work = Work::default();
        self.is_settled = true;
        Ok(())
    }

    /// Begins the work of a program: nothing happened in the folder since it was settled, and from now on anything may.
    #[allow(clippy::unnecessary_wraps, reason = "all that is done with a desk may fail")]
    pub(super) fn hand_over(&mut self) -> Result<()> {
        self.quiet_since = SystemTime::now();
        self.handed_over = self.quiet_since;
        self.is_settled = false;
        Ok(())
    }
}

/// Whether something happened to a file since it was noted.
fn is_touched(bench: &Workbench, path: &WsPath, note: &Note) -> Result<bool> {
    let now = bench.stat(Path::new(path.without_slash())).map_err(unusable)?;
    Ok(match now {
        None => false,
        // What is in a folder may change.
        Some(now) if note.what == Noted::Folder => now.identity != note.stamp.identity,
        Some(now) => Stamp::from(&now) != note.stamp,
    })
}

/// Whether a file still has the content that was noted.
fn holds(bench: &Workbench, path: &WsPath, note: &Note) -> bool {
    let Noted::File(noted) = note.what else { return false };
    bench.hash(Path::new(path.without_slash())).is_ok_and(|(found, _)| found.0 == noted.0)
}

fn unusable(error: toolrest_directory::Error) -> ToolError {
    match error.kind {
        toolrest_directory::ErrorKind::NoSpace => storage_full(),
        _ => ToolError::internal(error),
    }
}
