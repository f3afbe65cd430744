//! A workspace behind a guard, which may also only preview changes.

use crate::{
    Action, CallCx, Changeset, Checkout, CheckoutMode, CheckoutOptions, Commit, CommitId, CommitInfo, Content, Depth,
    Entry, ErrorKind, FeedCursor, FeedPage, FeedSources, File, FileEvents, FileId, Find, FindResult, Guard, History,
    Listing, OpenFile, Page, Preview, Result, Search, SearchResult, ToolError, Version, VersionId, Workspace, WsPath,
};
use async_trait::async_trait;
use std::sync::{Arc, PoisonError};

/// A workspace of which every read and every change is judged by a guard.
///
/// Reads are judged here. Changes are judged by the plan, and those of programs at their check-in, because only they
/// know what the changes amount to; both get the guard from the context of the call.
pub(crate) struct GuardedWorkspace {
    workspace: Arc<dyn Workspace>,
    guard: Arc<Guard>,
    commits: Commits,
}

/// What happens to changesets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commits {
    /// Changesets are applied.
    Apply,
    /// Changesets are only previewed: the call is a dry run.
    Preview,
}

impl GuardedWorkspace {
    /// Puts a workspace behind a guard. A workspace that needs none is returned as it is.
    pub(crate) fn around(workspace: Arc<dyn Workspace>, guard: &Arc<Guard>, commits: Commits) -> Arc<dyn Workspace> {
        if guard.is_unrestricted() && commits == Commits::Apply {
            return workspace;
        }
        Arc::new(Self { workspace, guard: Arc::clone(guard), commits })
    }

    /// Checks that the caller may do an action. Membership comes first, so that strangers learn nothing.
    async fn require(&self, action: Action) -> Result<()> {
        match self.guard.require(action) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.workspace.authorise().await.err().unwrap_or(refusal)),
        }
    }

    async fn require_read(&self) -> Result<()> {
        self.require(Action::Read).await
    }

    /// Returns the error of a changeset as the caller may see it: the hash of a content only if it may read.
    fn without_hash(&self, error: ToolError) -> ToolError {
        if error.kind != ErrorKind::Stale || self.guard.require(Action::Read).is_ok() {
            return error;
        }
        ToolError::stale(error.path().unwrap_or("The file"), None)
    }
}

#[async_trait]
impl Workspace for GuardedWorkspace {
    async fn authorise(&self) -> Result<()> {
        self.workspace.authorise().await
    }

    async fn is_owner(&self) -> Result<bool> {
        self.workspace.is_owner().await
    }

    async fn stat(&self, path: &WsPath) -> Result<Option<Entry>> {
        self.require_read().await?;
        self.workspace.stat(path).await
    }

    async fn read(&self, path: &WsPath, max_bytes: u64) -> Result<File> {
        self.require_read().await?;
        self.workspace.read(path, max_bytes).await
    }

    async fn make_room(&self, bytes: u64) -> Result<()> {
        self.workspace.make_room(bytes).await
    }

    async fn open(&self, path: &WsPath, more_than_bytes: u64) -> Result<Option<OpenFile>> {
        self.require_read().await?;
        self.workspace.open(path, more_than_bytes).await
    }

    fn is_in_file_system(&self) -> bool {
        self.workspace.is_in_file_system()
    }

    fn below_mount(&self, path: &str) -> Option<String> {
        self.workspace.below_mount(path)
    }

    fn locate(&self, path: &str) -> Result<WsPath> {
        self.workspace.locate(path)
    }

    async fn list(&self, folder: &WsPath, depth: Depth, limit: usize) -> Result<Listing> {
        self.require_read().await?;
        self.workspace.list(folder, depth, limit).await
    }

    async fn names(&self, folder: &WsPath, limit: usize) -> Result<Vec<WsPath>> {
        self.require_read().await?;
        self.workspace.names(folder, limit).await
    }

    async fn find(&self, find: Find) -> Result<FindResult> {
        self.require_read().await?;
        self.workspace.find(find).await
    }

    async fn search(&self, search: Search) -> Result<SearchResult> {
        self.require_read().await?;
        self.workspace.search(search).await
    }

    async fn watch(&self) -> Result<FileEvents> {
        self.require_read().await?;
        self.workspace.watch().await
    }

    async fn feed(&self, after: Option<&FeedCursor>, sources: FeedSources) -> Result<FeedPage> {
        self.require_read().await?;
        self.workspace.feed(after, sources).await
    }

    /// A program sees all files, so it needs the right to read. What it changes is judged at its check-in. On the folder
    /// itself nothing can be judged before it is done, so a program there needs the right to every change.
    async fn check_out(&self, options: CheckoutOptions) -> Result<Box<dyn Checkout>> {
        self.require_read().await?;
        if options.mode == CheckoutMode::InPlace && self.workspace.is_in_file_system() {
            for action in [Action::Write, Action::Delete, Action::Move] {
                self.require(action).await?;
            }
        }
        if self.commits == Commits::Preview {
            let message = "A program cannot be run as a dry run: what it would change is not known before it runs";
            return Err(ToolError::new(ErrorKind::InvalidArgument, message));
        }
        self.workspace.check_out(options).await
    }

    async fn commit(&self, changes: Changeset, cx: &CallCx) -> Result<Commit> {
        if self.commits == Commits::Apply {
            return self.workspace.commit(changes, cx).await.map_err(|error| self.without_hash(error));
        }
        let Preview { commit, effects } = self.preview(changes, cx).await?;
        cx.previewed.lock().unwrap_or_else(PoisonError::into_inner).extend(effects);
        Ok(commit)
    }

    async fn preview(&self, changes: Changeset, cx: &CallCx) -> Result<Preview> {
        self.workspace.preview(changes, cx).await.map_err(|error| self.without_hash(error))
    }
}

#[async_trait]
impl History for GuardedWorkspace {
    async fn file_by_id(&self, file: FileId, max_bytes: i64) -> Result<File> {
        self.require_read().await?;
        self.workspace.file_by_id(file, max_bytes).await
    }

    async fn versions(&self, file: FileId, page: Page<i64>) -> Result<Vec<Version>> {
        self.require_read().await?;
        self.workspace.versions(file, page).await
    }

    async fn version(&self, file: FileId, version: VersionId, max_bytes: i64) -> Result<(Version, Option<Content>)> {
        self.require_read().await?;
        self.workspace.version(file, version, max_bytes).await
    }

    async fn trash(&self, page: Page<FileId>) -> Result<Vec<Entry>> {
        self.require_read().await?;
        self.workspace.trash(page).await
    }

    async fn commits(&self, page: Page<CommitId>) -> Result<Vec<CommitInfo>> {
        self.require_read().await?;
        self.workspace.commits(page).await
    }

    async fn commit_info(&self, commit: CommitId) -> Result<CommitInfo> {
        self.require_read().await?;
        self.workspace.commit_info(commit).await
    }

    async fn undone_by(&self, commit: CommitId) -> Result<Option<CommitId>> {
        self.require_read().await?;
        self.workspace.undone_by(commit).await
    }
}
