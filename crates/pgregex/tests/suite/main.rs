//! The crate against a real PostgreSQL, and by itself.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fixed;
mod fuzz;
mod generator;
mod oracle;
mod properties;
