//! Bounds the bytes of requests and answers that are in memory at once, over all callers and for each of them.

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use toolrest_core::{ErrorKind, Result, ToolError, UserId};

/// Bytes are counted in units of this size.
const UNIT_BYTES: usize = 1 << 10;

/// The part of the whole budget that one caller can hold.
const SHARES: usize = 4;

/// How long a request waits for room.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many answers may wait for room at once: they are in memory already while they wait.
const ANSWERS_WAITING: usize = 16;

/// Answers up to this size are not counted.
const SMALL_ANSWER_BYTES: u64 = 64 << 10;

/// How much of an answer is handed over at a time, so that its room is held until nearly all of it was sent.
const PIECE_BYTES: usize = 64 << 10;

/// The bytes that may be in memory at once.
pub(crate) struct Budget {
    shared: Arc<Shared>,
    waiting_answers: Semaphore,
    patience: Duration,
}

struct Shared {
    all: Arc<Semaphore>,
    share: u32,
    callers: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// Room for some bytes, given back when dropped.
pub(crate) struct Held {
    shared: Arc<Shared>,
    caller: String,
    room: Option<[OwnedSemaphorePermit; 2]>,
}

impl Budget {
    /// A budget of so many bytes. One request or answer of the largest size always fits, into each caller's share too.
    pub(crate) fn new(bytes: usize, largest_bytes: usize) -> Self {
        let largest = units(largest_bytes);
        let all = units(bytes).max(largest);
        let share = (all / u32::try_from(SHARES).unwrap_or(1)).max(largest);
        let shared = Shared { all: Arc::new(Semaphore::new(all as usize)), share, callers: Mutex::default() };
        Self { shared: Arc::new(shared), waiting_answers: Semaphore::new(ANSWERS_WAITING), patience: PATIENCE }
    }

    /// Waits for room.
    pub(crate) async fn reserve(&self, caller: &str, bytes: usize) -> Result<Held> {
        let units = units(bytes).min(self.shared.share);
        let share = {
            let mut callers = self.shared.callers.lock().unwrap_or_else(PoisonError::into_inner);
            let full = || Arc::new(Semaphore::new(self.shared.share as usize));
            Arc::clone(callers.entry(caller.to_owned()).or_insert_with(full))
        };
        // Made before the wait, so that a caller who gives up waiting also tidies up.
        let mut held = Held { shared: Arc::clone(&self.shared), caller: caller.to_owned(), room: None };
        let all = Arc::clone(&self.shared.all);
        // The own share first: who has used it up does not stand in the way of others.
        let room = async {
            Ok::<_, AcquireError>([share.acquire_many_owned(units).await?, all.acquire_many_owned(units).await?])
        };
        match tokio::time::timeout(self.patience, room).await {
            Ok(Ok(room)) => held.room = Some(room),
            Ok(Err(closed)) => return Err(ToolError::internal(closed)),
            Err(_) => return Err(busy()),
        }
        Ok(held)
    }

    /// Counts an answer against the caller's share until it was sent. Refused if there is no room for long.
    pub(crate) async fn charge(&self, caller: &str, answer: Body) -> Result<Body> {
        let size = hyper::body::Body::size_hint(&answer).exact().unwrap_or(0);
        if size <= SMALL_ANSWER_BYTES {
            return Ok(answer);
        }
        let _waiting = self.waiting_answers.try_acquire().map_err(|_| busy())?;
        let held = self.reserve(caller, usize::try_from(size).unwrap_or(usize::MAX)).await?;
        Ok(Body::new(Charged { answer, rest: Bytes::new(), _held: held }))
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(u32::MAX >> 3)
}

fn busy() -> ToolError {
    let message =
        "Too many bytes of requests and answers are under way (limits.in_flight_bytes); try again in a second";
    ToolError::new(ErrorKind::Unavailable, message).detail("retry_after_seconds", 1)
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room = None;
        let mut callers = self.shared.callers.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's own handle is the last one: nobody holds room or waits for it.
        if callers.get(&self.caller).is_some_and(|share| Arc::strong_count(share) == 1) {
            callers.remove(&self.caller);
        }
    }
}

/// An answer that holds its room until it was sent.
struct Charged {
    answer: Body,
    rest: Bytes,
    _held: Held,
}

impl hyper::body::Body for Charged {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.answer).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.answer.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let exact = self.answer.size_hint().exact().map(|left| left + self.rest.len() as u64);
        exact.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// Whose share the requests of a user count against.
pub(crate) fn of_user(user: UserId) -> String {
    format!("user {user}")
}

/// What is known of a request, and what it holds, while it is answered.
#[derive(Clone, Default)]
pub(crate) struct Scope(Arc<ScopeState>);

#[derive(Default)]
struct ScopeState {
    address: OnceLock<String>,
    user: OnceLock<UserId>,
    held: Mutex<Vec<Held>>,
}

impl Scope {
    /// Notes where the request comes from.
    pub(crate) fn from_address(address: &str) -> Self {
        let scope = Self::default();
        let _ = scope.0.address.set(address.to_owned());
        scope
    }

    /// Notes who sent the request.
    pub(crate) fn is_of(&self, user: UserId) {
        let _ = self.0.user.set(user);
    }

    /// Whose share the request counts against: the user's, and the address's before that is known.
    pub(crate) fn caller(&self) -> String {
        match (self.0.user.get(), self.0.address.get()) {
            (Some(user), _) => of_user(*user),
            (None, address) => format!("address {}", address.map_or("", String::as_str)),
        }
    }

    /// Holds room until the request is answered.
    pub(crate) fn hold(&self, held: Held) {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner).push(held);
    }

    /// Gives back what the request held.
    pub(crate) fn release(&self) {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
