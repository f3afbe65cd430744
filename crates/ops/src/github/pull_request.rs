//! Pull requests.

use super::request::{next_page, read};
use super::{GitHub, PullRequestName, Session};
use http::Method;
use serde::Deserialize;
use serde_json::json;
use toolrest_core::{CallCx, Result};

/// Number of files of a page, the maximum of GitHub.
const PAGE_FILES: &str = "100";
/// Maximum number of pages. GitHub lists at most 3000 files.
const MAX_PAGES: usize = 30;

/// A pull request with its files.
pub struct PullRequest {
    /// The title.
    pub title: String,
    /// The description.
    pub body: String,
    /// `open` or `closed`.
    pub state: String,
    /// Whether it was merged.
    pub is_merged: bool,
    /// The hash of the newest commit.
    pub head_sha: String,
    /// The paths of the files that it changes.
    pub files: Vec<String>,
    /// Number of files that it changes, by GitHub's count.
    pub files_total: u64,
}

/// A comment that was posted.
#[derive(Deserialize)]
pub struct PostedComment {
    /// The address of its page.
    #[serde(rename = "html_url")]
    pub url: String,
}

/// How commits are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeMethod {
    /// By a merge commit.
    Merge,
    /// As one commit.
    Squash,
    /// One after the other.
    Rebase,
}

impl MergeMethod {
    /// Returns the name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Squash => "squash",
            Self::Rebase => "rebase",
        }
    }
}

#[derive(Deserialize)]
struct Details {
    title: String,
    body: Option<String>,
    state: String,
    #[serde(default)]
    merged: bool,
    #[serde(default)]
    changed_files: u64,
    head: Head,
}

#[derive(Deserialize)]
struct Head {
    sha: String,
}

#[derive(Deserialize)]
struct ChangedFile {
    filename: String,
}

#[derive(Deserialize)]
struct Merged {
    sha: Option<String>,
}

impl GitHub {
    /// Returns a pull request, with all files that GitHub lists.
    pub async fn pull_request_details(&self, cx: &CallCx, name: &PullRequestName) -> Result<PullRequest> {
        let session = self.begin(cx).await?;
        let url = self.url(name.segments("pulls"));
        let details: Details =
            read(&self.send(&session, Method::GET, &url, None, &format!("pull request {name}")).await?)?;
        let files = self.changed_files(&session, name).await?;
        Ok(PullRequest {
            title: details.title,
            body: details.body.unwrap_or_default(),
            state: details.state,
            is_merged: details.merged,
            head_sha: details.head.sha,
            files_total: details.changed_files.max(u64::try_from(files.len()).unwrap_or(u64::MAX)),
            files,
        })
    }

    async fn changed_files(&self, session: &Session, name: &PullRequestName) -> Result<Vec<String>> {
        let mut files = Vec::new();
        let first = self.url(name.segments("pulls").into_iter().chain(["files"]));
        let mut next = Some(first.with_query([("per_page", PAGE_FILES)]));
        for _ in 0..MAX_PAGES {
            let Some(url) = next else { break };
            let what = format!("pull request {name}");
            let response = self.send(session, Method::GET, &url, None, &what).await?;
            next = next_page(&response, &self.options.api);
            files.extend(read::<Vec<ChangedFile>>(&response)?.into_iter().map(|file| file.filename));
        }
        Ok(files)
    }

    /// Posts a comment on a pull request.
    pub async fn post_comment(&self, cx: &CallCx, name: &PullRequestName, comment: &str) -> Result<PostedComment> {
        let session = self.begin(cx).await?;
        // Comments that are not about a line are those of the issue of the same number.
        let url = self.url(name.segments("issues").into_iter().chain(["comments"]));
        let what = format!("pull request {name}");
        read(&self.send(&session, Method::POST, &url, Some(&json!({"body": comment})), &what).await?)
    }

    /// Merges a pull request. If `head_sha` is given, only if that is its newest commit. Returns the hash of the new commit.
    pub async fn merge(
        &self,
        cx: &CallCx,
        name: &PullRequestName,
        method: MergeMethod,
        head_sha: Option<&str>,
    ) -> Result<Option<String>> {
        let session = self.begin(cx).await?;
        let url = self.url(name.segments("pulls").into_iter().chain(["merge"]));
        let mut content = json!({"merge_method": method.name()});
        if let Some(sha) = head_sha {
            content["sha"] = sha.into();
        }
        let what = format!("pull request {name}");
        let merged: Merged = read(&self.send(&session, Method::PUT, &url, Some(&content), &what).await?)?;
        Ok(merged.sha)
    }
}

impl PullRequestName {
    /// Returns the path in the API, as a pull request (`pulls`) or as an issue (`issues`).
    fn segments(&self, kind: &'static str) -> [&str; 5] {
        ["repos", &self.repository.owner, &self.repository.name, kind, &self.number]
    }
}

impl std::fmt::Display for PullRequestName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.repository, self.number)
    }
}
