//! What a program left behind, as far as it differs from what was there.

use super::notes::{Note, Noted, Stamp};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::SystemTime,
};
use toolrest_core::{LeftOut, LeftOutReason, MAX_PATH_BYTES, WsPath};
use toolrest_directory::{Kind, Metadata, Result, Standing, Surveyor, Workbench};

/// What differs from what was noted.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// Files that are new, or may have another content.
    pub(super) files: BTreeMap<WsPath, Stamp>,
    /// Folders that are new.
    pub(super) folders: BTreeMap<WsPath, Stamp>,
    /// Files and folders of the workspace that are gone.
    pub(super) vanished: BTreeSet<WsPath>,
    /// Where something stands that cannot be kept, in place of what is the workspace's.
    pub(super) blocked: BTreeSet<WsPath>,
    /// What cannot be kept, as far as it is new.
    pub(super) left_out: Vec<LeftOut>,
}

impl Sight {
    /// Looks over the folder. What changed before the quiet moment shows in the stamps of files.
    pub(super) fn of(
        bench: &Workbench,
        notes: &mut HashMap<WsPath, Note>,
        look: u64,
        quiet_since: SystemTime,
    ) -> Result<Self> {
        let mut survey = Survey { notes, look, quiet_since, sight: Self::default() };
        bench.survey(MAX_PATH_BYTES, &mut survey)?;
        let Survey { notes, mut sight, .. } = survey;
        let is_below_blocked = |blocked: &BTreeSet<WsPath>, path: &WsPath| {
            !blocked.is_empty() && path.folders_above().any(|above| blocked.contains(above))
        };
        let mut gone = Vec::new();
        for (path, note) in &*notes {
            if note.is_seen_in(look) {
                continue;
            }
            if !note.what.is_tracked() {
                gone.push(path.clone());
            } else if is_below_blocked(&sight.blocked, path) {
                sight.blocked.insert(path.clone());
            } else {
                sight.vanished.insert(path.clone());
            }
        }
        for path in gone {
            notes.remove(&path);
        }
        Ok(sight)
    }

    /// Whether nothing differs.
    pub(super) fn is_empty(&self) -> bool {
        let Self { files, folders, vanished, blocked, left_out } = self;
        files.is_empty() && folders.is_empty() && vanished.is_empty() && blocked.is_empty() && left_out.is_empty()
    }

    /// Lets something stay in the folder that is not kept.
    pub(super) fn leave_out(&mut self, path: impl Into<String>, reason: LeftOutReason) {
        self.left_out.push(LeftOut { path: path.into(), reason });
    }
}

struct Survey<'a> {
    notes: &'a mut HashMap<WsPath, Note>,
    look: u64,
    quiet_since: SystemTime,
    sight: Sight,
}

impl Survey<'_> {
    /// Something that cannot be kept: told if it is new, and in the way if it stands where a file of the workspace stood.
    fn refuse(&mut self, path: &str, stamp: Stamp, reason: LeftOutReason) {
        let known = self.notes.get_mut(path);
        match known {
            Some(note) if note.what.is_tracked() => {
                note.see_in(self.look);
                self.sight.blocked.insert(WsPath::from_normal(path.to_owned()));
            }
            Some(note) if note.stamp == stamp => {
                note.see_in(self.look);
                return;
            }
            _ => {
                let note = Note::new(stamp, Noted::LeftOut, self.look);
                self.notes.insert(WsPath::from_normal(path.to_owned()), note);
            }
        }
        self.sight.leave_out(path, reason);
    }

    fn found_folder(&mut self, path: &str, stamp: Stamp) {
        let (look, sight) = (self.look, &mut self.sight);
        match self.notes.get_mut(path) {
            Some(note) if !matches!(note.what, Noted::File(_)) => {
                note.stamp = stamp;
                note.see_in(look);
            }
            // In place of a file, which is not seen then.
            _ => {
                sight.folders.insert(WsPath::from_normal(path.to_owned()), stamp);
            }
        }
    }

    fn found_file(&mut self, path: &str, stamp: Stamp) {
        // In place of a folder, that is not seen then.
        if let Some(note) = self.notes.get_mut(path).filter(|note| note.what != Noted::Folder) {
            note.see_in(self.look);
            if note.shows_all(stamp, self.quiet_since) {
                return;
            }
        }
        self.sight.files.insert(WsPath::from_normal(path.to_owned()), stamp);
    }
}

impl Surveyor for Survey<'_> {
    fn expected(&self) -> usize {
        self.notes.len()
    }

    fn knows(&self, file: &str, metadata: &Metadata) -> bool {
        let is_known = |note: &&Note| {
            matches!(note.what, Noted::File(_)) && note.shows_all(Stamp::from(metadata), self.quiet_since)
        };
        let known = self.notes.get(file).filter(is_known);
        known.inspect(|note| note.see_in(self.look)).is_some()
    }

    fn insists_on(&self, path: &str) -> bool {
        self.notes.get(path).is_some_and(|note| note.what.is_tracked())
    }

    fn found(&mut self, path: &str, metadata: &Metadata, standing: Standing) {
        let stamp = Stamp::from(metadata);
        match (standing, metadata.kind) {
            (Standing::LeftOut, _) => self.refuse(path, stamp, LeftOutReason::Ignored),
            (_, Kind::Symlink) => self.refuse(path, stamp, LeftOutReason::Link),
            (_, Kind::Other) => self.refuse(path, stamp, LeftOutReason::Special),
            (_, Kind::Folder) => self.found_folder(path, stamp),
            (_, Kind::File) => self.found_file(path, stamp),
        }
    }

    fn found_unnamed(&mut self, path: String, metadata: &Metadata) {
        // No path that is one ends like this.
        let key = WsPath::from_normal(format!("{path}\0"));
        let stamp = Stamp::from(metadata);
        let known = self.notes.insert(key, Note::new(stamp, Noted::LeftOut, self.look));
        if known.is_none_or(|known| known.stamp != stamp) {
            self.sight.leave_out(path, LeftOutReason::Name);
        }
    }

    fn found_unreadable(&mut self, folder: &str) {
        if let Some(note) = self.notes.get_mut(folder) {
            note.see_in(self.look);
        }
        self.sight.folders.remove(folder);
        self.sight.blocked.insert(WsPath::from_normal(folder.to_owned()));
        self.sight.leave_out(folder, LeftOutReason::Unreadable);
    }
}
