//! HTTP, accounts and configuration.

mod auth;
mod http;
mod logging;
mod server;
pub mod settings;
mod upkeep;

pub use logging::start as start_logging;
pub use server::{Server, StartError};
