//! What the types of a handler say about its operation, for the OpenAPI description: whether it needs a token, the body that
//! it takes, and the answer that it gives.

use super::App;
use super::reply::{Failure, Reply};
use super::request::{Json, SignedIn, Unread, WorkspaceRequest};
use axum::Extension;
use axum::extract::{Path, Query, Request, State};
use axum::response::Response;
use http::HeaderMap;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::sync::Arc;

/// Generates the schema of a type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What the types of a handler say.
#[derive(Clone, Copy, Default)]
pub(super) struct Operation {
    /// Whether only callers with a token can use it.
    pub(super) needs_token: bool,
    /// The body.
    pub(super) body: Option<SchemaOf>,
    /// The answer, if it is JSON.
    pub(super) answer: Option<SchemaOf>,
}

/// A function that can be described. `T` is the tuple of its arguments, as in [`axum::handler::Handler`].
pub(super) trait Described<T> {
    fn operation() -> Operation;
}

/// An argument of a handler.
trait Input {
    fn describe(_: &mut Operation) {}
}

impl Input for State<Arc<App>> {}
impl Input for HeaderMap {}
impl Input for Request {}
impl<T> Input for Extension<T> {}
impl<T> Input for Query<T> {}
impl<T, E> Input for Result<Path<T>, E> {}

impl Input for SignedIn {
    fn describe(operation: &mut Operation) {
        operation.needs_token = true;
    }
}

impl Input for WorkspaceRequest {
    fn describe(operation: &mut Operation) {
        operation.needs_token = true;
    }
}

impl<T: JsonSchema> Input for Json<T> {
    fn describe(operation: &mut Operation) {
        operation.body = Some(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: JsonSchema> Input for Unread<T> {
    fn describe(operation: &mut Operation) {
        operation.body = Some(SchemaGenerator::subschema_for::<T>);
    }
}

/// What a handler returns.
trait Output {
    fn schema() -> Option<SchemaOf> {
        None
    }
}

impl Output for Response {}
impl Output for Failure {}

impl<T: JsonSchema> Output for Reply<T> {
    fn schema() -> Option<SchemaOf> {
        Some(SchemaGenerator::subschema_for::<T>)
    }
}

impl<T: Output> Output for Result<T, Failure> {
    fn schema() -> Option<SchemaOf> {
        T::schema()
    }
}

impl<F: FnOnce() -> R, R: Future<Output: Output>> Described<((),)> for F {
    fn operation() -> Operation {
        Operation { answer: R::Output::schema(), ..Operation::default() }
    }
}

macro_rules! described {
    ($($argument:ident)+) => {
        impl<F, R, M, $($argument),+> Described<(M, $($argument,)+)> for F
        where
            F: FnOnce($($argument),+) -> R,
            R: Future<Output: Output>,
            $($argument: Input,)+
        {
            fn operation() -> Operation {
                let mut operation = Operation { answer: R::Output::schema(), ..Operation::default() };
                $($argument::describe(&mut operation);)+
                operation
            }
        }
    };
}

described!(A);
described!(A B);
described!(A B C);
described!(A B C D);
