//! The web console: one page, which shows what the address says, and its files.

use super::reply::{Answer, Failure};
use super::{App, no_route};
use crate::auth::fresh_token;
use axum::Router;
use axum::extract::{Path, Request};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Arc;

/// A file of the console. Its name contains a hash of its content.
struct Asset {
    name: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

// `PAGE` and `ASSETS`, made by build.rs.
include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// The place in the page where the nonce of its style sheets is put. The editor adds style sheets at run time.
const NONCE_PLACE: &str = "__NONCE__";

/// The paths of the page. The console reads the rest from the address.
const PAGES: [&str; 6] = ["/", "/login", "/register", "/welcome", "/workspaces", "/w/{*page}"];

/// What a server shows that was built without the console.
const NOT_BUILT: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>Toolrest</title>
<h1>Toolrest is running</h1>
<p>This server was built without the web console. To build it, install Node.js (20.19 or later) with npm, and run in the
project's folder:</p>
<pre>make console
cargo build</pre>
<p><code>make run</code> does both. The <a href=\"/api/v1/toolsets\">HTTP interface</a> works without it.</p>
</html>
";

/// Whether a path is one of the console's pages, which take any query: it has the filters of a list, for example.
pub(crate) fn is_page(path: &str) -> bool {
    PAGES.contains(&path) || path.starts_with("/w/")
}

/// The routes of the console. Every other path is answered as before: a wrong path of the API stays an error.
pub(crate) fn routes() -> Router<Arc<App>> {
    let pages = PAGES.into_iter().fold(Router::new(), |router, path| router.route(path, get(page)));
    pages.route("/assets/{name}", get(asset))
}

/// Serves the page.
async fn page() -> Answer {
    let Some(page) = PAGE else {
        return Ok(with_policy(Html(NOT_BUILT).into_response(), "default-src 'none'; frame-ancestors 'none'"));
    };
    let nonce = fresh_token()?;
    // Scripts come from files of this server only. Pictures and frames of files in a workspace are made from data that
    // the page has read, so that no address of the API is ever shown as a document.
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' blob: data:; \
         font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Ok(with_policy(Html(page.replace(NONCE_PLACE, &nonce)).into_response(), &policy))
}

/// Adds the headers of a page.
fn with_policy(mut response: Response, policy: &str) -> Response {
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Serves a file of the page, in the best form that the browser accepts.
async fn asset(Path(name): Path<String>, headers: HeaderMap, request: Request) -> Result<Response, Failure> {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else { return Err(no_route(request).await) };
    let accepts = |encoding: &str| accepts(&headers, encoding);
    let (bytes, encoding) = match (asset.brotli, asset.gzip) {
        (Some(brotli), _) if accepts("br") => (brotli, Some("br")),
        (_, Some(gzip)) if accepts("gzip") => (gzip, Some("gzip")),
        _ => (asset.plain, None),
    };
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(asset.name)));
    // The name changes with the content.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    Ok(response)
}

/// Whether a request accepts an encoding.
fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|offer| {
        let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
        name.trim().eq_ignore_ascii_case(encoding) && !matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
#[path = "console_tests.rs"]
mod tests;
