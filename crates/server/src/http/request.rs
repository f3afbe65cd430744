//! Extractors: the caller, workspace, path, query and body of a request.

use super::App;
use super::budget::{Budget, Scope};
use super::reply::Failure;
use crate::auth::AgentKeys;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use http::{HeaderMap, header, request::Parts};
use http_body_util::BodyExt;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    marker::PhantomData,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use toolrest_core::{
    Access, Action, CallCx, Caller, ErrorKind, Page, RecordHandle, Result, Role, ToolError, WorkspaceId, WsPath, bind,
    without_position,
};
use toolrest_ops::outside::AddressRange;

/// The address that a request comes from.
#[derive(Clone)]
pub(crate) struct Peer(pub(crate) String);

impl Peer {
    /// Returns the peer of the connection or, if that is a trusted proxy, the caller that it names.
    ///
    /// Each proxy appends the address of its client to `X-Forwarded-For`. The last address that is not a trusted proxy's
    /// is the caller; the caller may have forged the entries before it.
    pub(crate) fn of(headers: &HeaderMap, peer: IpAddr, proxies: &[AddressRange]) -> Self {
        let is_proxy = |address: IpAddr| proxies.iter().any(|range| range.contains(address.to_canonical()));
        let mut caller = peer;
        let hops = headers.get_all("x-forwarded-for").iter().rev();
        let hops = hops.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
        for hop in hops {
            if !is_proxy(caller) {
                break;
            }
            let Ok(address) = hop.trim().parse() else { break };
            caller = address;
        }
        Self(match caller.to_canonical() {
            // A network gives its users whole /64 prefixes, so a prefix counts as one address.
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).to_string(),
            v4 @ IpAddr::V4(_) => v4.to_string(),
        })
    }
}

/// Returns the access token of a request, from the Authorization header or else the cookie.
pub(crate) fn access_token(headers: &HeaderMap) -> Option<&str> {
    bearer(headers).or_else(|| cookie(headers, "access_token"))
}

/// Returns the token of the Authorization header.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the cookie of that name.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|value| value.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Returns the caller of a request: a person with an access token, or an agent key.
pub(crate) fn caller(app: &App, headers: &HeaderMap, extensions: &http::Extensions) -> Result<Caller> {
    let caller = caller_of_token(app, access_token(headers))?;
    if let Some(key) = caller.key {
        app.key_uses.note(key);
    }
    scope(extensions).set_user(caller.user);
    Ok(caller)
}

/// Returns the caller that a token stands for: an access token of a person, or the secret of an agent key.
pub(crate) fn caller_of_token(app: &App, token: Option<&str>) -> Result<Caller> {
    match token.filter(|token| AgentKeys::is_secret(token)) {
        Some(secret) => app.agent_keys.check(secret, app.engine.toolsets()),
        None => app.tokens.check(token),
    }
}

/// The action that an agent key needs for a route. Routes without one are for persons only.
#[derive(Clone, Copy)]
pub(crate) struct KeyAction(pub(crate) Option<Action>);

/// Refuses a key that may not use the route.
fn check_route(caller: Caller, parts: &Parts) -> Result<()> {
    let Some(key) = caller.key else { return Ok(()) };
    if let Some(KeyAction(Some(action))) = parts.extensions.get() {
        return key.check_action(*action);
    }
    let message = "An agent key cannot use this route; only a person can, with an access token";
    Err(ToolError::new(ErrorKind::Forbidden, message))
}

/// A caller with a valid token: a person, or a key that may use the route.
pub(crate) struct SignedIn(pub(crate) Caller);

impl FromRequestParts<Arc<App>> for SignedIn {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        let caller = caller(app, &parts.headers, &parts.extensions)?;
        check_route(caller, parts)?;
        Ok(Self(caller))
    }
}

/// A request by a signed-in caller for a workspace. The membership is not checked yet.
pub(crate) struct WorkspaceRequest {
    pub(crate) caller: Caller,
    pub(crate) workspace: WorkspaceId,
    names: HashMap<String, String>,
    /// The record of a change.
    record: Option<RecordHandle>,
}

