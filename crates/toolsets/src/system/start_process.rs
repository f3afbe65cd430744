use super::process::Process;
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};
use toolrest_core::{Action, CallCx, Intent, Result, Tool};
use toolrest_ops::exec::{Processes, Program, exec_intent};

pub(super) struct StartProcess(pub(super) Arc<Processes>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// Command line for bash. The working directory is the workspace root.
    command: String,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// Names of secrets of the workspace, which the program gets as environment variables. A person sets them.
    secrets: Option<Vec<String>>,
    /// Time limit in seconds. The process is killed when it is exceeded. Default: the maximum that the server allows.
    timeout: Option<f64>,
    /// Memory limit in bytes, for all of its processes together. The server sets the default and the maximum.
    memory_bytes: Option<u64>,
}

#[async_trait]
impl Tool for StartProcess {
    const NAME: &'static str = "start_process";
    const DESCRIPTION: &'static str =
        "Start a command in the background, in a sandbox. It is stopped if no tool asks for it for a long time";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Process;

    fn intents(&self, args: &Args) -> Vec<Intent> {
        let env = args.env.iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
        vec![exec_intent("bash", &args.command).with_inputs(&[], env).with_secrets(arguments::names(&args.secrets))]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Process> {
        let limits = arguments::requested_limits(args.timeout, args.memory_bytes)?;
        let env = args.env.unwrap_or_default().into_iter().collect();
        let secrets = args.secrets.unwrap_or_default();
        let program = Program { env, secrets, ..Program::command(args.command.clone()) };
        self.0.start(cx, args.command, program, limits).await.map(Process::from)
    }

    fn text(&self, output: &Process) -> Option<String> {
        Some(output.text())
    }
}
