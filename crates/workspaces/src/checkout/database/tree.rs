//! The rows of a workspace's files as of one list.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use toolrest_core::{ContentHash, FileId, FileType, Form, VersionId, WsPath};
use toolrest_store::file_list::Rows;
use toolrest_store::plan::{FileRow, VersionRow};

/// The rows by path.
#[derive(Debug, Default)]
pub(super) struct Tree {
    rows: BTreeMap<WsPath, Row>,
    paths: HashMap<FileId, WsPath>,
    /// Folders that hold only files that programs do not see.
    hidden: HashSet<WsPath>,
    unseen: HashSet<WsPath>,
}

/// The row of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: FileId,
    pub(super) what: RowKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    Folder,
    File(Version),
    /// A file of the system, which programs do not see.
    Unseen,
}

/// A file's current version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) id: VersionId,
    pub(super) blob: ContentHash,
    pub(super) form: Form,
    pub(super) file_type: FileType,
    pub(super) size: i64,
    pub(super) is_executable: bool,
}

impl Row {
    fn of(row: &FileRow) -> Self {
        let what = match row.head {
            _ if row.is_virtual => RowKind::Unseen,
            None if row.file_type == FileType::Folder => RowKind::Folder,
            None => RowKind::Unseen,
            Some(VersionRow { version, blob, form, size, .. }) => RowKind::File(Version {
                id: version,
                blob,
                form,
                file_type: row.file_type,
                size,
                is_executable: row.mode.is_some_and(|mode| mode & 0o100 != 0),
            }),
        };
        Self { id: row.id, what }
    }

    pub(super) fn file(&self) -> Option<&Version> {
        if let RowKind::File(version) = &self.what { Some(version) } else { None }
    }

    pub(super) fn is_folder(&self) -> bool {
        self.what == RowKind::Folder
    }
}

impl Version {
    /// Whether programs see the bytes that are stored.
    pub(super) fn is_plain(&self) -> bool {
        self.form != Form::Json
    }

    /// Returns the mode that programs see.
    pub(super) fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

impl Tree {
    /// Returns the row at a path, whether programs see it or not.
    pub(super) fn get(&self, path: &WsPath) -> Option<&Row> {
        self.rows.get(path)
    }

    /// Returns the row that programs see at a path.
    pub(super) fn seen(&self, path: &WsPath) -> Option<&Row> {
        self.rows.get(path).filter(|row| row.what != RowKind::Unseen && !self.hidden.contains(path))
    }

    /// Returns the rows below a folder.
    pub(super) fn below(&self, folder: &WsPath) -> impl Iterator<Item = (&WsPath, &Row)> {
        let (low, high) = folder.below_range();
        self.rows.range::<str, _>((Bound::Excluded(&*low), Bound::Excluded(&*high)))
    }

    /// Returns the paths below a folder, without those in folders that are skipped.
    pub(super) fn below_without(
        &self,
        folder: &WsPath,
        is_skipped: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &WsPath> {
        let (low, high) = folder.below_range();
        let mut begin = Bound::Excluded(low);
        let folder_bytes = folder.as_str().len();
        std::iter::from_fn(move || {
            loop {
                let rest = (begin.as_ref().map(String::as_str), Bound::Excluded(&*high));
                let (path, _) = self.rows.range::<str, _>(rest).next()?;
                let above = path.folders_above().next_back().filter(|above| above.len() > folder_bytes);
                let Some(skipped) = above.filter(|above| is_skipped(above)) else {
                    begin = Bound::Excluded(path.as_str().to_owned());
                    return Some(path);
                };
                // '0' sorts right after '/', so this comes after all that is in the folder.
                begin = Bound::Included(format!("{skipped}0"));
            }
        })
    }

    /// Brings the tree up to date. Returns the old rows of the paths that changed.
    pub(super) fn update(&mut self, listed: Rows) -> HashMap<WsPath, Option<Row>> {
        let mut before = HashMap::new();
        let changed = match listed {
            Rows::Changed(changed) => changed,
            Rows::All(rows) => {
                let there: HashSet<FileId> = rows.iter().map(|row| row.id).collect();
                let gone: Vec<_> = self.paths.keys().filter(|id| !there.contains(id)).map(|id| (*id, None)).collect();
                gone.into_iter().chain(rows.into_iter().map(|row| (row.id, Some(row)))).collect()
            }
        };
        for (id, row) in &changed {
            let Some(path) = self.paths.get(id) else { continue };
            let is_same =
                row.as_ref().is_some_and(|row| row.path == *path && self.rows.get(path) == Some(&Row::of(row)));
            if !is_same && let Some(path) = self.paths.remove(id) {
                self.unseen.remove(&path);
                let old = self.rows.remove(&path);
                before.entry(path).or_insert(old);
            }
        }
        for row in changed.into_iter().filter_map(|(_, row)| row) {
            if row.path.is_root() || self.paths.contains_key(&row.id) {
                continue;
            }
            let now = Row::of(&row);
            self.paths.insert(row.id, row.path.clone());
            if now.what == RowKind::Unseen {
                self.unseen.insert(row.path.clone());
            }
            let old = self.rows.insert(row.path.clone(), now);
            before.entry(row.path).or_insert(old);
        }
        if !before.is_empty() {
            self.hide(&mut before);
        }
        before
    }

    /// Finds the folders that hold only files that programs do not see.
    fn hide(&mut self, before: &mut HashMap<WsPath, Option<Row>>) {
        let above: HashSet<WsPath> = self.unseen.iter().flat_map(WsPath::ancestors).collect();
        let is_for_unseen = |folder: &WsPath| {
            !folder.is_root()
                && self.below(folder).all(|(path, row)| row.what == RowKind::Unseen || above.contains(path))
        };
        let hidden: HashSet<WsPath> = above.iter().filter(|folder| is_for_unseen(folder)).cloned().collect();
        for changed in hidden.symmetric_difference(&self.hidden) {
            before.entry(changed.clone()).or_insert_with(|| self.rows.get(changed).copied());
        }
        self.hidden = hidden;
    }
}
