//! What a server does by itself from time to time.

use crate::http::App;
use crate::local;
use crate::settings::Settings;
use std::{sync::Arc, time::Duration};
use tokio::time::{Interval, MissedTickBehavior, interval};
use toolrest_core::{Access, Action, ErrorKind, Result, Timestamp, ToolError, now};
use toolrest_store::{Purge, Purged, Store};

const TEND_EVERY: Duration = Duration::from_secs(2);
const PURGE_EVERY: Duration = Duration::from_secs(60 * 60);
/// How long it takes at most until revoked access tokens are refused.
const REVOCATIONS_EVERY: Duration = Duration::from_secs(1);

/// Tends the store every few seconds, learns which tokens were revoked, and removes what is past its time every hour.
pub(crate) async fn run(app: Arc<App>) {
    let (mut tend, mut purge, mut revocations) = (every(TEND_EVERY), every(PURGE_EVERY), every(REVOCATIONS_EVERY));
    loop {
        tokio::select! {
            _ = tend.tick() => {
                if let Err(error) = app.store.tend().await {
                    tracing::debug!(%error, "could not tend the store; will try again");
                }
            }
            _ = revocations.tick() => {
                if let Err(error) = learn_revocations(&app).await {
                    tracing::debug!(%error, "could not ask which tokens were revoked; will try again");
                }
            }
            _ = purge.tick() => remove_what_is_past(&*app.store, &app.settings).await,
        }
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

fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
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
