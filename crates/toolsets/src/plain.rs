//! The dialect that 001 and 004 share.

use crate::errors::{self, ErrorRow};
use serde::Serialize;
use serde_json::Value;
use toolrest_core::{Dialect, ToolError};

/// The files that a missing one may have been meant for, on a line of their own.
fn near(error: &ToolError) -> String {
    let names = error.details.get("near").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str).map(|name| name.trim_start_matches('/'));
    let names: Vec<&str> = names.collect();
    if names.is_empty() { String::new() } else { format!("\nDid you mean {}?", names.join(" or ")) }
}

/// Wraps a result not at all, and an error as `{"error", "message"}`.
pub(crate) struct Plain {
    /// The column of the table that holds the dialect's codes.
    pub code: fn(&ErrorRow) -> &'static str,
    /// What is said of an error.
    pub message: fn(&ToolError) -> String,
}

impl Dialect for Plain {
    fn success(&self, result: &str, _: &str) -> Vec<u8> {
        result.as_bytes().to_vec()
    }

    fn failure(&self, error: &ToolError, _: &str) -> Vec<u8> {
        #[derive(Serialize)]
        struct Failure {
            error: &'static str,
            message: String,
        }
        let body =
            Failure { error: (self.code)(&errors::row(error.kind)), message: (self.message)(error) + &near(error) };
        // Strings always serialise.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn status(&self, error: &ToolError) -> u16 {
        errors::row(error.kind).status
    }
}
