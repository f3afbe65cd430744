//! Translates failures of the server's own disk into errors for callers.

use std::io;
use toolrest_core::{ErrorKind, ToolError};

/// Translates a failure below the data directory. A full disk or quota is reported as such, because the operator can
/// solve it; everything else is an internal error.
pub fn disk_fault(error: io::Error) -> ToolError {
    if is_full(&error) { storage_full() } else { ToolError::internal(error) }
}

/// Whether a disk, or the server's quota on it, is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the error for a full disk below the data directory.
pub fn storage_full() -> ToolError {
    let message = "No space is left on the server's disk for the files that programs work on";
    ToolError::new(ErrorKind::StorageFull, message)
}
