//! Changes to a workspace. A [`Changeset`] given to `commit` is the only way to change a file.

use crate::{CommitId, Content, ContentHash, Entry, FileId, FileType, Timestamp, VersionId, WsPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes that are applied in order, all or none, if the expectations hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changeset {
    /// The changes.
    pub changes: Vec<Change>,
    /// Conditions that must hold when the changes are applied.
    pub expect: Vec<Expect>,
    /// The commit that these changes undo, if they are an undo.
    pub undoes: Option<CommitId>,
}

impl Changeset {
    /// Creates a changeset of one change.
    #[must_use]
    pub fn one(change: Change) -> Self {
        Self { changes: vec![change], ..Self::default() }
    }

    /// Adds expectations.
    #[must_use]
    pub fn expecting(mut self, expect: impl IntoIterator<Item = Expect>) -> Self {
        self.expect.extend(expect);
        self
    }
}

/// One change to a workspace.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Creates a file or a new version of it.
    Put(Put),
    /// Updates the time of a file, or creates an empty document.
    Touch(WsPath),
    /// Creates a folder and its missing parents. An existing folder is not changed.
    MakeDir(WsPath),
    /// Moves a file, or a folder with its contents.
    Move {
        /// The current path.
        from: WsPath,
        /// The destination.
        to: Destination,
    },
    /// Moves a file or folder to the trash.
    Remove {
        /// The path.
        path: WsPath,
        /// What may be removed.
        removal: Removal,
    },
    /// Restores a file from the trash, with its parent folders.
    Restore(FileId),
    /// Creates a new version with the content of an earlier one.
    Revert {
        /// The file.
        file: FileId,
        /// The number of the earlier version.
        seq: i64,
        /// The mode to restore, if any.
        mode: Option<u32>,
    },
}

/// The content for a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    /// The path of the file.
    pub path: WsPath,
    /// The type of the file. The change is refused if the file exists with another type.
    pub file_type: FileType,
    /// The new content.
    pub content: Content,
    /// What to do if folders are missing.
    pub parents: Parents,
    /// Whether the file is executable; unchanged if `None`.
    pub executable: Option<bool>,
}

/// What to do if parent folders of a new file are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    /// Create them.
    Create,
    /// Refuse the change.
    Require,
}

/// The destination of a move.
#[derive(Clone, Debug, PartialEq)]
pub enum Destination {
    /// Into this folder, which must exist, with the same name.
    Into(WsPath),
    /// To this path, or into it if it is a folder.
    At(WsPath),
    /// To exactly this path.
    Exactly(WsPath),
}

/// What a removal may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A file, or a folder that is empty.
    Single,
    /// Only a file.
    File,
    /// A folder if it is empty; otherwise nothing is removed, and that is no error.
    FolderIfEmpty,
}

/// A condition for applying a changeset.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The file at the path has this hash.
    Hash(WsPath, ContentHash),
    /// No file or folder exists at the path.
    Absent(WsPath),
    /// The file's current version is this one.
    Version(FileId, VersionId),
    /// The file at the path, if there is one, is not text with a byte order mark or in another encoding than UTF-8.
    NotEncoded(WsPath),
    /// The file exists at this path and is not in the trash.
    At(FileId, WsPath),
    /// The file is in the trash, removed from this path with this version.
    InTrash(FileId, WsPath, Option<VersionId>),
}

impl Expect {
    /// Returns the condition that a file is unchanged since it was read. It compares versions if there are any, because
    /// different JSON contents can have the same hash (numbers beyond the precision of a double).
    pub fn unchanged(entry: &Entry) -> Option<Self> {
        let by_hash = || entry.hash.map(|hash| Self::Hash(entry.path.clone(), hash));
        entry.version.map(|version| Self::Version(entry.id, version)).or_else(by_hash)
    }
}

/// An applied changeset.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// Its id. `None` if there was nothing to change, so that no commit was recorded.
    pub id: Option<CommitId>,
    /// When it was applied.
    pub created_at: Timestamp,
    /// The result of each change, in order.
    pub outcomes: Vec<Outcome>,
}

/// The result of one change.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The file or folder.
    pub file: FileId,
    /// Its path after the change, or before it was removed.
    pub path: WsPath,
    /// Its current version, if it has content.
    pub version: Option<VersionId>,
    /// The hash of that version.
    pub hash: Option<ContentHash>,
}

/// One recorded effect of a commit, with what is needed to show and to undo it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// What happened.
    pub op: EffectKind,
    /// The path; for a move, the new path.
    pub path: WsPath,
    /// The old path, for a move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<WsPath>,
    /// The file or folder.
    pub file_id: FileId,
    /// The number of the version before, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
    /// The number of the version after, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// The version after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_id: Option<VersionId>,
    /// The mode before, if it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_before: Option<u32>,
    /// The mode after, if it changed or was given to a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_after: Option<u32>,
}

/// The kinds of effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EffectKind {
    /// A file or folder was created.
    Create,
    /// A file got a new version.
    Update,
    /// Only its time was updated.
    Touch,
    /// It was moved.
    Move,
    /// It was moved to the trash.
    Remove,
    /// It was restored from the trash.
    Restore,
}
