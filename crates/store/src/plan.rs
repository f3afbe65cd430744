//! Plans a changeset: decides what each change does and when it is refused. Both databases and folder workspaces use
//! this implementation.
//!
//! A store reads the rows that the changes concern ([`Needs`]) into a [`View`], and [`plan`] turns the changes into row
//! operations. The view is updated along the way, so that later changes see the result of earlier ones. The plan does
//! no I/O, and the stores do not decide what is allowed.

mod needs;

pub use needs::Needs;

use crate::blob::Prepared;
use crate::error::{Result, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use toolrest_core::{
    Change, Changeset, Commit, CommitId, ContentHash, Destination, Effect, EffectKind, Entry, ErrorKind, Expect,
    FileId, FileType, Form, Guard, MAX_PATH_BYTES, MovedFolder, Outcome, Parents, Preview, Put, Removal, Timestamp,
    ToolError, VersionId, WsPath, net_effects,
};

/// A row of `files`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileRow {
    pub id: FileId,
    pub path: WsPath,
    pub display_name: Option<String>,
    pub file_type: FileType,
    pub is_virtual: bool,
    pub head: Option<VersionRow>,
    /// The last known mode (file type and permissions); `None` if no mode was ever recorded.
    pub mode: Option<u32>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

/// The file type bits of a symbolic link in a mode.
pub const MODE_OF_LINK: u32 = 0o120_000;

/// Whether a mode is that of a symbolic link.
pub fn is_link(mode: u32) -> bool {
    mode & !0o7777 == MODE_OF_LINK
}

/// A row of `versions`, usually the current version of a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct VersionRow {
    pub seq: i64,
    pub version: VersionId,
    /// The hash that the API reports.
    pub hash: ContentHash,
    /// The SHA-256 of the stored content, which is the key of the blob.
    pub blob: ContentHash,
    pub form: Form,
    pub size: i64,
}

impl From<FileRow> for Entry {
    fn from(row: FileRow) -> Self {
        Self {
            id: row.id,
            path: row.path,
            display_name: row.display_name,
            file_type: row.file_type,
            is_virtual: row.is_virtual,
            is_link: false,
            size: row.head.map_or(0, |head| head.size),
            version: row.head.map(|head| head.version),
            hash: row.head.map(|head| head.hash),
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at,
        }
    }
}

/// The rows that a changeset concerns.
#[derive(Debug, Default)]
pub struct View {
    /// The rows at the requested paths that are not in the trash.
    pub live: BTreeMap<WsPath, FileRow>,
    /// Summaries of the entries below the requested folders.
    pub below: BTreeMap<WsPath, Below>,
    /// The rows of files requested by id.
    pub ids: BTreeMap<FileId, FileRow>,
    /// The requested earlier versions.
    pub versions: BTreeMap<(FileId, i64), VersionRow>,
    /// For restores: the folder in the trash that last had the path.
    pub trashed_folders: BTreeMap<WsPath, FileRow>,
}

/// Summary of the entries below a folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Below {
    pub entries: i64,
    pub holds_virtual: bool,
    pub longest_path_bytes: i64,
}

impl View {
    /// Returns the current version of each file of the view.
    pub fn heads(&self) -> HashMap<FileId, VersionId> {
        let rows = self.live.values().chain(self.ids.values());
        rows.filter_map(|row| Some((row.id, row.head?.version))).collect()
    }
}

/// One operation on rows. Operations are applied in order.
#[derive(Debug, Serialize, Deserialize)]
pub enum RowOp {
    /// Inserts the row, and the first version if it has one.
    Insert(FileRow),
    /// Adds a version and makes it current. `replaced` is the previous content, if it differs.
    AddVersion { file: FileId, path: WsPath, file_type: FileType, head: VersionRow, replaced: Option<ContentHash> },
    /// Sets the time of the last change.
    Touch { file: FileId, path: WsPath },
    /// Moves a row, and for a folder all rows below it.
    Move { file: FileId, is_folder: bool, from: WsPath, to: WsPath },
    /// Marks a row as deleted.
    Trash { file: FileId, path: WsPath, is_folder: bool },
    /// Removes the deletion mark.
    Untrash(FileRow),
    /// Records the mode of a file.
    SetMode { file: FileId, path: WsPath, mode: u32 },
    /// Marks the rows at a path and below it as deleted, because the path is no longer on disk. Unlike `Trash`, needs
    /// no file id, and does not affect virtual files.
    Forget { path: WsPath },
}

