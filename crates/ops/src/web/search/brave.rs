//! Brave Search.

use super::{SearchProvider, SearchResult, plain, read};
use crate::outside::http_client::{HttpRequest, HttpUrl};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

/// Brave Search.
pub struct Brave {
    endpoint: HttpUrl,
    key: HeaderValue,
}

impl Brave {
    /// The address of the service.
    pub const URL: &str = "https://api.search.brave.com/res/v1/web/search";

    /// Creates the provider.
    pub fn new(endpoint: HttpUrl, mut key: HeaderValue) -> Self {
        key.set_sensitive(true);
        Self { endpoint, key }
    }
}

#[derive(Deserialize)]
struct Answer {
    /// Missing if nothing was found.
    web: Option<Pages>,
}

#[derive(Deserialize)]
struct Pages {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    title: String,
    url: String,
    #[serde(default)]
    description: String,
}

impl SearchProvider for Brave {
    fn name(&self) -> &'static str {
        "Brave"
    }

    fn endpoint(&self) -> &HttpUrl {
        &self.endpoint
    }

    fn request(&self, query: &str, count: usize) -> HttpRequest {
        let url = self.endpoint.with_query([("q", query), ("count", &count.to_string())]);
        let fields = HeaderMap::from_iter([(HeaderName::from_static("x-subscription-token"), self.key.clone())]);
        HttpRequest { fields, ..HttpRequest::get(url) }
    }

    fn results(&self, body: &[u8]) -> Option<Vec<SearchResult>> {
        let answer: Answer = read(body)?;
        let result = |found: Found| SearchResult {
            title: plain(&found.title),
            url: found.url,
            snippet: plain(&found.description),
        };
        Some(answer.web.into_iter().flat_map(|pages| pages.results).map(result).collect())
    }
}