impl WorkspaceRequest {
    /// Returns the access that the store checks: this caller, this workspace, this role.
    pub(crate) fn access(&self, need: Role) -> Access {
        self.caller.access(self.workspace, need)
    }

    /// Returns an id of the route. A text that is not an id is answered like the id of nothing: not found.
    pub(crate) async fn id<T: FromStr>(&self, app: &App, name: &str) -> Result<T> {
        let text = self.names.get(name).map(String::as_str).unwrap_or_default();
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        self.refuse(app, ToolError::new(ErrorKind::NotFound, format!("There is no {name} '{text}'"))).await
    }

    /// Returns a name in the route.
    pub(crate) fn name(&self, name: &str) -> &str {
        self.names.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Returns the file path at the end of the route.
    pub(crate) async fn file_path(&self, app: &App) -> Result<WsPath> {
        match WsPath::within(self.names.get("path").map(String::as_str).unwrap_or_default()) {
            Ok(path) => Ok(path),
            Err(error) => self.refuse(app, error).await,
        }
    }

    /// Reads the body, for members only.
    pub(crate) async fn json<T: DeserializeOwned>(&self, app: &App, unread: Unread<T>) -> Result<T> {
        let request = for_member(app, self.workspace, self.caller, unread.request).await?;
        let body = body(request, app, app.settings.limits.body_bytes).await?;
        self.record_args(std::str::from_utf8(&body).ok());
        parse(&body)
    }

    /// Records the ids of the route, with the body if there is one, as the arguments of a change.
    fn record_args(&self, body: Option<&str>) {
        let Some(record) = &self.record else { return };
        let route = self.names.iter().filter(|(name, _)| *name != "workspace").collect::<BTreeMap<_, _>>();
        // Names and values are strings, which always serialise.
        let route = serde_json::to_string(&route).unwrap_or_default();
        record.set_args(&[Some(route.as_str()), body].into_iter().flatten().collect::<Vec<_>>());
    }

    /// Creates the context of a change.
    pub(crate) async fn change_context(&self, app: &App, name: &'static str, need: Role) -> Result<CallCx> {
        match &self.record {
            Some(record) => app.engine.rest_change_context(name, self.workspace, self.caller, need, record).await,
            None => app.engine.rest_context(name, self.workspace, self.caller, need).await,
        }
    }

    /// Reads the body, or returns the default if there is none.
    pub(crate) async fn json_if_any<T: DeserializeOwned + Default>(&self, app: &App, unread: Unread<T>) -> Result<T> {
        if hyper::body::Body::is_end_stream(unread.request.body()) {
            Ok(T::default())
        } else {
            self.json(app, unread).await
        }
    }

    /// Returns the page of a list that the query asks for.
    pub(crate) async fn page<T: FromStr>(&self, app: &App, query: &HashMap<String, String>) -> Result<Page<T>> {
        match page(query) {
            Ok(page) => Ok(page),
            Err(error) => self.refuse(app, error).await,
        }
    }

    /// Returns the error for members, or the refusal of membership for others.
    pub(crate) async fn refuse<T>(&self, app: &App, error: ToolError) -> Result<T> {
        Err(app.engine.error_for_members(self.workspace, self.caller, error).await)
    }
}

impl FromRequestParts<Arc<App>> for WorkspaceRequest {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        let caller = caller(app, &parts.headers, &parts.extensions)?;
        let Path(names): Path<HashMap<String, String>> =
            Path::from_request_parts(parts, app).await.map_err(|error| bad_request(error.body_text()))?;
        let workspace = workspace_id(names.get("workspace").map(String::as_str).unwrap_or_default())?;
        let record = parts.extensions.get::<RecordHandle>().cloned();
        let target = Self { caller, workspace, names, record };
        target.record_args(None);
        match check_route(caller, parts) {
            Ok(()) => Ok(target),
            // A key that is not a member, for example of another workspace, gets the answer of strangers.
            Err(error) => Err(app.engine.error_for_members(workspace, caller, error).await.into()),
        }
    }
}

/// Parses the id of a workspace.
pub(crate) fn workspace_id(text: &str) -> Result<WorkspaceId> {
    text.parse().map_err(|_| ToolError::argument("id", format!("'{text}' is not a workspace id; it must be a UUID")))
}

