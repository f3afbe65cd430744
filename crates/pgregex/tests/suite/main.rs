//! Integration tests: comparisons with a real PostgreSQL, and properties that hold for any input.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fixed_patterns;
mod fuzz;
mod generator;
mod oracle;
mod properties;
