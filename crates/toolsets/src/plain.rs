//! The answer format of specifications 001 and 004.

use crate::error_text::{DOWNLOAD, ErrorText, PathForm, describe_error, relative_notice};
use crate::errors;
use serde::Serialize;
use serde_json::{Map, Value};
use toolrest_core::{Dialect, ErrorKind, Notice, Success, ToolError, WaitingCall};

/// Answers with the bare result, or with `{"error", "message"}`.
pub(crate) struct PlainDialect {
    /// Returns the dialect's code for a kind.
    pub code: fn(ErrorKind) -> &'static str,
    /// Returns the message for an error whose paths are relative already.
    pub message: fn(&ToolError) -> String,
    /// Adds the dialect's fields for a call that waits for a person.
    pub pending: fn(&mut Map<String, Value>, &WaitingCall<'_>),
}

impl Dialect for PlainDialect {
    /// Nothing is around the result, so a result that is not an object holds no warnings. No tool has such a result.
    fn success(&self, success: &Success<'_>) -> Vec<u8> {
        success.result.as_bytes().to_vec()
    }

    fn failure(&self, error: &ToolError, _: &str) -> Vec<u8> {
        #[derive(Serialize)]
        struct Failure {
            error: &'static str,
            message: String,
        }
        let error_text = describe_error(error, PathForm::Relative, DOWNLOAD);
        let mut error = error.clone();
        (error.message, error.details) = (error_text.message.clone(), error_text.details.clone());
        let error_text = ErrorText { message: (self.message)(&error), ..error_text };
        let body = Failure { error: (self.code)(error.kind), message: error_text.message_with_hint() };
        // Strings always serialise.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn notice(&self, notice: &Notice) -> String {
        relative_notice(notice)
    }

    fn add_pending_fields(&self, body: &mut Map<String, Value>, waiting: &WaitingCall<'_>) {
        (self.pending)(body, waiting);
    }

    fn status(&self, error: &ToolError) -> u16 {
        errors::row(error.kind).status
    }
}
