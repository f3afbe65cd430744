//! The web: fetching, searching and reading pages.
//!
//! What comes from the web is data. It is returned to the caller and never interpreted as an instruction here.

mod browse;
mod fetch;
mod html;
mod markdown;
mod render;
mod robots;
pub mod search;
mod summary;
mod text;

use crate::outside::http_client::{BadField, BadUrl, HttpClient, HttpLimits, HttpResponse, HttpUrl};
use robots::RobotsCache;
use search::SearchProvider;
use std::time::Duration;
use tokio::time::Instant;
use toolrest_core::{CallCx, ErrorKind, FairQueue, Intent, Limits, QueueLimits, QueueSlot, Result, ToolError};

pub use browse::{BrowsedPage, FetchedBy, SummarySource};
pub use fetch::{Body, FetchRequest, Fetched, FetchedBody};
pub use http::Method;
pub use summary::{ModelApi, ModelEndpoint};

/// The setting of the maximum size of a response, which errors name.
pub(crate) const LIMIT_SETTING: &str = "web.response_bytes";

/// Options of the web tools.
#[derive(Clone, Debug)]
pub struct WebOptions {
    /// Whether the tools may be used.
    pub enabled: bool,
    /// Time limit of a request if the caller requests none.
    pub timeout: Duration,
    /// Maximum time limit that a caller can request.
    pub max_timeout: Duration,
    /// Maximum size of a response.
    pub response_bytes: usize,
    /// Maximum number of requests at once.
    pub at_once: QueueLimits,
    /// Whether `robots.txt` of hosts is respected.
    pub respects_robots: bool,
    /// Whether pages with scripts are rendered by a browser, if there is one.
    pub renders_pages: bool,
}

impl Default for WebOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            timeout: Duration::from_secs(20),
            max_timeout: Duration::from_secs(120),
            response_bytes: 5 << 20,
            at_once: QueueLimits { in_all: 64, per_account: 8, per_workspace: 8 },
            respects_robots: false,
            renders_pages: true,
        }
    }
}

/// The web, as tools reach it.
pub struct Web {
    client: HttpClient,
    /// For addresses that the operator has set, which may be in any network.
    own_client: HttpClient,
    options: WebOptions,
    slots: FairQueue,
    robots: RobotsCache,
    provider: Option<Box<dyn SearchProvider>>,
    model: Option<ModelEndpoint>,
}

impl Web {
    /// Creates the web.
    pub fn new(
        client: HttpClient,
        options: WebOptions,
        provider: Option<Box<dyn SearchProvider>>,
        model: Option<ModelEndpoint>,
    ) -> Self {
        let slots = FairQueue::new(options.at_once);
        let (own_client, robots) = (client.for_operator(), RobotsCache::default());
        Self { client, own_client, options, slots, robots, provider, model }
    }

    /// Returns the maximum duration of a call that fetches something.
    pub fn timeout(&self, limits: &Limits) -> Duration {
        limits.call_timeout.saturating_add(self.options.max_timeout)
    }

    /// Waits for a slot for a request, and stores that the call is running. Only members wait, and only members reach the
    /// web.
    async fn enter(&self, cx: &CallCx) -> Result<QueueSlot> {
        if !self.options.enabled {
            let message = "The operator has turned the web tools off (web.enabled)";
            return Err(ToolError::new(ErrorKind::NotConfigured, message).detail("setting", "web.enabled"));
        }
        let (account, workspace) = (cx.caller.user, cx.workspace_id);
        let slot = if let Ok(slot) = self.slots.try_enter(account, workspace) {
            slot
        } else {
            cx.workspace.authorise().await?;
            self.slots.enter(account, workspace).await
        };
        cx.begin_outside_effects().await?;
        Ok(slot)
    }

    /// Returns the limits of a request that starts now.
    fn limits(&self, requested: Option<Duration>) -> HttpLimits {
        let time = requested.unwrap_or(self.options.timeout).min(self.options.max_timeout);
        HttpLimits { deadline: Instant::now() + time, response_bytes: self.options.response_bytes }
    }
}

impl Default for Web {
    fn default() -> Self {
        Self::new(HttpClient::default(), WebOptions::default(), None, None)
    }
}

/// Returns what a request to this address does, so that it can be judged before it is made. An address that is not accepted
/// does nothing: the request is refused.
pub fn fetch_intents(method: &str, url: &str) -> Vec<Intent> {
    let url = HttpUrl::parse(url).ok();
    let intent = |url: HttpUrl| {
        let (method, host) = (method.to_owned(), url.host_and_port());
        Intent::Fetch { method, host, url: url.to_string() }
    };
    url.map(intent).into_iter().collect()
}

/// Returns the error for an address that is not accepted.
pub(crate) fn bad_url(argument: &str, error: &BadUrl) -> ToolError {
    ToolError::argument(argument, format!("`{argument}`: {error}"))
}

/// Returns the error for a field that is not accepted.
fn bad_field(argument: &str, error: &BadField) -> ToolError {
    ToolError::argument(argument, format!("`{argument}`: {error}"))
}

/// Returns a number of seconds that a host asks to wait for, at most a day.
pub(crate) fn retry_after(response: &HttpResponse) -> Option<u64> {
    let value = response.fields.get(http::header::RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse::<u64>().ok().map(|seconds| seconds.min(24 * 60 * 60))
}
