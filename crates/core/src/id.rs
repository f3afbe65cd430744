//! Identifiers, one type per thing, so that a file's id cannot be passed where a workspace's is meant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Makes a new id that sorts after those made before it.
            #[must_use]
            #[allow(clippy::new_without_default, reason = "an id is made deliberately, never by default")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::try_parse(text).map(Self)
            }
        }
    )+};
}

ids! {
    /// A workspace.
    WorkspaceId;
    /// A person or service with an account.
    UserId;
    /// A file or folder; stays the same when it is moved or restored.
    FileId;
    /// One version of a file's content.
    VersionId;
    /// One applied changeset.
    CommitId;
    /// One call of one tool.
    CallId;
    /// A chat; the id of the virtual file that shows it.
    ChatId;
}

impl CallId {
    /// The end of the id, by which people and programs know the process that the call has started.
    pub fn short(&self) -> String {
        let id = self.0.simple().to_string();
        id[id.len() - 12..].to_owned()
    }
}
