//! The engine against patches that git made of real sources, whole and damaged.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod damage;
mod damaged;
mod pairs;
mod properties;
mod real;
