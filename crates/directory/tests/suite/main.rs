//! Tests of the crate on real files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "also what is no test itself belongs to one")]

mod commits;
mod contention;
mod crash;
mod fixture;
mod hostile;
mod ignoring;
mod listing;
mod model;
mod reading;
mod refusals;
mod walking;
mod watching;
