//! Builds HTTP answers.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use std::marker::PhantomData;
use toolrest_core::{ErrorKind, ToolError, to_json_within};
use toolrest_store::StoreError;
use toolrest_toolsets::{errors, workspace};

/// An error of the REST interface, answered in the format of specification 000.
pub(crate) struct Failure(pub(crate) ToolError);

/// What a handler returns.
pub(crate) type Answer<T = Response> = Result<T, Failure>;

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.0.log_cause();
        let mut response = failure(workspace::failure(&self.0), errors::row(self.0.kind).status, &self.0);
        response.extensions_mut().insert(FailureReason { kind: self.0.kind, message: self.0.message });
        response
    }
}

/// Why a request failed, as an extension of its answer, for the record of the request.
#[derive(Clone)]
pub(crate) struct FailureReason {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

/// Returns the answer for an error whose body is already formatted, and whose cause was logged.
pub(crate) fn failure(body: Vec<u8>, status: u16, error: &ToolError) -> Response {
    let mut response = json(status, body);
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns the answer of a tool call, whose body is already formatted.
pub(crate) fn answer_with(status: u16, body: Vec<u8>) -> Response {
    json(status, body)
}

/// An answer with a `T` as JSON.
pub(crate) struct Reply<T> {
    pub(crate) response: Response,
    body: PhantomData<fn() -> T>,
}

impl<T> Reply<T> {
    fn new(body: Vec<u8>) -> Self {
        Self { response: json(200, body), body: PhantomData }
    }
}

impl<T> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        self.response
    }
}

/// What is said where there is nothing else to answer.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {
    pub(crate) message: &'static str,
}

/// Returns an answer with a value as JSON.
pub(crate) fn ok<T: Serialize>(value: &T) -> Answer<Reply<T>> {
    Ok(Reply::new(serde_json::to_vec(value).map_err(ToolError::internal)?))
}

/// Returns an answer with a value as JSON, or an error if that is over the limit.
pub(crate) fn ok_within<T: Serialize>(value: &T, limit_bytes: usize) -> Answer<Reply<T>> {
    let body = to_json_within(value, limit_bytes)?.ok_or_else(|| {
        let message = format!("The answer is over the limit of {limit_bytes} bytes");
        ToolError::new(ErrorKind::ResponseTooLarge, message)
    })?;
    Ok(Reply::new(body.into_bytes()))
}

fn json(status: u16, body: Vec<u8>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
