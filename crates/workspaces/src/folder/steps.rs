//! Converts a plan to changes on disk.
//!
//! A folder commit renames first and then writes each file once. So the operations of a plan on one file are reduced to
//! its final path and content.

use super::disk::{below_root, is_ordinary};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use toolrest_core::{ContentHash, ErrorKind, FileType, Result, ToolError, WsPath};
use toolrest_directory::{Change, Contents, Expect, Hash, Parents, Replace};
use toolrest_store::plan::{FileRow, RowOp, remove_subtree};

/// The changes to a folder that carry out a plan.
#[derive(Default)]
pub(super) struct Steps {
    names: Vec<Change>,
    writes: BTreeMap<WsPath, Write>,
    /// The hashes of files on disk before the commit, by their paths at this point of the plan.
    hashes: BTreeMap<WsPath, ContentHash>,
    /// Files of which only the time is renewed.
    pub(super) touched: Vec<WsPath>,
}

struct Write {
    content: ContentHash,
    expect: Expect,
    mode: Option<u32>,
}

impl Steps {
    pub(super) fn of(ops: &[RowOp], hashes: BTreeMap<WsPath, ContentHash>) -> Result<Self> {
        let mut steps = Self { hashes, ..Self::default() };
        ops.iter().try_for_each(|op| steps.add(op))?;
        Ok(steps)
    }

    /// Returns the contents that are written.
    pub(super) fn contents(&self) -> BTreeSet<ContentHash> {
        self.writes.values().map(|write| write.content).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.writes.is_empty()
    }

    /// Returns the changes, with the bytes that are written.
    pub(super) fn into_changes(self, contents: &BTreeMap<ContentHash, Arc<[u8]>>) -> Result<Vec<Change>> {
        let mut changes = self.names;
        for (path, write) in self.writes {
            let bytes = contents.get(&write.content).ok_or_else(|| ToolError::internal("a content is missing"))?;
            changes.push(Change::Write {
                path: below_root(&path).to_owned(),
                bytes: bytes.to_vec(),
                expect: write.expect,
                mode: write.mode,
                parents: Parents::Make,
            });
        }
        Ok(changes)
    }

    fn add(&mut self, op: &RowOp) -> Result<()> {
        match op {
            RowOp::Insert(row) => self.make(row, row.mode),
            RowOp::Untrash(row) => {
                if row.mode.is_some_and(|mode| row.file_type != FileType::Folder && !is_ordinary(mode)) {
                    return Err(no_ordinary_file(&row.path));
                }
                self.make(row, row.mode);
            }
            RowOp::AddVersion { path, head, .. } => {
                if let Some(write) = self.writes.get_mut(path) {
                    write.content = head.blob;
                } else {
                    let expect = self.expect(path);
                    self.writes.insert(path.clone(), Write { content: head.blob, expect, mode: None });
                }
            }
            RowOp::Touch { path, .. } => self.touched.push(path.clone()),
            RowOp::Move { from, to, .. } => self.move_to(from, to),
            RowOp::Trash { path, is_folder, .. } => self.take_away(path, *is_folder),
            RowOp::SetMode { path, mode, .. } => {
                if let Some(write) = self.writes.get_mut(path) {
                    write.mode = Some(mode & 0o7777);
                }
            }
            RowOp::Forget { .. } => {}
        }
        Ok(())
    }

    fn make(&mut self, row: &FileRow, mode: Option<u32>) {
        let Some(head) = row.head else {
            let path = below_root(&row.path).to_owned();
            self.names.push(Change::MakeFolder { path, mode: mode.map(|mode| mode & 0o7777), parents: Parents::Make });
            return;
        };
        let mode = mode.map(|mode| mode & 0o777);
        self.writes.insert(row.path.clone(), Write { content: head.blob, expect: Expect::Absent, mode });
    }

    fn expect(&self, path: &WsPath) -> Expect {
        self.hashes.get(path).map_or(Expect::Anything, |hash| Expect::Hash(Hash(hash.0)))
    }

    fn move_to(&mut self, from: &WsPath, to: &WsPath) {
        let is_new = self.writes.get(from).is_some_and(|write| write.expect == Expect::Absent);
        move_keys(&mut self.writes, from, to);
        move_keys(&mut self.hashes, from, to);
        if !is_new {
            let (from, to) = (below_root(from).to_owned(), below_root(to).to_owned());
            self.names.push(Change::Move { from, to, replace: Replace::Refuse, parents: Parents::Make });
        }
    }

    fn take_away(&mut self, path: &WsPath, is_folder: bool) {
        let at = below_root(path).to_owned();
        if is_folder {
            let is_it = |change: &Change| matches!(change, Change::MakeFolder { path, .. } if *path == at);
            if let Some(made) = self.names.iter().position(is_it) {
                self.names.remove(made);
            } else {
                self.names.push(Change::RemoveFolder { path: at, contents: Contents::Nothing });
            }
            return;
        }
        match self.writes.remove(path) {
            Some(write) if write.expect == Expect::Absent => {}
            Some(write) => self.names.push(Change::Remove { path: at, expect: write.expect }),
            None => self.names.push(Change::Remove { path: at, expect: self.expect(path) }),
        }
    }
}

fn move_keys<T>(map: &mut BTreeMap<WsPath, T>, from: &WsPath, to: &WsPath) {
    for (path, value) in remove_subtree(map, from) {
        map.insert(path.moved(from, to).unwrap_or(path), value);
    }
}

fn no_ordinary_file(path: &WsPath) -> ToolError {
    let message = format!("{path} was a symbolic link or another special file, which cannot be made again from here");
    ToolError::new(ErrorKind::Conflict, message)
}
