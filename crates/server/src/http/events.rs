//! Changes to a workspace's files, sent as they happen (server-sent events).

use super::App;
use super::reply::Answer;
use super::request::At;
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

/// How often a quiet connection is kept alive.
const QUIET: Duration = Duration::from_secs(15);
/// How long the listener's rights are taken for granted once they were checked. Events come in bursts, and a check for
/// each would be many.
const CHECKED: Duration = Duration::from_millis(500);

pub(crate) async fn listen(State(app): State<Arc<App>>, at: At) -> Answer {
    let cx = app.engine.rest_context("events", at.workspace, at.caller, Role::Viewer).await?;
    cx.workspace.authorise().await?;
    let place = app.event_streams.try_enter(at.caller.user, at.workspace).map_err(too_many)?;
    let events = cx.workspace.watch().await?;
    let listener =
        Listener { events, cx, stopping: app.stopping.subscribe(), checked_at: Instant::now(), _place: place };
    let told = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, std::convert::Infallible>(event), listener))
    });
    Ok(Sse::new(told).into_response())
}

/// The refusal of one more stream.
fn too_many(full: Full) -> ToolError {
    let (limit, setting) = (full.limit as u64, "quotas.event_streams_per_account");
    let message =
        format!("The account has {limit} event streams open, which is its limit ({setting}); close one of them first");
    ToolError::quota(limit, limit, setting, message)
}

/// A stream of events that is open.
struct Listener {
    events: FileEvents,
    cx: CallCx,
    stopping: watch::Receiver<bool>,
    checked_at: Instant,
    _place: QueueSlot,
}

impl Listener {
    /// The next thing to tell; none when there is nothing more to tell, or the listener may not hear it.
    async fn next(&mut self) -> Option<Event> {
        let next = tokio::select! {
            event = tokio::time::timeout(QUIET, self.events.next()) => event,
            _ = self.stopping.wait_for(|stopping| *stopping) => return None,
        };
        // The rights are checked when there is something to tell, after it has happened: who is no member any more
        // hears nothing more.
        if self.checked_at.elapsed() >= CHECKED {
            self.cx.workspace.authorise().await.ok()?;
            self.checked_at = Instant::now();
        }
        match next {
            Ok(event) => Event::default().json_data(&event?).map_err(ToolError::internal).ok(),
            Err(_) => Some(Event::default().comment("still here")),
        }
    }
}
