//! Streams changes of a workspace's files as server-sent events.

use super::App;
use super::reply::Answer;
use super::request::WorkspaceRequest;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use futures_util::stream;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;
use toolrest_core::{CallCx, FileEvents, Full, QueueSlot, Role, ToolError};

/// Interval of keep-alive comments on an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Time for which a membership check stays valid. Events come in bursts, and a check for each would be expensive.
const CHECK_LIFETIME: Duration = Duration::from_millis(500);

pub(crate) async fn listen(State(app): State<Arc<App>>, target: WorkspaceRequest) -> Answer {
    let cx = app.engine.rest_context("events", target.workspace, target.caller, Role::Viewer).await?;
    cx.workspace.authorise().await?;
    let slot = app.event_streams.try_enter(target.caller.user, target.workspace).map_err(too_many_streams)?;
    let events = cx.workspace.watch().await?;
    let listener = Listener { events, cx, stopping: app.stopping.subscribe(), checked_at: Instant::now(), _slot: slot };
    let stream = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, std::convert::Infallible>(event), listener))
    });
    Ok(Sse::new(stream).into_response())
}

/// Returns the error for a stream over the limit.
fn too_many_streams(full: Full) -> ToolError {
    let (limit, setting) = (full.limit as u64, "quotas.event_streams_per_account");
    let message =
        format!("The account has {limit} event streams open, which is its limit ({setting}); close one of them first");
    ToolError::quota(limit, limit, setting, message)
}

/// An open event stream.
struct Listener {
    events: FileEvents,
    cx: CallCx,
    stopping: watch::Receiver<bool>,
    checked_at: Instant,
    _slot: QueueSlot,
}

impl Listener {
    /// Returns the next event. `None` ends the stream: the server stops, or the caller is no longer a member.
    async fn next(&mut self) -> Option<Event> {
        let next = tokio::select! {
            event = tokio::time::timeout(KEEP_ALIVE_INTERVAL, self.events.next()) => event,
            _ = self.stopping.wait_for(|stopping| *stopping) => return None,
        };
        // The membership is checked after the event happened and before it is sent, so a former member gets no events.
        if self.checked_at.elapsed() >= CHECK_LIFETIME {
            if let Err(error) = self.cx.workspace.authorise().await {
                error.log_cause();
                return None;
            }
            self.checked_at = Instant::now();
        }
        match next {
            Ok(event) => Event::default().json_data(&event?).ok(),
            Err(_) => Some(Event::default().comment("still here")),
        }
    }
}
