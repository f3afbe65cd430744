use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Intent, Memories, NewMemory, Result, Role, Timestamp, Tool, ToolError, now};

/// Maximum lifetime of a memory that expires: ten years.
const MAX_LIFETIME_SECONDS: u64 = 10 * 365 * 24 * 60 * 60;

pub(super) struct MemorySave(pub(super) Arc<dyn Memories>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Key of the memory. A memory with the same key is replaced.
    key: String,
    /// The text to remember, at most 64 KiB.
    value: String,
    /// Tags by which the memory can be found. Default: none.
    tags: Option<Vec<String>>,
    /// Number of seconds after which the memory is deleted. Default: it is kept.
    expires_in_seconds: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// A fixed message of success.
    message: &'static str,
}

#[async_trait]
impl Tool for MemorySave {
    const NAME: &'static str = "memory_save";
    const DESCRIPTION: &'static str = "Save a text under a key, with tags, for later calls";
    const ACTION: Action = Action::Memory;
    type Args = Args;
    type Output = Output;

    fn intents(&self, args: &Args) -> Vec<Intent> {
        vec![Intent::Memory { operation: "save".to_owned(), key: args.key.clone() }]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let expires_at = args.expires_in_seconds.map(expiry).transpose()?;
        let memory = NewMemory::new(args.key, args.value, args.tags.unwrap_or_default(), expires_at)?;
        cx.begin_outside_effects().await?;
        self.0.save_memory(cx.access(Role::Editor), memory, cx.caller.key_id()).await?;
        Ok(Output { message: "Memory saved" })
    }
}

fn expiry(seconds: u64) -> Result<Timestamp> {
    if !(1..=MAX_LIFETIME_SECONDS).contains(&seconds) {
        let message = format!("`expires_in_seconds` must be 1 to {MAX_LIFETIME_SECONDS}, not {seconds}");
        return Err(ToolError::argument("expires_in_seconds", message));
    }
    now().checked_add(Duration::from_secs(seconds)).map_err(ToolError::internal)
}
