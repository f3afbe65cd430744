//! Bounds the bytes of large files that are in memory at once because calls read them.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolrest_core::{Result, ToolError};

/// Files up to this size are read without asking for room.
pub(crate) const SMALL_BYTES: i64 = 1 << 20;

/// Bytes are counted in units of this size.
const UNIT_BYTES: u64 = 1 << 10;

/// How often a content is in memory while a call works on it: itself, as JSON, and in the answer.
const COPIES: u64 = 3;

/// The room for large files that calls read, over all workspaces.
pub(crate) struct ReadBudget {
    room: Arc<Semaphore>,
    units: u32,
}

impl ReadBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        let units = units(bytes as u64).max(1);
        Self { room: Arc::new(Semaphore::new(units as usize)), units }
    }
}

impl Default for ReadBudget {
    fn default() -> Self {
        Self::new(256 << 20)
    }
}

/// The room that the reads of one call take. It is given back with the call's workspace.
pub(crate) struct ReadRoom {
    budget: Arc<ReadBudget>,
    held: Mutex<Vec<OwnedSemaphorePermit>>,
}

impl ReadRoom {
    pub(crate) fn new(budget: Arc<ReadBudget>) -> Arc<Self> {
        Arc::new(Self { budget, held: Mutex::default() })
    }

    /// Waits until a file of this size may be read. The call's deadline bounds the wait.
    pub(crate) async fn take(&self, bytes: i64) -> Result<()> {
        if bytes <= SMALL_BYTES {
            return Ok(());
        }
        let units = units(u64::try_from(bytes).unwrap_or(0) * COPIES).min(self.budget.units);
        let room = Arc::clone(&self.budget.room);
        let holds_some = !self.held.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        let permit = if holds_some {
            // A call that holds room does not wait for more: two of them could wait for each other.
            room.try_acquire_many_owned(units).ok()
        } else {
            Some(room.acquire_many_owned(units).await.map_err(ToolError::internal)?)
        };
        self.held.lock().unwrap_or_else(PoisonError::into_inner).extend(permit);
        Ok(())
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(u32::MAX >> 3)
}

#[cfg(test)]
#[path = "read_room_tests.rs"]
mod tests;
