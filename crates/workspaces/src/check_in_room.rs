//! Bounds the memory that the contents of check-ins and of folder commits take at once.

use std::sync::Arc;
use toolrest_core::{ByteBudget, ErrorKind, HeldBytes, Result, ToolError, UserId};

/// Maximum size of a check-in or commit that needs no reservation.
const SMALL_BYTES: u64 = 1 << 20;

/// The byte budget for the contents of large check-ins and folder commits, over all workspaces. The changes of a program
/// are in memory from when they are read until they are committed; a commit to a folder also has what it replaces.
pub(crate) struct CheckInBudget(ByteBudget<UserId>);

/// The reserved bytes of one check-in, returned when dropped; none for a small one.
pub(crate) type CheckInRoom = Option<HeldBytes<UserId>>;

/// The budget is used up at this moment.
pub(crate) struct NoRoom;

impl CheckInBudget {
    /// A budget for two check-ins of the maximum size, of which one account gets half.
    pub(crate) fn new(largest_bytes: u64) -> Self {
        let largest = usize::try_from(largest_bytes).unwrap_or(usize::MAX);
        Self(ByteBudget::new(largest.saturating_mul(2), largest))
    }

    /// Reserves so many bytes, and waits for them if necessary.
    pub(crate) async fn reserve(&self, account: UserId, bytes: u64) -> CheckInRoom {
        if bytes <= SMALL_BYTES {
            return None;
        }
        Some(self.0.reserve(account, usize::try_from(bytes).unwrap_or(usize::MAX)).await)
    }

    /// Reserves so many bytes if they are free.
    pub(crate) fn try_reserve(&self, account: UserId, bytes: u64) -> std::result::Result<CheckInRoom, NoRoom> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        self.0.try_reserve(account, usize::try_from(bytes).unwrap_or(usize::MAX)).map(Some).ok_or(NoRoom)
    }
}

/// The reservation of one folder commit, which runs under the folder lock.
pub(crate) struct CommitRoom {
    budget: Arc<CheckInBudget>,
    account: UserId,
    /// The bytes that the commit has waited for.
    waited_for: Option<(u64, CheckInRoom)>,
    /// The bytes that were free when the commit needed them.
    taken: CheckInRoom,
}

impl CommitRoom {
    pub(crate) fn new(budget: Arc<CheckInBudget>, account: UserId) -> Self {
        Self { budget, account, waited_for: None, taken: None }
    }

    /// Reserves so many bytes in all, if those that are missing are free. Never waits, because the caller holds the
    /// folder lock.
    pub(crate) fn try_take(&mut self, bytes: u64) -> std::result::Result<(), NoRoom> {
        let held = self.waited_for.as_ref().map_or(0, |(held, _)| *held);
        if bytes > held {
            self.taken = self.budget.try_reserve(self.account, bytes - held)?;
        }
        Ok(())
    }

    /// Waits for so many bytes. A commit that has waited before is refused: its files grew meanwhile, and two commits
    /// that hold bytes and wait for more could deadlock.
    pub(crate) async fn wait_for(&mut self, bytes: u64) -> Result<()> {
        if self.waited_for.is_some() {
            let message = "Too many large changes of folders are being committed; try again in a second";
            return Err(ToolError::new(ErrorKind::Unavailable, message).retry_after(1));
        }
        self.waited_for = Some((bytes, self.budget.reserve(self.account, bytes).await));
        Ok(())
    }
}

#[cfg(test)]
#[path = "check_in_room_tests.rs"]
mod tests;
