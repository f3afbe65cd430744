//! Limits on what accounts and workspaces store.
//!
//! What a workspace stores is counted in memory with each write and added to the database every few seconds, in one
//! statement for all workspaces. A counter row in every write would be a lock that all writes of a workspace wait for.
//! The price: several replicas together can exceed a limit by what they write within those seconds, and a crash forgets
//! what was counted since the last time. The first write to a workspace on a replica reads what is stored.

use crate::blob::Prepared;
use crate::error::{Result, StoreError};
use async_trait::async_trait;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use toolrest_core::{Access, Change, Changeset, UserId, WorkspaceId};

/// The most that an account or a workspace may have; no limit where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quotas {
    /// Bytes that one workspace stores.
    pub bytes_per_workspace: Option<u64>,
    /// Bytes that all workspaces of one owner store together.
    pub bytes_per_account: Option<u64>,
    /// Workspaces of one owner.
    pub workspaces_per_account: Option<u64>,
}

/// What each row of a change counts, beside the contents.
const ROW_BYTES: i64 = 256;
/// How old a count may be by which a write is refused.
const FRESH: Duration = Duration::from_secs(1);
/// How many workspaces are remembered.
const REMEMBERED: usize = 100_000;

/// What a change counts: the contents that are new, and its rows with the commit.
pub(crate) fn cost(content_bytes: i64, rows: usize) -> i64 {
    let rows = i64::try_from(rows).unwrap_or(i64::MAX / ROW_BYTES - 1);
    content_bytes.saturating_add((rows + 1) * ROW_BYTES)
}

/// The most that a change can count. One that only removes, moves or brings back counts nothing beforehand, so that it is
/// never refused.
pub(crate) fn most(changes: &Changeset, contents: &[Option<Prepared>]) -> i64 {
    let grows = |change: &Change| matches!(change, Change::Put(_) | Change::MakeDir(_) | Change::Touch(_));
    if !changes.changes.iter().any(grows) {
        return 0;
    }
    cost(contents.iter().flatten().map(|content| content.size).sum(), changes.changes.len())
}

/// What the database knows of the storage of a workspace.
pub(crate) struct StoredUse {
    pub workspace: WorkspaceId,
    pub owner: UserId,
    pub bytes: i64,
    /// What all workspaces of the owner store together.
    pub of_owner: i64,
}

/// Keeps counts in a database.
#[async_trait]
pub(crate) trait UseStore: Send + Sync {
    /// Reads what workspaces store. Those that do not exist are left out.
    async fn stored_use(&self, workspaces: Vec<WorkspaceId>) -> Result<Vec<StoredUse>>;

    /// Adds to what workspaces store; each is named once.
    async fn add_use(&self, added: Vec<(WorkspaceId, i64)>) -> Result<()>;

    /// Checks the caller's rights.
    async fn is_member(&self, access: Access) -> Result<()>;

    fn usage(&self) -> &Arc<Usage>;
}

/// Counts what workspaces store.
#[derive(Default)]
pub(crate) struct Usage {
    pub(crate) quotas: Quotas,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    workspaces: HashMap<WorkspaceId, Known>,
    accounts: HashMap<UserId, Count>,
}

#[derive(Default)]
struct Known {
    owner: Option<UserId>,
    read_at: Option<Instant>,
    count: Count,
}

#[derive(Clone, Copy, Default)]
struct Count {
    /// In the database.
    stored: i64,
    /// Written since.
    added: i64,
    /// Asked for by writes that are under way.
    reserved: i64,
}

impl Count {
    fn total(self) -> i64 {
        self.stored.saturating_add(self.added).saturating_add(self.reserved)
    }
}

/// Room for a write that is under way. Dropped before it is settled, the room is free again.
pub(crate) struct Reserved {
    usage: Arc<Usage>,
    workspace: WorkspaceId,
    bytes: i64,
}

/// Reserves room for a write, or refuses it.
pub(crate) async fn reserve(store: &dyn UseStore, access: Access, bytes: i64) -> Result<Reserved> {
    let usage = store.usage();
    let workspace = access.workspace;
    if !usage.has_limits() || usage.lock().workspaces.get(&workspace).is_some_and(|known| known.read_at.is_some()) {
        match usage.try_reserve(workspace, bytes) {
            Ok(reserved) => return Ok(reserved),
            Err(error) if usage.is_fresh(workspace) => {
                store.is_member(access).await?;
                return Err(error);
            }
            // Something may have been removed since.
            Err(_) => {}
        }
    }
    usage.read(store.stored_use(vec![workspace]).await?);
    match usage.try_reserve(workspace, bytes) {
        Ok(reserved) => Ok(reserved),
        Err(error) => {
            // Only members learn how full a workspace is.
            store.is_member(access).await?;
            Err(error)
        }
    }
}

/// Adds what was counted since the last time to the database, and reads what replicas have added.
pub(crate) async fn synchronise(store: &dyn UseStore) -> Result<()> {
    let usage = store.usage();
    let added = usage.take_added();
    if added.is_empty() {
        return Ok(());
    }
    if let Err(error) = store.add_use(added.clone()).await {
        usage.put_back(&added);
        return Err(error);
    }
    usage.read(store.stored_use(added.into_iter().map(|(workspace, _)| workspace).collect()).await?);
    Ok(())
}

