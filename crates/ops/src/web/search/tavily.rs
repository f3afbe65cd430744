//! Tavily.

use super::{SearchProvider, SearchResult, plain, read};
use crate::outside::http_client::{HttpRequest, HttpUrl};
use http::{HeaderMap, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::json;

/// Tavily.
pub struct Tavily {
    endpoint: HttpUrl,
    authorization: HeaderValue,
}

impl Tavily {
    /// The address of the service.
    pub const URL: &str = "https://api.tavily.com/search";

    /// Creates the provider. `authorization` is the whole value of that field.
    pub fn new(endpoint: HttpUrl, mut authorization: HeaderValue) -> Self {
        authorization.set_sensitive(true);
        Self { endpoint, authorization }
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
    #[serde(default)]
    content: String,
}

impl SearchProvider for Tavily {
    fn name(&self) -> &'static str {
        "Tavily"
    }

    fn endpoint(&self) -> &HttpUrl {
        &self.endpoint
    }

    fn request(&self, query: &str, count: usize) -> HttpRequest {
        let fields = [
            (header::AUTHORIZATION, self.authorization.clone()),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ];
        HttpRequest {
            method: Method::POST,
            url: self.endpoint.clone(),
            fields: HeaderMap::from_iter(fields),
            body: json!({"query": query, "max_results": count}).to_string().into(),
        }
    }

    fn results(&self, body: &[u8]) -> Option<Vec<SearchResult>> {
        let answer: Answer = read(body)?;
        let result =
            |found: Found| SearchResult { title: plain(&found.title), url: found.url, snippet: plain(&found.content) };
        Some(answer.results.into_iter().map(result).collect())
    }
}
