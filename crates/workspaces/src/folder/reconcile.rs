//! Reconciles the recorded rows with the disk.
//!
//! If the two differ, somebody else has changed the folder. Their changes are recorded first, in the same commit: as a
//! version, a new row, or a row in the trash.

use super::disk::{Budget, DiskState, is_ordinary};
use std::collections::{BTreeMap, BTreeSet};
use toolrest_core::{
    Change, Changeset, ContentHash, Destination, FileId, FileType, Put, Result, Timestamp, ToolError, VersionId, WsPath,
};
use toolrest_directory::Links;
use toolrest_store::blob::{Compression, Prepared};
use toolrest_store::plan::{Below, FileRow, Needs, RowOp, VersionRow, View, is_link};

/// The folder that chats appear in, which need not be on disk.
const CHATS: &str = "/chats";

/// What is recorded before the changes, and the state that was read.
#[derive(Default)]
pub(super) struct Reconciled {
    pub(super) ops: Vec<RowOp>,
    pub(super) contents: Vec<Prepared>,
    /// The hashes of the files that were read.
    pub(super) hashes: BTreeMap<WsPath, ContentHash>,
    /// Files of which the history keeps only the hash.
    pub(super) too_large: Vec<WsPath>,
}

/// The state of a folder before the changes: the disk, or a snapshot from before a program worked on it.
pub(super) trait BaseState {
    /// Returns what one commit may read.
    fn budget(&self) -> Budget;

    /// Reads the state of a path, with its content.
    fn read_state(&self, path: &WsPath, links: Links, budget: &mut Budget) -> Result<Option<DiskState>>;

    /// Reads only whether a folder or a file is at a path.
    fn stat_kind(&self, path: &WsPath) -> Result<Option<DiskState>>;

    /// Returns the paths below a folder, and the number of entries that no path can name.
    fn paths_below(&self, folder: &WsPath) -> Result<(Vec<WsPath>, usize)>;

    /// Whether the row of a file is newer than this state.
    fn is_older_than(&self, row: &FileRow) -> bool;
}

/// Brings the rows of a view up to date with the folder.
pub(super) fn reconcile(
    base: &dyn BaseState,
    changes: &Changeset,
    needs: &Needs,
    view: &mut View,
    now: Timestamp,
) -> Result<Reconciled> {
    let mut layer =
        Reconciler { base, view, now, budget: base.budget(), gone: BTreeSet::new(), done: Reconciled::default() };
    let (taken_away, written) = (taken_away(changes), written(changes));
    for path in needs.at.union(&needs.above).filter(|path| !path.is_root()) {
        let seen = if needs.at.contains(path) {
            let links = if taken_away.contains(path) { Links::Keep } else { Links::Follow };
            let seen = base.read_state(path, links, &mut layer.budget)?;
            // A write through a dangling link creates its target.
            seen.filter(|seen| links == Links::Keep || !is_link(seen.mode) || !written.contains(path))
        } else {
            base.stat_kind(path)?
        };
        layer.reconcile_row(path, seen)?;
    }
    layer.follow_ids();
    layer.count_below(&needs.below)?;
    Ok(layer.done)
}

/// Returns the paths at which a change concerns a link itself, not its target.
fn taken_away(changes: &Changeset) -> BTreeSet<&WsPath> {
    let path = |change| match change {
        &Change::Remove { ref path, .. } | &Change::Move { from: ref path, .. } => Some(path),
        _ => None,
    };
    changes.changes.iter().filter_map(path).collect()
}

/// Returns the paths that are written to, through links. A link at the destination of a move is not followed.
fn written(changes: &Changeset) -> BTreeSet<&WsPath> {
    let mut paths = BTreeSet::new();
    for change in &changes.changes {
        if let Change::Put(Put { path, .. }) | Change::Touch(path) = change {
            paths.insert(path);
        }
    }
    for change in &changes.changes {
        if let Change::Move { to: Destination::Exactly(path), .. } = change {
            paths.remove(path);
        }
    }
    paths
}

struct Reconciler<'a> {
    base: &'a dyn BaseState,
    view: &'a mut View,
    now: Timestamp,
    budget: Budget,
    /// Paths that are gone, with all below them.
    gone: BTreeSet<WsPath>,
    done: Reconciled,
}

