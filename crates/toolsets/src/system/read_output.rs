use super::process::Process;
use crate::{arguments, counted};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Result, Tool, ToolError};
use toolrest_ops::exec::Processes;

/// How much is given at once where nothing else is asked for.
const DEFAULT_BYTES: usize = 64 << 10;
/// How much is given at once at most.
const MOST_BYTES: usize = 1 << 20;

pub(super) struct ReadOutput(pub(super) Arc<Processes>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The process's id.
    id: String,
    /// Where to begin, in bytes: `nextOffset` of the last answer. Default: 0.
    offset: Option<u64>,
    /// How many bytes to give at most. Default: 65536; at most 1048576.
    limit: Option<usize>,
    /// Seconds to wait for output where there is none yet. Default: 0.
    wait: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// What the process printed, to both streams, in the order in which it arrived.
    output: String,
    /// Where the next piece begins.
    next_offset: u64,
    /// How many bytes before this piece are not kept any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped_bytes: Option<u64>,
    /// The process.
    process: Process,
}

#[async_trait]
impl Tool for ReadOutput {
    const NAME: &'static str = "read_output";
    const DESCRIPTION: &'static str = "Read what a background process has printed, from an offset on";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let limit = args.limit.unwrap_or(DEFAULT_BYTES);
        if !(1..=MOST_BYTES).contains(&limit) {
            return Err(ToolError::argument("limit", format!("`limit` must be from 1 to {MOST_BYTES}, not {limit}")));
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
}
