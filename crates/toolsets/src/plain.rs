//! The dialect that 001 and 004 share.

use crate::errors::{self, ErrorRow};
use serde::Serialize;
use toolrest_core::{CallId, Dialect, ToolError};

/// Wraps a result not at all, and an error as `{"error", "message"}`.
pub(crate) struct Plain {
    /// The column of the table that holds the dialect's codes.
    pub code: fn(&ErrorRow) -> &'static str,
    /// What is said of an error.
    pub message: fn(&ToolError) -> String,
}

impl Dialect for Plain {
    fn success(&self, result: &str, _: CallId) -> Vec<u8> {
        result.as_bytes().to_vec()
    }

    fn failure(&self, error: &ToolError, _: CallId) -> Vec<u8> {
        #[derive(Serialize)]
        struct Failure {
            error: &'static str,
            message: String,
        }
        let body = Failure { error: (self.code)(&errors::row(error.kind)), message: (self.message)(error) };
        // Strings always serialise.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn status(&self, error: &ToolError) -> u16 {
        errors::row(error.kind).status
    }
}