/// The row operations, effects and outcomes of a changeset.
#[derive(Debug, Default)]
pub struct Plan {
    pub ops: Vec<RowOp>,
    pub effects: Vec<Effect>,
    pub outcomes: Vec<Outcome>,
}

impl Plan {
    /// Returns a new commit id; `None` if there is nothing to record.
    pub fn commit_id(&self) -> Option<CommitId> {
        (!self.effects.is_empty()).then(CommitId::new)
    }

    pub fn into_commit(self, id: Option<CommitId>, created_at: Timestamp) -> Commit {
        Commit { id, created_at, outcomes: self.outcomes }
    }

    /// Returns what the plan would do. New versions are not made, so outcomes have the versions before the change:
    /// those of `heads`.
    pub fn into_preview(mut self, created_at: Timestamp, heads: &HashMap<FileId, VersionId>) -> Preview {
        for outcome in &mut self.outcomes {
            outcome.version = heads.get(&outcome.file).copied();
        }
        let effects = std::mem::take(&mut self.effects);
        Preview { commit: self.into_commit(None, created_at), effects }
    }
}

/// Turns changes into row operations, or returns why they are refused: by the state of the workspace, or by the guard.
pub fn plan(
    changes: &Changeset,
    contents: &[Option<Prepared>],
    view: View,
    now: Timestamp,
    guard: &Guard,
) -> Result<Plan> {
    let paths = view.live.values().map(|row| (row.id, row.path.clone())).collect();
    let mut planner = Planner { view, paths, now, plan: Plan::default() };
    for expect in &changes.expect {
        planner.check(expect)?;
    }
    for (change, content) in changes.changes.iter().zip(contents) {
        let outcome = planner.apply(change, content.as_ref())?;
        planner.plan.outcomes.push(outcome);
    }
    if !guard.is_unrestricted() {
        guard.judge(&net_effects(&planner.plan.effects), &moved_folders(&planner.plan.ops))?;
    }
    Ok(planner.plan)
}

/// Returns the folders that operations move with everything below them.
fn moved_folders(ops: &[RowOp]) -> Vec<MovedFolder> {
    let moved = |op: &RowOp| match op {
        RowOp::Move { is_folder: true, from, to, .. } => Some(MovedFolder { from: from.clone(), to: to.clone() }),
        _ => None,
    };
    ops.iter().filter_map(moved).collect()
}

struct Planner {
    view: View,
    /// The current path of each file of the view.
    paths: HashMap<FileId, WsPath>,
    now: Timestamp,
    plan: Plan,
}

impl Planner {
    fn check(&self, expect: &Expect) -> Result<()> {
        match expect {
            Expect::Hash(path, expected) => {
                let row = self.view.live.get(path).ok_or_else(|| StoreError::FileNotFound(path.clone()))?;
                let current = row.head.map(|head| head.hash);
                if current == Some(*expected) { Ok(()) } else { Err(StoreError::stale(path, current)) }
            }
            Expect::Absent(path) => match self.view.live.get(path) {
                None => Ok(()),
                // A dangling link: after `Stale`, the caller would read the path, find nothing and retry in vain.
                Some(row) if row.mode.is_some_and(is_link) => Err(already_exists(path)),
                Some(row) => Err(StoreError::stale(path, row.head.map(|head| head.hash))),
            },
            Expect::NotEncoded(path) => {
                let head = self.view.live.get(path).and_then(|row| row.head);
                if head.is_none_or(|head| head.form != Form::Encoded) {
                    return Ok(());
                }
                let message = format!("{path} is a text in another encoding than plain UTF-8, and must stay one");
                Err(StoreError::refused(ErrorKind::WrongType, message))
            }
            Expect::Version(file, expected) => {
                let row = self.view.ids.get(file).filter(|row| row.deleted_at.is_none());
                let current = row.and_then(|row| row.head);
                if current.is_some_and(|head| head.version == *expected) {
                    return Ok(());
                }
                let path = row.map_or_else(|| file.to_string(), |row| row.path.to_string());
                Err(StoreError::stale(path, current.map(|head| head.hash)))
            }
            Expect::InTrash(file, path, expected) => {
                let row = self.view.ids.get(file).filter(|row| row.deleted_at.is_some() && row.path == *path);
                let as_left = row.is_some_and(|row| row.head.map(|head| head.version) == *expected);
                if as_left { Ok(()) } else { Err(changed_since(path)) }
            }
            Expect::At(file, path) => {
                let row = self.view.ids.get(file).filter(|row| row.deleted_at.is_none());
                if row.is_some_and(|row| row.path == *path) { Ok(()) } else { Err(changed_since(path)) }
            }
        }
    }

