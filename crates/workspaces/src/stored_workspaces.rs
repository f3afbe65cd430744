//! Opens workspaces of every kind.

use crate::Scratch;
use crate::check_in_room::CheckInBudget;
use crate::checkout::{CheckoutRetention, WorkingCopyPool};
use crate::database_workspace::DatabaseWorkspace;
use crate::folder::{Folder, FolderOptions, FolderWorkspace, WalkPool, not_allowed};
use crate::program_caches::ProgramCaches;
use crate::read_room::{ReadBudget, ReadRoom};
use async_trait::async_trait;
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::runtime::Handle;
use toolrest_core::{
    Access, ErrorKind, KeepLimits, QueueDepth, Result, SymbolicLinks, ToolError, Workspace, WorkspaceId, Workspaces,
};
use toolrest_store::{Location, Store};

/// Maximum number of workspaces whose kind is cached.
const REMEMBERED: usize = 100_000;

/// Opens the workspaces of a store.
pub struct StoredWorkspaces {
    store: Arc<dyn Store>,
    folders: FolderOptions,
    walk_pool: Arc<WalkPool>,
    scratch: Arc<Scratch>,
    working_copies: Arc<WorkingCopyPool>,
    reads: Arc<ReadBudget>,
    check_ins: Arc<CheckInBudget>,
    caches: Option<Arc<ProgramCaches>>,
    known: Mutex<HashMap<WorkspaceId, FilesLocation>>,
}

/// Where the files of a workspace are.
#[derive(Clone)]
enum FilesLocation {
    Database,
    Folder { root: String, owner: String, open: Arc<Folder> },
}

impl StoredWorkspaces {
    /// Creates the workspaces of a store, with the folders that the operator allows.
    pub fn new(store: Arc<dyn Store>, folders: FolderOptions, scratch: Scratch) -> Self {
        let scratch = Arc::new(scratch);
        let working_copies = Arc::new(WorkingCopyPool::new(Arc::clone(&scratch), CheckoutRetention::default()));
        Self {
            store,
            folders,
            walk_pool: Arc::default(),
            scratch,
            working_copies,
            reads: Arc::default(),
            check_ins: Arc::new(CheckInBudget::new(KeepLimits::default().commit_bytes)),
            caches: None,
            known: Mutex::default(),
        }
    }

    /// Sets the limits on working copies that are kept between programs.
    #[must_use]
    pub fn keeping(mut self, kept: CheckoutRetention) -> Self {
        self.working_copies = Arc::new(WorkingCopyPool::new(Arc::clone(&self.scratch), kept));
        self
    }

    /// Sets the byte budget for large files that calls read. A file of the maximum size always fits.
    #[must_use]
    pub fn with_read_budget(mut self, bytes: usize, largest_file_bytes: usize) -> Self {
        self.reads = Arc::new(ReadBudget::new(bytes, largest_file_bytes));
        self
    }

    /// Sets the byte budget for check-ins by the maximum size of one.
    #[must_use]
    pub fn with_check_in_budget(mut self, largest_bytes: u64) -> Self {
        self.check_ins = Arc::new(CheckInBudget::new(largest_bytes));
        self
    }

    /// Keeps the home directories of programs between programs.
    #[must_use]
    pub fn with_caches(mut self, caches: Arc<ProgramCaches>) -> Self {
        self.caches = Some(caches);
        self
    }

    /// Returns how many searches of folders run, and how many wait.
    pub fn folder_searches(&self) -> QueueDepth {
        self.walk_pool.depth()
    }

