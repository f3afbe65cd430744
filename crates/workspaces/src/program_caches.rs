//! The caches of workspaces: for each, a folder that its programs have as their home directory, so that what `cargo`, `go`,
//! `npm` or `pip` keep there is still there for the next program.
//!
//! A cache belongs to no version and to no answer. If it is over its limit, or its account's caches together are, it is
//! emptied as a whole as soon as no program uses it.

use crate::scratch::{held, own_folder, remove};
use std::{
    collections::HashMap,
    fs::{self, File, FileTimes, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};
use tokio::runtime::Handle;
use toolrest_core::{Access, ErrorKind, ProgramHome, Result, ToolError, UserId, WorkspaceId};
use toolrest_directory::{ErrorKind as DirectoryErrorKind, Root, tree_size};
use toolrest_store::Store;
use toolrest_store::disk_fault::disk_fault;
use uuid::Uuid;

/// Minimum time between two measurements of a cache. What a program adds meanwhile is limited by its own disk limit.
const MEASURE_INTERVAL: Duration = Duration::from_secs(10);

/// The folder in a cache's folder that programs see.
const HOME: &str = "home";
/// Locked by everybody who uses the cache, and exclusively by who empties it. Its time is that of the last use.
const LOCK: &str = "lock";
/// Holds the id of the account that used the cache last, which its bytes are charged to.
const ACCOUNT: &str = "account";

/// Limits of the caches.
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    /// Maximum size of the cache of a workspace.
    pub workspace_bytes: u64,
    /// Maximum size of all caches of an account.
    pub account_bytes: u64,
    /// Caches that were not used for so long are emptied.
    pub idle: Duration,
}

/// The caches of all workspaces.
#[derive(Debug)]
pub struct ProgramCaches {
    parent: PathBuf,
    limits: CacheLimits,
    known: Mutex<HashMap<WorkspaceId, KnownCache>>,
}

/// What is known about a cache since it was last measured.
#[derive(Clone, Copy, Debug)]
struct KnownCache {
    account: UserId,
    bytes: u64,
    measured_at: Option<Instant>,
    used_at: SystemTime,
}

/// Whether a cache was emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptied {
    /// It was, or was empty already.
    Yes,
    /// A program uses it.
    InUse,
}

impl ProgramCaches {
    /// Creates the caches below a folder, which is created when it is needed.
    pub fn new(parent: PathBuf, limits: CacheLimits) -> Self {
        Self { parent, limits, known: Mutex::default() }
    }

    /// Returns the home directory of the programs of a workspace. It is not emptied while the result is held.
    pub(crate) async fn lease(self: &Arc<Self>, workspace: WorkspaceId, account: UserId) -> Result<ProgramHome> {
        let caches = Arc::clone(self);
        let lease = move || caches.lease_now(workspace, account).map_err(disk_fault);
        tokio::task::spawn_blocking(lease).await.map_err(ToolError::internal)?
    }

    fn lease_now(self: Arc<Self>, workspace: WorkspaceId, account: UserId) -> io::Result<ProgramHome> {
        let folder = self.folder(workspace);
        own_folder(&folder)?;
        let lock = open_lock(&folder)?;
        lock.lock_shared()?;
        let now = SystemTime::now();
        lock.set_times(FileTimes::new().set_modified(now))?;
        let home = folder.join(HOME);
        own_folder(&home)?;
        let root = Root::open(&home).map_err(io::Error::other)?;
        let is_new_account = {
            let mut known = self.known();
            let first = KnownCache { account, bytes: 0, measured_at: None, used_at: now };
            let known = known.entry(workspace).or_insert(first);
            known.used_at = now;
            std::mem::replace(&mut known.account, account) != account || known.measured_at.is_none()
        };
        if is_new_account {
            fs::write(folder.join(ACCOUNT), account.to_string())?;
        }
        Ok(ProgramHome::new(held(&root), CacheLease { caches: self, workspace, lock: Some(lock) }))
    }

    /// Empties the cache of a workspace, unless a program uses it.
    pub async fn empty(self: &Arc<Self>, workspace: WorkspaceId) -> Result<Emptied> {
        let caches = Arc::clone(self);
        let empty = move || caches.empty_now(workspace).map_err(disk_fault);
        tokio::task::spawn_blocking(empty).await.map_err(ToolError::internal)?
    }

