//! The limits of one call: the size of its result, and the caller's stop flag.

use crate::error::EditError;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of loop iterations between two checks of the stop flag.
const STEPS_BETWEEN_CHECKS: usize = 4_096;

/// A flag that the caller sets when it no longer needs the result.
///
/// Long loops check the flag and end early. They then return an incomplete result, so their caller has to check the
/// flag again before using it.
#[derive(Clone, Copy, Debug)]
pub struct StopFlag<'s>(&'s AtomicBool);

impl<'s> StopFlag<'s> {
    /// Wraps the caller's flag.
    pub const fn new(flag: &'s AtomicBool) -> Self {
        Self(flag)
    }

    /// Returns whether the flag is set.
    pub fn is_set(self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns whether the flag is set; checks it only once in `STEPS_BETWEEN_CHECKS` steps of a loop.
    pub(crate) fn is_set_at(self, step: usize) -> bool {
        step.is_multiple_of(STEPS_BETWEEN_CHECKS) && self.is_set()
    }

    /// Fails if the flag is set.
    pub(crate) fn check(self) -> Result<(), EditError> {
        if self.is_set() { Err(EditError::Stopped) } else { Ok(()) }
    }
}

impl StopFlag<'static> {
    /// Returns a flag that is never set.
    pub const fn never() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self(&NEVER)
    }
}

/// The limits of one call.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'s> {
    /// Maximum size of the result. A call whose result could be larger is refused.
    pub bytes: usize,
    /// Ends the call early with [`EditError::Stopped`].
    pub stop: StopFlag<'s>,
}

impl Limits<'static> {
    /// Returns limits with a maximum size and without a stop flag.
    pub const fn of_bytes(bytes: usize) -> Self {
        Self { bytes, stop: StopFlag::never() }
    }
}