/// Parses the query `?before=…&limit=…`.
fn page<T: FromStr>(query: &HashMap<String, String>) -> Result<Page<T>> {
    const DEFAULT: u32 = 1_000;
    const MAX: u32 = 10_000;
    let bad = |name: &str, text: &str| ToolError::argument(name, format!("'{text}' is not a valid `{name}`"));
    let before = query.get("before").map(|text| text.parse().map_err(|_| bad("before", text))).transpose()?;
    let limit = match query.get("limit") {
        None => DEFAULT,
        Some(text) => text.parse().ok().filter(|limit| (1..=MAX).contains(limit)).ok_or_else(|| bad("limit", text))?,
    };
    Ok(Page { before, limit })
}

/// Maximum size of bodies outside of workspaces, and of bodies of callers who are not signed in.
pub(crate) const SMALL_BYTES: usize = 64 << 10;

/// A small JSON body.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Failure> {
        Ok(Self(json(request, app, app.settings.limits.body_bytes.min(SMALL_BYTES)).await?))
    }
}

/// A request whose body, a `T`, is read after the caller was checked.
pub(crate) struct Unread<T> {
    pub(crate) request: Request,
    body: PhantomData<fn() -> T>,
}

impl<T> FromRequest<Arc<App>> for Unread<T> {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self { request, body: PhantomData })
    }
}

/// Returns the scope of a request.
pub(crate) fn scope(extensions: &http::Extensions) -> Scope {
    extensions.get::<Scope>().cloned().unwrap_or_default()
}

/// Returns the request if its caller is a member of the workspace. Otherwise discards the body and fails.
pub(crate) async fn for_member(app: &App, workspace: WorkspaceId, caller: Caller, request: Request) -> Result<Request> {
    match app.engine.authorise(workspace, caller).await {
        Ok(()) => Ok(request),
        Err(error) => {
            discard(request).await;
            Err(error)
        }
    }
}

/// Reads the JSON body of a request to a workspace, for members only. It is not recorded.
pub(crate) async fn body_for_member<T: DeserializeOwned>(
    app: &App,
    target: &WorkspaceRequest,
    request: Request,
) -> Result<T> {
    let request = for_member(app, target.workspace, target.caller, request).await?;
    json(request, app, app.settings.limits.body_bytes.min(2 * SMALL_BYTES)).await
}

/// Whether a body may be larger than [`SMALL_BYTES`]: by its announced length, or because it has none.
pub(crate) fn may_be_long(request: &Request) -> bool {
    let size = hyper::body::Body::size_hint(request.body());
    size.upper().is_none_or(|most| most > SMALL_BYTES as u64)
}

/// Maximum time for discarding a body.
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// Reads a body and drops it, because many clients read the answer only after they have sent the body. A client that
/// sends `Expect: 100-continue` has not sent it yet, so nothing is read.
async fn discard(request: Request) {
    if request.headers().contains_key(header::EXPECT) {
        return;
    }
    let mut body = request.into_body();
    let read = async {
        let mut total = 0;
        while let Some(Ok(frame)) = body.frame().await {
            total += frame.data_ref().map_or(0, Bytes::len);
            if total > DRAINED_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIME, read).await;
}

/// Reads a JSON body within the limits.
pub(crate) async fn json<T: DeserializeOwned>(request: Request, app: &App, limit_bytes: usize) -> Result<T> {
    parse(&body(request, app, limit_bytes).await?)
}

/// Reads the bytes of a JSON body within the limits.
pub(crate) async fn body(request: Request, app: &App, limit_bytes: usize) -> Result<Vec<u8>> {
    if !is_json(request.headers()) {
        let message = "The body must be JSON; send the header Content-Type: application/json";
        return Err(ToolError::new(ErrorKind::UnsupportedMediaType, message));
    }
    let timeout = Duration::from_millis(app.settings.limits.call_timeout_ms);
    let scope = scope(request.extensions());
    let window = STEADY_WINDOW.min(timeout / 2);
    let body = collect(request.into_body(), limit_bytes, window, &app.budget, &scope);
    let late = |_| ToolError::new(ErrorKind::Timeout, "The body did not arrive in time");
    tokio::time::timeout(timeout, body).await.map_err(late)?
}

/// Parses a JSON body, which must be an object.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    if body.trim_ascii_start().first() != Some(&b'{') && serde_json::from_slice::<IgnoredAny>(body).is_ok() {
        return Err(ToolError::new(ErrorKind::InvalidArgument, "The body must be a JSON object"));
    }
    match serde_json::from_slice(body) {
        Ok(read) => Ok(read),
        // Parses again, to distinguish invalid JSON from JSON of the wrong type.
        Err(_) => bind(&serde_json::from_slice(body).map_err(|error| not_json(&error))?),
    }
}