    fn apply(&mut self, change: &Change, content: Option<&Prepared>) -> Result<Outcome> {
        match (change, content) {
            (Change::Put(put), Some(content)) => self.put(put, content),
            (Change::Touch(path), Some(empty)) => self.touch(path, empty),
            (Change::Put(_) | Change::Touch(_), None) => Err(StoreError::internal("a content was not prepared")),
            (Change::MakeDir(path), _) => self.make_dir(path),
            (Change::Move { from, to }, _) => self.move_to(from, to),
            (Change::Remove { path, removal }, _) => self.remove(path, *removal),
            (Change::Restore(file), _) => self.restore(*file),
            (Change::Revert { file, seq, mode }, _) => self.revert(*file, *seq, *mode),
        }
    }

    fn put(&mut self, put: &Put, content: &Prepared) -> Result<Outcome> {
        let Some(row) = self.view.live.get(&put.path) else {
            let mode = put.executable.filter(|executable| *executable).map(|_| EXECUTABLE_MODE);
            return self.create(&put.path, put.file_type, content, put.parents, mode);
        };
        if row.file_type == FileType::Folder {
            return Err(is_folder(&put.path));
        }
        check_changeable(row)?;
        if row.file_type != put.file_type && !(is_plain(row.file_type) && is_plain(put.file_type)) {
            let (actual, given) = (row.file_type, put.file_type);
            let message = format!("{} is a {actual}; it cannot become a {given}", put.path);
            return Err(ToolError::new(ErrorKind::WrongType, message).detail("file_type", actual.name()).into());
        }
        let row = row.clone();
        let mode = put.executable.map(|executable| with_execution(row.mode, executable));
        Ok(self.add_version(row, head(content), mode))
    }

    fn touch(&mut self, path: &WsPath, empty: &Prepared) -> Result<Outcome> {
        let Some(row) = self.view.live.get(path) else {
            return self.create(path, FileType::Document, empty, Parents::Create, None);
        };
        check_changeable(row)?;
        let row = row.clone();
        self.plan.ops.push(RowOp::Touch { file: row.id, path: path.clone() });
        self.effect(EffectKind::Touch, &row, None);
        Ok(outcome(&row))
    }

    fn create(
        &mut self,
        path: &WsPath,
        file_type: FileType,
        content: &Prepared,
        parents: Parents,
        mode: Option<u32>,
    ) -> Result<Outcome> {
        self.ensure_parents(path, parents)?;
        let row = FileRow { mode, ..self.new_row(path, file_type, Some(head(content))) };
        Ok(self.insert(row))
    }

    fn make_dir(&mut self, path: &WsPath) -> Result<Outcome> {
        match self.view.live.get(path) {
            Some(row) if row.file_type == FileType::Folder => Ok(outcome(row)),
            Some(_) => Err(through_file(path)),
            None => {
                self.ensure_parents(path, Parents::Create)?;
                let row = self.new_row(path, FileType::Folder, None);
                Ok(self.insert(row))
            }
        }
    }

    /// Creates the missing folders above a path, or refuses the change.
    fn ensure_parents(&mut self, path: &WsPath, parents: Parents) -> Result<()> {
        for folder in self.missing_parents(path)? {
            if parents == Parents::Require {
                return Err(StoreError::FolderNotFound(folder));
            }
            let row = self.new_row(&folder, FileType::Folder, None);
            self.insert(row);
        }
        Ok(())
    }

    /// Returns the missing folders above a path, from the top down.
    fn missing_parents(&self, path: &WsPath) -> Result<Vec<WsPath>> {
        let mut missing = Vec::new();
        for folder in path.folders_above() {
            let there = self.view.live.get(folder).map(|row| row.file_type);
            if there == Some(FileType::Folder) {
                continue;
            }
            let folder = WsPath::from_normal(folder.to_owned());
            if there.is_some() {
                return Err(through_file(&folder));
            }
            missing.push(folder);
        }
        Ok(missing)
    }

