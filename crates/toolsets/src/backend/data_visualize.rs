use super::succeeded;
use crate::aftermath::{Aftermath, Printed, printed};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, ErrorKind, Limits, Result, Tool};
use toolrest_ops::{data, exec::Executor};

pub(super) struct DataVisualize(pub(super) Arc<Executor>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the file with the data, relative to the workspace root.
    input_file_path: String,
    /// A Python script with pandas and matplotlib at hand. It gets the paths of the file and of the image as its
    /// arguments and as `INPUT_FILE` and `OUTPUT_IMAGE` in its environment.
    visualization_script: String,
    /// Path of the image that the script writes, relative to the workspace root.
    output_image_path: String,
    /// Seconds after which it is ended. Default: the server's `run.timeout_ms`, 60 seconds unless the operator sets it.
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// That it worked.
    message: &'static str,
    /// Path of the image, as it was given.
    output_image_path: String,
    /// What the script printed to the standard output.
    #[serde(skip_serializing_if = "String::is_empty")]
    stdout: String,
    /// What it printed to the standard error.
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
    #[serde(flatten)]
    aftermath: Aftermath,
}

#[async_trait]
impl Tool for DataVisualize {
    const NAME: &'static str = "data_visualize";
    const DESCRIPTION: &'static str =
        "Plot a file as an image with a Python script, in a sandbox with pandas and matplotlib";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let input = arguments::relative_path(cx, "input_file_path", &args.input_file_path)?;
        let image = arguments::relative_path(cx, "output_image_path", &args.output_image_path)?;
        let asked = arguments::asked(args.timeout, None)?;
        let ran = data::visualize(cx, &self.0, &input, &image, &args.visualization_script, asked).await?;
        let fault = data::image_fault(cx, &image, &ran).await?;
        let printed = succeeded(printed(ran)?)?;
        if let Some(fault) = fault {
            return Err(printed.failed(ErrorKind::ExecutionFailed, fault));
        }
        let Printed { stdout, stderr, aftermath, .. } = printed;
        let output_image_path = args.output_image_path;
        Ok(Output { message: "Visualization generated", output_image_path, stdout, stderr, aftermath })
    }
}
