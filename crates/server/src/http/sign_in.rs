//! The sign-in link of `serve --dir`.

use super::App;
use super::accounts::set_cookie;
use super::reply::Answer;
use crate::auth::LinkTarget;
use crate::local::TOKEN_LIFETIME;
use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse};
use http::{HeaderValue, header};
use std::{collections::HashMap, sync::Arc};
use toolrest_core::{ErrorKind, ToolError};
use toolrest_store::no_such_account;

/// Signs a browser in with the link that `serve --dir` printed.
pub(crate) async fn by_link(State(app): State<Arc<App>>, Query(query): Query<HashMap<String, String>>) -> Answer {
    let target = query.get("token").and_then(|token| app.sign_in_link.spend(token)).ok_or_else(|| {
        let message = "This sign-in link is wrong, was used before or has expired; restart `toolrest serve --dir`, which \
                       prints a new one";
        ToolError::new(ErrorKind::Unauthenticated, message)
    })?;
    let user = app.store.user(target.user).await?.ok_or_else(no_such_account)?;
    let token = app.tokens.issue_local(user.id, user.token_epoch, TOKEN_LIFETIME)?;
    let mut response = Html(page(target)).into_response();
    let headers = response.headers_mut();
    let seconds = i64::try_from(TOKEN_LIFETIME.as_secs()).map_err(ToolError::internal)?;
    set_cookie(&app, headers, "access_token", &token, seconds)?;
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

fn page(LinkTarget { workspace, .. }: LinkTarget) -> String {
    format!(
        "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>Toolrest</title>
<h1>You are signed in</h1>
<p>This browser can use the workspace <a href=\"/api/v1/workspaces/{workspace}\">{workspace}</a> as its owner until the
server stops, for a day at most.</p>
<p>Next: give your agent the key that the server printed (<code>trk_…</code>), as <code>Authorization: Bearer trk_…</code>.
It calls tools with <code>POST /api/v1/workspaces/{workspace}/tools</code>.</p>
<ul>
<li><a href=\"/api/v1/workspaces/{workspace}/keys\">The agent keys</a></li>
<li><a href=\"/api/v1/workspaces/{workspace}/commits\">What was changed</a></li>
<li><a href=\"/api/v1/workspaces/{workspace}/calls\">The tool calls</a></li>
</ul>
</html>
"
    )
}