    fn move_to(&mut self, from: &WsPath, to: &Destination) -> Result<Outcome> {
        if from.is_root() {
            return Err(ToolError::argument("source", "The root folder cannot be moved").into());
        }
        let row = self.view.live.get(from).cloned().ok_or_else(|| StoreError::FileNotFound(from.clone()))?;
        check_changeable(&row)?;
        let target = self.target(from, to)?;
        let is_folder = row.file_type == FileType::Folder;
        if is_folder && target.is_below(from) {
            let message = format!("Cannot move {from} into itself ({target})");
            return Err(ToolError::argument("destination", message).into());
        }
        if target == *from {
            let message = format!("{from} is already there; source and destination are the same");
            return Err(StoreError::refused(ErrorKind::AlreadyExists, message));
        }
        self.ensure_parents(&target, Parents::Require)?;
        if self.view.live.contains_key(&target) {
            return Err(already_exists(&target));
        }
        if is_folder {
            let below = self.view.below.get(from).copied().unwrap_or_default();
            if below.holds_virtual {
                return Err(protected(from, "holds files that are managed by the system"));
            }
            let growth = signed(target.as_str().len()) - signed(from.as_str().len());
            if below.longest_path_bytes + growth > signed(MAX_PATH_BYTES) {
                let message = format!("A path below {target} would be longer than {MAX_PATH_BYTES} bytes");
                return Err(StoreError::refused(ErrorKind::InvalidPath, message));
            }
        }
        self.plan.ops.push(RowOp::Move { file: row.id, is_folder, from: from.clone(), to: target.clone() });
        self.effect(EffectKind::Move, &FileRow { path: target.clone(), ..row.clone() }, Some(from.clone()));
        self.move_view(from, &target);
        Ok(Outcome { path: target, ..outcome(&row) })
    }

    /// Adds or replaces a row of the view.
    fn set_row(&mut self, row: FileRow) {
        self.paths.insert(row.id, row.path.clone());
        self.view.live.insert(row.path.clone(), row);
    }

    /// Returns the row of a file at the path that the earlier changes gave it.
    fn row_by_id(&self, file: FileId) -> Option<&FileRow> {
        self.paths.get(&file).and_then(|path| self.view.live.get(path))
    }

    /// Applies a move to the view: rows, and the counts below folders.
    fn move_view(&mut self, from: &WsPath, target: &WsPath) {
        let count = 1 + self.view.below.get(from).map_or(0, |below| below.entries);
        self.count_below(from, -count);
        for (path, row) in remove_subtree(&mut self.view.live, from) {
            if let Some(path) = path.moved(from, target) {
                self.set_row(FileRow { path, ..row });
            }
        }
        // The view has no counts for the target: nothing existed there.
        for (folder, below) in remove_subtree(&mut self.view.below, from) {
            self.view.below.extend(folder.moved(from, target).map(|folder| (folder, below)));
        }
        self.count_below(target, count);
    }

    /// Adds to the entry counts of all folders above a path.
    fn count_below(&mut self, path: &WsPath, entries: i64) {
        for folder in path.folders_above() {
            if let Some(below) = self.view.below.get_mut(folder) {
                below.entries += entries;
            }
        }
    }

    /// Returns the new path of a moved entry. If the destination is a folder, that is a path in it, except for
    /// [`Destination::Exactly`].
    fn target(&self, from: &WsPath, to: &Destination) -> Result<WsPath> {
        let kind = |path: &WsPath| self.view.live.get(path).map(|row| row.file_type);
        match to {
            Destination::At(path) if kind(path) == Some(FileType::Folder) && path != from => {
                Ok(path.join(from.name())?)
            }
            Destination::At(path) | Destination::Exactly(path) => Ok(path.clone()),
            Destination::Into(folder) => match kind(folder) {
                Some(FileType::Folder) => Ok(folder.join(from.name())?),
                Some(_) => Err(through_file(folder)),
                None => Err(StoreError::FolderNotFound(folder.clone())),
            },
        }
    }

