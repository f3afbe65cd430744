//! The HTTP interface.

mod accounts;
mod approvals;
mod budget;
mod calls;
mod chats;
mod console;
mod content;
mod describe;
mod events;
mod files;
mod health;
pub(crate) mod host;
mod keys;
mod listing;
mod mcp;
mod members;
mod metrics;
mod openapi;
mod page;
mod processes;
mod query;
mod recording;
mod reply;
mod request;
mod routes;
mod rules;
mod secrets;
mod sign_in;
mod tool_backend;
mod tools;
mod workspace_metrics;
mod workspaces;

use crate::auth::{AttemptCounter, RefusedAddresses, SignInLink};
use crate::connection::{self, Connections};
use crate::runtime::Runtime;
use crate::settings::Settings;
use crate::tool_backend::ServedWorkspace;
use axum::body::Body;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use budget::Budget;
pub(crate) use budget::Scope;
use futures_util::FutureExt;
use host::{HostRules, ListedOrigin};
use http::{HeaderName, HeaderValue, Request, StatusCode, header};
pub(crate) use mcp::McpState;
use reply::Failure;
use request::{KeyAction, Peer};
use routes::{Route, routes};
use std::{
    net::{IpAddr, SocketAddr},
    ops::Deref,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};
use toolrest_core::{ErrorKind, FairQueue, QueueLimits, Result, ToolError};
use toolrest_ops::outside::AddressRange;
use tower::ServiceExt;
use tracing::Instrument;
use uuid::Uuid;

/// The state that all handlers share.
pub(crate) struct App {
    /// What tool calls need. The state derefs to it.
    pub(crate) runtime: Arc<Runtime>,
    /// The sign-in link of `serve --dir`.
    pub(crate) sign_in_link: SignInLink,
    /// Addresses over the limit of sign-ins, and of registrations.
    pub(crate) refused_sign_ins: RefusedAddresses,
    pub(crate) refused_registrations: RefusedAddresses,
    /// Sign-in attempts while the disk of the database is full.
    pub(crate) attempts: AttemptCounter,
    /// The budget for bytes of requests and answers.
    pub(crate) budget: Budget,
    /// The open connections.
    pub(crate) connections: Arc<Connections>,
    /// The workspace of the listener of specification 003.
    pub(crate) served_workspace: ServedWorkspace,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub(crate) proxies: Vec<AddressRange>,
    /// Becomes true when the server stops, so that event streams end.
    pub(crate) stopping: tokio::sync::watch::Sender<bool>,
    /// The queue that limits open event streams.
    pub(crate) event_streams: FairQueue,
    /// What the routes of the Model Context Protocol share.
    pub(crate) mcp: McpState,
    /// The OpenAPI description, made when it is first asked for.
    pub(crate) openapi: std::sync::OnceLock<axum::body::Bytes>,
}

impl App {
    pub(crate) fn new(runtime: Arc<Runtime>) -> Self {
        let settings = &runtime.settings;
        let event_streams = FairQueue::new(QueueLimits {
            in_all: usize::MAX,
            per_account: settings.quotas.event_streams_per_account,
            per_workspace: usize::MAX,
        });
        // Half of the descriptors are kept for files and the database.
        let limit = connection::open_files_limit().map_or(usize::MAX, |files| files / 2);
        Self {
            connections: Connections::new(settings.limits.connections.min(limit)),
            sign_in_link: SignInLink::default(),
            refused_sign_ins: RefusedAddresses::default(),
            refused_registrations: RefusedAddresses::default(),
            attempts: AttemptCounter::default(),
            budget: Budget::new(
                settings.limits.in_flight_bytes,
                settings.limits.body_bytes.max(settings.limits.response_bytes),
            ),
            served_workspace: ServedWorkspace::default(),
            // The settings were checked when they were read.
            proxies: settings.server.trusted_proxies.iter().filter_map(|range| range.parse().ok()).collect(),
            stopping: tokio::sync::watch::Sender::new(false),
            event_streams,
            mcp: McpState::default(),
            openapi: std::sync::OnceLock::new(),
            runtime,
        }
    }
}

impl Deref for App {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

/// What is served at one of the server's addresses.
pub(crate) struct Site {
    router: Router,
    /// The hosts and origins that requests may name.
    host_rules: HostRules,
    /// The toolset whose format all errors have. Without one, the path decides.
    toolset: Option<&'static str>,
}

impl Site {
    /// The whole interface, at an address.
    pub(crate) fn main(app: &Arc<App>, address: SocketAddr) -> Arc<Self> {
        let host_rules = HostRules::new(&app.settings, address);
        Arc::new(Self { router: router(Arc::clone(app)), host_rules, toolset: None })
    }

