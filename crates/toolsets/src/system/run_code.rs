use crate::aftermath::{Aftermath, Printed, printed};
use crate::arguments;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Limits, Result, Tool};
use toolrest_ops::exec::{Executor, Language, Libraries, Program};

pub(super) struct RunCode(pub(super) Arc<Executor>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The language: `python` or `bash`.
    language: CodeLanguage,
    /// The code. It starts in the workspace's root folder, and sees and changes its files.
    code: String,
    /// Command-line arguments.
    args: Option<Vec<String>>,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// Seconds after which it is ended. Default: the server's `run.timeout_ms`, 60 seconds unless the operator sets it.
    timeout: Option<f64>,
    /// Memory that it may use in all, in bytes. Default and ceiling are the server's.
    memory_bytes: Option<u64>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum CodeLanguage {
    Python,
    Bash,
}

impl From<CodeLanguage> for Language {
    fn from(language: CodeLanguage) -> Self {
        match language {
            CodeLanguage::Python => Self::Python,
            CodeLanguage::Bash => Self::Bash,
        }
    }
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
    /// How long it ran, in milliseconds.
    duration: u64,
    #[serde(flatten)]
    aftermath: Aftermath,
}

#[async_trait]
impl Tool for RunCode {
    const NAME: &'static str = "run_code";
    const DESCRIPTION: &'static str = "Execute Python or bash code in a sandbox, on the workspace's files";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let asked = arguments::asked(args.timeout, args.memory_bytes)?;
        let program = Program {
            language: args.language.into(),
            code: args.code,
            arguments: args.args.unwrap_or_default(),
            env: args.env.unwrap_or_default().into_iter().collect(),
            libraries: Libraries::IfThere,
        };
        let ran = self.0.run(cx, program, asked).await?;
        let Printed { stdout, stderr, exit_code, duration, aftermath } = printed(ran)?;
        Ok(Output { stdout, stderr, exit_code, duration: arguments::milliseconds(duration), aftermath })
    }
}
