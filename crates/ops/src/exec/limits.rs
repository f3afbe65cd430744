//! Limits of programs: the requested ones, capped by those of the workspace and the operator.

use std::{sync::LazyLock, thread, time::Duration};
use toolrest_core::{CallCx, RunSettings};
use toolrest_sandbox::Limits;

/// Number of processors available to this process. Computed once, because the computation reads several files.
static PROCESSORS: LazyLock<u32> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)));

/// Limits of programs.
#[derive(Clone, Debug, Default)]
pub struct ExecLimits {
    /// Limits of a program for which the caller requests none.
    pub default: Limits,
    /// The operator's maximums.
    pub ceiling: Limits,
}

/// The limits that a caller requests for a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestedLimits {
    /// Maximum run time.
    pub wall: Option<Duration>,
    /// Maximum memory of all its processes together.
    pub memory_bytes: Option<u64>,
}

impl ExecLimits {
    /// Returns the effective limits of a program. Adds a warning for each that is lower than requested, and if the
    /// memory limit had to be raised to the minimum.
    pub(super) fn of(&self, cx: &CallCx, workspace: &RunSettings, requested: RequestedLimits) -> Limits {
        let ceiling = self.ceiling.capped(&ceiling_of(workspace, &self.ceiling));
        let wanted = Limits {
            wall: requested.wall.unwrap_or(self.default.wall),
            memory_bytes: requested.memory_bytes.unwrap_or(self.default.memory_bytes),
            ..self.default.clone()
        };
        // Limits that are too low to run any program are raised.
        let mut limits = wanted.capped(&ceiling).raised_to_minimum();
        if wanted.memory_bytes.min(ceiling.memory_bytes) < limits.memory_bytes {
            cx.warn(format!(
                "The program may use {} bytes of memory: with less, nothing can be run",
                limits.memory_bytes
            ));
        }
        if requested.wall.is_some_and(|wall| wall > limits.wall) {
            cx.warn(format!("The program may run for {} ms at most, less than asked for", limits.wall.as_millis()));
        }
        if requested.memory_bytes.is_some_and(|bytes| bytes > limits.memory_bytes) {
            cx.warn(format!(
                "The program may use {} bytes of memory at most, less than asked for",
                limits.memory_bytes
            ));
        }
        // The limit of processor time allows all processors for the whole run time.
        limits.cpu = limits.wall * *PROCESSORS + Duration::from_secs(1);
        limits
    }
}

fn ceiling_of(workspace: &RunSettings, ceiling: &Limits) -> Limits {
    Limits {
        wall: workspace.timeout_ms.map_or(ceiling.wall, Duration::from_millis),
        memory_bytes: workspace.memory_bytes.unwrap_or(ceiling.memory_bytes),
        processes: workspace.processes.unwrap_or(ceiling.processes),
        disk_bytes: workspace.disk_bytes.unwrap_or(ceiling.disk_bytes),
        output_bytes: workspace.output_bytes.unwrap_or(ceiling.output_bytes),
        ..ceiling.clone()
    }
}
