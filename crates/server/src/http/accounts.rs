//! Registration, sign-in and sessions.

use super::App;
use super::reply::{Answer, Done, Failure, Reply, ok};
use super::request::{Peer, SMALL_BYTES, SignedIn, Unread, bearer, cookie, json, single_line};
use axum::Extension;
use axum::extract::State;
use axum::response::IntoResponse;
use http::{HeaderMap, HeaderValue, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use toolrest_core::{ErrorKind, Result, Timestamp, ToolError, now};
use toolrest_store::{Attempt, NewUser, Rotation, Session, StoreError, User, no_such_account};

use crate::accounts::{EMAIL_BYTES, PASSWORD_CHARS, check_email, check_password, normal_email};
use crate::auth::{account_disabled, fresh_token, token_hash, too_many_attempts};

const FULL_NAME_CHARS: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Registration {
    email: String,
    password: String,
    confirm_password: String,
    full_name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Credentials {
    email: String,
    password: String,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefreshBody {
    /// The refresh token, unless it is sent as cookie or as bearer.
    refresh_token: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionAnswer {
    user: User,
    access_token: String,
    /// None on a full disk.
    refresh_token: Option<String>,
    access_token_expires_at: Timestamp,
    refresh_token_expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'static str>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct UserAnswer {
    user: User,
}

/// Registrations are answered at multiples of this time, so that the duration does not reveal whether an account was
/// created.
const REGISTRATION_STEP: Duration = Duration::from_millis(100);

/// Registers an account. The answer is the same whether or not an account was created: the address may have one already,
/// or be reserved by the operator.
pub(crate) async fn register(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    unread: Unread<Registration>,
) -> Answer<Reply<Done>> {
    if !app.settings.auth.registration_open {
        let message = "Registration is closed on this server; ask its operator for an account";
        return Err(ToolError::new(ErrorKind::Forbidden, message).into());
    }
    app.refused_registrations.check(&peer.0)?;
    let body: Registration = json(unread.request, &app, SMALL_BYTES).await?;
    let email = check_email(&body.email)?;
    check_password(&body.password)?;
    if body.password != body.confirm_password {
        return Err(ToolError::argument("confirm_password", "Passwords do not match").into());
    }
    let full_name = body.full_name.map(|name| single_line("full_name", &name, FULL_NAME_CHARS)).transpose()?;
    let limit = app.settings.auth.registrations_per_address;
    let attempts = vec![Attempt { key: format!("registration:{}", peer.0), limit }];
    if let Some(wait) = app.store.count_attempts(attempts, window(&app)).await? {
        return Err(app.refused_registrations.refuse(&peer.0, wait).into());
    }
    let begun = Instant::now();
    let password_hash = app.passwords.hash(body.password).await?;
    let created = if is_reserved(&app, &email) {
        tracing::warn!(account = %email, "refused a registration: folders.account_roots lists the address");
        Ok(())
    } else {
        app.store.create_user(NewUser { email, password_hash, full_name }).await.map(drop)
    };
    let steps = begun.elapsed().as_millis() / REGISTRATION_STEP.as_millis() + 1;
    tokio::time::sleep_until((begun + REGISTRATION_STEP * u32::try_from(steps).unwrap_or(1)).into()).await;
    match created {
        Err(error) if !matches!(error, StoreError::EmailTaken(_)) => Err(error.into()),
        _ => ok(&Done {
            message: "The address can sign in now, unless the operator has reserved it. If it had an account before, that \
                        one and its password are unchanged",
        }),
    }
}

/// The warning for sign-ins while the disk is full.
const NO_SESSION: &str = "The server's disk is full, so there is no refresh token; sign in again when the access token \
                          has ended";

/// Whether only the operator may create an account for this address. Such an account can open folders, and registration
/// does not prove that the address belongs to the caller.
fn is_reserved(app: &App, email: &str) -> bool {
    app.settings.account_roots().any(|(account, _)| account == email)
}

/// Returns the window in which attempts are counted.
fn window(app: &App) -> Duration {
    Duration::from_secs(u64::from(app.settings.auth.attempts_window_minutes) * 60)
}

pub(crate) async fn login(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    unread: Unread<Credentials>,
) -> Answer<Reply<SessionAnswer>> {
    app.refused_sign_ins.check(&peer.0)?;
    let body: Credentials = json(unread.request, &app, SMALL_BYTES).await?;
    let email = normal_email(&body.email);
    if email.contains('\0') || email.len() > EMAIL_BYTES || body.password.chars().count() > *PASSWORD_CHARS.end() {
        return Err(wrong_credentials().into());
    }
    let attempts = count_attempts(&app, &email, &peer).await?;
    let known = app.store.credentials(&email).await?;
    let (user, hash) = known.map(|known| (known.user, known.password_hash)).unzip();
    let right = app.passwords.verify(body.password, hash).await?;
    let Some(user) = user.filter(|_| right) else { return Err(wrong_credentials().into()) };
    forgive_attempts(&app, attempts).await?;
    // Only who knows the password learns it.
    if user.disabled_at.is_some() {
        return Err(account_disabled().into());
    }
    let (session, token) = new_session(&app)?;
    let expires_at = session.expires_at;
    let session = match app.store.open_session(user.id, user.token_epoch, session).await {
        Ok(true) => Some(RefreshToken { token, expires_at }),
        Err(StoreError::StorageFull(_)) if is_unchanged(&app, &user).await? => None,
        // The operator came between: the password that was right may not be any more.
        Ok(false) => return Err(wrong_credentials().into()),
        Err(error) => return Err(error.into()),
    };
    signed_in(&app, user, session)
}

/// Whether the operator has neither disabled the account nor ended its sessions since `user` was read.
async fn is_unchanged(app: &App, user: &User) -> Result<bool> {
    let now = app.store.user(user.id).await?;
    Ok(now.is_some_and(|now| now.disabled_at.is_none() && now.token_epoch == user.token_epoch))
}

/// Counts a sign-in against its limits, before the password is checked. Returns the keys, which are uncounted if the
/// sign-in succeeds.
///
/// The limit of an account holds for each address; for all addresses together it is ten times as high, so that nobody
/// can lock the owner out by failing from elsewhere.
async fn count_attempts(app: &App, email: &str, peer: &Peer) -> Result<Vec<String>> {
    let limits = &app.settings.auth;
    let address = vec![Attempt { key: format!("address:{}", peer.0), limit: limits.attempts_per_address }];
    let account = vec![
        Attempt { key: format!("account:{email}:{}", peer.0), limit: limits.attempts_per_account },
        Attempt { key: format!("account:{email}"), limit: limits.attempts_per_account.saturating_mul(10) },
    ];
    let keys = address.iter().chain(&account).map(|attempt| attempt.key.clone()).collect();
    // The address comes first: an address over its limit must not count against the accounts that it tries.
    if let Some(wait) = count(app, address).await? {
        return Err(app.refused_sign_ins.refuse(&peer.0, wait));
    }
    match count(app, account).await? {
        Some(wait) => Err(too_many_attempts(wait)),
        None => Ok(keys),
    }
}

/// Counts attempts in the database, or in memory if the database's disk is full.
async fn count(app: &App, attempts: Vec<Attempt>) -> Result<Option<Duration>> {
    match app.store.count_attempts(attempts.clone(), window(app)).await {
        Err(StoreError::StorageFull(_)) => Ok(app.attempts.count(&attempts, window(app))),
        counted => Ok(counted?),
    }
}

async fn forgive_attempts(app: &App, keys: Vec<String>) -> Result<()> {
    app.attempts.forgive(&keys);
    match app.store.forgive_attempts(keys).await {
        Err(StoreError::StorageFull(_)) => Ok(()),
        forgiven => Ok(forgiven?),
    }
}

pub(crate) async fn refresh(State(app): State<Arc<App>>, unread: Unread<RefreshBody>) -> Answer<Reply<SessionAnswer>> {
    let presented = refresh_token(&app, unread).await?;
    let (session, token) = new_session(&app)?;
    let expires_at = session.expires_at;
    let (user, session) = match app.store.rotate_session(token_hash(&presented), session).await {
        Ok(Rotation::Rotated(user)) => (user, RefreshToken { token, expires_at }),
        Ok(Rotation::Reused) => {
            tracing::warn!("a spent refresh token was presented; its session was ended");
            let message = "This refresh token was used before; its session was ended for safety. Sign in again";
            return Err(ToolError::new(ErrorKind::Unauthenticated, message).into());
        }
        Ok(Rotation::Invalid) => return Err(invalid_refresh_token().into()),
        // The token cannot be marked as used, so it stays valid.
        Err(StoreError::StorageFull(_)) => {
            let found = app.store.session(token_hash(&presented)).await?;
            let (user, expires_at) = found.ok_or_else(invalid_refresh_token)?;
            (user, RefreshToken { token: presented, expires_at })
        }
        Err(error) => return Err(error.into()),
    };
    let user = app.store.user(user).await?.ok_or_else(invalid_refresh_token)?;
    signed_in(&app, user, Some(session))
}

pub(crate) async fn logout(State(app): State<Arc<App>>, unread: Unread<RefreshBody>) -> Answer<Reply<Done>> {
    let presented = refresh_token(&app, unread).await?;
    // Cookies of an invalid session are cleared too.
    let mut reply = ok(&Done { message: "Logout successful" })?;
    if !app.store.close_session(token_hash(&presented)).await? {
        reply.response = Failure(invalid_refresh_token()).into_response();
    }
    for name in ["access_token", "refresh_token"] {
        set_cookie(&app, reply.response.headers_mut(), name, "", 0)?;
    }
    Ok(reply)
}

pub(crate) async fn me(State(app): State<Arc<App>>, SignedIn(caller): SignedIn) -> Answer<Reply<UserAnswer>> {
    ok(&UserAnswer { user: app.store.user(caller.user).await?.ok_or_else(no_such_account)? })
}

fn new_session(app: &App) -> Result<(Session, String)> {
    let token = fresh_token()?;
    let lifetime = i64::from(app.settings.auth.refresh_token_expiration_days) * 24 * 60 * 60;
    let expires_at = Timestamp::from_second(now().as_second() + lifetime).map_err(ToolError::internal)?;
    Ok((Session { token_hash: token_hash(&token), expires_at }, token))
}

/// The refresh token of a stored session.
struct RefreshToken {
    token: String,
    expires_at: Timestamp,
}

/// Answers with the tokens, in the body for programs and in cookies for browsers. If the disk is full, there is no
/// session and no refresh token.
fn signed_in(app: &App, user: User, session: Option<RefreshToken>) -> Answer<Reply<SessionAnswer>> {
    let (access_token, access_expires) = app.tokens.issue(user.id, user.token_epoch)?;
    let mut reply = ok(&SessionAnswer {
        user,
        access_token: access_token.clone(),
        refresh_token: session.as_ref().map(|session| session.token.clone()),
        access_token_expires_at: access_expires,
        refresh_token_expires_at: session.as_ref().map(|session| session.expires_at),
        warnings: if session.is_none() { vec![NO_SESSION] } else { Vec::new() },
    })?;
    let seconds_left = |end: Timestamp| end.as_second() - now().as_second();
    let headers = reply.response.headers_mut();
    set_cookie(app, headers, "access_token", &access_token, seconds_left(access_expires))?;
    if let Some(RefreshToken { token, expires_at }) = session {
        set_cookie(app, headers, "refresh_token", &token, seconds_left(expires_at))?;
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(reply)
}

pub(crate) fn set_cookie(app: &App, headers: &mut HeaderMap, name: &str, value: &str, max_age: i64) -> Result<()> {
    // Browsers send the refresh token only to the routes that use it.
    let path = if name == "refresh_token" { "/api/v1/auth" } else { "/" };
    let secure = if app.settings.auth.secure_cookies { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; HttpOnly; SameSite=Lax; Path={path}; Max-Age={max_age}{secure}");
    headers.append(header::SET_COOKIE, HeaderValue::try_from(cookie).map_err(ToolError::internal)?);
    Ok(())
}

/// Returns the refresh token of a request, from the body, the cookie or the Authorization header. The header comes last,
/// because a browser client may send its access token there.
async fn refresh_token(app: &App, unread: Unread<RefreshBody>) -> Result<String> {
    let request = unread.request;
    let headers = request.headers();
    let elsewhere = cookie(headers, "refresh_token").or_else(|| bearer(headers)).map(str::to_owned);
    let has_body = hyper::body::Body::size_hint(request.body()).upper() != Some(0);
    let presented =
        if has_body { json::<RefreshBody>(request, app, SMALL_BYTES).await? } else { RefreshBody::default() };
    presented.refresh_token.or(elsewhere).ok_or_else(|| {
        let message = "No valid refresh token found in the body, Authorization header or cookie";
        ToolError::new(ErrorKind::Unauthenticated, message)
    })
}

fn wrong_credentials() -> ToolError {
    ToolError::new(ErrorKind::Unauthenticated, "Invalid email or password")
}

fn invalid_refresh_token() -> ToolError {
    ToolError::new(ErrorKind::Unauthenticated, "Invalid or expired refresh token; sign in again")
}
