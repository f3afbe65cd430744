use super::process::Process;
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Result, Tool};
use toolrest_ops::exec::Processes;

pub(super) struct WaitProcess(pub(super) Arc<Processes>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Identifier of the process.
    id: String,
    /// Maximum number of seconds to wait. Default: the time limit of a call.
    timeout: Option<f64>,
}

#[async_trait]
impl Tool for WaitProcess {
    const NAME: &'static str = "wait_process";
    const DESCRIPTION: &'static str = "Wait for a background process to end, or for the timeout";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Process;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Process> {
        let patience = arguments::seconds("timeout", args.timeout)?.unwrap_or(Duration::MAX);
        self.0.wait(cx, &args.id, patience).await.map(Process::from)
    }

    fn text(&self, output: &Process) -> Option<String> {
        Some(output.text())
    }
}
