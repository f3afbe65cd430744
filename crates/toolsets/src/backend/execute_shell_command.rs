use crate::arguments;
use crate::program_result::{Printed, RunFacts, printed};
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Intent, Limits, Result, Tool};
use toolrest_ops::exec::{Executor, Program, exec_intent};

pub(super) struct ExecuteShellCommand(pub(super) Arc<Executor>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Command line for bash. The working directory is the workspace root.
    command: String,
    /// Names of secrets of the workspace, which the program gets as environment variables. A person sets them.
    secrets: Option<Vec<String>>,
    /// Time limit in seconds. The program is killed when it is exceeded. Default: the server's `run.timeout_ms`,
    /// 60 seconds unless the operator changes it.
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    /// Standard output. If it is long, only its beginning and its end.
    stdout: String,
    /// Standard error. If it is long, only its beginning and its end.
    stderr: String,
    /// The exit code. If a signal ended the program: 128 plus the number of the signal.
    exit_code: i32,
    #[serde(flatten)]
    facts: RunFacts,
}

#[async_trait]
impl Tool for ExecuteShellCommand {
    const NAME: &'static str = "executeShellCommand";
    const DESCRIPTION: &'static str = "Run a shell command in a sandbox with the workspace's files";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    fn intents(&self, args: &Args) -> Vec<Intent> {
        vec![exec_intent("bash", &args.command).with_secrets(arguments::names(&args.secrets))]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let limits = arguments::requested_limits(args.timeout, None)?;
        let secrets = args.secrets.unwrap_or_default();
        let program = Program { secrets, ..Program::command(args.command) };
        let ran = self.0.run(cx, program, limits).await?;
        let Printed { stdout, stderr, exit_code, facts, .. } = printed(ran)?;
        Ok(Output { stdout, stderr, exit_code, facts })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let mut text = text::program_output(&output.stdout, &output.stderr, output.exit_code);
        output.facts.push_to(&mut text);
        Some(text)
    }
}
