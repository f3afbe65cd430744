use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolrest_core::{Action, CallCx, Intent, Memories, Result, Role, Tool, check_memory_key};

pub(super) struct MemoryDelete(pub(super) Arc<dyn Memories>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Key of the memory.
    key: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// A fixed message of success.
    message: &'static str,
}

#[async_trait]
impl Tool for MemoryDelete {
    const NAME: &'static str = "memory_delete";
    const DESCRIPTION: &'static str = "Delete the memory with a key";
    const ACTION: Action = Action::Memory;
    type Args = Args;
    type Output = Output;

    fn intents(&self, args: &Args) -> Vec<Intent> {
        vec![Intent::Memory { operation: "delete".to_owned(), key: args.key.clone() }]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        check_memory_key(&args.key)?;
        cx.begin_outside_effects().await?;
        self.0.delete_memory(cx.access(Role::Editor), args.key).await?;
        Ok(Output { message: "Memory deleted" })
    }
}
