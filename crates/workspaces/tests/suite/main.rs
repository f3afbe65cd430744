//! Workspaces of both kinds, and programs in them, on both stores.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod checkout_conflicts;
mod checkout_left_out;
mod checkout_merges;
mod checkout_renames;
mod checkout_scene;
mod checkouts;
mod folder_checkouts;
mod folder_exchanges;
mod folder_failures;
mod folder_git;
mod folder_in_place;
mod folder_links;
mod folder_past_history;
mod folder_search;
mod folder_views;
mod folders;
mod programs;
#[allow(dead_code, reason = "the suite of the store uses the rest")]
#[path = "../../../store/tests/suite/test_workspace.rs"]
mod test_workspace;
