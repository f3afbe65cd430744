use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Intent, Limits, Result, Tool};
use toolrest_ops::github::{GitHub, MergeMethod, pull_request_intents};

pub(super) struct GitHubMergePr(pub(super) Arc<GitHub>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Address of the pull request, such as `https://github.com/owner/repository/pull/7`.
    pr_url: String,
    /// How to merge: `merge` (the default), `squash` or `rebase`.
    method: Option<Method>,
    /// Hash that the newest commit of the pull request must have, so that only what was looked at is merged.
    head_sha: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Method {
    Merge,
    Squash,
    Rebase,
}

fn merge_method(method: Option<Method>) -> MergeMethod {
    match method {
        Some(Method::Merge) | None => MergeMethod::Merge,
        Some(Method::Squash) => MergeMethod::Squash,
        Some(Method::Rebase) => MergeMethod::Rebase,
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// That the pull request was merged.
    message: &'static str,
    /// Hash of the new commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha: Option<String>,
}

#[async_trait]
impl Tool for GitHubMergePr {
    const NAME: &'static str = "github_merge_pr";
    const DESCRIPTION: &'static str = "Merge a pull request";
    const ACTION: Action = Action::GitHub;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    fn intents(&self, args: &Args) -> Vec<Intent> {
        let method = merge_method(args.method).name();
        pull_request_intents(self.0.pull_request("pr_url", &args.pr_url), "merge", &format!(" ({method})"))
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let name = self.0.pull_request("pr_url", &args.pr_url)?;
        let sha = self.0.merge(cx, &name, merge_method(args.method), args.head_sha.as_deref()).await?;
        Ok(Output { message: "PR merged", sha })
    }
}