impl Reconciler<'_> {
    fn reconcile_row(&mut self, path: &WsPath, seen: Option<DiskState>) -> Result<()> {
        let row = self.view.live.get(path);
        if row.is_some_and(|row| row.is_virtual || self.base.is_older_than(row)) {
            return Ok(());
        }
        let Some(seen) = seen else {
            if row.is_some() && path.as_str() != CHATS {
                self.forget(path);
            }
            return Ok(());
        };
        let is_folder = |file_type| file_type == FileType::Folder;
        match row.cloned() {
            Some(row) if is_folder(row.file_type) == is_folder(seen.file_type) => self.renew(row, &seen),
            Some(_) => {
                self.forget(path);
                self.adopt(path, &seen)
            }
            None => self.adopt(path, &seen),
        }
    }

    /// Removes the row of a path at which there is nothing any more.
    fn forget(&mut self, path: &WsPath) {
        self.view.live.remove(path);
        if !path.ancestors().iter().any(|above| self.gone.contains(above)) {
            self.done.ops.push(RowOp::Forget { path: path.clone() });
            self.gone.insert(path.clone());
        }
    }

    /// Creates a row for a file or folder that has none.
    fn adopt(&mut self, path: &WsPath, seen: &DiskState) -> Result<()> {
        let head = self.head(path, seen, 1)?;
        let row = FileRow {
            id: FileId::new(),
            path: path.clone(),
            display_name: None,
            file_type: seen.file_type,
            is_virtual: false,
            head,
            mode: Some(seen.mode),
            created_at: seen.modified,
            updated_at: seen.modified,
            deleted_at: None,
        };
        self.note(path, seen);
        // A file above a path of the changes is not recorded: the changes will be refused.
        if seen.file_type == FileType::Folder || head.is_some() {
            self.done.ops.push(RowOp::Insert(row.clone()));
        }
        self.view.live.insert(path.clone(), row);
        Ok(())
    }

    /// Brings a row up to date.
    fn renew(&mut self, mut row: FileRow, seen: &DiskState) -> Result<()> {
        let hash = seen.content.as_ref().map(|content| content.hash);
        if let (Some(hash), Some(old)) = (hash, row.head)
            && hash != old.hash
        {
            let head = self.head(&row.path, seen, old.seq + 1)?;
            if let Some(head) = head {
                let (file, path, file_type) = (row.id, row.path.clone(), seen.file_type);
                self.done.ops.push(RowOp::AddVersion { file, path, file_type, head, replaced: Some(old.blob) });
            }
            (row.head, row.file_type) = (head, seen.file_type);
        } else if let (Some(seen_content), Some(old)) = (&seen.content, &mut row.head) {
            // An earlier release may have recorded the same bytes in another form.
            (old.form, row.file_type) = (seen_content.form, seen.file_type);
        }
        self.note(&row.path, seen);
        if row.mode != Some(seen.mode) {
            self.done.ops.push(RowOp::SetMode { file: row.id, path: row.path.clone(), mode: seen.mode });
            row.mode = Some(seen.mode);
        }
        self.view.live.insert(row.path.clone(), row);
        Ok(())
    }

    /// Notes the hash that a file must still have when it is changed.
    fn note(&mut self, path: &WsPath, seen: &DiskState) {
        if let Some(content) = seen.content.as_ref().filter(|_| is_ordinary(seen.mode)) {
            self.done.hashes.insert(path.clone(), content.hash);
        }
    }

    /// Creates a version of the state that was read.
    fn head(&mut self, path: &WsPath, seen: &DiskState, seq: i64) -> Result<Option<VersionRow>> {
        let Some(content) = &seen.content else { return Ok(None) };
        let prepared = if let Some(bytes) = &content.content {
            Prepared::of(bytes, Compression::WherePays)?
        } else {
            self.done.too_large.push(path.clone());
            Prepared::dropped(content.hash, content.form, content.size)
        };
        self.done.contents.push(prepared);
        let (hash, form, size) = (content.hash, content.form, content.size);
        Ok(Some(VersionRow { seq, version: VersionId::new(), hash, blob: hash, form, size }))
    }

    /// Updates the rows that are known by id.
    fn follow_ids(&mut self) {
        for row in self.view.ids.values_mut().filter(|row| row.deleted_at.is_none()) {
            match self.view.live.get(&row.path) {
                Some(live) if live.id == row.id => *row = live.clone(),
                _ => row.deleted_at = Some(self.now),
            }
        }
    }

    /// Counts the entries below folders. Each is walked once, even if folders in it are counted too.
    fn count_below(&mut self, folders: &BTreeSet<WsPath>) -> Result<()> {
        let mut counted: BTreeMap<WsPath, Below> = BTreeMap::new();
        for folder in folders {
            // Virtual files count as one entry.
            let holds_virtual = self.view.below.get(folder).is_some_and(|below| below.holds_virtual);
            let below = Below { entries: i64::from(holds_virtual), holds_virtual, longest_path_bytes: 0 };
            counted.insert(folder.clone(), below);
        }
        for folder in folders {
            if folder.ancestors().iter().any(|above| folders.contains(above)) {
                continue;
            }
            let is_folder =
                folder.is_root() || self.view.live.get(folder).is_some_and(|row| row.file_type == FileType::Folder);
            if !is_folder {
                continue;
            }
            let (paths, unnamed) = self.base.paths_below(folder)?;
            if let Some(below) = counted.get_mut(folder) {
                below.entries += length(unnamed)?;
            }
            for path in paths {
                let bytes = length(path.as_str().len())?;
                for above in path.ancestors() {
                    if let Some(below) = counted.get_mut(&above) {
                        below.entries += 1;
                        below.longest_path_bytes = below.longest_path_bytes.max(bytes);
                    }
                }
            }
        }
        self.view.below = counted;
        Ok(())
    }
}

fn length(count: usize) -> Result<i64> {
    i64::try_from(count).map_err(ToolError::internal)
}
