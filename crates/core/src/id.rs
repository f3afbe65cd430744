//! Identifiers. Each kind has its own type, so that ids cannot be confused.

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
            /// Creates an id that sorts after those created before it.
            #[must_use]
            #[allow(clippy::new_without_default, reason = "an id is created explicitly, never by default")]
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
    /// An agent key. It is also the id of the key's membership.
    KeyId;
    /// A file or folder. The id does not change when it is moved or restored.
    FileId;
    /// One version of a file's content.
    VersionId;
    /// One applied changeset.
    CommitId;
    /// One call of one tool.
    CallId;
    /// A chat. It is also the id of the chat's virtual file.
    ChatId;
    /// A call that waits, or waited, for a person's decision.
    ApprovalId;
    /// A standing permission that a person gave for calls of one caller.
    GrantId;
}

impl CallId {
    /// Returns the end of the id, which is the id of a background process that the call started.
    pub fn short(&self) -> String {
        let id = self.0.simple().to_string();
        id[id.len() - 12..].to_owned()
    }
}
