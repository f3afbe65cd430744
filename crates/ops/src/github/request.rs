//! Requests to the API, and what their failures mean.

use super::{GitHub, Session};
use crate::outside::http_client::{HttpError, HttpLimits, HttpRequest, HttpResponse, HttpUrl};
use crate::web::retry_after;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use toolrest_core::{ErrorKind, Result, ToolError};

/// The version of the API that is used.
const VERSION: &str = "2022-11-28";
/// What errors name as the limit of an answer.
const LIMIT_NAME: &str = "web.response_bytes";

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
    #[serde(default)]
    errors: Vec<Value>,
}

impl GitHub {
    /// Returns the address of a path of the API.
    pub(super) fn url<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> HttpUrl {
        self.options.api.below(segments)
    }

    /// Sends a request, and returns its answer if that is a success. `what` is what is not found if it is missing.
    pub(super) async fn send(
        &self,
        session: &Session,
        method: Method,
        url: &HttpUrl,
        content: Option<&Value>,
        what: &str,
    ) -> Result<HttpResponse> {
        let is_read = method == Method::GET;
        let response = self.exchange(session, method, url, content).await;
        let response = response.map_err(|error| {
            let failed = error.to_tool_error(None, LIMIT_NAME);
            // The request may have arrived.
            let is_unknown = !is_read && !matches!(error, HttpError::Connect(_) | HttpError::Tls(_));
            if is_unknown {
                failed.with_hint("Look at GitHub whether it was done before you repeat it")
            } else {
                failed
            }
        })?;
        if response.status.is_success() { Ok(response) } else { Err(failure(&response, what)) }
    }

    async fn exchange(
        &self,
        session: &Session,
        method: Method,
        url: &HttpUrl,
        content: Option<&Value>,
    ) -> Result<HttpResponse, HttpError> {
        let mut fields = HeaderMap::new();
        fields.insert(header::ACCEPT, HeaderValue::from_static("application/vnd.github+json"));
        fields.insert(HeaderName::from_static("x-github-api-version"), HeaderValue::from_static(VERSION));
        if let Ok(mut token) = HeaderValue::from_str(&format!("Bearer {}", session.token)) {
            token.set_sensitive(true);
            fields.insert(header::AUTHORIZATION, token);
        }
        let body = content.map(Value::to_string).unwrap_or_default();
        if content.is_some() {
            fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let limits =
            HttpLimits { deadline: Instant::now() + self.options.timeout, response_bytes: self.options.response_bytes };
        let request = HttpRequest { method, url: url.clone(), fields, body: body.into() };
        let request = request.with_correlation(&session.correlation);
        // A renamed repository redirects, within the API.
        let origin = self.options.api.origin();
        self.client.send(request, limits, &|next: &HttpUrl| next.origin() == origin).await
    }
}

/// Reads the content of an answer.
pub(super) fn read<T: DeserializeOwned>(response: &HttpResponse) -> Result<T> {
    serde_json::from_slice(&response.body).map_err(|error| {
        let message =
            format!("GitHub's answer cannot be read: {}", toolrest_core::without_position(&error.to_string()));
        ToolError::new(ErrorKind::NetworkError, message)
    })
}

/// Returns the address of the next page, if there is one. It must be of the API, because the token is sent to it.
pub(super) fn next_page(response: &HttpResponse, api: &HttpUrl) -> Option<HttpUrl> {
    let links = response.fields.get(header::LINK)?.to_str().ok()?;
    let next = links.split(',').find(|link| link.split(';').skip(1).any(|part| part.trim() == "rel=\"next\""))?;
    let address = next.split(';').next()?.trim().strip_prefix('<')?.strip_suffix('>')?;
    HttpUrl::parse(address).ok().filter(|url| url.origin() == api.origin())
}

/// Returns the error for an answer that is none.
fn failure(response: &HttpResponse, what: &str) -> ToolError {
    let said = reason(&response.body);
    let field = |name: &str| response.fields.get(name).and_then(|value| value.to_str().ok());
    let number = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
    let status = response.status.as_u16();
    let is_limited = number("x-ratelimit-remaining") == Some(0) || said.to_lowercase().contains("rate limit");
    if status == 429 || (status == 403 && (is_limited || response.fields.contains_key(header::RETRY_AFTER))) {
        let until_reset = || number("x-ratelimit-reset").map(|reset| reset.saturating_sub(now_seconds()).max(1));
        // GitHub asks to wait for a minute if it names no time.
        let seconds = retry_after(response).or_else(until_reset).unwrap_or(60).min(24 * 60 * 60);
        let message = format!("GitHub allows no more requests for {seconds} seconds{said}");
        return ToolError::new(ErrorKind::RateLimited, message).retry_after(seconds);
    }
    let (kind, message) = match status {
        401 => (ErrorKind::NotConfigured, format!("GitHub does not accept the access token{said}; set a valid one")),
        403 => (ErrorKind::Forbidden, format!("GitHub's access token may not do this{said}")),
        404 | 410 => (
            ErrorKind::NotFound,
            format!("GitHub has no {what}, or the access token may not see it{said}; check its name"),
        ),
        405 | 409 => (ErrorKind::Conflict, format!("GitHub refuses this in the present state of the {what}{said}")),
        422 => (ErrorKind::InvalidArgument, format!("GitHub does not accept the request for the {what}{said}")),
        300..=399 => (ErrorKind::NetworkError, "GitHub redirects to another host, which was not followed".to_owned()),
        500..=599 => (ErrorKind::NetworkError, format!("GitHub failed with the status {status}{said}; try again")),
        _ => (ErrorKind::NetworkError, format!("GitHub answered with the status {status}{said}")),
    };
    ToolError::new(kind, message).detail("status", status)
}

/// Returns what GitHub says about a failure, as the continuation of a sentence.
fn reason(body: &[u8]) -> String {
    let Ok(problem) = serde_json::from_slice::<Problem>(body) else { return String::new() };
    let text = |error: &Value| match error {
        Value::String(text) => text.clone(),
        error => {
            let part = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let message = part("message");
            if message.is_empty() { format!("{} {}", part("field"), part("code")).trim().to_owned() } else { message }
        }
    };
    let details: Vec<String> = problem.errors.iter().map(text).filter(|text| !text.is_empty()).take(5).collect();
    let all: Vec<String> = [problem.message].into_iter().filter(|text| !text.is_empty()).chain(details).collect();
    if all.is_empty() { String::new() } else { format!(": {}", all.join("; ").chars().take(500).collect::<String>()) }
}

fn now_seconds() -> u64 {
    u64::try_from(toolrest_core::now().as_second()).unwrap_or(0)
}
