//! Changes to a workspace's files, sent as they happen (server-sent events).

use super::App;
use super::reply::Answer;
use super::request::At;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use futures_util::stream;
use std::{sync::Arc, time::Duration};
use toolrest_core::{Role, ToolError};

/// How often a quiet connection is kept alive, and the listener's rights looked at again.
const QUIET: Duration = Duration::from_secs(15);

pub(crate) async fn listen(State(app): State<Arc<App>>, at: At) -> Answer {
    let cx = app.engine.outside_tools("events", at.workspace, at.caller, Role::Viewer).await?;
    let events = cx.workspace.watch().await?;
    let stopping = app.stopping.subscribe();
    let told = stream::unfold((events, cx, stopping), |(mut events, cx, mut stopping)| async move {
        let next = tokio::select! {
            event = tokio::time::timeout(QUIET, events.next()) => event,
            _ = stopping.wait_for(|stopping| *stopping) => return None,
        };
        let event = match next {
            Ok(Some(event)) => Event::default().json_data(&event).map_err(ToolError::internal),
            Ok(None) => return None,
            // Who is no member any more hears nothing more.
            Err(_) => cx.workspace.authorise().await.map(|()| Event::default().comment("still here")),
        };
        event.ok().map(|event| (Ok::<_, std::convert::Infallible>(event), (events, cx, stopping)))
    });
    Ok(Sse::new(told).into_response())
}
