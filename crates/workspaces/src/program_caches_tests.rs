use super::{CacheLimits, Emptied, ProgramCaches};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use toolrest_core::{ProgramHome, UserId, WorkspaceId};

struct Caches {
    folder: TempDir,
    caches: Arc<ProgramCaches>,
    account: UserId,
}

fn caches(workspace_bytes: u64, account_bytes: u64) -> Caches {
    let folder = tempfile::tempdir().unwrap();
    let limits = CacheLimits { workspace_bytes, account_bytes, idle: Duration::from_secs(1_000_000) };
    let caches = Arc::new(ProgramCaches::new(folder.path().join("caches"), limits));
    Caches { folder, caches, account: UserId::new() }
}

impl Caches {
    async fn lease(&self, workspace: WorkspaceId) -> ProgramHome {
        self.caches.lease(workspace, self.account).await.unwrap()
    }

    /// Uses the cache of a workspace, leaves a file of a size in it, and enforces the limits.
    async fn fill(&self, workspace: WorkspaceId, bytes: usize) -> PathBuf {
        let home = self.lease(workspace).await;
        let path = home.folder.path.clone();
        fs::write(path.join("file"), vec![1; bytes]).unwrap();
        drop(home);
        let caches = Arc::clone(&self.caches);
        tokio::task::spawn_blocking(move || caches.enforce(workspace)).await.unwrap().unwrap();
        path
    }
}

fn is_kept(home: &Path) -> bool {
    home.join("file").exists()
}

#[tokio::test]
async fn what_a_program_left_is_there_for_the_next_one_of_the_workspace_only() {
    let caches = caches(1 << 20, 1 << 20);
    let (one, other) = (WorkspaceId::new(), WorkspaceId::new());
    let home = caches.fill(one, 10).await;
    assert_eq!(caches.lease(one).await.folder.path, home);
    assert!(is_kept(&home));
    assert!(!is_kept(&caches.lease(other).await.folder.path));
}

#[tokio::test]
async fn a_cache_over_its_limit_is_emptied() {
    let caches = caches(1 << 20, 1 << 30);
    let workspace = WorkspaceId::new();
    assert!(is_kept(&caches.fill(workspace, 1 << 19).await));
    assert!(!is_kept(&caches.fill(workspace, 2 << 20).await));
    let left: Vec<_> = fs::read_dir(caches.folder.path().join(format!("caches/{workspace}"))).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test]
async fn very_many_small_files_are_over_the_limit() {
    let caches = caches(1 << 20, 1 << 30);
    let workspace = WorkspaceId::new();
    let home = caches.lease(workspace).await;
    let path = home.folder.path.clone();
    for number in 0..300 {
        fs::write(path.join(number.to_string()), "").unwrap();
    }
    drop(home);
    caches.fill(workspace, 1).await;
    assert!(!path.join("0").exists());
}

#[tokio::test]
async fn a_cache_in_use_is_not_emptied() {
    let caches = caches(1 << 20, 1 << 30);
    let workspace = WorkspaceId::new();
    let used = caches.lease(workspace).await;
    assert!(is_kept(&caches.fill(workspace, 2 << 20).await));
    assert_eq!(caches.caches.empty(workspace).await.unwrap(), Emptied::InUse);
    drop(used);
    assert_eq!(caches.caches.empty(workspace).await.unwrap(), Emptied::Yes);
    assert!(!is_kept(&caches.lease(workspace).await.folder.path));
}

#[tokio::test]
async fn the_oldest_cache_of_an_account_over_its_limit_is_emptied() {
    let caches = caches(1 << 20, 3 << 19);
    let (oldest, newer, newest) = (WorkspaceId::new(), WorkspaceId::new(), WorkspaceId::new());
    let homes =
        [caches.fill(oldest, 3 << 18).await, caches.fill(newer, 3 << 18).await, caches.fill(newest, 3 << 18).await];
    assert_eq!(homes.map(|home| is_kept(&home)), [false, true, true]);
}

#[tokio::test]
async fn a_cache_that_was_never_used_can_be_emptied() {
    let caches = caches(1, 1);
    assert_eq!(caches.caches.empty(WorkspaceId::new()).await.unwrap(), Emptied::Yes);
}
