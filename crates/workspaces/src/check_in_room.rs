//! Bounds the memory that the contents of check-ins take at once.

use toolrest_core::{ByteBudget, HeldBytes, UserId};

/// Maximum size of a check-in that needs no reservation.
const SMALL_BYTES: u64 = 1 << 20;

/// The byte budget for the contents of large check-ins, over all workspaces. The changes of a program are in memory from
/// when they are read until they are committed.
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
    pub(crate) fn try_reserve(&self, account: UserId, bytes: u64) -> Result<CheckInRoom, NoRoom> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        self.0.try_reserve(account, usize::try_from(bytes).unwrap_or(usize::MAX)).map(Some).ok_or(NoRoom)
    }
}
