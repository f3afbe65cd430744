//! Streams the events of a workspace as server-sent events: its feed, and the changes of files in a folder.

use super::App;
use super::reply::Answer;
use super::request::{WorkspaceRequest, access_token, caller_of_token};
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use futures_util::stream;
use http::{HeaderMap, HeaderName};
use serde_json::json;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;
use toolrest_core::{
    CallCx, FeedCursor, FeedEvent, FeedGap, FeedPage, FeedRecord, FeedSources, FileEvent, FileEvents, Full, QueueSlot,
    Result, Role, ToolError,
};
use toolrest_store::Subscription;

/// Interval of keep-alive comments on an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Time for which a membership check stays valid for changes of files. They come in bursts, and a check for each would be
/// expensive.
const CHECK_LIFETIME: Duration = Duration::from_millis(500);

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The types of events that a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kinds {
    sources: FeedSources,
    files: bool,
}

impl Kinds {
    /// Parses the query parameter `kinds`. Without it all types are wanted.
    fn parse(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(Self { sources: FeedSources::ALL, files: true }) };
        let mut kinds = Self { sources: FeedSources::NONE, files: false };
        for kind in text.split(',') {
            match kind {
                "commit" => kinds.sources.commits = true,
                "call" => kinds.sources.calls = true,
                "approval" => kinds.sources.approvals = true,
                "file" => kinds.files = true,
                other => {
                    let message = format!(
                        "'{other}' is not a type of events; `kinds` takes `commit`, `call`, `approval` and `file`"
                    );
                    return Err(ToolError::argument("kinds", message));
                }
            }
        }
        Ok(kinds)
    }
}

/// Returns the cursor of a request. A browser that reconnects sends the header, which is newer than the URL.
fn cursor(headers: &HeaderMap, query: &HashMap<String, String>) -> Result<Option<FeedCursor>> {
    let unreadable = |_| ToolError::argument("Last-Event-ID", "The header Last-Event-ID is not a cursor");
    let header = headers.get(&LAST_EVENT_ID).map(|value| value.to_str().map_err(unreadable)).transpose()?;
    let given = header.or(query.get("after").map(String::as_str)).filter(|text| !text.is_empty());
    Ok(given.map(|text| FeedCursor(text.to_owned())))
}

