use crate::memory_item::{Provenance, leave_out_hidden};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolrest_core::{
    Action, CallCx, Intent, Memories, Memory, Result, Role, Tool, ToolError, check_memory_key, distinct_tags,
};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

pub(super) struct MemoryList(pub(super) Arc<dyn Memories>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Tags, all of which a memory must have. Default: none.
    tags: Option<Vec<String>>,
    /// List the keys after this one: `next` of the previous answer. Default: from the first key on.
    after: Option<String>,
    /// Maximum number of memories to list, 1 to 1000. Default: 100.
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The memories without their values, sorted by key.
    items: Vec<Entry>,
    /// If there are more memories: the key to pass as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Number of memories that the rules of the workspace hide.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    /// The key.
    key: String,
    /// The tags.
    tags: Vec<String>,
    /// Size of the value in bytes.
    bytes: usize,
    #[serde(flatten)]
    provenance: Provenance,
}

impl From<Memory> for Entry {
    fn from(memory: Memory) -> Self {
        let provenance = Provenance::of(&memory);
        let Memory { key, value_bytes: bytes, tags, .. } = memory;
        Self { key, tags, bytes, provenance }
    }
}

#[async_trait]
impl Tool for MemoryList {
    const NAME: &'static str = "memory_list";
    const DESCRIPTION: &'static str = "List the keys and tags of the memories";
    const ACTION: Action = Action::Memory;
    type Args = Args;
    type Output = Output;

    fn intents(&self, _args: &Args) -> Vec<Intent> {
        vec![Intent::Memory { operation: "list".to_owned(), key: String::new() }]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(ToolError::argument("limit", format!("`limit` must be 1 to {MAX_LIMIT}, not {limit}")));
        }
        if let Some(after) = &args.after {
            check_memory_key(after).map_err(|error| error.about("after"))?;
        }
        let tags = distinct_tags(args.tags.unwrap_or_default())?;
        let mut page = self.0.list_memories(cx.access(Role::Viewer), tags, args.after, limit).await?;
        let next = page.memories.last().filter(|_| page.has_more).map(|last| last.key.clone());
        let skipped = leave_out_hidden(cx, &mut page.memories);
        Ok(Output { items: page.memories.into_iter().map(Entry::from).collect(), next, skipped })
    }
}
