use super::process::Process;
use crate::text;
use crate::{arguments, counted};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Result, Tool, ToolError};
use toolrest_ops::exec::Processes;

/// The default number of bytes of an answer.
const DEFAULT_BYTES: usize = 64 << 10;
/// The maximum number of bytes of an answer.
const MAX_BYTES: usize = 1 << 20;

pub(super) struct ReadOutput(pub(super) Arc<Processes>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Identifier of the process.
    id: String,
    /// Position of the first byte to return: `nextOffset` of the previous answer. Default: 0.
    offset: Option<u64>,
    /// Maximum number of bytes to return. Default: 65536; maximum: 1048576.
    limit: Option<usize>,
    /// Seconds to wait if there is no new output yet. Default: 0.
    wait: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// Standard output and standard error of the process, in the order in which they arrived.
    output: String,
    /// The `offset` for the next call.
    next_offset: u64,
    /// Number of bytes before this output that were discarded because the process printed too much.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_bytes: Option<u64>,
    /// The process.
    process: Process,
}

#[async_trait]
impl Tool for ReadOutput {
    const NAME: &'static str = "read_output";
    const DESCRIPTION: &'static str = "Read the output of a background process, starting at an offset";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let limit = args.limit.unwrap_or(DEFAULT_BYTES);
        if !(1..=MAX_BYTES).contains(&limit) {
            return Err(ToolError::argument("limit", format!("`limit` must be from 1 to {MAX_BYTES}, not {limit}")));
        }
        let patience = arguments::seconds("wait", args.wait.filter(|wait| *wait != 0.0))?.unwrap_or(Duration::ZERO);
        let (piece, info) = self.0.output(cx, &args.id, args.offset.unwrap_or(0), limit, patience).await?;
        Ok(Output {
            output: piece.text,
            next_offset: piece.next_offset,
            dropped_bytes: counted(piece.dropped_bytes),
            process: info.into(),
        })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let mut text = output.output.clone();
        if let Some(dropped) = output.dropped_bytes {
            text = format!("[{dropped} bytes before this were discarded]\n{text}");
        }
        text::push_line(&mut text, &format!("[next offset {}]", output.next_offset));
        text::push_line(&mut text, &output.process.text());
        Some(text)
    }
}
