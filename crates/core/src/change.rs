//! Changes to a workspace. A [`Changeset`] given to `commit` is the only way to change a file.

use crate::{CommitId, Content, ContentHash, Entry, FileId, FileType, Timestamp, VersionId, WsPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes that are applied together or not at all, in order, if what they expect holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changeset {
    /// What to do.
    pub changes: Vec<Change>,
    /// What must be true of the workspace at that moment.
    pub expect: Vec<Expect>,
    /// The commit that these changes take back, where they do.
    pub undoes: Option<CommitId>,
}

impl Changeset {
    /// A changeset of one change.
    #[must_use]
    pub fn one(change: Change) -> Self {
        Self { changes: vec![change], ..Self::default() }
    }

    /// Adds an expectation, if there is one.
    #[must_use]
    pub fn expecting(mut self, expect: impl IntoIterator<Item = Expect>) -> Self {
        self.expect.extend(expect);
        self
    }
}

/// One change to a workspace.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Creates a file or gives it a new version.
    Put(Put),
    /// Renews a file's time; creates an empty document where there is none.
    Touch(WsPath),
    /// Makes a folder and those above it; content with one that exists.
    MakeDir(WsPath),
    /// Moves a file, or a folder with all that is below it.
    Move {
        /// What to move.
        from: WsPath,
        /// Where to.
        to: Destination,
    },
    /// Moves a file or folder to the trash.
    Remove {
        /// What to remove.
        path: WsPath,
        /// How much may go with it.
        removal: Removal,
    },
    /// Brings a file back from the trash, with the folders above it.
    Restore(FileId),
    /// Makes an earlier version of a file its current one, as a new version.
    Revert {
        /// The file.
        file: FileId,
        /// The number of the version to bring back.
        seq: i64,
        /// The mode that it had, where that comes back too.
        mode: Option<u32>,
    },
}

/// The content for a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    /// Where the file is or shall be.
    pub path: WsPath,
    /// The type of the file. One that exists with another type is left alone, and the change refused.
    pub file_type: FileType,
    /// What it shall hold.
    pub content: Content,
    /// What to do about folders that are missing.
    pub parents: Parents,
    /// Whether it may be run as a program, where that is said.
    pub executable: Option<bool>,
}

/// What to do about folders that are missing above a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    /// Make them.
    Create,
    /// Refuse.
    Require,
}

/// Where a move leads.
#[derive(Clone, Debug, PartialEq)]
pub enum Destination {
    /// Into this folder, which must exist, under the same name.
    Into(WsPath),
    /// To this path; into it, if it is a folder.
    At(WsPath),
    /// To exactly this path.
    Exactly(WsPath),
}

/// How much a removal may take with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A file, or a folder that is empty.
    Single,
    /// A file and no folder.
    File,
    /// A folder if it is empty; else nothing is removed.
    FolderIfEmpty,
}

/// Something that must be true for a changeset to be applied.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The file at the path has this hash.
    Hash(WsPath, ContentHash),
    /// Nothing is at the path.
    Absent(WsPath),
    /// The file's current version is this one.
    Version(FileId, VersionId),
    /// The file at the path, if there is one, is not a text that has a byte order mark or is not UTF-8.
    NotEncoded(WsPath),
    /// The file is where it was left: alive at this path.
    At(FileId, WsPath),
    /// The file is in the trash as it was removed: from this path, with this version.
    InTrash(FileId, WsPath, Option<VersionId>),
}

impl Expect {
    /// That a file is as it was when it was read. By its version where it has one: contents that differ may share a
    /// hash, as numbers beyond a double's reach do.
    pub fn unchanged(entry: &Entry) -> Option<Self> {
        let by_hash = || entry.hash.map(|hash| Self::Hash(entry.path.clone(), hash));
        entry.version.map(|version| Self::Version(entry.id, version)).or_else(by_hash)
    }
}

/// An applied changeset.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// Its id; none was recorded if nothing had to change.
    pub id: Option<CommitId>,
    /// When it was applied.
    pub created_at: Timestamp,
    /// What became of each change, in order.
    pub outcomes: Vec<Outcome>,
}

/// What became of one change.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The file or folder it was about.
    pub file: FileId,
    /// Where it is now, or was when it was removed.
    pub path: WsPath,
    /// Its current version, if it has content.
    pub version: Option<VersionId>,
    /// The hash of that version.
    pub hash: Option<ContentHash>,
}

/// One recorded effect of a commit: enough to show it and to take it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// What happened.
    pub op: EffectKind,
    /// Where; for a move, where to.
    pub path: WsPath,
    /// Where from, for a move.
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

/// What can happen to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EffectKind {
    /// A file or folder was made.
    Create,
    /// A file got a new version.
    Update,
    /// Only its time was renewed.
    Touch,
    /// It went elsewhere.
    Move,
    /// It went to the trash.
    Remove,
    /// It came back from the trash.
    Restore,
}
