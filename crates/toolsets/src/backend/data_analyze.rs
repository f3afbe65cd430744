use super::succeeded;
use crate::aftermath::{Aftermath, Printed, printed};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Limits, Result, Tool};
use toolrest_ops::exec::Executor;

pub(super) struct DataAnalyze(pub(super) Arc<Executor>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the file with the data, relative to the workspace root.
    input_file_path: String,
    /// A Python script with pandas at hand. It gets the file's path as its first argument and as `INPUT_FILE` in its
    /// environment.
    analysis_script: String,
    /// Seconds after which it is ended. Default: the server's `run.timeout_ms`, 60 seconds unless the operator sets it.
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// What the script printed to the standard output.
    stdout: String,
    /// What it printed to the standard error.
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
    #[serde(flatten)]
    aftermath: Aftermath,
}

#[async_trait]
impl Tool for DataAnalyze {
    const NAME: &'static str = "data_analyze";
    const DESCRIPTION: &'static str = "Analyse a file with a Python script, in a sandbox with pandas";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let input = arguments::relative_path(cx, "input_file_path", &args.input_file_path)?;
        let asked = arguments::asked(args.timeout, None)?;
        let ran = toolrest_ops::data::analyze(cx, &self.0, &input, &args.analysis_script, asked).await?;
        let Printed { stdout, stderr, aftermath, .. } = succeeded(printed(ran)?)?;
        Ok(Output { stdout, stderr, aftermath })
    }
}
