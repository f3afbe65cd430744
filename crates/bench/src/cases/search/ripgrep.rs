//! ripgrep on the same files, in its fastest mode, stopped at the same limit.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::patterns::{Case, PATTERNS, Pattern, Syntax};
use super::{LIMIT, milliseconds};
use crate::report::median;

/// Modes of which each is the fastest for some patterns.
const MODES: [&str; 4] = ["--mmap", "--no-mmap", "--mmap --threads=1", "--no-mmap --threads=1"];

/// Times of ripgrep in milliseconds, by pattern, mode and round.
#[derive(Default)]
pub struct RipgrepTimes {
    times: [[Vec<f64>; MODES.len()]; PATTERNS.len()],
    lines: [usize; PATTERNS.len()],
}

impl RipgrepTimes {
    /// Measures one round of a pattern in all modes and returns the number of lines found, at most [`LIMIT`].
    pub fn measure(&mut self, folder: &Path, pattern: usize) -> usize {
        for (mode, times) in MODES.iter().zip(&mut self.times[pattern]) {
            let (elapsed, lines) = search(folder, &PATTERNS[pattern], mode);
            times.push(milliseconds(elapsed));
            self.lines[pattern] = lines;
        }
        self.lines[pattern]
    }

    /// Returns the times of the fastest mode by pattern and round.
    pub fn fastest(&self) -> Vec<Vec<f64>> {
        (0..PATTERNS.len()).map(|pattern| self.times[pattern][self.fastest_mode(pattern)].clone()).collect()
    }

    pub fn notes(&self, pattern: usize) -> String {
        format!(" of `rg {}`; {} lines", MODES[self.fastest_mode(pattern)], self.lines[pattern])
    }

    fn fastest_mode(&self, pattern: usize) -> usize {
        let time = |mode: usize| median(&self.times[pattern][mode]);
        (0..MODES.len()).min_by(|one, other| time(*one).total_cmp(&time(*other))).expect("there are modes")
    }
}

/// Searches until the limit or the end; returns the time and the number of lines.
fn search(folder: &Path, pattern: &Pattern, mode: &str) -> (Duration, usize) {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--no-ignore", "--hidden", "--line-number", "--no-heading", "--color=never"]);
    command.args(mode.split(' '));
    if pattern.case == Case::Ignored {
        command.arg("--ignore-case");
    }
    if pattern.syntax == Syntax::Literal {
        command.arg("--fixed-strings");
    }
    command.args(["--", pattern.text, "."]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());

    let start = Instant::now();
    let mut child = command.spawn().expect("rg starts");
    let mut output = child.stdout.take().expect("stdout is piped");
    let mut buffer = vec![0; 64 * 1024];
    let mut lines = 0;
    while lines < LIMIT {
        match output.read(&mut buffer).expect("rg's output can be read") {
            0 => break,
            count => lines += buffer[..count].split(|byte| *byte == b'\n').count() - 1,
        }
    }
    if lines < LIMIT {
        let status = child.wait().expect("rg ends");
        assert!(matches!(status.code(), Some(0 | 1)), "rg failed on {}: {status}", pattern.text);
        return (start.elapsed(), lines);
    }
    let elapsed = start.elapsed();
    child.kill().and_then(|()| child.wait()).expect("rg can be stopped");
    (elapsed, LIMIT)
}
