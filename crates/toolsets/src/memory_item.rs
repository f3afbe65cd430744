//! Memories, as answers show them.

use schemars::JsonSchema;
use serde::Serialize;
use toolrest_core::{CallCx, KeyId, Memory, UserId};

/// A memory as specification 003 shows it.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Item {
    /// The key.
    pub(crate) key: String,
    /// The text.
    pub(crate) value: String,
    /// The tags.
    pub(crate) tags: Vec<String>,
}

impl From<Memory> for Item {
    fn from(Memory { key, value, tags, .. }: Memory) -> Self {
        Self { key, value, tags }
    }
}

/// When and by whom a memory was saved.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(crate) struct Provenance {
    /// When the key was first saved.
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    /// When it was last saved.
    #[schemars(extend("format" = "date-time"))]
    updated_at: String,
    /// When it ends to exist. Left out if it does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    expires_at: Option<String>,
    /// The person who last saved it, or whose agent key did.
    user_id: UserId,
    /// The agent key that last saved it. Left out if a person did.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<KeyId>,
}

impl Provenance {
    pub(crate) fn of(memory: &Memory) -> Self {
        Self {
            created_at: memory.created_at.to_string(),
            updated_at: memory.updated_at.to_string(),
            expires_at: memory.expires_at.map(|at| at.to_string()),
            user_id: memory.user,
            key_id: memory.agent_key,
        }
    }
}

/// Leaves out the memories that the rules hide from the caller. Returns how many there were.
pub(crate) fn leave_out_hidden(cx: &CallCx, memories: &mut Vec<Memory>) -> Option<u64> {
    let before = memories.len();
    memories.retain(|memory| cx.guard.shows_memory(&memory.key));
    crate::counted((before - memories.len()) as u64)
}
