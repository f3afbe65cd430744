use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use toolrest_core::{Action, CallCx, Intent, Limits, Result, Tool};
use toolrest_ops::github::{FileInRepository, GitHub, RepositoryName, intents};

pub(super) struct GitHubCreateFileInRepo(pub(super) Arc<GitHub>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Repository as `owner/name`.
    repo_name: String,
    /// Path of the file in the repository.
    path: String,
    /// Text of the file.
    content: String,
    /// Message of the commit.
    commit_message: String,
    /// Branch to commit to. Default: the default branch of the repository.
    branch: Option<String>,
    /// Blob hash that the file must still have, so that no other change is overwritten.
    expected_sha: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// Hash of the commit.
    commit_sha: String,
    /// Whether the file is new.
    created: bool,
}

#[async_trait]
impl Tool for GitHubCreateFileInRepo {
    const NAME: &'static str = "github_create_file_in_repo";
    const DESCRIPTION: &'static str = "Create or replace a file in a repository, by one commit";
    const ACTION: Action = Action::GitHub;
    type Args = Args;
    type Output = Output;

    fn timeout(&self, limits: &Limits) -> Duration {
        self.0.timeout(limits)
    }

    fn intents(&self, args: &Args) -> Vec<Intent> {
        intents(RepositoryName::parse("repo_name", &args.repo_name), format!("write {}", args.path))
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let repository = RepositoryName::parse("repo_name", &args.repo_name)?;
        let file = FileInRepository {
            repository: &repository,
            path: &args.path,
            branch: args.branch.as_deref(),
            content: &args.content,
            message: &args.commit_message,
            expected_sha: args.expected_sha.as_deref(),
        };
        let written = self.0.write_file(cx, file).await?;
        Ok(Output { commit_sha: written.commit_sha, created: written.is_new })
    }
}
