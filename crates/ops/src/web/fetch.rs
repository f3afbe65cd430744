//! Fetches an address.

use super::{LIMIT_SETTING, Web, bad_field, bad_url, markdown, text};
use crate::outside::http_client::{HttpRequest, HttpResponse, HttpUrl, caller_fields};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderValue, Method, header};
use std::collections::BTreeMap;
use std::time::Duration;
use toolrest_core::{CallCx, Result, ToolError};

/// What to fetch.
pub struct FetchRequest {
    /// The address.
    pub url: String,
    /// The method.
    pub method: Method,
    /// The fields of the head.
    pub fields: BTreeMap<String, String>,
    /// The content to send.
    pub body: Option<String>,
    /// The time that the caller grants.
    pub timeout: Option<Duration>,
    /// The form of the content that is returned.
    pub form: Body,
}

/// The form of a fetched content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// As it is.
    Raw,
    /// Pages of HTML as Markdown.
    Markdown,
}

/// What was fetched.
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// The fields of the head.
    pub fields: BTreeMap<String, String>,
    /// The content.
    pub body: FetchedBody,
    /// The address that answered, if it is another one than the caller's.
    pub redirected_to: Option<String>,
}

/// A fetched content.
pub enum FetchedBody {
    /// A text, as it is.
    Text(String),
    /// A page as Markdown.
    Markdown(String),
    /// Other content, in base64.
    Base64(String),
}

impl Web {
    /// Fetches an address. An answer with any status is a success.
    pub async fn fetch(&self, cx: &CallCx, request: FetchRequest) -> Result<Fetched> {
        let url = HttpUrl::parse(&request.url).map_err(|error| bad_url("url", &error))?;
        let given = request.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let fields = caller_fields(given).map_err(|error| bad_field("headers", &error))?;
        if request.method == Method::GET && request.body.is_some() {
            return Err(ToolError::argument("body", "`body` is only sent with the method POST"));
        }
        let _slot = self.enter(cx).await?;
        let sent = HttpRequest {
            method: request.method,
            url: url.clone(),
            fields: with_content_type(fields, request.body.as_deref()),
            body: request.body.unwrap_or_default().into(),
        };
        let response = self.get_judged(cx, sent, request.timeout).await?;
        let redirected_to = (response.url != url).then(|| response.url.to_string());
        let (status, fields) = (response.status.as_u16(), shown_fields(&response.fields));
        let body = body_of(cx, response, request.form).await?;
        Ok(Fetched { status, fields, body, redirected_to })
    }

    /// Sends a request, and follows the redirects that need no new decision of a person.
    pub(super) async fn get_judged(
        &self,
        cx: &CallCx,
        request: HttpRequest,
        timeout: Option<Duration>,
    ) -> Result<HttpResponse> {
        let (limits, request) = (self.limits(timeout), request.with_correlation(cx.correlation()));
        if self.options.respects_robots {
            self.robots.check(&self.client, &request.url, limits.deadline).await?;
        }
        let host = request.url.host_and_port();
        let may_follow = |target: &HttpUrl| {
            let next = target.host_and_port();
            next == host || cx.may_go_on_to(&next)
        };
        let response = self.client.send(request, limits, &may_follow).await;
        let response = response.map_err(|error| error.to_tool_error(Some("url"), LIMIT_SETTING))?;
        if let Some(target) = &response.not_followed {
            cx.warn(format!("The redirect to {target} was not followed; call the tool with that address"));
        }
        Ok(response)
    }
}

/// Names the type of a content that has none. It is JSON if it is that, otherwise plain text.
fn with_content_type(mut fields: HeaderMap, body: Option<&str>) -> HeaderMap {
    if let Some(body) = body
        && !fields.contains_key(header::CONTENT_TYPE)
    {
        let is_json = body.trim_start().starts_with(['{', '[']);
        let value = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(value));
    }
    fields
}

/// Returns fields as texts. The values of fields with the same name are joined.
fn shown_fields(fields: &HeaderMap) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::<String, String>::new();
    for (name, value) in fields {
        let value = String::from_utf8_lossy(value.as_bytes());
        shown
            .entry(name.as_str().to_owned())
            .and_modify(|known| {
                known.push_str(", ");
                known.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    shown
}

async fn body_of(cx: &CallCx, response: HttpResponse, form: Body) -> Result<FetchedBody> {
    let HttpResponse { fields, body, .. } = response;
    crate::heavy::run(cx, body.len(), move |_| {
        let Some(content) = text::decode(&fields, &body) else {
            return Ok(FetchedBody::Base64(BASE64_STANDARD.encode(&body)));
        };
        if form == Body::Markdown && text::is_html(&text::media_type(&fields), &content) {
            return markdown::from_html(&content).map(FetchedBody::Markdown);
        }
        Ok(FetchedBody::Text(content))
    })
    .await
}
