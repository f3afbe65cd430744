//! Builds the services of the tools from the settings.

use crate::agent;
use crate::outside::Outside;
use crate::python;
use crate::settings::{Run, Settings, WithoutOverlay};
use crate::toolchains;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use toolrest_core::{KeepLimits, Memories, QueueLimits, Secrets, Sessions, WaitingCalls};
use toolrest_ops::exec::{
    self, ExecLimits, ExecOptions, Executor, Layer, NetworkOptions, ProcessOptions, Processes, PythonEnvironment,
    SandboxLimits,
};
use toolrest_ops::outside::{AllowList, OutboundConnector};
use toolrest_toolsets::Services;

/// When a runtime is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SandboxStart {
    /// When the sandbox was started and verified.
    #[default]
    Awaited,
    /// Before that; programs wait for the sandbox.
    Beside,
}

/// Starts the sandbox and gathers what tools need besides it. With `run.enabled = false`, returns services that refuse
/// every program.
pub(crate) async fn start(
    settings: &Settings,
    memories: Arc<dyn Memories>,
    sessions: Arc<dyn Sessions>,
    waiting_calls: Arc<dyn WaitingCalls>,
    secrets: Arc<dyn Secrets>,
    outside: Outside,
    start: SandboxStart,
) -> Services {
    let options = options(settings);
    let executor = match start {
        _ if !settings.run.enabled => {
            Arc::new(Executor::refusing(options, "the operator has turned programs off (run.enabled)"))
        }
        SandboxStart::Awaited => Arc::new(Executor::start(options, Arc::clone(&secrets)).await),
        SandboxStart::Beside => Executor::start_beside(options, Arc::clone(&secrets)),
    };
    let processes = Arc::new(Processes::new(Arc::clone(&executor), process_options(&settings.run)));
    let Outside { web, github, .. } = outside;
    let agent = agent::options(settings);
    Services { executor, processes, memories, secrets, web, github, sessions, waiting_calls, agent }
}

fn options(settings: &Settings) -> ExecOptions {
    let run = &settings.run;
    let default = SandboxLimits {
        wall: Duration::from_millis(run.timeout_ms.min(run.max_timeout_ms)),
        memory_bytes: run.memory_bytes.min(run.max_memory_bytes),
        processes: run.processes,
        disk_bytes: run.disk_bytes,
        file_bytes: run.disk_bytes,
        new_files: run.new_files,
        output_bytes: run.output_bytes,
        output_kept_bytes: run.output_kept_bytes,
        ..SandboxLimits::default()
    };
    let ceiling = SandboxLimits {
        wall: Duration::from_millis(run.max_timeout_ms),
        cpu: Duration::MAX,
        memory_bytes: run.max_memory_bytes,
        ..default.clone()
    };
    ExecOptions {
        limits: ExecLimits { default, ceiling },
        keep: KeepLimits {
            file_bytes: run.keep_file_bytes,
            commit_bytes: run.keep_bytes,
            commit_files: run.keep_files,
        },
        at_once: QueueLimits {
            in_all: run.at_once,
            per_account: run.at_once_per_account,
            per_workspace: run.at_once_per_workspace,
        },
        waiting: run.waiting_interpreters,
        network: NetworkOptions {
            // The settings were checked when they were read.
            hosts: AllowList::new(run.network_hosts.iter().map(String::as_str)).unwrap_or_default(),
            outside: OutboundConnector {
                allow_private: run.network_private.iter().filter_map(|range| range.parse().ok()).collect(),
                ..OutboundConnector::default()
            },
        },
        without_overlay: match run.without_overlay {
            WithoutOverlay::Refuse => exec::WithoutOverlay::Refuse,
            WithoutOverlay::InPlace => exec::WithoutOverlay::RunInPlace,
        },
        accept_missing: if run.accept_missing_landlock { BTreeSet::from([Layer::Landlock]) } else { BTreeSet::new() },
        python: Some(PythonEnvironment::new(python::folder(settings))),
        toolchains: toolchains::of(settings),
    }
}

fn process_options(run: &Run) -> ProcessOptions {
    ProcessOptions {
        at_once: QueueLimits {
            in_all: run.background_at_once_in_all,
            per_account: run.background_at_once_per_account,
            per_workspace: run.background_at_once,
        },
        lease: Duration::from_millis(run.background_lease_ms),
        longest: Duration::from_millis(run.background_max_ms),
        commit_every: Duration::from_millis(run.background_commit_ms),
        ..ProcessOptions::default()
    }
}
