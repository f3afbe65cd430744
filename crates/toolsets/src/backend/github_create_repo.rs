use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Intent, Limits, Result, Tool};
use toolrest_ops::github::GitHub;

pub(super) struct GitHubCreateRepo(pub(super) Arc<GitHub>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Name of the repository, in the account of the access token; `organisation/name` creates it in an organisation.
    name: String,
    /// Description of the repository.
    description: Option<String>,
    /// Whether only members can see it. Default: true.
    is_private: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Address of the repository.
    repo_url: String,
    /// Name of the repository with its owner.
    full_name: String,
}

#[async_trait]
impl Tool for GitHubCreateRepo {
    const NAME: &'static str = "github_create_repo";
    const DESCRIPTION: &'static str = "Create a repository on GitHub";
    const ACTION: Action = Action::GitHub;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    fn intents(&self, args: &Args) -> Vec<Intent> {
        GitHub::create_intents(&args.name)
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let is_private = args.is_private.unwrap_or(true);
        let made = self.0.create_repository(cx, &args.name, args.description.as_deref(), is_private).await?;
        Ok(Output { repo_url: made.url, full_name: made.full_name })
    }
}
