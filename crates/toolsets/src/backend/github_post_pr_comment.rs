use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Intent, Limits, Result, Tool, ToolError};
use toolrest_ops::github::{GitHub, pull_request_intents};

pub(super) struct GitHubPostPrComment(pub(super) Arc<GitHub>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Address of the pull request, such as `https://github.com/owner/repository/pull/7`.
    pr_url: String,
    /// Text of the comment, in Markdown.
    comment: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// That the comment was posted.
    message: &'static str,
    /// Address of the comment.
    comment_url: String,
}

#[async_trait]
impl Tool for GitHubPostPrComment {
    const NAME: &'static str = "github_post_pr_comment";
    const DESCRIPTION: &'static str = "Post a comment on a pull request";
    const ACTION: Action = Action::GitHub;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    fn intents(&self, args: &Args) -> Vec<Intent> {
        pull_request_intents(self.0.pull_request("pr_url", &args.pr_url), "comment on", "")
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let name = self.0.pull_request("pr_url", &args.pr_url)?;
        if args.comment.trim().is_empty() {
            return Err(ToolError::argument("comment", "`comment` must not be empty"));
        }
        let posted = self.0.post_comment(cx, &name, &args.comment).await?;
        Ok(Output { message: "Comment posted", comment_url: posted.url })
    }
}