pub(crate) async fn listen(
    State(app): State<Arc<App>>,
    target: WorkspaceRequest,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Answer {
    let cx = app.engine.rest_context("events", target.workspace, target.caller, Role::Viewer).await?;
    cx.workspace.authorise().await?;
    let kinds = Kinds::parse(query.get("kinds").map(String::as_str))?;
    let after = cursor(&headers, &query)?;
    let slot = app.event_streams.try_enter(target.caller.user, target.workspace).map_err(too_many_streams)?;
    // Only folders have changes that are no commits. A caller who wants nothing else is told so.
    let has_files = kinds.files && (cx.workspace.is_in_file_system() || kinds.sources.is_empty());
    let files = if has_files { Some(cx.workspace.watch().await?) } else { None };
    let mut listener = Listener {
        feed: None,
        files,
        waiting: VecDeque::new(),
        stopping: app.stopping.subscribe(),
        checked_at: Instant::now(),
        token: access_token(&headers).map(str::to_owned),
        app: Arc::clone(&app),
        cx,
        _slot: slot,
    };
    if kinds.sources.is_empty() {
        listener.waiting.push_back(Event::default().event("ready").data("{}"));
    } else {
        // Subscribed before the first page is read, so that no change is missed in between.
        let signal = app.store.subscribe(target.workspace);
        let page = listener.cx.workspace.feed(after.as_ref(), kinds.sources).await?;
        // Where the stream starts: after the given cursor, or now.
        let start = after.filter(|_| page.gap != Some(FeedGap::FUTURE)).unwrap_or_else(|| page.cursor.clone());
        let ready = Event::default().event("ready").id(start.0).data("{}");
        listener.feed =
            Some(Feed { cursor: page.cursor.clone(), sources: kinds.sources, signal, gap: None, unread: true });
        listener.queue(page, Some(ready))?;
    }
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

/// The position of a stream in the feed.
struct Feed {
    cursor: FeedCursor,
    sources: FeedSources,
    signal: Subscription,
    /// The gap that the caller was last told of.
    gap: Option<FeedGap>,
    /// Whether there may be events after the cursor.
    unread: bool,
}

/// An open event stream.
struct Listener {
    feed: Option<Feed>,
    files: Option<FileEvents>,
    /// The events of the last page that were not sent yet. The next page is read when they were sent, so a slow client
    /// does not use more memory.
    waiting: VecDeque<Event>,
    cx: CallCx,
    app: Arc<App>,
    /// The token of the request. It is checked again while the stream is open.
    token: Option<String>,
    stopping: watch::Receiver<bool>,
    checked_at: Instant,
    _slot: QueueSlot,
}

/// Why a wait ended.
enum Woken {
    Feed,
    File(Option<FileEvent>),
    Idle,
    Stopping,
}

impl Listener {
    /// Returns the next event. `None` ends the stream: the server stops, the token has expired or was revoked, the caller is
    /// no longer a member, or the database fails. The client reconnects with its last id.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let read = if self.feed.as_ref().is_some_and(|feed| feed.unread) {
                self.read_page().await
            } else {
                match self.wait().await {
                    Woken::Feed => {
                        self.feed.iter_mut().for_each(|feed| feed.unread = true);
                        Ok(())
                    }
                    Woken::File(event) => {
                        let event = event?;
                        self.check_membership(CHECK_LIFETIME).await.and_then(|()| self.queue_file(&event))
                    }
                    Woken::Idle => {
                        self.waiting.push_back(Event::default().comment("still here"));
                        self.check_membership(Duration::ZERO).await
                    }
                    Woken::Stopping => return None,
                }
            };
            if let Err(error) = read {
                error.log_cause();
                return None;
            }
        }
    }

    async fn wait(&mut self) -> Woken {
        let signalled = async {
            match &mut self.feed {
                Some(feed) => feed.signal.signalled().await,
                None => std::future::pending().await,
            }
        };
        let file = async {
            match &mut self.files {
                Some(files) => files.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = signalled => Woken::Feed,
            event = file => Woken::File(event),
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => Woken::Idle,
            _ = self.stopping.wait_for(|stopping| *stopping) => Woken::Stopping,
        }
    }

    /// Reads the next page of the feed; the same statement checks the membership.
    async fn read_page(&mut self) -> Result<()> {
        let Some(feed) = &self.feed else { return Ok(()) };
        if *self.stopping.borrow() {
            return Err(ToolError::new(toolrest_core::ErrorKind::Unavailable, "The server stops"));
        }
        caller_of_token(&self.app, self.token.as_deref())?;
        let page = self.cx.workspace.feed(Some(&feed.cursor), feed.sources).await?;
        self.queue(page, None)
    }

    /// Queues the events of a page, after `ready` if the stream begins. A gap comes first, and is told once.
    fn queue(&mut self, page: FeedPage, ready: Option<Event>) -> Result<()> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        if page.gap.is_some() && page.gap != feed.gap {
            self.waiting.push_back(Event::default().event("gap").data("{}"));
        }
        self.waiting.extend(ready);
        let key = self.cx.caller.key_id();
        // A key sees only its own calls and approvals.
        let is_shown = |event: &FeedEvent| match &event.record {
            FeedRecord::Call(call) => key.is_none() || call.key == key,
            FeedRecord::Approval(approval) => key.is_none() || approval.key == key,
            FeedRecord::Commit(_) => true,
        };
        let has_hidden = !page.events.iter().all(is_shown);
        for FeedEvent { cursor, record } in page.events.into_iter().filter(is_shown) {
            let event = Event::default().event(record.name()).id(cursor.0);
            self.waiting.push_back(event.json_data(&record).map_err(ToolError::internal)?);
        }
        if has_hidden {
            // A reader that resumes must not read the hidden events again.
            self.waiting.push_back(Event::default().id(page.cursor.0.clone()));
        }
        (feed.gap, feed.cursor, feed.unread) = (page.gap, page.cursor, page.has_more);
        self.checked_at = Instant::now();
        Ok(())
    }

    fn queue_file(&mut self, event: &FileEvent) -> Result<()> {
        let event = Event::default().event("file").json_data(json!(event)).map_err(ToolError::internal)?;
        self.waiting.push_back(event);
        Ok(())
    }

    /// Checks the token and the membership after an event happened and before it is sent, so that a former member gets no
    /// events.
    async fn check_membership(&mut self, lifetime: Duration) -> Result<()> {
        if self.checked_at.elapsed() >= lifetime {
            caller_of_token(&self.app, self.token.as_deref())?;
            self.cx.workspace.authorise().await?;
            self.checked_at = Instant::now();
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
