//! What a server does by itself from time to time.

use crate::http::App;
use crate::local;
use crate::settings::Settings;
use std::{sync::Arc, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use toolrest_core::{Access, Action, ErrorKind, Result, Timestamp, ToolError, now};
use toolrest_store::{Purge, Purged, Store};

const TEND_EVERY: Duration = Duration::from_secs(2);
/// How often it is tried again to renew versions, after it failed.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// How long a server waits at its start for versions to be renewed. What is left is renewed while it works.
const RENEW_AT_START: Duration = Duration::from_secs(5);
const PURGE_EVERY: Duration = Duration::from_secs(60 * 60);
/// How long it takes at most until revoked access tokens are refused.
const REVOCATIONS_EVERY: Duration = Duration::from_secs(1);

/// Tends the store every few seconds, learns which tokens were revoked, and removes what is past its time every hour.
pub(crate) async fn run(app: Arc<App>) {
    let maintain = || async {
        if let Err(error) = app.store.maintain().await {
            tracing::debug!(%error, "could not tend the store; will try again");
        }
    };
    let revocations = || async {
        if let Err(error) = learn_revocations(&app).await {
            tracing::debug!(%error, "could not ask which tokens were revoked; will try again");
        }
    };
    let purge = || remove_what_is_past(&*app.store, &app.settings);
    tokio::join!(renew_versions(&*app.store), run_jobs(maintain, revocations, purge));
}

/// Renews the versions of an earlier release for as long as a server may wait for it.
pub(crate) async fn begin_to_renew_versions(store: &dyn Store) {
    let _ = tokio::time::timeout(RENEW_AT_START, renew_versions(store)).await;
}

/// Renews the versions that an earlier release has written, to the last.
async fn renew_versions(store: &dyn Store) {
    loop {
        match store.renew_versions().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "versions of an earlier release could not be renewed; will try again");
                tokio::time::sleep(RENEW_EVERY).await;
            }
        }
    }
}

/// Repeats each of the jobs. None waits for another: a purge may take long, and revocations must not.
async fn run_jobs<T, R, P>(maintain: impl Fn() -> T, revocations: impl Fn() -> R, purge: impl Fn() -> P)
where
    T: Future<Output = ()>,
    R: Future<Output = ()>,
    P: Future<Output = ()>,
{
    tokio::join!(repeat(TEND_EVERY, maintain), repeat(REVOCATIONS_EVERY, revocations), repeat(PURGE_EVERY, purge));
}

async fn repeat<J: Future<Output = ()>>(period: Duration, job: impl Fn() -> J) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        job().await;
    }
}

/// Asks the database whose access tokens were revoked, and ends the programs of accounts that may run none any more.
pub(crate) async fn learn_revocations(app: &App) -> Result<()> {
    // Tokens from before have ended by themselves.
    let longest = app.tokens.lifetime().max(local::TOKEN_LIFETIME) + Duration::from_secs(60);
    let since = now().checked_sub(longest).map_err(ToolError::internal)?;
    let revocations = app.store.revocations(since).await?;
    app.tokens.revoked().set(&revocations);
    for revocation in revocations.iter().filter(|revocation| revocation.is_disabled) {
        app.processes.stop_those_of_disabled(revocation.user).await;
    }
    end_processes_without_rights(app).await
}

/// Ends the programs of accounts that may not run any in the workspace any more: another replica may have removed them.
async fn end_processes_without_rights(app: &App) -> Result<()> {
    for (workspace, user) in app.processes.starters() {
        match app.store.authorise(Access { workspace, user, need: Action::Exec.needs() }).await {
            Err(error) if error.kind == ErrorKind::Forbidden => {
                app.processes.stop_those_of(workspace, user, Duration::ZERO).await;
            }
            authorised => authorised?,
        }
    }
    Ok(())
}

async fn remove_what_is_past(store: &dyn Store, settings: &Settings) {
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
            "removed what was past its time"
        ),
        Err(error) => tracing::warn!(%error, "could not remove what is past its time; will try again"),
    }
}

/// The moment so many days ago; none for zero, which keeps for ever.
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
