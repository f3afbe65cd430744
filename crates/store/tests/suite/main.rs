//! One behaviour suite for both stores.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod changesets;
mod concurrency;
mod feed;
mod history;
mod large_commits;
mod migrations;
mod purge;
mod sessions;
mod test_workspace;
