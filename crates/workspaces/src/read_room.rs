//! Bounds the memory that the large files read by calls take at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolrest_core::{ByteBudget, ErrorKind, File, HeldBytes, Result, ToolError, UserId, WsPath};

/// Maximum size of a file that needs no reservation.
const SMALL_BYTES: u64 = 256 << 10;

/// Number of copies of a content that a call has in memory: the content, as JSON, and in the answer.
const COPIES: u64 = 3;

/// The byte budget for large files that calls read, over all workspaces.
pub(crate) struct ReadBudget(ByteBudget<UserId>);

impl ReadBudget {
    /// A budget of so many bytes, of which one account gets a quarter. A file of the maximum size always fits.
    pub(crate) fn new(bytes: usize, largest_file_bytes: usize) -> Self {
        Self(ByteBudget::new(bytes, memory_of(largest_file_bytes as u64)))
    }
}

impl Default for ReadBudget {
    fn default() -> Self {
        Self::new(256 << 20, 32 << 20)
    }
}

/// The reservations of one call. They are returned when its workspace is dropped.
pub(crate) struct ReadRoom {
    budget: Arc<ReadBudget>,
    account: UserId,
    held: Mutex<Reservations>,
}

#[derive(Default)]
struct Reservations {
    rooms: Vec<HeldBytes<UserId>>,
    /// Reserved bytes of contents.
    bytes: u64,
    /// Sizes of the large files that the call has read. A file that is read again counts once.
    files: HashMap<WsPath, u64>,
}

impl ReadRoom {
    pub(crate) fn new(budget: Arc<ReadBudget>, account: UserId) -> Arc<Self> {
        Arc::new(Self { budget, account, held: Mutex::default() })
    }

    /// Waits until a file of this size may be read. The call's deadline bounds the wait.
    async fn take(&self, path: &WsPath, bytes: u64) -> Result<()> {
        if bytes <= SMALL_BYTES {
            return Ok(());
        }
        let needed = {
            let mut held = self.held();
            let known = held.files.entry(path.clone()).or_default();
            *known = bytes.max(*known);
            held.files.values().sum()
        };
        self.hold(needed).await
    }

    /// Reads a file of up to so many bytes with `read`, which returns a larger file without its content. The bytes of a
    /// large content are reserved before it is read.
    pub(crate) async fn read<R: Future<Output = Result<File, E>>, E: Into<ToolError>>(
        &self,
        path: &WsPath,
        max_bytes: u64,
        read: impl Fn(u64) -> R,
    ) -> Result<File> {
        let mut free = max_bytes.min(SMALL_BYTES);
        loop {
            let file = read(free).await.map_err(Into::into)?;
            let size = u64::try_from(file.entry.size).unwrap_or(0);
            if file.content.is_some() || size <= free || size > max_bytes {
                return Ok(file);
            }
            self.take(path, size).await?;
            free = size;
        }
    }

    /// Returns the reservations of the call, and reserves so many bytes for all its contents.
    pub(crate) async fn make_room(&self, bytes: u64) -> Result<()> {
        *self.held() = Reservations::default();
        if bytes <= SMALL_BYTES { Ok(()) } else { self.hold(bytes).await }
    }

    /// Waits until so many bytes of contents are reserved in all.
    async fn hold(&self, bytes: u64) -> Result<()> {
        let held = self.held().bytes;
        let missing = bytes.saturating_sub(held);
        if missing == 0 {
            return Ok(());
        }
        let budget = &self.budget.0;
        let room = if held == 0 {
            budget.reserve(self.account, memory_of(missing)).await
        } else {
            // A call with a reservation does not wait for more: two such calls could deadlock.
            budget.try_reserve(self.account, memory_of(missing)).ok_or_else(busy)?
        };
        let mut held = self.held();
        held.rooms.push(room);
        held.bytes += missing;
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Reservations> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn memory_of(bytes: u64) -> usize {
    usize::try_from(bytes.saturating_mul(COPIES)).unwrap_or(usize::MAX)
}

fn busy() -> ToolError {
    let message = "Too many large files are being read (limits.in_flight_bytes); try again in a second";
    ToolError::new(ErrorKind::Unavailable, message).retry_after(1)
}

#[cfg(test)]
#[path = "read_room_tests.rs"]
mod tests;
