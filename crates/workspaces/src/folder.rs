//! A workspace whose files are in a real folder.
//!
//! Reads always use the disk. The store has the members and the history: rows for the files that tools have changed, as of
//! the last change. Before a changeset is planned, those rows are reconciled with the disk: a change that somebody else
//! made becomes a newer version. Then `plan` decides as for files in the database.

mod checkout;
mod commit;
mod contents;
mod decoded;
mod disk;
mod errors;
mod everywhere;
mod find;
mod guarded;
mod history_limit;
mod reconcile;
mod search;
mod steps;
mod unversioned_removals;
mod walk;
mod walk_pool;
mod watching;

pub use find::find;
pub use guarded::GuardedPath;
pub use search::search;
pub(crate) use walk_pool::WalkPool;

use crate::Scratch;
use crate::check_in_room::CheckInBudget;
use crate::program_caches::{ProgramCaches, program_home};
use crate::read_room::ReadRoom;
use async_trait::async_trait;
use commit::CommitExtras;
use disk::Disk;
use history_limit::HistoryUse;
use std::{
    os::unix::fs::DirBuilderExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, Weak},
};
use tokio::sync::Mutex;
use toolrest_core::{
    Access, CallCx, Changeset, Checkout, CheckoutOptions, Commit, Depth, Entry, ErrorKind, FeedCursor, FeedPage,
    FeedSources, File, FileEvents, FileType, Find, FindResult, Listing, OpenFile, Preview, ProgramHome, Result, Search,
    SearchResult, ToolError, Workspace, WsPath, below_workspace_mount,
};
use toolrest_directory::{Repositories, Root, leads_into_repository};
use toolrest_store::disk_fault::disk_fault;
use toolrest_store::{FileStore, Store};
use watching::WatchedFolder;

/// Which folders may be workspaces, and how much of their history is kept.
#[derive(Clone, Debug, Default)]
pub struct FolderOptions {
    /// Folders must be at or below one of these.
    pub allowed_roots: Vec<AllowedRoot>,
    /// The folder of the commit journals, shared by all processes that change the same folders.
    pub journal_dir: PathBuf,
    /// Files and folders of the server that no workspace may show, besides the folder of the journals.
    pub guarded: Vec<GuardedPath>,
    /// How much of their history is kept.
    pub history: HistoryLimits,
    /// Whether tools may change the files of git repositories in them.
    pub repositories: Repositories,
}

/// A folder at or below which folders may become workspaces.
#[derive(Clone, Debug)]
pub struct AllowedRoot {
    /// Its real path.
    pub folder: PathBuf,
    /// The accounts that may open it, by their addresses in lower case; all accounts if this is `None`.
    pub accounts: Option<Vec<String>>,
}

impl AllowedRoot {
    /// A root that any account may open.
    pub fn for_all(folder: PathBuf) -> Self {
        Self { folder, accounts: None }
    }

    fn admits(&self, account: &str) -> bool {
        self.accounts.as_ref().is_none_or(|accounts| accounts.iter().any(|admitted| admitted == account))
    }
}

impl FolderOptions {
    /// Whether an account may have a workspace in a folder, by the folder's real path.
    ///
    /// Of several roots above the folder, the deepest decides. Roots inside the folder must admit the account too, because
    /// the folder shows them.
    pub(crate) fn allows(&self, real_path: &Path, account: &str) -> bool {
        let above = self.allowed_roots.iter().filter(|root| real_path.starts_with(&root.folder));
        // Of two entries for the same folder, the one with accounts decides.
        let deepest = above.max_by_key(|root| (root.folder.components().count(), root.accounts.is_some()));
        let mut below = self.allowed_roots.iter().filter(|root| root.folder.starts_with(real_path));
        deepest.is_some_and(|root| root.admits(account)) && below.all(|root| root.admits(account))
    }
}

/// How much of the history of a folder is kept.
#[derive(Clone, Copy, Debug)]
pub struct HistoryLimits {
    /// Maximum size of a file whose content is kept. Of larger files only the hash and the size are.
    pub file_bytes: u64,
    /// Maximum size of the earlier contents that one commit adds.
    pub commit_bytes: u64,
    /// Maximum size of the history of one folder; the oldest contents are dropped. No limit if this is `None`.
    pub total_bytes: Option<u64>,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { file_bytes: 64 << 20, commit_bytes: 256 << 20, total_bytes: None }
    }
}

/// An open folder, shared by all workspaces and callers that use it.
pub(crate) struct Folder {
    disk: Disk,
    repositories: Repositories,
    /// The folder lock within this process.
    process_lock: Arc<Mutex<()>>,
    journal_dir: PathBuf,
    watching: Arc<std::sync::Mutex<Weak<WatchedFolder>>>,
    history: Arc<HistoryUse>,
}

