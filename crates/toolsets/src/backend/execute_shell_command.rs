use crate::aftermath::{Aftermath, Printed, printed};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Limits, Result, Tool};
use toolrest_ops::exec::{Executor, Program};

pub(super) struct ExecuteShellCommand(pub(super) Arc<Executor>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The command, as bash understands it. It starts in the workspace's root folder.
    command: String,
    /// Seconds after which it is ended. Default: the server's `run.timeout_ms`, 60 seconds unless the operator sets it.
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// What was printed to the standard output. Of a long one, the beginning and the end.
    stdout: String,
    /// What was printed to the standard error. Of a long one, the beginning and the end.
    stderr: String,
    /// The exit code; 128 and the signal's number, if a signal ended it.
    exit_code: i32,
    #[serde(flatten)]
    aftermath: Aftermath,
}

#[async_trait]
impl Tool for ExecuteShellCommand {
    const NAME: &'static str = "executeShellCommand";
    const DESCRIPTION: &'static str = "Run a shell command in a sandbox, on the workspace's files";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let asked = arguments::asked(args.timeout, None)?;
        let ran = self.0.run(cx, Program::command(args.command), asked).await?;
        let Printed { stdout, stderr, exit_code, aftermath, .. } = printed(ran)?;
        Ok(Output { stdout, stderr, exit_code, aftermath })
    }
}
