use super::process::Process;
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolrest_core::{Action, CallCx, Result, Tool};
use toolrest_ops::exec::Processes;

pub(super) struct ListProcesses(pub(super) Arc<Processes>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Running and recently ended processes, in the order in which they were started.
    processes: Vec<Process>,
}

#[async_trait]
impl Tool for ListProcesses {
    const NAME: &'static str = "list_processes";
    const DESCRIPTION: &'static str = "List the background processes of the workspace";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, _: Args) -> Result<Output> {
        let processes = self.0.list(cx).await?.into_iter().map(Process::from).collect();
        Ok(Output { processes })
    }

    fn text(&self, output: &Output) -> Option<String> {
        Some(text::lines(output.processes.iter().map(Process::text), "no processes"))
    }
}
