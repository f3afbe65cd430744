//! Searches the web with a provider of the operator.

mod brave;
mod searxng;
mod tavily;

use super::{LIMIT_SETTING, Web, retry_after};
use crate::outside::http_client::{HttpRequest, HttpResponse, HttpUrl};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toolrest_core::{CallCx, ErrorKind, Intent, Result, ToolError};

pub use brave::Brave;
pub use searxng::Searxng;
pub use tavily::Tavily;

/// Number of results if the caller requests none.
const DEFAULT_RESULTS: usize = 5;
/// Maximum number of results.
pub const MAX_RESULTS: usize = 20;
/// Maximum length of what is searched for.
const MAX_QUERY_CHARS: usize = 400;

/// What the operator must set to have a provider.
const HOW_TO_SET_UP: &str = "No search provider is set up. The operator adds to toolrest.toml, for example:\n\
    [web]\nsearch_provider = \"brave\"   # or \"tavily\", or \"searxng\"\nsearch_key = \"…\"            # brave and tavily\n\
    search_url = \"http://…\"       # searxng";

/// A service that searches the web.
pub trait SearchProvider: Send + Sync {
    /// Returns the name of the service.
    fn name(&self) -> &'static str;
    /// Returns the address of the service.
    fn endpoint(&self) -> &HttpUrl;
    /// Returns the request for a search.
    fn request(&self, query: &str, count: usize) -> HttpRequest;
    /// Reads the results of a response; none if it is not what the service returns.
    fn results(&self, body: &[u8]) -> Option<Vec<SearchResult>>;
}

/// A page that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchResult {
    /// Its title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// A part of its text.
    pub snippet: String,
}

impl Web {
    /// Returns what a search does.
    pub fn search_intents(&self, query: &str) -> Vec<Intent> {
        let Some(provider) = &self.provider else { return Vec::new() };
        let request = provider.request(query, DEFAULT_RESULTS);
        let (method, host) = (request.method.to_string(), request.url.host_and_port());
        vec![Intent::Fetch { method, host, url: request.url.to_string() }]
    }

    /// Searches the web.
    pub async fn search(&self, cx: &CallCx, query: &str, count: Option<usize>) -> Result<Vec<SearchResult>> {
        let query = query.trim();
        if query.is_empty() || query.chars().count() > MAX_QUERY_CHARS {
            return Err(ToolError::argument("query", format!("`query` must have 1 to {MAX_QUERY_CHARS} characters")));
        }
        let count = count.unwrap_or(DEFAULT_RESULTS);
        if !(1..=MAX_RESULTS).contains(&count) {
            return Err(ToolError::argument("numResults", format!("`numResults` must be from 1 to {MAX_RESULTS}")));
        }
        let Some(provider) = &self.provider else {
            return Err(
                ToolError::new(ErrorKind::NotConfigured, HOW_TO_SET_UP).detail("setting", "web.search_provider")
            );
        };
        let _slot = self.enter(cx).await?;
        let request = provider.request(query, count).with_correlation(cx.correlation());
        let response = self.own_client.send_once(request, self.limits(None)).await;
        let response = response.map_err(|error| error.to_tool_error(None, LIMIT_SETTING))?;
        check_status(provider.name(), &response)?;
        let Some(mut results) = provider.results(&response.body) else {
            let message = format!("The search service {} sent an answer that cannot be read", provider.name());
            return Err(ToolError::new(ErrorKind::NetworkError, message));
        };
        results.retain(|result| HttpUrl::parse(&result.url).is_ok());
        results.truncate(count);
        Ok(results)
    }
}

/// Returns the error for a response of a provider that is none.
fn check_status(name: &str, response: &HttpResponse) -> Result<()> {
    let status = response.status.as_u16();
    match status {
        200..=299 => Ok(()),
        401 | 403 => {
            let message =
                format!("The search service {name} refused the request (status {status}); check web.search_key");
            Err(ToolError::new(ErrorKind::NotConfigured, message).detail("setting", "web.search_key"))
        }
        429 => {
            let seconds = retry_after(response).unwrap_or(1);
            let message = format!("The search service {name} allows no more requests for {seconds} seconds");
            Err(ToolError::new(ErrorKind::RateLimited, message).retry_after(seconds))
        }
        _ => {
            let message = format!("The search service {name} answered with the status {status}");
            Err(ToolError::new(ErrorKind::NetworkError, message))
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

/// Returns a text of a result without tags and with the characters that entities stand for.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let is_tag = rest[start + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        if let Some(end) = rest[start..].find('>').filter(|_| is_tag) {
            plain.push_str(&rest[..start]);
            rest = &rest[start + end + 1..];
        } else {
            plain.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
        }
    }
    plain.push_str(rest);
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    let plain = entities.into_iter().fold(plain, |text, (entity, character)| text.replace(entity, character));
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod search_tests;