impl Usage {
    pub(crate) fn new(quotas: Quotas) -> Arc<Self> {
        Arc::new(Self { quotas, state: Mutex::default() })
    }

    /// Refuses one more workspace to an account that has so many.
    pub(crate) fn check_workspaces(&self, existing: i64) -> Result<()> {
        let used = existing.unsigned_abs();
        match self.quotas.workspaces_per_account {
            Some(limit) if used >= limit => {
                let setting = "quotas.workspaces_per_account";
                let message = format!(
                    "The account owns {used} workspaces, and its limit is {limit} ({setting}); delete one that is not \
                     needed, or have the operator raise the limit"
                );
                Err(StoreError::QuotaExceeded { limit, used, setting, message })
            }
            _ => Ok(()),
        }
    }

    fn has_limits(&self) -> bool {
        self.quotas.bytes_per_workspace.is_some() || self.quotas.bytes_per_account.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_fresh(&self, workspace: WorkspaceId) -> bool {
        let read_at = self.lock().workspaces.get(&workspace).and_then(|known| known.read_at);
        read_at.is_some_and(|at| at.elapsed() < FRESH)
    }

    fn try_reserve(self: &Arc<Self>, workspace: WorkspaceId, bytes: i64) -> Result<Reserved> {
        let mut state = self.lock();
        let known = state.workspaces.get(&workspace);
        let of_workspace = known.map_or(0, |known| known.count.total());
        let account = known.and_then(|known| known.owner).and_then(|owner| state.accounts.get(&owner));
        let of_account = account.map_or(0, |count| count.total());
        let quotas = &self.quotas;
        check("the workspace", of_workspace, bytes, quotas.bytes_per_workspace, "quotas.bytes_per_workspace")?;
        check("the account of its owner", of_account, bytes, quotas.bytes_per_account, "quotas.bytes_per_account")?;
        state.change(workspace, |count| count.reserved += bytes);
        Ok(Reserved { usage: Arc::clone(self), workspace, bytes })
    }

    fn read(&self, stored: Vec<StoredUse>) {
        let mut state = self.lock();
        for StoredUse { workspace, owner, bytes, of_owner } in stored {
            let known = state.workspaces.entry(workspace).or_default();
            (known.read_at, known.count.stored) = (Some(Instant::now()), bytes);
            let is_new = known.owner.replace(owner).is_none();
            let count = known.count;
            let account = state.accounts.entry(owner).or_default();
            account.stored = of_owner;
            if is_new {
                account.added += count.added;
                account.reserved += count.reserved;
            }
        }
    }

    fn take_added(&self) -> Vec<(WorkspaceId, i64)> {
        let mut state = self.lock();
        let added = state.workspaces.iter().filter(|(_, known)| known.count.added != 0);
        let mut added: Vec<(WorkspaceId, i64)> = added.map(|(id, known)| (*id, known.count.added)).collect();
        // Replicas that add at the same time lock the rows in the same order.
        added.sort_unstable();
        for (workspace, bytes) in &added {
            state.change(*workspace, |count| (count.stored, count.added) = (count.stored + bytes, count.added - bytes));
        }
        if state.workspaces.len() > REMEMBERED {
            state.workspaces.retain(|_, known| known.count.added != 0 || known.count.reserved != 0);
            let owners: Vec<UserId> = state.workspaces.values().filter_map(|known| known.owner).collect();
            state.accounts.retain(|account, _| owners.contains(account));
        }
        added
    }

    fn put_back(&self, added: &[(WorkspaceId, i64)]) {
        let mut state = self.lock();
        for (workspace, bytes) in added {
            state.change(*workspace, |count| (count.stored, count.added) = (count.stored - bytes, count.added + bytes));
        }
    }
}

impl State {
    /// Changes the counts of a workspace and of its owner.
    fn change(&mut self, workspace: WorkspaceId, change: impl Fn(&mut Count)) {
        let known = self.workspaces.entry(workspace).or_default();
        change(&mut known.count);
        if let Some(owner) = known.owner {
            change(self.accounts.entry(owner).or_default());
        }
    }
}

impl Reserved {
    /// Counts what was written instead of what was reserved.
    pub(crate) fn settle(mut self, written: i64) {
        let bytes = std::mem::take(&mut self.bytes);
        let change = |count: &mut Count| {
            count.reserved -= bytes;
            count.added += written;
        };
        self.usage.lock().change(self.workspace, change);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let bytes = self.bytes;
        if bytes != 0 {
            self.usage.lock().change(self.workspace, |count| count.reserved -= bytes);
        }
    }
}

/// Refuses what would exceed a limit. What stores nothing new is never refused, so that room can be made.
fn check(who: &str, used: i64, bytes: i64, limit: Option<u64>, setting: &'static str) -> Result<()> {
    let (used, Some(limit)) = (used.max(0).unsigned_abs(), limit) else { return Ok(()) };
    if bytes == 0 || used.saturating_add(bytes.unsigned_abs()) <= limit {
        return Ok(());
    }
    let message = format!(
        "Nothing was written: {who} stores {used} bytes, and this needs {bytes} more than fit the limit of {limit} \
         ({setting}). Earlier versions count, and deleted files until they leave the trash; delete a workspace that is not \
         needed, or have the operator raise the limit"
    );
    Err(StoreError::QuotaExceeded { limit, used, setting, message })
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
