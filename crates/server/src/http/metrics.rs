//! The metrics, for a monitoring system with the token.

use super::App;
use super::request::bearer;
use crate::auth::token_hash;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Shows the metrics. Without the right token, the route is answered like one that does not exist.
pub(crate) async fn show(State(app): State<Arc<App>>, request: Request) -> Response {
    let token = app.settings.metrics.token.as_deref();
    match (token, bearer(request.headers())) {
        (Some(token), Some(given)) if is_same(token, given) => crate::metrics::answer(&app).await,
        _ => super::no_route(request).await.into_response(),
    }
}

/// Compares two tokens by their hashes, in a time that does not depend on them.
fn is_same(token: &str, given: &str) -> bool {
    let (token, given) = (token_hash(token), token_hash(given));
    token.iter().zip(given).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}
