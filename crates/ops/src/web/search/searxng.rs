//! SearXNG, which the operator runs. Its setting `search.formats` must contain `json`.

use super::{SearchProvider, SearchResult, plain, read};
use crate::outside::http_client::{HttpRequest, HttpUrl};
use serde::Deserialize;

/// An instance of SearXNG.
pub struct Searxng {
    endpoint: HttpUrl,
}

impl Searxng {
    /// Creates the provider for the instance at this address.
    pub fn new(base: &HttpUrl) -> Self {
        Self { endpoint: base.below(["search"]) }
    }
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    title: String,
    url: String,
    content: Option<String>,
}

impl SearchProvider for Searxng {
    fn name(&self) -> &'static str {
        "SearXNG"
    }

    fn endpoint(&self) -> &HttpUrl {
        &self.endpoint
    }

    fn request(&self, query: &str, _count: usize) -> HttpRequest {
        HttpRequest::get(self.endpoint.with_query([("q", query), ("format", "json")]))
    }

    fn results(&self, body: &[u8]) -> Option<Vec<SearchResult>> {
        let answer: Answer = read(body)?;
        let result = |found: Found| SearchResult {
            title: plain(&found.title),
            url: found.url,
            snippet: plain(&found.content.unwrap_or_default()),
        };
        Some(answer.results.into_iter().map(result).collect())
    }
}
