//! The HTTP interface.

mod accounts;
mod budget;
mod chats;
mod content;
mod events;
mod files;
mod health;
pub(crate) mod host;
mod members;
mod query;
mod reply;
mod request;
mod tools;
mod workspaces;

use crate::auth::{AccessTokens, Limited, Passwords};
use crate::settings::Settings;
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
pub(crate) use budget::Budget;
use budget::Scope;
use futures_util::FutureExt;
use host::{ListedOrigin, Names};
use http::{HeaderName, HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use reply::Failure;
use request::Peer;
use std::{
    net::IpAddr,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};
use toolrest_core::{Engine, ErrorKind, FairQueue, Result, ToolError};
use toolrest_ops::exec::Processes;
use toolrest_ops::outside::AddressRange;
use toolrest_store::Store;
use toolrest_workspaces::StoredWorkspaces;
use tower::ServiceExt;
use tracing::Instrument;
use uuid::Uuid;

/// What every handler works with.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workspaces: Arc<StoredWorkspaces>,
    pub(crate) tokens: AccessTokens,
    pub(crate) passwords: Passwords,
    /// Addresses that tried to sign in, or to register, too often.
    pub(crate) limited_sign_ins: Limited,
    pub(crate) limited_registrations: Limited,
    /// Room for the bytes of requests and answers.
    pub(crate) budget: Budget,
    /// Which hosts and origins requests may name.
    pub(crate) names: Names,
    /// Proxies whose word for a caller's address is taken.
    pub(crate) proxies: Vec<AddressRange>,
    pub(crate) settings: Settings,
    /// Programs in the background.
    pub(crate) processes: Arc<Processes>,
    /// Told when the server stops, so that connections end that would stay open for ever.
    pub(crate) stopping: tokio::sync::watch::Sender<bool>,
    /// The streams of events that are open.
    pub(crate) event_streams: FairQueue,
}

/// All routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    let workspace = Router::new()
        .route("/", get(workspaces::show).patch(workspaces::change).delete(workspaces::remove))
        .route("/tools", post(tools::call_workspace))
        .route("/toolsets/{toolset}", post(tools::call))
        .route("/members", get(members::list).post(members::add))
        .route("/members/{user}", delete(members::remove).patch(members::set_role))
        .route("/content/{*path}", get(content::download))
        .route("/events", get(events::listen))
        .route("/files/{file}", get(files::show))
        .route("/files/{file}/versions", get(files::versions))
        .route("/files/{file}/versions/{version}", get(files::version))
        .route("/files/{file}/restore", post(files::restore))
        .route("/trash", get(files::trash))
        .route("/commits", get(files::commits))
        .route("/commits/{commit}/diff", get(files::diff))
        .route("/commits/{commit}/undo", post(files::undo))
        .route("/calls", get(files::calls))
        .route("/chats", post(chats::create))
        .route("/chats/{chat}", get(chats::show))
        .route("/chats/{chat}/messages", post(chats::add_message));
    let api = Router::new()
        .route("/health", get(health::live))
        .route("/auth/register", post(accounts::register))
        .route("/auth/login", post(accounts::login))
        .route("/auth/refresh", post(accounts::refresh))
        .route("/auth/logout", post(accounts::logout))
        .route("/auth/me", get(accounts::me))
        .route("/workspaces", get(workspaces::list).post(workspaces::create))
        .nest("/workspaces/{workspace}", workspace)
        .route("/toolsets", get(tools::toolsets))
        .route("/toolsets/{toolset}", get(tools::catalogue));
    Router::new()
        .route("/health", get(health::live))
        .route("/ready", get(health::ready))
        .nest("/api/v1", api)
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

/// How much longer than a call a whole request may take, body included.
const MARGIN: Duration = Duration::from_secs(30);

static RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers one request, whatever happens, and logs it once.
pub(crate) async fn answer(app: &App, router: Router, request: Request<Incoming>, peer: IpAddr) -> Response {
    let begun = Instant::now();
    let mut request = request.map(Body::new);
    let id = request_id(&request);
    let peer = Peer::of(request.headers(), peer, &app.proxies);
    let scope = Scope::from_address(&peer.0);
    request.extensions_mut().insert(peer);
    request.extensions_mut().insert(scope.clone());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let correlation = tools::correlation_of(request.headers());
    let span = tracing::info_span!("request", request.id = id.to_str().unwrap_or_default());
    let names = app.names.check(&request);
    let origin = names.as_ref().ok().is_some_and(Option::is_some);
    let preflight = if origin { ListedOrigin::preflight(&request) } else { None };
    let answered = match (&names, preflight) {
        (Err(error), _) => Err(error.clone()),
        (Ok(_), Some(preflight)) => Ok(preflight),
        (Ok(_), None) => routed(app, router, request).instrument(span.clone()).await,
    };
    scope.release();
    let answered = match answered {
        Ok(response) => charged(app, &scope, response).await,
        refused => refused,
    };
    let mut response = answered.unwrap_or_else(|error| tools::refusal_at(app, &path, correlation, &error));
    if let Ok(Some(origin)) = names {
        origin.admit(response.headers_mut());
    }
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID.clone(), id);
    // No page of another site may take an answer for a script or an image.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(RESOURCE_POLICY.clone(), HeaderValue::from_static("same-origin"));
    span.in_scope(|| {
        let duration_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::info!(%method, path, status = response.status().as_u16(), duration_us, "answered");
    });
    response
}

/// Counts an answer until it was sent.
async fn charged(app: &App, scope: &Scope, response: Response) -> Result<Response> {
    let (parts, body) = response.into_parts();
    Ok(Response::from_parts(parts, app.budget.charge(&scope.caller(), body).await?))
}

/// Has a request answered by its route. A panic and a request that takes too long are errors.
async fn routed(app: &App, router: Router, request: Request<Body>) -> Result<Response> {
    query::check(&request)?;
    let what = format!("{} {}", request.method(), request.uri().path());
    let work = AssertUnwindSafe(router.oneshot(request)).catch_unwind();
    // Calls of tools have their own deadline, and their own way to say so; this is for everything beside them.
    let Settings { limits, run, .. } = &app.settings;
    let deadline = Duration::from_millis(limits.call_timeout_ms + run.max_timeout_ms) + MARGIN;
    match tokio::time::timeout(deadline, work).await {
        Ok(Ok(Ok(response))) => Ok(response),
        Ok(Ok(Err(never))) => match never {},
        Ok(Err(_)) => Err(ToolError::internal(format!("panic while answering {what}"))),
        Err(_) => Err(ToolError::new(ErrorKind::Timeout, "The request took too long")),
    }
}

/// The caller's own id for the request, if it is fit to be logged; a new one otherwise.
fn request_id(request: &Request<Body>) -> HeaderValue {
    const MOST_BYTES: usize = 128;
    let given = request.headers().get(&REQUEST_ID).filter(|id| id.len() <= MOST_BYTES && id.to_str().is_ok());
    let fresh = || HeaderValue::try_from(Uuid::now_v7().to_string()).unwrap_or(HeaderValue::from_static("none"));
    given.cloned().unwrap_or_else(fresh)
}
