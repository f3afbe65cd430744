//! Periodic tasks.
//!
//! Each process exchanges its usage counts and reads revocations. Work on the database as a whole is done by one of the
//! processes that share the data folder: the one that holds a lock. When it ends, another one takes the lock.

use crate::auth::{AccessTokens, KeyUses};
use crate::local;
use crate::lock_file::LockFile;
use crate::settings::Settings;
use std::{sync::Arc, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use toolrest_core::{Action, ErrorKind, Result, Timestamp, ToolError, now};
use toolrest_ops::exec::Processes;
use toolrest_store::{Instance, Purge, Purged, Store, StoreError};
use toolrest_workspaces::ProgramCaches;

const MAINTAIN_INTERVAL: Duration = Duration::from_secs(2);
/// Delay after a failure to renew versions.
const RENEW_RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum time for renewing versions before the server listens. The rest is renewed while it serves.
const RENEW_AT_START_LIMIT: Duration = Duration::from_secs(5);
const PURGE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Interval at which revocations are read, and so the longest time until a revoked access token is refused.
const REVOCATIONS_INTERVAL: Duration = Duration::from_secs(1);

const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the calls of server processes that died are looked for.
const ABANDONED_CALLS_SECONDS: i64 = 5;
/// Maximum time between two heartbeats of this process before it counts as paused.
const MAX_PAUSE_SECONDS: i64 = 5;
/// Time after a pause for which no other process is declared dead. Longer than the silence after which one is.
const JUDGE_AFTER_PAUSE_SECONDS: i64 = 35;

/// What the periodic tasks work on.
pub(crate) struct Upkeep {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tokens: Arc<AccessTokens>,
    pub(crate) processes: Arc<Processes>,
    pub(crate) key_uses: Arc<KeyUses>,
    /// The home directories of programs, if they are kept.
    pub(crate) caches: Option<Arc<ProgramCaches>>,
    pub(crate) settings: Settings,
    /// This process.
    pub(crate) instance: Instance,
    /// Held by the process that works for all.
    pub(crate) leader: LockFile,
}

/// Runs the periodic tasks: maintains the store, reads revocations, purges expired data, renews old versions, says that
/// this process is alive, and records the calls of those that are not.
pub(crate) async fn run(upkeep: Upkeep) {
    let store = &*upkeep.store;
    let maintain = || async {
        let done = if upkeep.leader.try_hold() { store.maintain().await } else { store.synchronise().await };
        if let Err(error) = done {
            log_retry(&error.into(), "could not maintain the store; will retry");
        }
        if let Err(error) = store_key_uses(store, &upkeep.key_uses).await {
            log_retry(&error, "could not store when keys were last used");
        }
    };
    let revocations = || async {
        // A failure to write, for example on a full disk, must not delay the rest.
        if let Err(error) = upkeep.end_expired_keys().await {
            log_retry(&error, "could not end expired keys; will retry");
        }
        if let Err(error) = upkeep.refresh_revocations().await {
            log_retry(&error, "could not read the revoked tokens; will retry");
        }
    };
    let purge = || async {
        if upkeep.leader.try_hold() {
            purge_expired(store, &upkeep.settings).await;
            if let Some(caches) = &upkeep.caches
                && let Err(error) = caches.sweep(store).await
            {
                log_retry(&error, "could not check the home directories of programs; will retry");
            }
        }
    };
    let renew = async {
        while !upkeep.leader.try_hold() {
            tokio::time::sleep(RENEW_RETRY_INTERVAL).await;
        }
        renew_versions(store).await;
    };
    tokio::join!(renew, run_jobs(maintain, revocations, purge), watch_instances(store, &upkeep.instance));
}

/// Says that this process is alive, and records the calls of those that are not.
///
/// After a pause, of a machine that was suspended or a database that was away, all processes look dead until each has
/// written its next heartbeat. So after its own pause a process judges nobody for a while.
async fn watch_instances(store: &dyn Store, instance: &Instance) {
    let mut ticks = interval(HEARTBEAT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // By the clock on the wall, which goes on while the machine is suspended.
    let (mut last, mut judges_from, mut next_check) = (now().as_second(), 0, 0);
    loop {
        ticks.tick().await;
        if let Err(error) = store.heartbeat(instance).await {
            log_retry(&error.into(), "could not write the heartbeat; will retry");
            continue;
        }
        let at = now().as_second();
        if at - last > MAX_PAUSE_SECONDS {
            judges_from = at + JUDGE_AFTER_PAUSE_SECONDS;
        }
        last = at;
        if at < judges_from.max(next_check) {
            continue;
        }
        next_check = at + ABANDONED_CALLS_SECONDS;
        match store.interrupt_abandoned_calls().await {
            Ok(0) => {}
            Ok(calls) => tracing::warn!(calls, "recorded calls of a server process that died as interrupted"),
            Err(error) => log_retry(&error.into(), "could not look for abandoned calls; will retry"),
        }
        match store.fail_abandoned(&instance.node).await {
            Ok(0) => {}
            Ok(approvals) => tracing::warn!(approvals, "ended approved calls of a server process that died"),
            Err(error) => log_retry(&error.into(), "could not look for abandoned approvals; will retry"),
        }
    }
}

/// Logs the failure of a task that is repeated soon. An internal error is a bug; other failures, such as a database that is
/// down, are logged where they are detected.
fn log_retry(error: &ToolError, message: &str) {
    if error.kind == ErrorKind::Internal {
        tracing::error!(%error, "{message}");
    } else {
        tracing::debug!(%error, "{message}");
    }
}

/// Converts all versions that an earlier release has written. Retries after failures.
async fn renew_versions(store: &dyn Store) {
    loop {
        match store.renew_versions().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "could not renew versions of an earlier release; will retry");
                tokio::time::sleep(RENEW_RETRY_INTERVAL).await;
            }
        }
    }
}