    fn remove(&mut self, path: &WsPath, removal: Removal) -> Result<Outcome> {
        if path.is_root() {
            return Err(ToolError::argument("path", "The root folder cannot be removed").into());
        }
        let row = self.view.live.get(path).cloned().ok_or_else(|| StoreError::FileNotFound(path.clone()))?;
        check_changeable(&row)?;
        // The removed path itself may be a symbolic link; its target is not removed.
        if let Some(above) = path.parent().and_then(|above| self.view.live.get(&above))
            && above.file_type != FileType::Folder
        {
            return Err(through_file(&above.path));
        }
        if row.file_type == FileType::Folder && removal == Removal::File {
            let message = format!("{path} is a folder; only files can be removed this way");
            return Err(StoreError::refused(ErrorKind::IsDirectory, message));
        }
        let below = self.view.below.get(path).copied().unwrap_or_default();
        if removal == Removal::FolderIfEmpty && (row.file_type != FileType::Folder || below.entries > 0) {
            return Ok(outcome(&row));
        }
        if row.file_type == FileType::Folder && below.entries > 0 {
            let entries = if below.entries == 1 { "1 entry".to_owned() } else { format!("{} entries", below.entries) };
            let message = format!("Folder is not empty: {path} holds {entries}; remove what is in it first");
            return Err(StoreError::refused(ErrorKind::NotEmpty, message));
        }
        let is_folder = row.file_type == FileType::Folder;
        self.plan.ops.push(RowOp::Trash { file: row.id, path: path.clone(), is_folder });
        self.effect(EffectKind::Remove, &row, None);
        self.view.live.remove(path);
        self.paths.remove(&row.id);
        self.count_below(path, -1);
        Ok(outcome(&row))
    }

    fn restore(&mut self, file: FileId) -> Result<Outcome> {
        let row = self.view.ids.get(&file).cloned().ok_or_else(|| no_such_file(file))?;
        if let Some(back) = self.row_by_id(file).filter(|_| row.deleted_at.is_some()) {
            // It was restored together with something below it.
            return Ok(outcome(back));
        }
        if row.deleted_at.is_none() {
            let message = format!("{} is not in the trash", row.path);
            return Err(StoreError::refused(ErrorKind::Conflict, message));
        }
        if self.view.live.contains_key(&row.path) {
            return Err(already_exists(&row.path));
        }
        for folder in self.missing_parents(&row.path)? {
            if let Some(trashed) = self.view.trashed_folders.remove(&folder) {
                self.untrash(trashed);
            } else {
                let new = self.new_row(&folder, FileType::Folder, None);
                self.insert(new);
            }
        }
        Ok(self.untrash(row))
    }

    fn revert(&mut self, file: FileId, seq: i64, mode: Option<u32>) -> Result<Outcome> {
        // An earlier change of the set may have changed the row.
        let row = self.row_by_id(file).cloned().ok_or_else(|| no_such_file(file))?;
        check_changeable(&row)?;
        let old = self.view.versions.get(&(file, seq)).copied().ok_or_else(|| {
            StoreError::refused(ErrorKind::NotFound, format!("Version {seq} of {} is no longer kept", row.path))
        })?;
        Ok(self.add_version(row, VersionRow { version: VersionId::new(), ..old }, mode))
    }

    fn add_version(&mut self, mut row: FileRow, head: VersionRow, mode: Option<u32>) -> Outcome {
        let before = row.head.map(|head| head.seq);
        let head = VersionRow { seq: before.unwrap_or(0) + 1, ..head };
        let replaced = row.head.map(|head| head.blob).filter(|blob| *blob != head.blob);
        row.file_type = type_with_content(row.file_type, head.form);
        let (path, file_type) = (row.path.clone(), row.file_type);
        self.plan.ops.push(RowOp::AddVersion { file: row.id, path, file_type, head, replaced });
        row.head = Some(head);
        let mode_before = mode.filter(|mode| row.mode != Some(*mode)).map(|mode| {
            let path = row.path.clone();
            self.plan.ops.push(RowOp::SetMode { file: row.id, path, mode });
            row.mode.replace(mode).unwrap_or(PLAIN_MODE)
        });
        self.plan.effects.push(Effect {
            op: EffectKind::Update,
            path: row.path.clone(),
            from: None,
            file_id: row.id,
            before,
            after: Some(head.seq),
            version_id: Some(head.version),
            mode_before,
            mode_after: mode_before.and(row.mode),
        });
        let outcome = outcome(&row);
        self.set_row(row);
        outcome
    }

    fn insert(&mut self, row: FileRow) -> Outcome {
        self.plan.ops.push(RowOp::Insert(row.clone()));
        self.effect(EffectKind::Create, &row, None);
        self.count_below(&row.path, 1);
        let outcome = outcome(&row);
        self.set_row(row);
        outcome
    }

