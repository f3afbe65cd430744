//! A budget of memory, shared between callers.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes are counted in units of this size.
const UNIT_BYTES: usize = 1 << 10;

/// One caller can hold this fraction of the budget.
const SHARES: u32 = 4;

/// Limits the bytes in memory, for all callers together and for each of them.
///
/// A caller takes space in the map only while it holds bytes or waits for some.
pub struct ByteBudget<K: Eq + Hash + Clone> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    all: Arc<Semaphore>,
    share: u32,
    callers: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// Bytes that a caller holds, returned when dropped.
pub struct HeldBytes<K: Eq + Hash + Clone> {
    shared: Arc<Shared<K>>,
    caller: K,
    of_share: Option<OwnedSemaphorePermit>,
    of_all: Option<OwnedSemaphorePermit>,
}

impl<K: Eq + Hash + Clone> ByteBudget<K> {
    /// Creates a budget of `bytes` bytes, of which one caller can hold a quarter. A request of `largest_bytes` always
    /// fits into the budget and into a caller's share.
    pub fn new(bytes: usize, largest_bytes: usize) -> Self {
        let largest = units(largest_bytes).max(1);
        let all = units(bytes).max(largest);
        let share = (all / SHARES).max(largest);
        let shared = Shared { all: Arc::new(Semaphore::new(all as usize)), share, callers: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Waits for bytes. A request of more than the caller's share gets the share.
    pub async fn reserve(&self, caller: K, bytes: usize) -> HeldBytes<K> {
        let mut held = self.nothing_for(caller);
        // The share is taken first, so that a caller who has used it up does not delay others.
        held.claim(bytes).await;
        held.fill(bytes).await;
        held
    }

    /// Takes bytes if they are available without waiting.
    pub fn try_reserve(&self, caller: K, bytes: usize) -> Option<HeldBytes<K>> {
        let mut held = self.nothing_for(caller);
        let units = units(bytes).min(self.shared.share);
        held.of_share = Some(self.shared.share_of(&held.caller).try_acquire_many_owned(units).ok()?);
        held.of_all = Some(Arc::clone(&self.shared.all).try_acquire_many_owned(units).ok()?);
        Some(held)
    }

    /// Creates an empty reservation, for a caller that takes bytes step by step.
    pub fn nothing_for(&self, caller: K) -> HeldBytes<K> {
        HeldBytes { shared: Arc::clone(&self.shared), caller, of_share: None, of_all: None }
    }

    /// Whether no caller holds bytes or waits for some.
    pub fn is_idle(&self) -> bool {
        self.shared.callers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl<K: Eq + Hash + Clone> Shared<K> {
    fn share_of(&self, caller: &K) -> Arc<Semaphore> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let full = || Arc::new(Semaphore::new(self.share as usize));
        Arc::clone(callers.entry(caller.clone()).or_insert_with(full))
    }
}

impl<K: Eq + Hash + Clone> HeldBytes<K> {
    /// Waits until this reservation holds `bytes` bytes of the caller's share. They reduce the budget of others only
    /// when [`HeldBytes::fill`] takes them, so that a slow caller delays only itself.
    pub async fn claim(&mut self, bytes: usize) {
        let wanted = units(bytes).min(self.shared.share);
        let share = self.shared.share_of(&self.caller);
        take(&mut self.of_share, share, wanted).await;
    }

    /// Waits until `bytes` of the claimed bytes are taken from the whole budget too.
    pub async fn fill(&mut self, bytes: usize) {
        let claimed = self.of_share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = units(bytes).min(u32::try_from(claimed).unwrap_or(u32::MAX));
        let all = Arc::clone(&self.shared.all);
        take(&mut self.of_all, all, wanted).await;
    }
}

/// Waits until `wanted` units are held in total.
async fn take(held: &mut Option<OwnedSemaphorePermit>, from: Arc<Semaphore>, wanted: u32) {
    let has = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
    let missing = wanted.saturating_sub(u32::try_from(has).unwrap_or(u32::MAX));
    if missing == 0 {
        return;
    }
    // The semaphore is never closed.
    let Ok(more) = from.acquire_many_owned(missing).await else { return };
    match held {
        Some(held) => held.merge(more),
        None => *held = Some(more),
    }
}

impl<K: Eq + Hash + Clone> Drop for HeldBytes<K> {
    fn drop(&mut self) {
        (self.of_share, self.of_all) = (None, None);
        let mut callers = self.shared.callers.lock().unwrap_or_else(PoisonError::into_inner);
        // The only reference is the one in the map: nobody holds bytes of the share or waits for some.
        if callers.get(&self.caller).is_some_and(|share| Arc::strong_count(share) == 1) {
            callers.remove(&self.caller);
        }
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(u32::MAX >> 3)
}

#[cfg(test)]
#[path = "byte_budget_tests.rs"]
mod tests;
