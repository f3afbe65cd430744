//! Limits on the storage of accounts and workspaces.
//!
//! Usage is counted in memory with each write and added to the database every few seconds, in one statement for all
//! workspaces. A counter row in every write would be a lock that all writes of a workspace wait for. In exchange,
//! several replicas together can exceed a limit by what they write within those seconds, and a crash loses what was
//! counted since the last update. The first write to a workspace on a replica reads the stored usage.

use crate::blob::Prepared;
use crate::error::{Result, StoreError};
use async_trait::async_trait;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};
use toolrest_core::{Access, Change, Changeset, UserId, WorkspaceId};

/// The limits of accounts and workspaces; none means unlimited.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quotas {
    /// Bytes that one workspace stores.
    pub bytes_per_workspace: Option<u64>,
    /// Bytes that all workspaces of one owner store together.
    pub bytes_per_account: Option<u64>,
    /// Workspaces of one owner.
    pub workspaces_per_account: Option<u64>,
}

/// The bytes counted for each row of a change, in addition to contents.
const ROW_BYTES: i64 = 256;
/// Maximum age of a count by which a write is refused.
const MAX_AGE_FOR_REFUSAL: Duration = Duration::from_secs(1);
/// Maximum number of workspaces whose counts are in memory.
const MAX_REMEMBERED: usize = 100_000;

/// Returns the bytes that a change counts: its new contents, its rows and the commit.
pub(crate) fn cost(content_bytes: i64, rows: usize) -> i64 {
    let rows = i64::try_from(rows).unwrap_or(i64::MAX / ROW_BYTES - 1);
    content_bytes.saturating_add((rows + 1) * ROW_BYTES)
}

/// Returns the most bytes that a change can count. A change that only removes, moves or restores reserves nothing, so
/// that it is never refused.
pub(crate) fn max_cost(changes: &Changeset, contents: &[Option<Prepared>]) -> i64 {
    let grows = |change: &Change| matches!(change, Change::Put(_) | Change::MakeDir(_) | Change::Touch(_));
    if !changes.changes.iter().any(grows) {
        return 0;
    }
    cost(contents.iter().flatten().map(|content| content.size).sum(), changes.changes.len())
}

/// The usage of a workspace in the database.
pub(crate) struct StoredUse {
    pub workspace: WorkspaceId,
    pub owner: UserId,
    pub bytes: i64,
    /// The usage of all workspaces of the owner together.
    pub of_owner: i64,
}

/// Stores usage counts in a database.
#[async_trait]
pub(crate) trait UseStore: Send + Sync {
    /// Reads the usage of workspaces. Workspaces that do not exist are left out.
    async fn stored_use(&self, workspaces: Vec<WorkspaceId>) -> Result<Vec<StoredUse>>;

    /// Adds to the usage of workspaces. Each workspace occurs once.
    async fn add_use(&self, added: Vec<(WorkspaceId, i64)>) -> Result<()>;

    /// Checks the caller's rights.
    async fn is_member(&self, access: Access) -> Result<()>;

    fn usage(&self) -> &Arc<Usage>;
}

/// Counts the storage of workspaces in memory.
#[derive(Default)]
pub(crate) struct Usage {
    pub(crate) quotas: Quotas,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    workspaces: HashMap<WorkspaceId, WorkspaceUsage>,
    accounts: HashMap<UserId, Count>,
}

#[derive(Default)]
struct WorkspaceUsage {
    owner: Option<UserId>,
    read_at: Option<Instant>,
    count: Count,
}

#[derive(Clone, Copy, Default)]
struct Count {
    /// Bytes in the database's count.
    stored: i64,
    /// Bytes written since.
    added: i64,
    /// Bytes reserved by pending writes.
    reserved: i64,
}

impl Count {
    fn total(self) -> i64 {
        self.stored.saturating_add(self.added).saturating_add(self.reserved)
    }
}

/// A reservation for a pending write. Dropping it releases the bytes, unless the written bytes were counted.
pub(crate) struct Reserved {
    usage: Arc<Usage>,
    workspace: WorkspaceId,
    /// Zero after the written bytes were counted.
    bytes: AtomicI64,
}

/// Reserves bytes for a write, or refuses it.
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
            // The count may be out of date: read it again.
            Err(_) => {}
        }
    }
    usage.read(store.stored_use(vec![workspace]).await?);
    match usage.try_reserve(workspace, bytes) {
        Ok(reserved) => Ok(reserved),
        Err(error) => {
            // Check membership first: strangers must not learn the usage.
            store.is_member(access).await?;
            Err(error)
        }
    }
}

/// Adds the counts since the last update to the database, and reads what other replicas have added.
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

    /// Refuses another workspace to an account that has reached its limit.
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
        read_at.is_some_and(|at| at.elapsed() < MAX_AGE_FOR_REFUSAL)
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
        Ok(Reserved { usage: Arc::clone(self), workspace, bytes: AtomicI64::new(bytes) })
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
        // Sorted, so that replicas lock the rows in the same order.
        added.sort_unstable();
        for (workspace, bytes) in &added {
            state.change(*workspace, |count| (count.stored, count.added) = (count.stored + bytes, count.added - bytes));
        }
        if state.workspaces.len() > MAX_REMEMBERED {
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
    /// Updates the counts of a workspace and of its owner.
    fn change(&mut self, workspace: WorkspaceId, change: impl Fn(&mut Count)) {
        let known = self.workspaces.entry(workspace).or_default();
        change(&mut known.count);
        if let Some(owner) = known.owner {
            change(self.accounts.entry(owner).or_default());
        }
    }
}

impl Reserved {
    /// Replaces the reservation by the bytes that were written.
    pub(crate) fn count_written(&self, written: i64) {
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        let change = |count: &mut Count| {
            count.reserved -= bytes;
            count.added += written;
        };
        self.usage.lock().change(self.workspace, change);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if bytes != 0 {
            self.usage.lock().change(self.workspace, |count| count.reserved -= bytes);
        }
    }
}

/// Refuses bytes that would exceed a limit. Zero bytes are never refused, so that users can free storage.
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
