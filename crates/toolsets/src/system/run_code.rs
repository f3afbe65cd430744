use crate::arguments;
use crate::program_result::{Printed, RunFacts, printed};
use crate::text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Intent, Limits, Result, Tool};
use toolrest_ops::exec::{Executor, Language, Libraries, Program, exec_intent};

pub(super) struct RunCode(pub(super) Arc<Executor>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Args {
    /// The language: `python` or `bash`.
    language: CodeLanguage,
    /// The code to run. The working directory is the workspace root; the code can read and change the workspace's
    /// files.
    code: String,
    /// Command-line arguments.
    args: Option<Vec<String>>,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// Names of secrets of the workspace, which the program gets as environment variables. A person sets them.
    secrets: Option<Vec<String>>,
    /// Time limit in seconds. The program is killed when it is exceeded. Default: the server's `run.timeout_ms`,
    /// 60 seconds unless the operator changes it.
    timeout: Option<f64>,
    /// Memory limit in bytes, for all of its processes together. The server sets the default and the maximum.
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
    /// Standard output. If it is long, only its beginning and its end.
    stdout: String,
    /// Standard error. If it is long, only its beginning and its end.
    stderr: String,
    /// The exit code. If a signal ended the program: 128 plus the number of the signal.
    exit_code: i32,
    /// Run time in milliseconds.
    duration: u64,
    #[serde(flatten)]
    facts: RunFacts,
}

#[async_trait]
impl Tool for RunCode {
    const NAME: &'static str = "run_code";
    const DESCRIPTION: &'static str = "Run Python or bash code in a sandbox with the workspace's files";
    const ACTION: Action = Action::Exec;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    fn intents(&self, args: &Args) -> Vec<Intent> {
        let language = match args.language {
            CodeLanguage::Python => "python",
            CodeLanguage::Bash => "bash",
        };
        let env = args.env.iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
        let intent = exec_intent(language, &args.code).with_inputs(args.args.as_deref().unwrap_or_default(), env);
        vec![intent.with_secrets(arguments::names(&args.secrets))]
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let limits = arguments::requested_limits(args.timeout, args.memory_bytes)?;
        let program = Program {
            language: args.language.into(),
            code: args.code,
            arguments: args.args.unwrap_or_default(),
            env: args.env.unwrap_or_default().into_iter().collect(),
            secrets: args.secrets.unwrap_or_default(),
            libraries: Libraries::IfThere,
        };
        let ran = self.0.run(cx, program, limits).await?;
        let Printed { stdout, stderr, exit_code, duration, facts } = printed(ran)?;
        Ok(Output { stdout, stderr, exit_code, duration: arguments::milliseconds(duration), facts })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let mut text = text::program_output(&output.stdout, &output.stderr, output.exit_code);
        output.facts.push_to(&mut text);
        Some(text)
    }
}
