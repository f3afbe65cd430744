//! The benchmark cases, each with its workload and its targets.

use std::time::Duration;

use crate::load::Round;
use crate::report::{median, number};

pub mod approvals;
pub mod cpu;
pub mod folder_edits;
pub mod memories;
pub mod memory;
pub mod moves;
pub mod programs;
pub mod rules;
pub mod search;
pub mod tool_backend;
pub mod updates;

/// How long and how often to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    pub rounds: usize,
    pub round: Duration,
    /// Load before the first round, which is not measured.
    pub warm_up: Duration,
    pub moves: usize,
    pub searched_files: usize,
    pub memories: usize,
    pub decisions: usize,
}

impl Effort {
    pub const FULL: Self = Self {
        rounds: 5,
        round: Duration::from_secs(3),
        warm_up: Duration::from_millis(700),
        moves: 9,
        searched_files: 20_000,
        memories: 100_000,
        decisions: 101,
    };
    pub const QUICK: Self = Self {
        rounds: 2,
        round: Duration::from_secs(1),
        warm_up: Duration::from_millis(300),
        moves: 5,
        searched_files: 4000,
        memories: 5_000,
        decisions: 21,
    };
}

fn per_round(rounds: &[Round], value: impl Fn(&Round) -> f64) -> Vec<f64> {
    rounds.iter().map(value).collect()
}

fn median_of(rounds: &[Round], value: impl Fn(&Round) -> f64) -> String {
    number(median(&per_round(rounds, value)))
}

fn latencies(rounds: &[Round]) -> String {
    format!(
        "p50 {} ms, p99 {} ms",
        median_of(rounds, |round| round.latency_ms(50)),
        median_of(rounds, |round| round.latency_ms(99))
    )
}