    /// Returns the real path of a folder that an account wants as a workspace, if that is allowed.
    pub async fn allowed_root(&self, root: &Path, account: &str) -> Result<String> {
        let (root, options, account) = (root.to_owned(), self.folders.clone(), account.to_owned());
        let open = move || Folder::open(&root, &options, &account).map(|folder| folder.real_path().to_owned());
        let opened = tokio::task::spawn_blocking(open).await.map_err(ToolError::internal)?;
        let real = opened.map_err(|error| match error.kind {
            // The caller named the folder, so a missing one is a bad argument.
            ErrorKind::Unavailable => error.with_kind(ErrorKind::InvalidArgument),
            _ => error,
        })?;
        let text = real.to_str().map(str::to_owned);
        text.ok_or_else(|| ToolError::new(ErrorKind::InvalidPath, "The folder's path must be valid UTF-8"))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<WorkspaceId, FilesLocation>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn find(&self, workspace: WorkspaceId) -> Result<FilesLocation> {
        let known = self.known().get(&workspace).cloned();
        let (root, owner) = match known {
            Some(FilesLocation::Folder { root, owner, open }) if !open.is_at(Path::new(&root)) => (root, owner),
            Some(known) => return Ok(known),
            None => match self.store.location(workspace).await? {
                // A workspace that does not exist is refused like one that the caller is no member of.
                None => return Ok(FilesLocation::Database),
                Some((Location::Database, _)) => return Ok(self.remember(workspace, FilesLocation::Database)),
                Some((Location::Directory { root }, owner)) => (root, owner),
            },
        };
        if let Some(open) = self.open_at(&root) {
            if !self.folders.allows(open.real_path(), &owner) {
                return Err(not_allowed(Path::new(&root)));
            }
            return Ok(self.remember(workspace, FilesLocation::Folder { root, owner, open }));
        }
        let (store, options, runtime) = (Arc::clone(&self.store), self.folders.clone(), Handle::current());
        let open = move || {
            let folder = Folder::open(Path::new(&root), &options, &owner)?;
            // A link in its place can lead to another account's folder.
            if folder.real_path() != Path::new(&root) {
                return Err(leads_elsewhere(&root));
            }
            if let Err(error) = folder.recover(&*store, &runtime) {
                // Changes repeat the recovery; reads do not need it.
                tracing::error!(%error, "an interrupted commit could not be settled");
            }
            Ok(FilesLocation::Folder { root, owner, open: Arc::new(folder) })
        };
        let opened = tokio::task::spawn_blocking(open).await.map_err(ToolError::internal)?;
        Ok(self.remember(workspace, opened?))
    }

    /// Returns the folder if another workspace has it open, so that both use the same lock.
    fn open_at(&self, root: &str) -> Option<Arc<Folder>> {
        let known = self.known();
        let mut open = known.values().filter_map(|known| match known {
            FilesLocation::Folder { root: of_it, open, .. } if of_it == root => Some(open),
            _ => None,
        });
        open.find(|open| open.is_at(Path::new(root))).cloned()
    }

    fn remember(&self, workspace: WorkspaceId, opened: FilesLocation) -> FilesLocation {
        let mut known = self.known();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(workspace, opened.clone());
        opened
    }
}

fn leads_elsewhere(root: &str) -> ToolError {
    let message = format!(
        "The workspace's folder {root} was moved or is a symbolic link by now; put the folder back, or make a workspace of \
         the folder that the link leads to"
    );
    ToolError::new(ErrorKind::Unavailable, message)
}

#[async_trait]
impl Workspaces for StoredWorkspaces {
    async fn open(&self, access: Access, links: SymbolicLinks) -> Result<Arc<dyn Workspace>> {
        let (store, scratch) = (Arc::clone(&self.store), Arc::clone(&self.scratch));
        let room = ReadRoom::new(Arc::clone(&self.reads), access.person);
        let (check_ins, caches) = (Arc::clone(&self.check_ins), self.caches.clone());
        Ok(match self.find(access.workspace).await {
            Ok(FilesLocation::Database) => {
                let working_copies = Arc::clone(&self.working_copies);
                Arc::new(DatabaseWorkspace { store, working_copies, access, room, check_ins, caches })
            }
            Ok(FilesLocation::Folder { open, .. }) => {
                let walk_pool = Arc::clone(&self.walk_pool);
                let folder = match links {
                    SymbolicLinks::Follow => open,
                    SymbolicLinks::Refuse => Arc::new(open.refusing_links()),
                };
                Arc::new(FolderWorkspace { store, folder, walk_pool, scratch, access, room, check_ins, caches })
            }
            Err(error) => {
                // Only members may learn that the workspace exists.
                store.authorise(access).await?;
                return Err(error);
            }
        })
    }
}