impl Folder {
    /// Opens a folder for a workspace of this account, if that is allowed.
    pub(crate) fn open(path: &Path, options: &FolderOptions, account: &str) -> Result<Self> {
        let root = Root::open(path).map_err(|error| {
            // For folders outside the allowed roots, the answer does not tell whether they exist.
            let leads_up = path.components().any(|part| part == Component::ParentDir);
            if options.allows(path, account) && !leads_up { unusable(path, &error) } else { not_allowed(path) }
        })?;
        // Check the folder that was opened: the path may lead elsewhere by now.
        if !options.allows(root.real_path(), account) {
            return Err(not_allowed(path));
        }
        // Paths inside a repository do not contain `.git`, so they could not be recognised.
        if options.repositories == Repositories::ReadOnly && leads_into_repository(root.real_path()) {
            return Err(is_repository(path));
        }
        // Journals contain file contents, so only the server may read them.
        let own = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&options.journal_dir);
        own.map_err(disk_fault)?;
        let journals = GuardedPath::data(options.journal_dir.clone());
        let guarded = options.guarded.iter().chain([&journals]);
        if let Some(shown) = guarded::shown_by(root.real_path(), guarded).map_err(ToolError::internal)? {
            return Err(shows_guarded(path, shown));
        }
        let disk = Disk { root: Arc::new(root), limits: options.history };
        let journal_dir = options.journal_dir.clone();
        let repositories = options.repositories;
        Ok(Self {
            disk,
            repositories,
            process_lock: Arc::default(),
            journal_dir,
            watching: Arc::default(),
            history: Arc::default(),
        })
    }

    /// Returns the same folder for a caller that must reach every file by its own path, not through symbolic links.
    pub(crate) fn refusing_links(&self) -> Self {
        let disk = Disk { root: Arc::new(self.disk.root.refusing_links()), ..self.disk.clone() };
        Self {
            disk,
            repositories: self.repositories,
            process_lock: Arc::clone(&self.process_lock),
            journal_dir: self.journal_dir.clone(),
            watching: Arc::clone(&self.watching),
            history: Arc::clone(&self.history),
        }
    }

    /// Returns the real path of the folder.
    pub(crate) fn real_path(&self) -> &Path {
        self.disk.root.real_path()
    }

    /// Whether the path still leads to the folder that is open.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = self.disk.root.identity();
        std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (identity.device, identity.inode))
    }
}

/// Refuses a folder inside a git repository's `.git`.
fn is_repository(path: &Path) -> ToolError {
    let message = format!(
        "The folder {} belongs to a git repository's .git, which is read-only for tools, because git on the host runs what \
         stands in there; the operator can allow it with folders.git_writable",
        path.display()
    );
    ToolError::new(ErrorKind::Forbidden, message)
}

fn unusable(path: &Path, error: &toolrest_directory::Error) -> ToolError {
    let message = format!("The workspace's folder {} cannot be opened: {}", path.display(), error.kind);
    ToolError::new(ErrorKind::Unavailable, message)
}

pub(crate) fn not_allowed(path: &Path) -> ToolError {
    let message = format!(
        "The folder {} is not below any that the operator allows to this account; start the server with --allow-root, \
         or list it in folders.account_roots",
        path.display()
    );
    ToolError::new(ErrorKind::Forbidden, message)
}

/// Refuses a folder that shows files of the server, such as its database with the secret that signs tokens.
fn shows_guarded(path: &Path, shown: &GuardedPath) -> ToolError {
    let GuardedPath { what, setting, .. } = shown;
    let message = format!(
        "The folder {} shows {what}, which no workspace may show; keep that elsewhere with {setting}",
        path.display()
    );
    ToolError::new(ErrorKind::Forbidden, message)
}

/// A folder opened for one caller.
#[derive(Clone)]
pub(crate) struct FolderWorkspace {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) folder: Arc<Folder>,
    pub(crate) walk_pool: Arc<WalkPool>,
    pub(crate) scratch: Arc<Scratch>,
    pub(crate) access: Access,
    pub(crate) room: Arc<ReadRoom>,
    pub(crate) check_ins: Arc<CheckInBudget>,
    pub(crate) caches: Option<Arc<ProgramCaches>>,
}

impl FolderWorkspace {
    /// Runs an operation on the disk on a blocking thread.
    async fn on_disk<T: Send + 'static>(
        &self,
        read_state: impl FnOnce(&Disk) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let folder = Arc::clone(&self.folder);
        tokio::task::spawn_blocking(move || read_state(&folder.disk)).await.map_err(ToolError::internal)?
    }
}

#[async_trait]
impl Workspace for FolderWorkspace {
    async fn authorise(&self) -> Result<()> {
        Ok(self.store.authorise(self.access).await?)
    }

    async fn is_owner(&self) -> Result<bool> {
        Ok(self.store.is_owner(self.access).await?)
    }

