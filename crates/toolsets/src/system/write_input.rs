use super::process::Process;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use toolrest_core::{Action, CallCx, Intent, Result, Tool};
use toolrest_ops::exec::{EndOfInput, Processes};

pub(super) struct WriteInput(pub(super) Arc<Processes>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Identifier of the process.
    id: String,
    /// Text to write to the standard input.
    input: String,
    /// Close the standard input afterwards. Default: false.
    end: Option<bool>,
}

#[async_trait]
impl Tool for WriteInput {
    const NAME: &'static str = "write_input";
    const DESCRIPTION: &'static str = "Write to the standard input of a background process";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Process;

    fn intents(&self, args: &Args) -> Vec<Intent> {
        vec![Intent::Input { process: args.id.clone(), text: args.input.clone() }]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Process> {
        let end = if args.end.unwrap_or(false) { EndOfInput::Yes } else { EndOfInput::No };
        self.0.write(cx, &args.id, args.input.as_bytes(), end).await.map(Process::from)
    }

    fn text(&self, output: &Process) -> Option<String> {
        Some(output.text())
    }
}
