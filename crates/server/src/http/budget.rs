//! Bounds the bytes of requests and answers that are in memory at once, over all callers and for each of them.

use super::request::SMALL_BYTES;
use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::sync::Semaphore;
use toolrest_core::{ByteBudget, ErrorKind, HeldBytes, Result, ToolError, UserId};

/// Divisor of the budget that gives the share of small bodies. With this share callers can sign in and make ordinary
/// calls while large bodies and answers use up the rest.
const SMALL_SHARE: usize = 16;

/// Maximum time that a request waits for room.
const ROOM_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of answers that wait for room. They are in memory already while they wait.
const WAITING_ANSWERS_LIMIT: usize = 16;

/// Answers up to this size are not counted.
const SMALL_ANSWER_BYTES: u64 = 64 << 10;

/// Size of the pieces in which an answer is sent, so that its room is held until nearly all of it was sent.
const PIECE_BYTES: usize = 64 << 10;

/// Reserved room for some bytes; released when dropped.
pub(crate) type Held = HeldBytes<String>;

/// The budget of bytes in memory, with a separate share for small bodies.
pub(crate) struct Budget {
    large: ByteBudget<String>,
    small: ByteBudget<String>,
    waiting_answers: Semaphore,
    timeout: Duration,
}

impl Budget {
    /// Creates a budget. One request or answer of the largest size always fits, also into each caller's share.
    pub(crate) fn new(bytes: usize, largest_bytes: usize) -> Self {
        let small = bytes / SMALL_SHARE;
        Self {
            large: ByteBudget::new(bytes - small, largest_bytes),
            small: ByteBudget::new(small, SMALL_BYTES),
            waiting_answers: Semaphore::new(WAITING_ANSWERS_LIMIT),
            timeout: ROOM_TIMEOUT,
        }
    }

    /// Waits for room for an answer.
    pub(crate) async fn reserve(&self, caller: &str, bytes: usize) -> Result<Held> {
        self.within_timeout(self.large.reserve(caller.to_owned(), bytes)).await
    }

    /// Waits until the caller's share has room for a body of the announced length. Room in the whole budget is taken only
    /// as the bytes arrive.
    pub(crate) async fn body_room(&self, caller: &str, announced_bytes: Option<usize>) -> Result<BodyRoom<'_>> {
        let claimed = announced_bytes.unwrap_or(SMALL_BYTES);
        let pool = if claimed <= SMALL_BYTES { &self.small } else { &self.large };
        let mut held = pool.nothing_for(caller.to_owned());
        self.within_timeout(held.claim(claimed)).await?;
        Ok(BodyRoom { budget: self, caller: caller.to_owned(), held, claimed })
    }

    /// Counts an answer against the caller's share until it was sent. Fails if there is no room within the timeout.
    pub(crate) async fn charge(&self, caller: &str, answer: Body) -> Result<Body> {
        let size = hyper::body::Body::size_hint(&answer).exact().unwrap_or(0);
        if size <= SMALL_ANSWER_BYTES {
            return Ok(answer);
        }
        let _waiting = self.waiting_answers.try_acquire().map_err(|_| busy())?;
        let held = self.reserve(caller, usize::try_from(size).unwrap_or(usize::MAX)).await?;
        Ok(Body::new(Charged { answer, rest: Bytes::new(), _held: held }))
    }

    async fn within_timeout<T>(&self, room: impl Future<Output = T>) -> Result<T> {
        tokio::time::timeout(self.timeout, room).await.map_err(|_| busy())
    }
}

/// The room for a body that is arriving.
pub(crate) struct BodyRoom<'b> {
    budget: &'b Budget,
    caller: String,
    held: Held,
    /// The bytes of the caller's share that it has.
    claimed: usize,
}

impl BodyRoom<'_> {
    /// Waits until there is room for `bytes` bytes in total.
    pub(crate) async fn grow(&mut self, bytes: usize) -> Result<()> {
        // Only a body of unknown length has more bytes than it has claimed.
        if bytes > self.claimed {
            let claimed = self.claimed.saturating_mul(2).max(bytes);
            if self.claimed <= SMALL_BYTES {
                let mut large = self.budget.large.nothing_for(self.caller.clone());
                self.budget.within_timeout(large.claim(claimed)).await?;
                self.budget.within_timeout(large.fill(bytes)).await?;
                self.held = large;
            } else {
                self.budget.within_timeout(self.held.claim(claimed)).await?;
            }
            self.claimed = claimed;
        }
        self.budget.within_timeout(self.held.fill(bytes)).await
    }

    pub(crate) fn into_held(self) -> Held {
        self.held
    }
}

fn busy() -> ToolError {
    let message =
        "Too many bytes of requests and answers are under way (limits.in_flight_bytes); try again in a second";
    ToolError::new(ErrorKind::Unavailable, message).retry_after(1)
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

/// Returns the key of a user's share.
pub(crate) fn of_user(user: UserId) -> String {
    format!("user {user}")
}

/// The caller of a request, and the room that the request holds while it is answered.
#[derive(Clone, Default)]
pub(crate) struct Scope(Arc<ScopeState>);

#[derive(Default)]
struct ScopeState {
    address: OnceLock<String>,
    user: OnceLock<UserId>,
    held: Mutex<Vec<Held>>,
}

impl Scope {
    /// Creates the scope of a request from an address.
    pub(crate) fn from_address(address: &str) -> Self {
        let scope = Self::default();
        let _ = scope.0.address.set(address.to_owned());
        scope
    }

    /// Sets the user who sent the request.
    pub(crate) fn set_user(&self, user: UserId) {
        let _ = self.0.user.set(user);
    }

    /// Returns the key of the share that the request counts against: the user's, or the address's until the user is known.
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

    /// Releases all room that the request holds.
    pub(crate) fn release(&self) {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