    fn untrash(&mut self, row: FileRow) -> Outcome {
        self.plan.ops.push(RowOp::Untrash(row.clone()));
        self.effect(EffectKind::Restore, &row, None);
        self.count_below(&row.path, 1);
        let outcome = outcome(&row);
        self.set_row(row);
        outcome
    }

    fn new_row(&self, path: &WsPath, file_type: FileType, head: Option<VersionRow>) -> FileRow {
        FileRow {
            id: FileId::new(),
            path: path.clone(),
            display_name: None,
            file_type,
            is_virtual: false,
            head,
            mode: None,
            created_at: self.now,
            updated_at: self.now,
            deleted_at: None,
        }
    }

    fn effect(&mut self, op: EffectKind, row: &FileRow, from: Option<WsPath>) {
        self.plan.effects.push(Effect {
            op,
            path: row.path.clone(),
            from,
            file_id: row.id,
            before: None,
            after: row.head.map(|head| head.seq),
            version_id: row.head.map(|head| head.version),
            mode_before: None,
            mode_after: row.mode.filter(|_| op == EffectKind::Create),
        });
    }
}

/// Removes a path and everything below it from a map; returns what was removed.
pub fn remove_subtree<T>(map: &mut BTreeMap<WsPath, T>, path: &WsPath) -> Vec<(WsPath, T)> {
    let (low, high) = path.below_range();
    let below = map.range::<str, _>((Bound::Excluded(&*low), Bound::Excluded(&*high))).map(|(below, _)| below.clone());
    let paths: Vec<WsPath> = std::iter::once(path.clone()).chain(below).collect();
    paths.into_iter().filter_map(|path| map.remove_entry(&path)).collect()
}

/// The default modes of files.
const PLAIN_MODE: u32 = 0o100_644;
const EXECUTABLE_MODE: u32 = 0o100_755;

/// Returns the mode with execution allowed for everyone who may read, or for nobody.
fn with_execution(mode: Option<u32>, executable: bool) -> u32 {
    let mode = mode.unwrap_or(PLAIN_MODE);
    if executable { mode | (mode & 0o444) >> 2 } else { mode & !0o111 }
}

/// Creates a version row for a content, with sequence number 1. For an existing file, the planner replaces the number.
pub fn head(content: &Prepared) -> VersionRow {
    VersionRow {
        seq: 1,
        version: VersionId::new(),
        hash: content.hash,
        blob: content.key,
        form: content.form,
        size: content.shown_size,
    }
}

fn outcome(row: &FileRow) -> Outcome {
    Outcome {
        file: row.id,
        path: row.path.clone(),
        version: row.head.map(|head| head.version),
        hash: row.head.map(|head| head.hash),
    }
}

fn check_changeable(row: &FileRow) -> Result<()> {
    if row.is_virtual {
        return Err(protected(&row.path, "is managed by the system"));
    }
    Ok(())
}

fn protected(path: &WsPath, why: &str) -> StoreError {
    let message = format!("{path} {why} and cannot be changed with file tools; use the chat API");
    ToolError::new(ErrorKind::Protected, message).at_path(path).into()
}

/// Whether the type is derived from the content: `Document` for text, `File` for binary. Other types are fixed.
fn is_plain(file_type: FileType) -> bool {
    matches!(file_type, FileType::Document | FileType::File)
}

/// Returns the type of a file after it gets a new content of this form.
pub(crate) fn type_with_content(file_type: FileType, form: Form) -> FileType {
    if is_plain(file_type) { form.plain_type() } else { file_type }
}

fn is_folder(path: &WsPath) -> StoreError {
    StoreError::refused(ErrorKind::IsDirectory, format!("{path} is a folder; content can only be written to a file"))
}

fn through_file(path: &WsPath) -> StoreError {
    StoreError::refused(ErrorKind::ThroughFile, format!("{path} is a file, not a folder"))
}

fn already_exists(path: &WsPath) -> StoreError {
    StoreError::AlreadyExists(path.clone())
}

pub fn no_such_file(file: FileId) -> StoreError {
    StoreError::not_found("File", file)
}

fn changed_since(path: impl std::fmt::Display) -> StoreError {
    StoreError::refused(ErrorKind::Conflict, format!("{path} has changed since; nothing was undone"))
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
