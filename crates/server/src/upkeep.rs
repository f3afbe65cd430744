//! Periodic tasks of the server.

use crate::http::App;
use crate::local;
use crate::settings::Settings;
use std::{sync::Arc, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use toolrest_core::{Access, Action, ErrorKind, Result, Timestamp, ToolError, now};
use toolrest_store::{Purge, Purged, Store, StoreError};

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
const ABANDONED_CALLS_INTERVAL: Duration = Duration::from_secs(5);

/// Runs the periodic tasks: maintains the store, reads revocations, purges expired data, renews old versions, says that
/// this server process is alive, and records the calls of those that are not.
pub(crate) async fn run(app: Arc<App>) {
    let maintain = || async {
        if let Err(error) = app.store.maintain().await {
            log_retry(&error.into(), "could not maintain the store; will retry");
        }
    };
    let revocations = || async {
        if let Err(error) = refresh_revocations(&app).await {
            log_retry(&error, "could not read the revoked tokens; will retry");
        }
    };
    let purge = || purge_expired(&*app.store, &app.settings);
    let heartbeat = || async {
        if let Err(error) = app.store.heartbeat(&app.instance).await {
            log_retry(&error.into(), "could not write the heartbeat; will retry");
        }
    };
    let abandoned_calls = || async {
        match app.store.interrupt_abandoned_calls().await {
            Ok(0) => {}
            Ok(calls) => tracing::warn!(calls, "recorded calls of a server process that died as interrupted"),
            Err(error) => log_retry(&error.into(), "could not look for abandoned calls; will retry"),
        }
    };
    tokio::join!(
        renew_versions(&*app.store),
        run_jobs(maintain, revocations, purge),
        repeat(HEARTBEAT_INTERVAL, heartbeat),
        repeat(ABANDONED_CALLS_INTERVAL, abandoned_calls),
    );
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

/// Renews the versions of an earlier release, for [`RENEW_AT_START_LIMIT`] at most.
pub(crate) async fn renew_versions_at_start(store: &dyn Store) {
    let _ = tokio::time::timeout(RENEW_AT_START_LIMIT, renew_versions(store)).await;
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

/// Reads the revoked access tokens from the database, and stops the programs of accounts that lost the right to run
/// them.
pub(crate) async fn refresh_revocations(app: &App) -> Result<()> {
    // Older tokens have expired.
    let longest = app.tokens.lifetime().max(local::TOKEN_LIFETIME) + Duration::from_secs(60);
    let since = now().checked_sub(longest).map_err(ToolError::internal)?;
    let revocations = app.store.revocations(since).await?;
    app.tokens.revoked().set(&revocations);
    for revocation in revocations.iter().filter(|revocation| revocation.is_disabled) {
        app.processes.stop_processes_of_disabled(revocation.user).await;
    }
    stop_processes_of_former_members(app).await
}

/// Stops the programs of accounts that lost their role in the workspace; another replica may have removed them.
async fn stop_processes_of_former_members(app: &App) -> Result<()> {
    for (workspace, user) in app.processes.starters() {
        match app.store.authorise(Access { workspace, user, need: Action::Exec.needs() }).await {
            Err(StoreError::NotAMember | StoreError::RoleTooLow { .. }) => {
                app.processes.stop_processes_of(workspace, user, Duration::ZERO).await;
            }
            authorised => authorised?,
        }
    }
    Ok(())
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
