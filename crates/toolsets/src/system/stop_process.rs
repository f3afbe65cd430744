use super::process::Process;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use toolrest_core::{Action, CallCx, Result, Tool};
use toolrest_ops::exec::Processes;

pub(super) struct StopProcess(pub(super) Arc<Processes>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Identifier of the process.
    id: String,
}

#[async_trait]
impl Tool for StopProcess {
    const NAME: &'static str = "stop_process";
    const DESCRIPTION: &'static str = "Stop a background process and its child processes, and commit its changes";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Process;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Process> {
        self.0.stop(cx, &args.id).await.map(Process::from)
    }

    fn text(&self, output: &Process) -> Option<String> {
        Some(output.text())
    }
}
