//! One behaviour suite for both stores.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod approvals;
mod calls;
mod changesets;
mod concurrency;
mod feed;
mod history;
mod keys;
mod large_commits;
mod migrations;
mod purge;
mod quotas;
mod rules;
mod sessions;
mod several_processes;
mod test_workspace;
mod workspace_metrics;
