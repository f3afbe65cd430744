//! GitHub, over its REST API.
//!
//! Requests go to the configured API only, whatever a caller or an answer names.

mod files;
mod pull_request;
mod repository;
mod request;

use crate::outside::http_client::{HttpClient, HttpUrl};
use crate::web::bad_url;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use toolrest_core::{CallCx, ErrorKind, FairQueue, Intent, Limits, QueueLimits, QueueSlot, Result, ToolError};

pub use files::{FileInRepository, WrittenFile};
pub use pull_request::{MergeMethod, PostedComment, PullRequest};
pub use repository::CreatedRepository;

/// The address of the API of github.com.
const PUBLIC_API: &str = "https://api.github.com";
/// The host of its pages.
const PUBLIC_HOST: &str = "github.com";
/// Maximum length of a name of an account or a repository.
const MAX_NAME_BYTES: usize = 100;

/// The access tokens of workspaces and accounts.
#[async_trait]
pub trait GitHubTokens: Send + Sync {
    /// Returns the token with which the call uses GitHub, if there is one.
    async fn token(&self, cx: &CallCx) -> Result<Option<String>>;
}

/// Tokens where nobody has one.
pub struct NoTokens;

#[async_trait]
impl GitHubTokens for NoTokens {
    async fn token(&self, _: &CallCx) -> Result<Option<String>> {
        Ok(None)
    }
}

/// Options of GitHub.
#[derive(Clone)]
pub struct GitHubOptions {
    /// The address of the API.
    pub api: HttpUrl,
    /// Time limit of each request.
    pub timeout: Duration,
    /// Maximum size of an answer.
    pub response_bytes: usize,
    /// Maximum number of calls at once.
    pub at_once: QueueLimits,
}

/// GitHub, as tools use it.
pub struct GitHub {
    /// The client for the address that the operator has set.
    client: HttpClient,
    options: GitHubOptions,
    /// The host of the pages, with its port if that is not the usual one.
    host: String,
    tokens: Arc<dyn GitHubTokens>,
    slots: FairQueue,
}

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryName {
    owner: String,
    name: String,
}

/// A pull request of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestName {
    repository: RepositoryName,
    /// The number, in digits.
    number: String,
}

/// A call under way: its slot and its token.
struct Session {
    token: String,
    /// The correlation id of the call.
    correlation: String,
    _slot: QueueSlot,
}

impl GitHubOptions {
    /// Returns options for the API at this address.
    pub fn new(api: HttpUrl) -> Self {
        Self {
            api,
            timeout: Duration::from_secs(20),
            response_bytes: 8 << 20,
            at_once: QueueLimits { in_all: 32, per_account: 4, per_workspace: 4 },
        }
    }
}

/// Options for github.com.
impl Default for GitHubOptions {
    fn default() -> Self {
        Self::new(HttpUrl::fixed(PUBLIC_API))
    }
}

impl GitHub {
    /// Creates the access to GitHub.
    pub fn new(client: &HttpClient, options: GitHubOptions, tokens: Arc<dyn GitHubTokens>) -> Self {
        let host = options.api.host_and_port();
        // The public API has a host of its own; that of GitHub Enterprise is below the host of the pages.
        let host = if host == "api.github.com" { PUBLIC_HOST.to_owned() } else { host };
        let (client, slots) = (client.for_operator(), FairQueue::new(options.at_once));
        Self { client, options, host, tokens, slots }
    }

    /// Returns the maximum duration of a call.
    pub fn timeout(&self, limits: &Limits) -> Duration {
        limits.call_timeout.max(self.options.timeout * 3)
    }

    /// Reads the address of a pull request: `https://github.com/owner/repository/pull/7`.
    pub fn pull_request(&self, argument: &str, address: &str) -> Result<PullRequestName> {
        let url = HttpUrl::parse(address).map_err(|error| bad_url(argument, &error))?;
        let expected = || {
            let message = format!(
                "`{argument}` must be the address of a pull request such as https://{}/owner/repository/pull/7, not {address:?}",
                self.host
            );
            ToolError::argument(argument, message)
        };
        if url.host_and_port() != self.host || url.is_https() != self.options.api.is_https() {
            return Err(expected());
        }
        let parts: Vec<&str> = url.path().trim_matches('/').split('/').collect();
        // Behind the number there may be a page of it: `files`, `commits`.
        let [owner, name, "pull", number, rest @ ..] = &parts[..] else { return Err(expected()) };
        let is_page = matches!(rest, [] | ["files" | "commits" | "checks"]);
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        match RepositoryName::new(owner, name) {
            Some(repository) if is_page && is_number && number.parse::<u32>().is_ok() => {
                Ok(PullRequestName { repository, number: (*number).to_owned() })
            }
            _ => Err(expected()),
        }
    }

    /// Takes a slot, stores that the call is running, and finds its token.
    async fn begin(&self, cx: &CallCx) -> Result<Session> {
        let (account, workspace) = (cx.caller.user, cx.workspace_id);
        let slot = if let Ok(slot) = self.slots.try_enter(account, workspace) {
            slot
        } else {
            cx.workspace.authorise().await?;
            self.slots.enter(account, workspace).await
        };
        cx.begin_outside_effects().await?;
        let Some(token) = self.tokens.token(cx).await? else {
            let message = "There is no access token for GitHub. Store one as the workspace's secret GITHUB_TOKEN; on your own \
                           machine, the setting github.token also serves the local user";
            return Err(ToolError::new(ErrorKind::NotConfigured, message).detail("setting", "github.token"));
        };
        Ok(Session { token, correlation: cx.correlation().to_owned(), _slot: slot })
    }
}

impl RepositoryName {
    fn new(owner: &str, name: &str) -> Option<Self> {
        let is_name = |text: &str| {
            let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            !text.is_empty()
                && text.len() <= MAX_NAME_BYTES
                && text.bytes().all(is_valid)
                && !matches!(text, "." | "..")
        };
        (is_name(owner) && is_name(name)).then(|| Self { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// Reads `owner/name`.
    pub fn parse(argument: &str, text: &str) -> Result<Self> {
        let name = text.split_once('/').and_then(|(owner, name)| Self::new(owner, name));
        name.ok_or_else(|| {
            ToolError::argument(argument, format!("`{argument}` must be a repository as owner/name, not {text:?}"))
        })
    }
}

impl std::fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// Returns what a call does to a repository, so that it can be judged before. An argument that is not accepted does nothing.
pub fn intents(repository: Result<RepositoryName>, operation: impl Into<String>) -> Vec<Intent> {
    let operation = operation.into();
    let intent = |name: RepositoryName| Intent::GitHub { operation, repository: name.to_string() };
    repository.ok().map(intent).into_iter().collect()
}

/// Returns what a call does to a pull request.
pub fn pull_request_intents(name: Result<PullRequestName>, verb: &str, detail: &str) -> Vec<Intent> {
    let Ok(PullRequestName { repository, number }) = name else { return Vec::new() };
    intents(Ok(repository), format!("{verb} pull request {number}{detail}"))
}

#[cfg(test)]
#[path = "github_tests.rs"]
mod github_tests;
