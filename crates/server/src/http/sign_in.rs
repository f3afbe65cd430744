//! The sign-in link of `serve --dir`.

use super::App;
use super::accounts::set_cookie;
use super::reply::Answer;
use crate::local::TOKEN_LIFETIME;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect};
use http::{HeaderValue, header};
use std::{collections::HashMap, sync::Arc};
use toolrest_core::{ErrorKind, ToolError};
use toolrest_store::no_such_account;

/// Signs a browser in with the link that `serve --dir` printed, and shows the folder.
pub(crate) async fn by_link(State(app): State<Arc<App>>, Query(query): Query<HashMap<String, String>>) -> Answer {
    let target = query.get("token").and_then(|token| app.sign_in_link.spend(token)).ok_or_else(|| {
        let message = "This sign-in link is wrong, was used before or has expired; restart `toolrest serve --dir`, which \
                       prints a new one";
        ToolError::new(ErrorKind::Unauthenticated, message)
    })?;
    let user = app.store.user(target.user).await?.ok_or_else(no_such_account)?;
    let token = app.tokens.issue_local(user.id, user.token_epoch, TOKEN_LIFETIME)?;
    let mut response = Redirect::to(&format!("/w/{}/activity", target.workspace)).into_response();
    let headers = response.headers_mut();
    let seconds = i64::try_from(TOKEN_LIFETIME.as_secs()).map_err(ToolError::internal)?;
    set_cookie(&app, headers, "access_token", &token, seconds)?;
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}
