use crate::memory_item::{Item, leave_out_hidden};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolrest_core::{
    Action, CallCx, Intent, Memories, MemoryFilter, Result, Role, Tool, ToolError, check_memory_key, distinct_tags,
};

/// Maximum number of memories in one answer.
const MAX_ITEMS: usize = 100;

pub(super) struct MemoryRetrieve(pub(super) Arc<dyn Memories>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Key of the memory. Either `key` or `tags` must be given.
    key: Option<String>,
    /// Tags, all of which a memory must have.
    tags: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The memories, the last saved first, at most 100 of them.
    items: Vec<Item>,
    /// True if there are more than 100. Name more tags, or list the keys with `memory_list`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Number of memories that the rules of the workspace hide.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
}

#[async_trait]
impl Tool for MemoryRetrieve {
    const NAME: &'static str = "memory_retrieve";
    const DESCRIPTION: &'static str = "Retrieve memories by key, by tags or both";
    const ACTION: Action = Action::Memory;
    type Args = Args;
    type Output = Output;

    fn intents(&self, args: &Args) -> Vec<Intent> {
        vec![Intent::Memory { operation: "retrieve".to_owned(), key: args.key.clone().unwrap_or_default() }]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let tags = distinct_tags(args.tags.unwrap_or_default())?;
        match &args.key {
            Some(key) => check_memory_key(key)?,
            None if tags.is_empty() => {
                let message = "`key` or `tags` must be given; `memory_list` lists all memories";
                return Err(ToolError::argument("key", message));
            }
            None => {}
        }
        let filter = MemoryFilter { key: args.key, tags };
        let mut page = self.0.memories(cx.access(Role::Viewer), filter, MAX_ITEMS).await?;
        let skipped = leave_out_hidden(cx, &mut page.memories);
        Ok(Output { items: page.memories.into_iter().map(Item::from).collect(), truncated: page.has_more, skipped })
    }
}
