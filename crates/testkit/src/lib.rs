//! Harness for tests: real servers on free ports, a private PostgreSQL, and an HTTP client of its own.
//!
//! Everything that is started here ends with the test process, however that ends, and leaves no folder behind.
#![allow(clippy::unwrap_used, clippy::expect_used)]
// The product never spawns, polls or loosens its JSON like this; a harness must.
#![allow(clippy::disallowed_methods)]

mod account;
mod client;
mod digest;
mod output;
mod postgres;
mod process;
mod reply;
mod schemas;
mod server;
mod wait;
mod watchdog;

pub use account::{Account, PASSWORD, Workspace, unique_email};
pub use client::{Client, Request};
pub use digest::sha256_hex;
pub use postgres::{Postgres, program as postgres_program};
pub use reply::Reply;
pub use server::{Backend, Port, Refusal, Server, ServerOptions, data_folder, new_home};
pub use wait::{eventually, wait_until};