/// Repeats each job at its own interval. The jobs do not wait for each other: a purge may take long, and revocations
/// must not.
async fn run_jobs<T, R, P>(maintain: impl Fn() -> T, revocations: impl Fn() -> R, purge: impl Fn() -> P)
where
    T: Future<Output = ()>,
    R: Future<Output = ()>,
    P: Future<Output = ()>,
{
    tokio::join!(
        repeat(MAINTAIN_INTERVAL, maintain),
        repeat(REVOCATIONS_INTERVAL, revocations),
        repeat(PURGE_INTERVAL, purge)
    );
}

async fn repeat<J: Future<Output = ()>>(period: Duration, job: impl Fn() -> J) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        job().await;
    }
}

impl Upkeep {
    /// Renews the versions of an earlier release, for [`RENEW_AT_START_LIMIT`] at most.
    pub(crate) async fn renew_versions_at_start(&self) {
        if self.leader.try_hold() {
            let _ = tokio::time::timeout(RENEW_AT_START_LIMIT, renew_versions(&*self.store)).await;
        }
    }

    /// Reads the revoked access tokens from the database, and stops the programs of persons and keys that lost the right
    /// to run them.
    pub(crate) async fn refresh_revocations(&self) -> Result<()> {
        // Older tokens have expired.
        let longest = self.tokens.lifetime().max(local::TOKEN_LIFETIME) + Duration::from_secs(60);
        let since = now().checked_sub(longest).map_err(ToolError::internal)?;
        let revocations = self.store.revocations(since).await?;
        self.tokens.revoked().set(&revocations);
        for revocation in revocations.iter().filter(|revocation| revocation.is_disabled) {
            self.processes.stop_processes_of_disabled(revocation.user).await;
        }
        self.stop_processes_of_former_members().await
    }

    /// Ends the memberships of keys that expired recently. The purge ends those that expired before.
    async fn end_expired_keys(&self) -> Result<()> {
        let since = now().checked_sub(2 * PURGE_INTERVAL).map_err(ToolError::internal)?;
        Ok(self.store.end_expired_keys(since).await?)
    }

    /// Stops the programs of persons and keys that lost their role in the workspace; another process may have removed
    /// them.
    async fn stop_processes_of_former_members(&self) -> Result<()> {
        for (workspace, starter) in self.processes.starters() {
            match self.store.authorise(starter.access(workspace, Action::Exec.needs())).await {
                Err(StoreError::NotAMember | StoreError::RoleTooLow { .. }) => {
                    self.processes.stop_processes_of(workspace, starter.member(), Duration::ZERO).await;
                }
                authorised => authorised?,
            }
        }
        Ok(())
    }
}

/// Stores when keys were last used.
pub(crate) async fn store_key_uses(store: &dyn Store, key_uses: &KeyUses) -> Result<()> {
    let uses = key_uses.take();
    if uses.is_empty() { Ok(()) } else { Ok(store.record_key_uses(uses).await?) }
}

async fn purge_expired(store: &dyn Store, settings: &Settings) {
    let purge = Purge {
        trash_before: days_ago(settings.retention.trash_days),
        calls_before: days_ago(settings.retention.calls_days),
        folder_history_bytes: Some(settings.folders.history_total_bytes).filter(|limit| *limit > 0),
    };
    match store.purge(purge).await {
        Ok(purged) if purged == Purged::default() => {}
        Ok(purged) => tracing::info!(
            purged.files,
            purged.blobs,
            purged.dropped,
            purged.calls,
            purged.workspaces,
            "purged expired data"
        ),
        Err(error) => tracing::warn!(%error, "could not purge expired data; will retry"),
    }
}

/// Returns the time that many days ago. Zero days mean that nothing expires: `None`.
fn days_ago(days: u32) -> Option<Timestamp> {
    const DAY_SECONDS: i64 = 24 * 60 * 60;
    if days == 0 {
        return None;
    }
    Timestamp::from_second(now().as_second() - i64::from(days) * DAY_SECONDS).ok()
}

#[cfg(test)]
#[path = "upkeep_tests.rs"]
mod tests;
