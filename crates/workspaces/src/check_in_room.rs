//! Bounds the bytes that check-ins of programs hold at once.

use toolrest_core::{ByteBudget, HeldBytes, UserId};

/// Check-ins of up to this many bytes take no room.
const SMALL_BYTES: u64 = 1 << 20;

/// The room for contents of large check-ins, over all workspaces. A program's changes are in memory from when they are
/// read until they are committed.
pub(crate) struct CheckInBudget(ByteBudget<UserId>);

/// Room for the contents of one check-in, returned when dropped; nothing for a small one.
pub(crate) type CheckInRoom = Option<HeldBytes<UserId>>;

/// There is no room for a check-in at this moment.
pub(crate) struct NoRoom;

impl CheckInBudget {
    /// Room for two check-ins of the largest size, of which an account gets half.
    pub(crate) fn new(largest_bytes: u64) -> Self {
        let largest = usize::try_from(largest_bytes).unwrap_or(usize::MAX);
        Self(ByteBudget::new(largest.saturating_mul(2), largest))
    }

    /// Waits for room for contents of so many bytes.
    pub(crate) async fn reserve(&self, account: UserId, bytes: u64) -> CheckInRoom {
        if bytes <= SMALL_BYTES {
            return None;
        }
        Some(self.0.reserve(account, usize::try_from(bytes).unwrap_or(usize::MAX)).await)
    }

    /// Takes room if that needs no waiting.
    pub(crate) fn try_reserve(&self, account: UserId, bytes: u64) -> Result<CheckInRoom, NoRoom> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        self.0.try_reserve(account, usize::try_from(bytes).unwrap_or(usize::MAX)).map(Some).ok_or(NoRoom)
    }
}
