//! Integration tests with patches that git created from real sources, undamaged and damaged, and with random texts.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod damage_kinds;
mod damaged_patches;
mod git_patches;
mod properties;
mod version_pairs;
