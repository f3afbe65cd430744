use super::succeeded;
use crate::arguments;
use crate::program_result::{Printed, RunFacts, printed};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Intent, Limits, Result, Tool};
use toolrest_ops::exec::{Executor, exec_intent};

pub(super) struct DataAnalyze(pub(super) Arc<Executor>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the data file, relative to the workspace root.
    input_file_path: String,
    /// Python script; pandas is installed. The path of the data file is its first command-line argument and its
    /// environment variable `INPUT_FILE`.
    analysis_script: String,
    /// Names of secrets of the workspace, which the program gets as environment variables. A person sets them.
    secrets: Option<Vec<String>>,
    /// Time limit in seconds. The program is killed when it is exceeded. Default: the server's `run.timeout_ms`,
    /// 60 seconds unless the operator changes it.
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Standard output of the script.
    stdout: String,
    /// Standard error of the script.
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
    #[serde(flatten)]
    facts: RunFacts,
}

#[async_trait]
impl Tool for DataAnalyze {
    const NAME: &'static str = "data_analyze";
    const DESCRIPTION: &'static str = "Analyse a data file with a Python script, in a sandbox with pandas";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    fn intents(&self, args: &Args) -> Vec<Intent> {
        vec![exec_intent("python", &args.analysis_script).with_secrets(arguments::names(&args.secrets))]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let input = arguments::relative_path(cx, "input_file_path", &args.input_file_path)?;
        let limits = arguments::requested_limits(args.timeout, None)?;
        let secrets = args.secrets.unwrap_or_default();
        let ran = toolrest_ops::data::analyze(cx, &self.0, &input, &args.analysis_script, secrets, limits).await?;
        let Printed { stdout, stderr, facts, .. } = succeeded(printed(ran)?)?;
        Ok(Output { stdout, stderr, facts })
    }
}
