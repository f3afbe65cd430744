use crate::memory_item::{Item, Provenance, leave_out_hidden};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolrest_core::{
    Action, CallCx, Intent, MAX_MEMORY_QUERY_BYTES, Memories, Memory, Result, Role, Tool, ToolError, WordMatch,
    distinct_tags,
};

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;

pub(super) struct MemorySearch(pub(super) Arc<dyn Memories>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Words to look for in the keys, tags and values. A word of at least four letters also finds
    /// longer words that begin with it.
    query: String,
    /// Tags, all of which a memory must have. Default: none.
    tags: Option<Vec<String>>,
    /// Maximum number of memories to return, 1 to 100. Default: 20.
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// The memories, the best match first.
    items: Vec<Found>,
    /// `all` if every word occurs in each memory; `any` if no memory has all words, so that each has at least one.
    matched: Matched,
    /// True if there are more than `limit`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Number of memories that the rules of the workspace hide.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Matched {
    All,
    Any,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    #[serde(flatten)]
    item: Item,
    #[serde(flatten)]
    provenance: Provenance,
}

impl From<Memory> for Found {
    fn from(memory: Memory) -> Self {
        let provenance = Provenance::of(&memory);
        Self { item: memory.into(), provenance }
    }
}

#[async_trait]
impl Tool for MemorySearch {
    const NAME: &'static str = "memory_search";
    const DESCRIPTION: &'static str = "Search the memories for words, ranked by relevance";
    const ACTION: Action = Action::Memory;
    type Args = Args;
    type Output = Output;

    fn intents(&self, _args: &Args) -> Vec<Intent> {
        vec![Intent::Memory { operation: "search".to_owned(), key: String::new() }]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(ToolError::argument("limit", format!("`limit` must be 1 to {MAX_LIMIT}, not {limit}")));
        }
        if args.query.len() > MAX_MEMORY_QUERY_BYTES {
            let message = format!(
                "`query` has {} bytes; the limit is {MAX_MEMORY_QUERY_BYTES}. Give a few words",
                args.query.len()
            );
            return Err(ToolError::argument("query", message));
        }
        if !args.query.chars().any(char::is_alphanumeric) {
            let message = "`query` must have at least one word; `memory_list` lists all memories";
            return Err(ToolError::argument("query", message));
        }
        let tags = distinct_tags(args.tags.unwrap_or_default())?;
        let found = self.0.search_memories(cx.access(Role::Viewer), args.query, tags, limit).await?;
        let (mut page, words) = found;
        let skipped = leave_out_hidden(cx, &mut page.memories);
        let matched = if words == WordMatch::All { Matched::All } else { Matched::Any };
        let items = page.memories.into_iter().map(Found::from).collect();
        Ok(Output { items, matched, truncated: page.has_more, skipped })
    }
}
