//! What one call of the engine may take.

use crate::error::EditError;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many steps of a loop pass between two looks at the stop flag.
const STEPS_BETWEEN_CHECKS: usize = 4_096;

/// A flag of the caller's: once it is set, nobody wants the result any more.
///
/// Loops that may take long look at it and end early. What they leave is not a result, so whoever called them checks
/// the flag again before using it.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'s>(&'s AtomicBool);

impl<'s> Stop<'s> {
    /// Watches a flag.
    pub const fn when(flag: &'s AtomicBool) -> Self {
        Self(flag)
    }

    /// Whether the work is to end.
    pub fn is_set(self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether the work is to end, asked once in a while in a loop that has come to this step.
    pub(crate) fn is_set_at(self, step: usize) -> bool {
        step.is_multiple_of(STEPS_BETWEEN_CHECKS) && self.is_set()
    }

    pub(crate) fn check(self) -> Result<(), EditError> {
        if self.is_set() { Err(EditError::Stopped) } else { Ok(()) }
    }
}

impl Stop<'static> {
    /// A flag that nobody sets.
    pub const fn never() -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Self(&NEVER)
    }
}

/// The limits of one call.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'s> {
    /// The largest result. One that could be larger is refused.
    pub bytes: usize,
    /// When to end early, with [`EditError::Stopped`].
    pub stop: Stop<'s>,
}

impl Limits<'static> {
    /// A limit of the result's size alone.
    pub const fn of_bytes(bytes: usize) -> Self {
        Self { bytes, stop: Stop::never() }
    }
}
