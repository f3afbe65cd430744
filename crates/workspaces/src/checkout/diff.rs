//! The changes of a program, path by path: what every detector yields, and what the merge starts from.

use std::{collections::BTreeMap, ops::Bound};
use toolrest_core::{ContentHash, Guard, LeftOutReason, NetChange, NetEffect, Result, WsPath};
use toolrest_directory::{Identity, Metadata};

/// What a program changed at one path. Contents are read later, by [`super::net_changes`].
#[derive(Clone, Debug)]
pub(crate) struct Diff {
    pub(crate) path: WsPath,
    /// What the program found; none if there was nothing.
    pub(crate) before: Option<Node>,
    /// What the program left; none if it removed what was there.
    pub(crate) after: Option<Node>,
}

/// Something that is at a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    /// A folder, with its metadata where moves are detected by inodes.
    Folder(Option<Metadata>),
    File(FileState),
    /// A symbolic link or special file, which has no versions, with the reason to report.
    Unversioned(LeftOutReason),
}

/// A file without its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileState {
    pub(crate) metadata: Metadata,
    /// The hash of the bytes, as far as it is known.
    pub(crate) hash: Option<ContentHash>,
}

impl Node {
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self {
            Self::Folder(metadata) => metadata.map(|metadata| metadata.identity),
            Self::File(file) => Some(file.metadata.identity),
            Self::Unversioned(_) => None,
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder(_))
    }

    fn file(&self) -> Option<&FileState> {
        if let Self::File(file) = self { Some(file) } else { None }
    }
}

impl FileState {
    pub(crate) fn size_bytes(&self) -> u64 {
        self.metadata.size_bytes
    }

    pub(crate) fn is_executable(&self) -> bool {
        self.metadata.is_executable()
    }
}

/// Refuses the changes of a program if at least one is not allowed. They are judged before it is decided which of them
/// get versions. Each change is given as its path, if a workspace can name it, and whether something was there before
/// and after.
pub(crate) fn judge(guard: &Guard, changes: impl Iterator<Item = (Option<WsPath>, bool, bool)>) -> Result<()> {
    if guard.is_unrestricted() {
        return Ok(());
    }
    let effects = changes.filter_map(|(path, was_there, is_there)| {
        let change = match (was_there, is_there) {
            (false, false) => return None,
            (false, true) => NetChange::Create,
            (true, true) => NetChange::Overwrite,
            (true, false) => NetChange::Delete,
        };
        Some(NetEffect { change, path: path.unwrap_or_else(WsPath::root) })
    });
    guard.judge(&effects.collect::<Vec<_>>(), &[])
}

/// All changes of a program by path.
#[derive(Debug, Default)]
pub(crate) struct Diffs(BTreeMap<WsPath, Diff>);

impl From<Vec<Diff>> for Diffs {
    fn from(diffs: Vec<Diff>) -> Self {
        Self(diffs.into_iter().map(|diff| (diff.path.clone(), diff)).collect())
    }
}

impl Diffs {
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Diff> {
        self.0.values()
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Diff> {
        self.0.get(path)
    }

    pub(crate) fn below(&self, folder: &WsPath) -> impl Iterator<Item = &Diff> {
        let (low, high) = folder.below_range();
        self.0.range::<str, _>((Bound::Excluded(&*low), Bound::Excluded(&*high))).map(|(_, diff)| diff)
    }

    pub(crate) fn before(&self, path: &WsPath) -> Option<&Node> {
        self.0.get(path)?.before.as_ref()
    }

    pub(crate) fn after(&self, path: &WsPath) -> Option<&Node> {
        self.0.get(path)?.after.as_ref()
    }

    pub(crate) fn file_before(&self, path: &WsPath) -> Option<&FileState> {
        self.before(path)?.file()
    }

    pub(crate) fn file_before_mut(&mut self, path: &WsPath) -> Option<&mut FileState> {
        if let Some(Node::File(file)) = &mut self.0.get_mut(path)?.before { Some(file) } else { None }
    }

    /// Whether what was at the path is gone, or something of another kind is there.
    pub(crate) fn is_removed(&self, path: &WsPath) -> bool {
        self.0.get(path).is_some_and(Diff::is_removed)
    }

    /// Whether the program left a file at the path.
    pub(crate) fn leaves_file(&self, path: &WsPath) -> bool {
        matches!(self.after(path), Some(Node::File(_)))
    }

    /// Whether the program made a folder at the path.
    pub(crate) fn makes_folder(&self, path: &WsPath) -> bool {
        self.0.get(path).is_some_and(Diff::makes_folder)
    }
}

impl Diff {
    pub(crate) fn is_removed(&self) -> bool {
        let is_same_kind =
            |before: &Node, after: &Node| std::mem::discriminant(before) == std::mem::discriminant(after);
        match (&self.before, &self.after) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(before), Some(after)) => !is_same_kind(before, after),
        }
    }

    pub(crate) fn makes_folder(&self) -> bool {
        self.after.as_ref().is_some_and(Node::is_folder) && !self.before.as_ref().is_some_and(Node::is_folder)
    }

    pub(crate) fn file_after(&self) -> Option<&FileState> {
        self.after.as_ref()?.file()
    }

    pub(crate) fn file_before(&self) -> Option<&FileState> {
        self.before.as_ref()?.file()
    }
}
