//! Benchmarks many jobs: failures of concurrent ones, and memory growth over sequential ones.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use toolrest_sandbox::Interpreter;

use super::Jobs;
use crate::report::{Figure, Report, Target};

const AT_ONCE: usize = 32;
const IN_A_ROW: usize = 2000;

/// Interval between two samples of the child processes.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
/// Number of equal samples after which the child processes count as idle.
const EQUAL_SAMPLES: usize = 10;
const MAX_SAMPLES: usize = 500;

pub(super) fn run(jobs: &Jobs, bash: &Interpreter, report: &mut Report) {
    let start = Instant::now();
    let failed = jobs.runtime.block_on(async {
        let mut started = Vec::new();
        for _ in 0..AT_ONCE {
            started.push(jobs.sandbox.spawn(jobs.job(bash, "echo x")).await);
        }
        let mut failed = 0;
        for job in started {
            let ended = match job {
                Ok(job) => job.wait().await,
                Err(error) => Err(error),
            };
            failed += u32::from(!ended.is_ok_and(|report| report.success()));
        }
        failed
    });
    report.add(Figure {
        case: format!("{AT_ONCE} jobs at once: failures"),
        unit: "",
        rounds: vec![f64::from(failed)],
        target: Target::AtMost(0.0),
        notes: format!("{:.0} ms in total", start.elapsed().as_secs_f64() * 1e3),
    });
    let (mut early, mut start) = (ChildProcesses::default(), Instant::now());
    for number in 0..IN_A_ROW {
        if number == IN_A_ROW / 10 {
            (early, start) = (ChildProcesses::when_idle(), Instant::now());
        }
        let job = jobs.job(bash, "true");
        let ended = jobs.runtime.block_on(async { jobs.sandbox.spawn(job).await?.wait().await });
        assert!(ended.is_ok_and(|report| report.success()));
    }
    let each = start.elapsed().as_secs_f64() * 1e3 / (IN_A_ROW * 9 / 10) as f64;
    let late = ChildProcesses::when_idle();
    report.add(Figure {
        case: format!("{IN_A_ROW} jobs in a row: memory after all, divided by memory after a tenth"),
        unit: "×",
        rounds: vec![late.memory_kib as f64 / early.memory_kib as f64],
        target: Target::AtMost(1.05),
        notes: format!(
            "child processes {} KiB, then {} KiB; {} processes, then {}; {each:.2} ms per job",
            early.memory_kib,
            late.memory_kib,
            early.processes.len(),
            late.processes.len()
        ),
    });
}

/// The descendants of this process: mostly the launcher and the sandbox processes (cells) that it started in advance.
#[derive(Default)]
struct ChildProcesses {
    memory_kib: u64,
    processes: Vec<String>,
}

impl ChildProcesses {
    /// Waits until the processes no longer change, and returns them. After a job its cell ends and another one is
    /// started; meanwhile the number of processes and their memory vary.
    fn when_idle() -> Self {
        let mut current = Self::now();
        let mut equal = 0;
        for _ in 0..MAX_SAMPLES {
            thread::sleep(SAMPLE_INTERVAL);
            let next = Self::now();
            equal = if next.processes == current.processes { equal + 1 } else { 0 };
            current = next;
            if equal == EQUAL_SAMPLES {
                break;
            }
        }
        current
    }

    fn now() -> Self {
        let mut all = Self::default();
        let mut parents = vec![std::process::id().to_string()];
        while let Some(parent) = parents.pop() {
            for thread in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
                let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
                for child in children.split_whitespace() {
                    all.memory_kib += anonymous_memory_kib(child);
                    all.processes.push(child.to_owned());
                    parents.push(child.to_owned());
                }
            }
        }
        all
    }
}

/// Anonymous memory of a process. Pages shared with its parent after a fork are counted for both.
fn anonymous_memory_kib(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0");
    line.split_whitespace().next().unwrap_or("0").parse().unwrap_or(0)
}
