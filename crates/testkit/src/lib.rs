//! Harness for tests and benchmarks: real servers on free ports, a private PostgreSQL, and a small HTTP client.
//!
//! Every process started here ends with the test process, also if that is killed, and its folders are removed.
#![allow(clippy::unwrap_used, clippy::expect_used)]
// Calls that are forbidden in the product: a harness spawns processes, polls and parses any JSON.
#![allow(clippy::disallowed_methods)]

mod account;
mod client;
mod description;
mod digest;
mod output;
mod postgres;
mod process;
mod reply;
mod schemas;
mod server;
mod temp_folder;
mod wait;
mod watchdog;

pub use account::{Account, PASSWORD, Workspace, unique_email};
pub use client::{Client, RawReply, Request};
pub use digest::sha256_hex;
pub use output::Output;
pub use postgres::{Postgres, program as postgres_program};
pub use reply::Reply;
pub use server::{Backend, Port, Server, ServerOptions, StartFailure, data_folder, new_home};
pub use temp_folder::temp_folder;
pub use wait::{eventually, wait_until};