    /// The listener of specification 003, at an address.
    pub(crate) fn tool_backend(app: &Arc<App>, address: SocketAddr) -> Arc<Self> {
        let host_rules = HostRules::new(&app.settings, address);
        let host_rules = if app.settings.tool_backend.require_token { host_rules } else { host_rules.loopback_only() };
        let router = tool_backend::router(Arc::clone(app));
        Arc::new(Self { router, host_rules, toolset: Some("backend") })
    }
}

/// Builds the router from the table of routes.
fn router(app: Arc<App>) -> Router {
    let handler = |route: Route| {
        let handler = route.handler.layer(Extension(KeyAction(route.key_action)));
        match route.change {
            Some(name) => handler.layer(from_fn_with_state((Arc::clone(&app), name), recording::record_change)),
            None => handler,
        }
    };
    routes()
        .into_iter()
        .fold(console::routes(), |router, route| router.route(route.path, handler(route)))
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn no_route(request: axum::extract::Request) -> Failure {
    Failure(ToolError::new(ErrorKind::NotFound, format!("Nothing is served at {}", request.uri().path())))
}

async fn wrong_method(request: axum::extract::Request) -> Response {
    let message = format!("{} is not served at {}", request.method(), request.uri().path());
    let mut response = Failure(ToolError::new(ErrorKind::InvalidArgument, message)).into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

/// Time that a request may take longer than its call, for receiving the body.
const MARGIN: Duration = Duration::from_secs(30);

static RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers one request, also after a panic or a timeout, and logs it once.
pub(crate) async fn answer(app: &App, site: &Site, mut request: Request<Body>, peer: IpAddr) -> Response {
    let begun = Instant::now();
    let id = request_id(&request);
    let peer = Peer::of(request.headers(), peer, &app.proxies);
    let scope = Scope::from_address(&peer.0);
    request.extensions_mut().insert(peer);
    request.extensions_mut().insert(scope.clone());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let correlation = tools::correlation_of(request.headers());
    let echoed = correlation.clone().filter(|_| site.toolset.is_some());
    let span = tracing::info_span!("request", request.id = id.to_str().unwrap_or_default());
    let names = site.host_rules.check(&request);
    let origin = names.as_ref().ok().is_some_and(Option::is_some);
    let preflight = if origin { ListedOrigin::preflight(&request) } else { None };
    let names = names.and_then(|origin| host::check_cookie_use(&request).map(|()| origin));
    let answered = match (&names, preflight) {
        (Err(error), _) => Err(error.clone()),
        (Ok(_), Some(preflight)) => Ok(preflight),
        (Ok(_), None) => routed(app, site.router.clone(), request).instrument(span.clone()).await,
    };
    scope.release();
    let answered = match answered {
        Ok(response) => charged(app, &scope, response).await,
        refused => refused,
    };
    let refusal = |error| {
        span.in_scope(|| match site.toolset {
            Some(toolset) => tools::refusal_of(app, toolset, correlation, &error),
            None => tools::refusal_at(app, &path, correlation, &error),
        })
    };
    let mut response = answered.unwrap_or_else(refusal);
    if let Ok(Some(origin)) = names {
        origin.allow_reading(response.headers_mut());
    }
    if let Some(correlation) = echoed {
        tools::echo_correlation(&mut response, correlation);
    }
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID.clone(), id);
    // Pages of other sites must not load an answer as a script or an image.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(RESOURCE_POLICY.clone(), HeaderValue::from_static("same-origin"));
    span.in_scope(|| {
        let duration_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let correlation = tools::correlation_of(response.headers());
        let status = response.status().as_u16();
        tracing::info!(%method, path, status, duration_us, correlation.id = correlation, "answered");
    });
    response
}

/// Counts an answer against the caller's budget until it was sent.
async fn charged(app: &App, scope: &Scope, response: Response) -> Result<Response> {
    let (parts, body) = response.into_parts();
    Ok(Response::from_parts(parts, app.budget.charge(&scope.caller(), body).await?))
}

/// Passes a request to its route. A panic and a timeout become errors.
async fn routed(app: &App, router: Router, request: Request<Body>) -> Result<Response> {
    query::check(&request)?;
    let what = format!("{} {}", request.method(), request.uri().path());
    let work = AssertUnwindSafe(router.oneshot(request)).catch_unwind();
    // Tool calls have a deadline of their own; this one is for all other requests.
    let Settings { limits, run, .. } = &app.settings;
    let deadline = Duration::from_millis(limits.call_timeout_ms + run.max_timeout_ms) + MARGIN;
    match tokio::time::timeout(deadline, work).await {
        Ok(Ok(Ok(response))) => Ok(response),
        Ok(Ok(Err(never))) => match never {},
        Ok(Err(_)) => Err(ToolError::internal(format!("panic while answering {what}"))),
        Err(_) => Err(ToolError::new(ErrorKind::Timeout, "The request took too long")),
    }
}

/// Returns the caller's `X-Request-Id` if it is valid and short, otherwise a new id.
fn request_id(request: &Request<Body>) -> HeaderValue {
    const MAX_BYTES: usize = 128;
    let given = request.headers().get(&REQUEST_ID).filter(|id| id.len() <= MAX_BYTES && id.to_str().is_ok());
    let fresh = || HeaderValue::try_from(Uuid::now_v7().to_string()).unwrap_or(HeaderValue::from_static("none"));
    given.cloned().unwrap_or_else(fresh)
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod http_tests;
