//! What a program may use: what it asks for, below what its workspace and the operator allow.

use std::{sync::LazyLock, thread, time::Duration};
use toolrest_core::{CallCx, RunSettings};
use toolrest_sandbox::Limits;

/// Found out once: the answer is put together from many files.
static PROCESSORS: LazyLock<u32> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)));

/// What programs may use.
#[derive(Clone, Debug, Default)]
pub struct ExecLimits {
    /// For a program that asks for nothing else.
    pub default: Limits,
    /// The most that any program gets.
    pub ceiling: Limits,
}

/// What a caller asks for a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// How long it may run.
    pub wall: Option<Duration>,
    /// Memory of all its processes together.
    pub memory_bytes: Option<u64>,
}

impl ExecLimits {
    /// What a program gets. A caller who asked for more is told.
    pub(super) fn of(&self, cx: &CallCx, workspace: &RunSettings, asked: Asked) -> Limits {
        let ceiling = self.ceiling.capped(&ceiling_of(workspace, &self.ceiling));
        let wanted = Limits {
            wall: asked.wall.unwrap_or(self.default.wall),
            memory_bytes: asked.memory_bytes.unwrap_or(self.default.memory_bytes),
            ..self.default.clone()
        };
        // Who has too little is given what it takes to run at all.
        let mut limits = wanted.capped(&ceiling).raised_to_minimum();
        if wanted.memory_bytes.min(ceiling.memory_bytes) < limits.memory_bytes {
            cx.warn(format!(
                "The program may use {} bytes of memory: with less, nothing can be run",
                limits.memory_bytes
            ));
        }
        if asked.wall.is_some_and(|wall| wall > limits.wall) {
            cx.warn(format!("The program may run for {} ms at most, less than asked for", limits.wall.as_millis()));
        }
        if asked.memory_bytes.is_some_and(|bytes| bytes > limits.memory_bytes) {
            cx.warn(format!(
                "The program may use {} bytes of memory at most, less than asked for",
                limits.memory_bytes
            ));
        }
        // A program may keep all processors busy for as long as it runs.
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
