//! Many jobs: at once, and one after the other.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use toolrest_sandbox::Interpreter;

use super::Cold;
use crate::report::{Figure, Report, Target};

const AT_ONCE: usize = 32;
const IN_A_ROW: usize = 2000;

/// How often, and how far apart, the same processes must be seen for everything to be at rest.
const AT_REST: (usize, Duration) = (10, Duration::from_millis(10));
/// How often it is looked in all before that is given up.
const LOOKS: usize = 500;

pub(super) fn run(cold: &Cold, bash: &Interpreter, report: &mut Report) {
    let begun = Instant::now();
    let failed = cold.runtime.block_on(async {
        let mut jobs = Vec::new();
        for _ in 0..AT_ONCE {
            jobs.push(cold.sandbox.spawn(cold.job(bash, "echo x")).await);
        }
        let mut failed = 0;
        for job in jobs {
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
        beside: format!("all together {:.0} ms", begun.elapsed().as_secs_f64() * 1e3),
    });
    let (mut early, mut begun) = (Held::default(), Instant::now());
    for number in 0..IN_A_ROW {
        if number == IN_A_ROW / 10 {
            (early, begun) = (Held::at_rest(), Instant::now());
        }
        let job = cold.job(bash, "true");
        let ended = cold.runtime.block_on(async { cold.sandbox.spawn(job).await?.wait().await });
        assert!(ended.is_ok_and(|report| report.success()));
    }
    let each = begun.elapsed().as_secs_f64() * 1e3 / (IN_A_ROW * 9 / 10) as f64;
    let late = Held::at_rest();
    report.add(Figure {
        case: format!("{IN_A_ROW} jobs in a row: memory after all of them, times that after a tenth"),
        unit: "×",
        rounds: vec![late.memory_kib as f64 / early.memory_kib as f64],
        target: Target::AtMost(1.05),
        beside: format!(
            "launcher and waiting cells {} KiB, then {} KiB; {} processes, then {}; {each:.2} ms each",
            early.memory_kib,
            late.memory_kib,
            early.processes.len(),
            late.processes.len()
        ),
    });
}

/// What descends from this process: the launcher and the cells that wait.
#[derive(Default)]
struct Held {
    memory_kib: u64,
    processes: Vec<String>,
}

impl Held {
    /// Looks when the cell of the last job is gone and another one has taken its place: until then there are fewer
    /// processes or more, and each has about as much memory as the launcher.
    fn at_rest() -> Self {
        let mut held = Self::now();
        let mut same = 0;
        for _ in 0..LOOKS {
            thread::sleep(AT_REST.1);
            let next = Self::now();
            same = if next.processes == held.processes { same + 1 } else { 0 };
            held = next;
            if same == AT_REST.0 {
                break;
            }
        }
        held
    }

    fn now() -> Self {
        let mut held = Self::default();
        let mut parents = vec![std::process::id().to_string()];
        while let Some(parent) = parents.pop() {
            for thread in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
                let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
                for child in children.split_whitespace() {
                    held.memory_kib += own_memory_kib(child);
                    held.processes.push(child.to_owned());
                    parents.push(child.to_owned());
                }
            }
        }
        held
    }
}

/// Memory of a process that is no file's; what it shares with the one that it was forked from counts for both.
fn own_memory_kib(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0");
    line.split_whitespace().next().unwrap_or("0").parse().unwrap_or(0)
}
