//! The cases, each a workload of its own with the targets it is held to.

use std::time::Duration;

use crate::load::Round;
use crate::report::{Figure, Target, median, number};

pub mod cpu;
pub mod folder_edits;
pub mod memory;
pub mod moves;
pub mod programs;
pub mod search;
pub mod sql_writes;
pub mod updates;

/// How long and how often to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    pub rounds: usize,
    pub round: Duration,
    /// Load before the first round that is not measured.
    pub warm_up: Duration,
    pub moves: usize,
    pub searched_files: usize,
}

impl Effort {
    pub const FULL: Self = Self {
        rounds: 5,
        round: Duration::from_secs(3),
        warm_up: Duration::from_millis(700),
        moves: 9,
        searched_files: 20_000,
    };
    pub const QUICK: Self = Self {
        rounds: 2,
        round: Duration::from_secs(1),
        warm_up: Duration::from_millis(300),
        moves: 5,
        searched_files: 4000,
    };
}

fn each(rounds: &[Round], value: impl Fn(&Round) -> f64) -> Vec<f64> {
    rounds.iter().map(value).collect()
}

fn middle(rounds: &[Round], value: impl Fn(&Round) -> f64) -> String {
    number(median(&each(rounds, value)))
}

fn latencies(rounds: &[Round]) -> String {
    format!(
        "p50 {} ms, p99 {} ms",
        middle(rounds, |round| round.latency_ms(50)),
        middle(rounds, |round| round.latency_ms(99))
    )
}

/// What the disk gave at the time: no figure of a write means anything without it.
fn fdatasync_figure(rounds: Vec<f64>) -> Figure {
    Figure {
        case: "fdatasync of 4 KB on this disk".to_owned(),
        unit: "/s",
        rounds,
        target: Target::None,
        beside: "one after the other, between the rounds above".to_owned(),
    }
}
