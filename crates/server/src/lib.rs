//! The server: HTTP interface, accounts, settings and periodic tasks.

mod accounts;
mod approvals;
mod approver;
mod auth;
mod connection;
mod http;
mod in_process;
mod local;
mod lock_file;
mod logging;
pub mod mcp;
mod metrics;
mod offers;
pub mod operator;
mod outside;
mod policy;
mod programs;
pub mod python;
mod runtime;
mod secrets;
mod served_folder;
mod server;
pub mod settings;
mod sign_ins;
pub mod tool_backend;
mod upkeep;
mod webhooks;

pub use approver::{ApprovalRequest, Approver, ApproverDecision};
pub use in_process::InProcessServer;
pub use local::Local;
pub use logging::start as start_logging;
pub use outside::OutsideError;
pub use runtime::{Runtime, RuntimeOptions, StartError};
pub use served_folder::ServedFolder;
pub use server::Server;
pub use sign_ins::sign_ins_folder;