    fn empty_now(&self, workspace: WorkspaceId) -> io::Result<Emptied> {
        let folder = self.folder(workspace);
        let lock = match open_lock(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Emptied::Yes),
            lock => lock?,
        };
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(Emptied::InUse),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        match fs::rename(folder.join(HOME), folder.join(Uuid::now_v7().to_string())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.known().entry(workspace).and_modify(|known| known.bytes = 0);
        // The next program may start with a new folder while the old one is removed.
        drop(lock);
        for entry in fs::read_dir(&folder)? {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|name| Uuid::try_parse(name).is_ok()) {
                remove(&folder.join(name));
            }
        }
        Ok(Emptied::Yes)
    }

    /// Measures a cache, and empties what is over the limits and not in use.
    fn enforce(&self, workspace: WorkspaceId) -> io::Result<()> {
        let home = self.folder(workspace).join(HOME);
        let bytes = match tree_size(&home, self.limits.workspace_bytes) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind, DirectoryErrorKind::NotFound) => 0,
            // What cannot be measured could be of any size.
            Err(error) => {
                tracing::warn!(%error, "a cache could not be measured, and will be emptied");
                u64::MAX
            }
        };
        let (account, of_account) = {
            let mut known = self.known();
            let Some(cache) = known.get_mut(&workspace) else { return Ok(()) };
            (cache.bytes, cache.measured_at) = (bytes, Some(Instant::now()));
            let account = cache.account;
            let of_account = known.iter().filter(|(_, cache)| cache.account == account && cache.bytes > 0);
            let mut of_account: Vec<_> = of_account.map(|(id, cache)| (cache.used_at, *id, cache.bytes)).collect();
            of_account.sort_unstable();
            (account, of_account)
        };
        if bytes > self.limits.workspace_bytes && self.empty_now(workspace)? == Emptied::Yes {
            tracing::info!(%workspace, limit = self.limits.workspace_bytes, "emptied a cache that was over its limit");
            return Ok(());
        }
        let mut total = of_account.iter().fold(0u64, |total, (_, _, bytes)| total.saturating_add(*bytes));
        for (_, workspace, bytes) in of_account {
            if total <= self.limits.account_bytes {
                break;
            }
            if self.empty_now(workspace)? == Emptied::Yes {
                tracing::info!(%workspace, %account, "emptied a cache of an account whose caches were over its limit");
                total = total.saturating_sub(bytes);
            }
        }
        Ok(())
    }

    /// Measures all caches, and removes those of workspaces that are gone. It is called from time to time.
    pub async fn sweep(self: &Arc<Self>, store: &dyn Store) -> Result<()> {
        let caches = Arc::clone(self);
        let found = tokio::task::spawn_blocking(move || caches.found()).await.map_err(ToolError::internal)?;
        for (workspace, account, used_at) in found.map_err(disk_fault)? {
            let exists = store.location(workspace).await?.is_some();
            let caches = Arc::clone(self);
            let maintain = move || caches.maintain(workspace, account, used_at, exists).map_err(disk_fault);
            tokio::task::spawn_blocking(maintain).await.map_err(ToolError::internal)??;
        }
        Ok(())
    }

    /// Returns the caches on disk, with their accounts and the times of their last uses.
    fn found(&self) -> io::Result<Vec<(WorkspaceId, Option<UserId>, SystemTime)>> {
        let entries = match fs::read_dir(&self.parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Some(workspace) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let account = match fs::read_to_string(entry.path().join(ACCOUNT)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                text => text?.parse().ok(),
            };
            found.push((workspace, account, open_lock(&entry.path())?.metadata()?.modified()?));
        }
        Ok(found)
    }

    fn maintain(
        &self,
        workspace: WorkspaceId,
        account: Option<UserId>,
        used_at: SystemTime,
        exists: bool,
    ) -> io::Result<()> {
        let is_idle = used_at.elapsed().is_ok_and(|idle| idle > self.limits.idle);
        let Some(account) = account.filter(|_| exists && !is_idle) else {
            if self.empty_now(workspace)? == Emptied::Yes && !exists {
                self.known().remove(&workspace);
                remove(&self.folder(workspace));
            }
            return Ok(());
        };
        let first = KnownCache { account, bytes: 0, measured_at: None, used_at };
        self.known().entry(workspace).or_insert(first);
        self.enforce(workspace)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<WorkspaceId, KnownCache>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder(&self, workspace: WorkspaceId) -> PathBuf {
        self.parent.join(workspace.to_string())
    }
}

/// Returns the home directory for a program, if the operator keeps caches.
pub(crate) async fn program_home(caches: Option<&Arc<ProgramCaches>>, access: Access) -> Result<Option<ProgramHome>> {
    match caches {
        Some(caches) => caches.lease(access.workspace, access.person).await.map(Some),
        None => Ok(None),
    }
}

/// Creates the error for a cache that cannot be emptied now.
pub fn cache_in_use() -> ToolError {
    let message = "A program uses the cache of this workspace; try again when it has ended";
    ToolError::new(ErrorKind::Conflict, message)
}

fn open_lock(folder: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(folder.join(LOCK))
}

/// The use of a cache by a program.
struct CacheLease {
    caches: Arc<ProgramCaches>,
    workspace: WorkspaceId,
    /// Released before the cache is measured, because it may be emptied then.
    lock: Option<File>,
}

impl Drop for CacheLease {
    fn drop(&mut self) {
        self.lock = None;
        let is_due = |cache: &KnownCache| cache.measured_at.is_none_or(|at| at.elapsed() > MEASURE_INTERVAL);
        if !self.caches.known().get(&self.workspace).is_some_and(is_due) {
            return;
        }
        let (caches, workspace) = (Arc::clone(&self.caches), self.workspace);
        // There is no runtime only while the server shuts down.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn_blocking(move || {
            if let Err(error) = caches.enforce(workspace) {
                tracing::warn!(%error, %workspace, "the cache of a workspace could not be measured or emptied");
            }
        });
    }
}

#[cfg(test)]
#[path = "program_caches_tests.rs"]
mod tests;
