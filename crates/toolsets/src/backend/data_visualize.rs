use super::succeeded;
use crate::arguments;
use crate::program_result::{Printed, RunFacts, printed};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, ErrorKind, Intent, Limits, Result, Tool};
use toolrest_ops::data;
use toolrest_ops::exec::{Executor, exec_intent};

pub(super) struct DataVisualize(pub(super) Arc<Executor>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the data file, relative to the workspace root.
    input_file_path: String,
    /// Python script; pandas and matplotlib are installed. The paths of the data file and of the image are its
    /// command-line arguments and its environment variables `INPUT_FILE` and `OUTPUT_IMAGE`.
    visualization_script: String,
    /// Path of the image that the script writes, relative to the workspace root.
    output_image_path: String,
    /// Names of secrets of the workspace, which the program gets as environment variables. A person sets them.
    secrets: Option<Vec<String>>,
    /// Time limit in seconds. The program is killed when it is exceeded. Default: the server's `run.timeout_ms`,
    /// 60 seconds unless the operator changes it.
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// A fixed message of success.
    message: &'static str,
    /// Path of the image, as passed in the call.
    output_image_path: String,
    /// Standard output of the script.
    #[serde(skip_serializing_if = "String::is_empty")]
    stdout: String,
    /// Standard error of the script.
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
    #[serde(flatten)]
    facts: RunFacts,
}

#[async_trait]
impl Tool for DataVisualize {
    const NAME: &'static str = "data_visualize";
    const DESCRIPTION: &'static str =
        "Plot a data file as an image with a Python script, in a sandbox with pandas and matplotlib";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    fn intents(&self, args: &Args) -> Vec<Intent> {
        vec![exec_intent("python", &args.visualization_script).with_secrets(arguments::names(&args.secrets))]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let input = arguments::relative_path(cx, "input_file_path", &args.input_file_path)?;
        let image = arguments::relative_path(cx, "output_image_path", &args.output_image_path)?;
        let limits = arguments::requested_limits(args.timeout, None)?;
        let secrets = args.secrets.unwrap_or_default();
        let ran = data::visualize(cx, &self.0, &input, &image, &args.visualization_script, secrets, limits).await?;
        let fault = data::image_fault(cx, &image, &ran).await?;
        let printed = succeeded(printed(ran)?)?;
        if let Some(fault) = fault {
            return Err(printed.failed(ErrorKind::ExecutionFailed, fault));
        }
        let Printed { stdout, stderr, facts, .. } = printed;
        let output_image_path = args.output_image_path;
        Ok(Output { message: "Visualization generated", output_image_path, stdout, stderr, facts })
    }
}
