use super::process::Process;
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};
use toolrest_core::{Action, CallCx, Result, Tool};
use toolrest_ops::exec::{Processes, Program};

pub(super) struct StartProcess(pub(super) Arc<Processes>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The command, as bash understands it. It starts in the workspace's root folder.
    command: String,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// Seconds after which it is ended. Default: the longest that the server allows.
    timeout: Option<f64>,
    /// Memory that it may use in all, in bytes. Default and ceiling are the server's.
    memory_bytes: Option<u64>,
}

#[async_trait]
impl Tool for StartProcess {
    const NAME: &'static str = "start_process";
    const DESCRIPTION: &'static str = "Start a command in the background, in a sandbox, on the workspace's files; it ends when nobody asks after it \
         for long";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Process;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Process> {
        let asked = arguments::asked(args.timeout, args.memory_bytes)?;
        let env = args.env.unwrap_or_default().into_iter().collect();
        let program = Program { env, ..Program::command(args.command.clone()) };
        self.0.start(cx, args.command, program, asked).await.map(Process::from)
    }
}
