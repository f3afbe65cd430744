//! Tests with programs that try to escape, that try to exhaust the machine, and that do ordinary work.
//!
//! Every test runs as the current user. If that is root, `users` runs all of them again as an ordinary user.

#![allow(clippy::unwrap_used, clippy::panic, reason = "also what is no test itself belongs to one")]

mod exhaustion;
mod files;
mod fixture;
mod kernel;
mod lifetime;
mod mounts;
mod moved_objects;
mod network;
mod overlay;
mod pool;
mod processes;
mod quotas;
mod refusals;
mod streams;
mod users;
mod watchdog;
mod work;
