//! One suite of behaviour, for every store.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod changesets;
mod checkout_conflicts;
mod checkout_left_out;
mod checkout_merges;
mod checkout_renames;
mod checkout_scene;
mod checkouts;
mod concurrency;
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
mod history;
mod large_commits;
mod migrations;
mod programs;
mod purge;
mod room;
mod sessions;
