//! What programs get that try to get out, to exhaust the machine or to do honest work.
//!
//! Every case runs as whoever runs the tests; where that is root, `users` runs them all once more as an ordinary user.

#![allow(clippy::unwrap_used, clippy::panic, reason = "also what is no test itself belongs to one")]

mod exhaustion;
mod files;
mod kernel;
mod lifetime;
mod mounts;
mod moving;
mod network;
mod overlay;
mod pool;
mod processes;
mod quotas;
mod refusals;
mod scene;
mod streams;
mod users;
mod watchdog;
mod work;