fn not_json(error: &serde_json::Error) -> ToolError {
    let (message, line, column) = (without_position(&error.to_string()), error.line(), error.column());
    bad_request(format!("The body is not valid JSON: {message} (line {line}, column {column} of the body)"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || (media.starts_with("application/") && media.ends_with("+json"))
}

/// Size up to which a body over the limit is still read.
const DRAINED_BYTES: usize = 64 << 20;

/// In each window of this time, [`STEADY_BYTES`] of a body must arrive, or its end.
const STEADY_WINDOW: Duration = Duration::from_secs(15);
const STEADY_BYTES: usize = 64 << 10;

/// Reads a body into memory, in room that the request holds until it is answered. A body over the limit is read up to
/// [`DRAINED_BYTES`], so that the client reads the answer. A body that arrives too slowly is refused, because it holds
/// room that others need.
async fn collect(mut body: Body, limit: usize, window: Duration, budget: &Budget, scope: &Scope) -> Result<Vec<u8>> {
    let announced = hyper::body::Body::size_hint(&body).exact().and_then(|size| usize::try_from(size).ok());
    let announced = announced.map(|size| size.min(limit));
    let mut room = budget.body_room(&scope.caller(), announced).await?;
    let mut bytes = Vec::with_capacity(announced.unwrap_or(SMALL_BYTES).min(limit));
    let mut total = 0_usize;
    let (mut window_end, mut wanted) = (Instant::now() + window, STEADY_BYTES);
    loop {
        let frame = tokio::time::timeout_at(window_end, body.frame()).await;
        let frame = frame.map_err(|_| too_slow(window))?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| bad_request(format!("The body could not be read: {error}")))?;
        let Some(data) = frame.data_ref() else { continue };
        total = total.saturating_add(data.len());
        if total <= limit {
            let before = Instant::now();
            room.grow(total).await?;
            // The wait for room does not count against the sender.
            window_end += before.elapsed();
            bytes.extend_from_slice(data);
        } else if total > limit.saturating_mul(4).max(DRAINED_BYTES) {
            break;
        } else {
            bytes = Vec::new();
        }
        if total >= wanted {
            (window_end, wanted) = (Instant::now() + window, total.saturating_add(STEADY_BYTES));
        }
    }
    scope.hold(room.into_held());
    if total > limit {
        let message = format!("The body is over the limit of {limit} bytes");
        return Err(ToolError::new(ErrorKind::PayloadTooLarge, message));
    }
    Ok(bytes)
}

fn too_slow(window: Duration) -> ToolError {
    let message = format!(
        "The body arrives too slowly: {STEADY_BYTES} bytes, or its end, must arrive every {} seconds",
        window.as_secs_f64()
    );
    ToolError::new(ErrorKind::Timeout, message)
}

fn bad_request(message: String) -> ToolError {
    ToolError::new(ErrorKind::InvalidArgument, message)
}

/// Returns a text without spaces at its ends; refuses one that is empty, too long or has control characters.
pub(crate) fn single_line(name: &str, text: &str, max_chars: usize) -> Result<String> {
    let text = text.trim();
    let count = text.chars().count();
    if count == 0 || count > max_chars {
        return Err(ToolError::argument(name, format!("`{name}` must have 1 to {max_chars} characters, not {count}")));
    }
    if text.chars().any(char::is_control) {
        return Err(ToolError::argument(name, format!("`{name}` must not have control characters")));
    }
    Ok(text.to_owned())
}