    async fn stat(&self, path: &WsPath) -> Result<Option<Entry>> {
        let recorded = self.store.stat(self.access, path).await?;
        if recorded.as_ref().is_some_and(|entry| entry.is_virtual) {
            return Ok(recorded);
        }
        let path = path.clone();
        self.on_disk(move |disk| disk.stat(&path, recorded)).await
    }

    async fn read(&self, path: &WsPath, max_bytes: u64) -> Result<File> {
        let recorded = self.store.stat(self.access, path).await?;
        if recorded.as_ref().is_some_and(|entry| entry.is_virtual) {
            let read = |free| FileStore::read(&*self.store, self.access, path, i64::try_from(free).unwrap_or(i64::MAX));
            return self.room.read(path, max_bytes, read).await;
        }
        if let Some(file) = self.folder.disk.read_cached(path, recorded.as_ref(), max_bytes) {
            return Ok(file);
        }
        let read = |free| {
            let (path, recorded) = (path.clone(), recorded.clone());
            self.on_disk(move |disk| disk.read(&path, recorded, free))
        };
        self.room.read(path, max_bytes, read).await
    }

    async fn make_room(&self, bytes: u64) -> Result<()> {
        self.room.make_room(bytes).await
    }

    async fn open(&self, path: &WsPath, more_than_bytes: u64) -> Result<Option<OpenFile>> {
        // The size is used before the membership is checked, but is not answered.
        if self.folder.disk.is_small(path, more_than_bytes) {
            return Ok(None);
        }
        let at = path.clone();
        let opened = self.on_disk(move |disk| Ok(disk.open(&at, more_than_bytes))).await?;
        let Some((metadata, bytes)) = opened else { return Ok(None) };
        let recorded = self.store.stat(self.access, path).await?;
        Ok(Some(OpenFile { entry: disk::entry(path, FileType::Document, &metadata, None, recorded), bytes }))
    }

    fn is_in_file_system(&self) -> bool {
        true
    }

    fn below_mount(&self, path: &str) -> Option<String> {
        let below_folder = || {
            let below = self.folder.disk.root.relative(Path::new(path)).ok()?;
            path.starts_with('/').then(|| below.to_str().map(str::to_owned))?
        };
        below_workspace_mount(path).map(str::to_owned).or_else(below_folder)
    }

    fn locate(&self, path: &str) -> Result<WsPath> {
        match self.below_mount(path) {
            Some(below) => WsPath::within(&below),
            // Other absolute paths are outside of the folder.
            None => WsPath::relative(path),
        }
    }

    async fn list(&self, folder: &WsPath, depth: Depth, limit: usize) -> Result<Listing> {
        let virtual_paths = self.store.virtual_files(self.access).await?;
        let folder = folder.clone();
        // A deep list can take much memory, so the number of them at a time is bounded.
        let slot = match depth {
            Depth::Children => None,
            Depth::Descendants => Some(self.walk_pool.slot(self.access).await?),
        };
        self.on_disk(move |disk| {
            let _slot = slot;
            disk.list(&folder, depth, limit, virtual_paths)
        })
        .await
    }

    async fn names(&self, folder: &WsPath, limit: usize) -> Result<Vec<WsPath>> {
        let virtual_paths = self.store.virtual_files(self.access).await?;
        let folder = folder.clone();
        self.on_disk(move |disk| disk.names(&folder, limit, virtual_paths)).await
    }

    async fn find(&self, find: Find) -> Result<FindResult> {
        self.find_everywhere(find).await
    }

    async fn search(&self, search: Search) -> Result<SearchResult> {
        self.search_everywhere(search).await
    }

    async fn watch(&self) -> Result<FileEvents> {
        self.store.authorise(self.access).await?;
        let folder = Arc::clone(&self.folder);
        tokio::task::spawn_blocking(move || folder.watch()).await.map_err(ToolError::internal)?
    }

    async fn feed(&self, after: Option<&FeedCursor>, sources: FeedSources) -> Result<FeedPage> {
        Ok(self.store.feed(self.access, after, sources).await?)
    }

    async fn check_out(&self, options: CheckoutOptions) -> Result<Box<dyn Checkout>> {
        self.check_out_folder(options).await
    }

    async fn program_home(&self) -> Result<Option<ProgramHome>> {
        program_home(self.caches.as_ref(), self.access).await
    }

    async fn commit(&self, changes: Changeset, cx: &CallCx) -> Result<Commit> {
        let commit = self.commit_on_disk(changes, CommitExtras::default(), cx).await?;
        if let Some(id) = commit.id {
            cx.recorded_with(id);
        }
        Ok(commit)
    }

    async fn preview(&self, changes: Changeset, cx: &CallCx) -> Result<Preview> {
        self.preview_on_disk(changes, cx).await
    }
}
