//! Memories: short texts that agents keep in a workspace, by key and with tags.

use crate::{Access, ErrorKind, KeyId, Result, Timestamp, ToolError, UserId};
use async_trait::async_trait;

/// Maximum size of a key.
pub const MAX_MEMORY_KEY_BYTES: usize = 512;
/// Maximum size of a value.
pub const MAX_MEMORY_VALUE_BYTES: usize = 64 << 10;
/// Maximum number of tags of a memory, and of tags in a query.
pub const MAX_MEMORY_TAGS: usize = 32;
/// Maximum size of a tag.
pub const MAX_MEMORY_TAG_BYTES: usize = 128;
/// Maximum size of the words of a search.
pub const MAX_MEMORY_QUERY_BYTES: usize = 1 << 10;

/// A stored memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its key, unique in the workspace.
    pub key: String,
    /// Its text; empty in a list.
    pub value: String,
    /// The size of its text.
    pub value_bytes: usize,
    /// Its tags, in the order in which they were given, each once.
    pub tags: Vec<String>,
    /// When the key was first saved.
    pub created_at: Timestamp,
    /// When it was last saved.
    pub updated_at: Timestamp,
    /// When it ends to exist, if it does.
    pub expires_at: Option<Timestamp>,
    /// The person who last saved it, or whose key did.
    pub user: UserId,
    /// The agent key that last saved it; none if the person did.
    pub agent_key: Option<KeyId>,
}

/// A memory to save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemory {
    key: String,
    value: String,
    tags: Vec<String>,
    expires_at: Option<Timestamp>,
}

impl NewMemory {
    /// Checks the limits of a memory. A tag that is given twice is kept once.
    pub fn new(key: String, value: String, tags: Vec<String>, expires_at: Option<Timestamp>) -> Result<Self> {
        check_memory_key(&key)?;
        if value.len() > MAX_MEMORY_VALUE_BYTES {
            let message = format!(
                "`value` has {} bytes; a memory holds at most {MAX_MEMORY_VALUE_BYTES}. Save a longer text as a file, and \
                 its path as the memory",
                value.len()
            );
            return Err(ToolError::new(ErrorKind::PayloadTooLarge, message).about("value"));
        }
        if value.contains('\0') {
            return Err(ToolError::argument("value", "`value` must not have a NUL character"));
        }
        let tags = distinct_tags(tags)?;
        Ok(Self { key, value, tags, expires_at })
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the text.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the tags, each once.
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// Returns when it ends to exist, if it does.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// Returns the size of its texts.
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.len() + self.tags.iter().map(String::len).sum::<usize>()
    }
}

/// Refuses a key that no memory can have.
pub fn check_memory_key(key: &str) -> Result<()> {
    check_label("key", "`key`", key, MAX_MEMORY_KEY_BYTES)
}

/// Returns tags without repetitions. Refuses tags that no memory can have.
pub fn distinct_tags(tags: Vec<String>) -> Result<Vec<String>> {
    let mut distinct: Vec<String> = Vec::with_capacity(tags.len().min(MAX_MEMORY_TAGS));
    for tag in tags {
        check_label("tags", "a tag", &tag, MAX_MEMORY_TAG_BYTES)?;
        if distinct.contains(&tag) {
            continue;
        }
        if distinct.len() == MAX_MEMORY_TAGS {
            let message = format!("`tags` has more than {MAX_MEMORY_TAGS} tags; give fewer");
            return Err(ToolError::argument("tags", message));
        }
        distinct.push(tag);
    }
    Ok(distinct)
}

fn check_label(argument: &str, what: &str, text: &str, max_bytes: usize) -> Result<()> {
    let fault = if text.trim().is_empty() {
        "must not be empty".to_owned()
    } else if text.len() > max_bytes {
        format!("has {} bytes; the limit is {max_bytes}", text.len())
    } else if text.chars().any(char::is_control) {
        "must not have control characters".to_owned()
    } else {
        return Ok(());
    };
    Err(ToolError::argument(argument, format!("{what} {fault}")))
}

/// Which memories to return.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFilter {
    /// Only the memory with this key.
    pub key: Option<String>,
    /// Only memories that have all these tags.
    pub tags: Vec<String>,
}

/// Some memories of a longer list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPage {
    /// The memories.
    pub memories: Vec<Memory>,
    /// Whether there are more.
    pub has_more: bool,
}

/// How the words of a search were matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WordMatch {
    /// Every word occurs in each result.
    #[default]
    All,
    /// No memory has all words, so each result has at least one.
    Any,
}

/// Stores memories. Every method checks the access in the statement that does the work. Memories that have expired do not
/// exist.
#[async_trait]
pub trait Memories: Send + Sync {
    /// Saves a memory, in place of one with the same key. `agent_key` is the key that saves it.
    async fn save_memory(&self, access: Access, memory: NewMemory, agent_key: Option<KeyId>) -> Result<()>;

    /// Returns memories by key, by tags or both, the last saved first.
    async fn memories(&self, access: Access, filter: MemoryFilter, limit: usize) -> Result<MemoryPage>;

    /// Deletes a memory. Fails if there is none with this key.
    async fn delete_memory(&self, access: Access, key: String) -> Result<()>;

    /// Returns the memories that have the words in the key, the tags or the value, the best first, then those with longer
    /// words that begin with them.
    async fn search_memories(
        &self,
        access: Access,
        words: String,
        tags: Vec<String>,
        limit: usize,
    ) -> Result<(MemoryPage, WordMatch)>;

    /// Lists memories with all these tags, without their values, in the order of their keys, from the one after `after` on.
    async fn list_memories(
        &self,
        access: Access,
        tags: Vec<String>,
        after: Option<String>,
        limit: usize,
    ) -> Result<MemoryPage>;
}

/// Creates the error for a memory that does not exist.
pub fn no_such_memory(key: &str) -> ToolError {
    let message = format!("There is no memory with the key '{key}'; list the keys with `memory_list`");
    ToolError::new(ErrorKind::ItemNotFound, message)
}

/// Keeps no memories: for reading the schemas of tools without calling them.
pub struct NoMemories;

fn no_memories() -> ToolError {
    ToolError::new(ErrorKind::NotConfigured, "This server keeps no memories")
}

#[async_trait]
impl Memories for NoMemories {
    async fn save_memory(&self, _: Access, _: NewMemory, _: Option<KeyId>) -> Result<()> {
        Err(no_memories())
    }

    async fn memories(&self, _: Access, _: MemoryFilter, _: usize) -> Result<MemoryPage> {
        Err(no_memories())
    }

    async fn delete_memory(&self, _: Access, _: String) -> Result<()> {
        Err(no_memories())
    }

    async fn search_memories(&self, _: Access, _: String, _: Vec<String>, _: usize) -> Result<(MemoryPage, WordMatch)> {
        Err(no_memories())
    }

    async fn list_memories(&self, _: Access, _: Vec<String>, _: Option<String>, _: usize) -> Result<MemoryPage> {
        Err(no_memories())
    }
}
