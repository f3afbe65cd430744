//! A workspace behind a guard, which may also only preview changes.

use crate::{
    Action, CallCx, Change, Changeset, Checkout, CheckoutMode, CheckoutOptions, Commit, CommitId, CommitInfo, Content,
    Depth, Entry, ErrorKind, Expect, FeedCursor, FeedPage, FeedSources, File, FileEvents, FileId, Find, FindResult,
    Guard, History, Listing, OpenFile, Page, PathFilter, Preview, PreviewedChange, ProgramHome, Result, Search,
    SearchResult, ToolError, Version, VersionId, Workspace, WsPath,
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
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Commits {
    /// Changesets are applied.
    Apply,
    /// Changesets are applied if these conditions hold too, because a person approved what was shown.
    ApplyIf(Vec<Expect>),
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

    /// Checks that the caller may read a path. Membership comes first.
    async fn require_read_at(&self, path: &WsPath) -> Result<()> {
        match self.guard.require_read(path) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.workspace.authorise().await.err().unwrap_or(refusal)),
        }
    }

    /// Checks that the caller may read a file by its current path.
    async fn require_read_of(&self, file: FileId) -> Result<()> {
        self.require_read().await?;
        if self.guard.restricts(Action::Read) {
            self.guard.require_read(&self.workspace.file_by_id(file, 0).await?.entry.path)?;
        }
        Ok(())
    }

    /// Returns a commit without the effects at paths that the caller may not read.
    fn shown_commit(&self, mut commit: CommitInfo) -> CommitInfo {
        let shows = |path: &WsPath| self.guard.shows(path);
        commit.changes.retain(|effect| shows(&effect.path) && effect.from.as_ref().is_none_or(shows));
        commit
    }

    /// Returns a filter that also leaves out what the caller may not read.
    fn shown(&self, paths: Option<Arc<dyn PathFilter>>) -> Option<Arc<dyn PathFilter>> {
        if !self.guard.restricts(Action::Read) {
            return paths;
        }
        Some(Arc::new(ShownPaths { guard: Arc::clone(&self.guard), paths }))
    }

    /// Previews a changeset, and keeps what it would do for the preview of the call.
    async fn previewed(&self, changes: Changeset, cx: &CallCx) -> Result<Commit> {
        let contents = if cx.keeps_contents { new_contents(&changes) } else { Vec::new() };
        let Preview { commit, effects } = self.preview(changes, cx).await?;
        let change = PreviewedChange { effects, contents };
        cx.previewed.lock().unwrap_or_else(PoisonError::into_inner).push(change);
        Ok(commit)
    }

    /// Returns the error of a changeset as the caller may see it: the hash of a content only if it may read.
    fn without_hash(&self, error: ToolError) -> ToolError {
        if error.kind != ErrorKind::Stale {
            return error;
        }
        let path = error.path().unwrap_or("The file");
        let is_shown = match WsPath::within(path) {
            Ok(path) => self.guard.shows(&path),
            Err(_) => !self.guard.restricts(Action::Read) && self.guard.require(Action::Read).is_ok(),
        };
        if is_shown { error } else { ToolError::stale(path, None) }
    }
}

/// Returns the contents that a changeset would write.
fn new_contents(changes: &Changeset) -> Vec<(WsPath, Content)> {
    let put = |change: &Change| match change {
        Change::Put(put) => Some((put.path.clone(), put.content.clone())),
        _ => None,
    };
    changes.changes.iter().filter_map(put).collect()
}

/// A filter that accepts only paths that the guard shows.
struct ShownPaths {
    guard: Arc<Guard>,
    paths: Option<Arc<dyn PathFilter>>,
}

impl PathFilter for ShownPaths {
    fn accepts(&self, path: &str) -> bool {
        self.paths.as_ref().is_none_or(|paths| paths.accepts(path))
            && WsPath::within(path).is_ok_and(|path| self.guard.shows(&path))
    }

    fn enters(&self, folder: &str) -> bool {
        self.paths.as_ref().is_none_or(|paths| paths.enters(folder))
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
        self.require_read_at(path).await?;
        self.workspace.stat(path).await
    }

    async fn read(&self, path: &WsPath, max_bytes: u64) -> Result<File> {
        self.require_read_at(path).await?;
        self.workspace.read(path, max_bytes).await
    }

    async fn make_room(&self, bytes: u64) -> Result<()> {
        self.workspace.make_room(bytes).await
    }

    async fn open(&self, path: &WsPath, more_than_bytes: u64) -> Result<Option<OpenFile>> {
        self.require_read_at(path).await?;
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
        self.require_read_at(folder).await?;
        let mut listing = self.workspace.list(folder, depth, limit).await?;
        listing.entries.retain(|entry| self.guard.shows(&entry.path));
        listing.unreadable.retain(|path| self.guard.shows(path));
        Ok(listing)
    }

    async fn names(&self, folder: &WsPath, limit: usize) -> Result<Vec<WsPath>> {
        self.require_read_at(folder).await?;
        let mut names = self.workspace.names(folder, limit).await?;
        names.retain(|path| self.guard.shows(path));
        Ok(names)
    }

    async fn find(&self, find: Find) -> Result<FindResult> {
        self.require_read_at(&find.folder).await?;
        let paths = self.shown(find.paths.clone());
        self.workspace.find(Find { paths, ..find }).await
    }

    async fn search(&self, search: Search) -> Result<SearchResult> {
        self.require_read_at(&search.within).await?;
        let paths = self.shown(search.paths.clone());
        self.workspace.search(Search { paths, ..search }).await
    }

    async fn watch(&self) -> Result<FileEvents> {
        self.require_read().await?;
        let guard = Arc::clone(&self.guard);
        let mut events = self.workspace.watch().await?;
        if guard.restricts(Action::Read) {
            events.filter = Some(Box::new(move |path| guard.shows(path)));
        }
        Ok(events)
    }

    async fn feed(&self, after: Option<&FeedCursor>, sources: FeedSources) -> Result<FeedPage> {
        self.require_read().await?;
        let mut page = self.workspace.feed(after, sources).await?;
        if self.guard.restricts(Action::Read) {
            page.retain_paths(|path| self.guard.shows(path));
        }
        Ok(page)
    }

    /// A program sees all files, so it needs the right to read, and no rule may limit that. What it changes is judged at
    /// its check-in. On the folder itself nothing can be judged before it is done, so a program there needs the right to
    /// every change.
    async fn check_out(&self, options: CheckoutOptions) -> Result<Box<dyn Checkout>> {
        self.require_read().await?;
        let changes = [Action::Write, Action::Delete, Action::Move];
        let is_in_place = options.mode == CheckoutMode::InPlace && self.workspace.is_in_file_system();
        if is_in_place {
            for action in changes {
                self.require(action).await?;
            }
        }
        if !self.guard.is_own_hand() {
            let message = if self.guard.has_path_rules() || self.guard.restricts(Action::Read) {
                "Programs cannot be run here by agents: there are rules about paths or about reading, and what a program \
                 reads cannot be judged. Use the file tools, or ask a person to run it"
            } else if is_in_place && changes.into_iter().any(|action| self.guard.restricts(action)) {
                "Agents cannot run programs in the background on this folder: there are rules about changes, and what a \
                 program changes there cannot be judged before. Run it in the foreground, or ask a person to run it"
            } else {
                ""
            };
            if !message.is_empty() {
                let refusal = ToolError::new(ErrorKind::ApprovalDenied, message);
                return Err(self.workspace.authorise().await.err().unwrap_or(refusal));
            }
        }
        if self.commits == Commits::Preview {
            let message = "A program cannot be run as a dry run: what it would change is not known before it runs";
            return Err(ToolError::new(ErrorKind::InvalidArgument, message));
        }
        self.workspace.check_out(options).await
    }

    async fn program_home(&self) -> Result<Option<ProgramHome>> {
        self.workspace.program_home().await
    }

    async fn commit(&self, changes: Changeset, cx: &CallCx) -> Result<Commit> {
        let changes = match &self.commits {
            Commits::Preview => return self.previewed(changes, cx).await,
            Commits::Apply => changes,
            Commits::ApplyIf(conditions) => changes.expecting(conditions.iter().cloned()),
        };
        self.workspace.commit(changes, cx).await.map_err(|error| self.without_hash(error))
    }

    async fn preview(&self, changes: Changeset, cx: &CallCx) -> Result<Preview> {
        self.workspace.preview(changes, cx).await.map_err(|error| self.without_hash(error))
    }
}

#[async_trait]
impl History for GuardedWorkspace {
    async fn file_by_id(&self, file: FileId, max_bytes: i64) -> Result<File> {
        self.require_read().await?;
        let file = self.workspace.file_by_id(file, max_bytes).await?;
        self.guard.require_read(&file.entry.path)?;
        Ok(file)
    }

    async fn versions(&self, file: FileId, page: Page<i64>) -> Result<Vec<Version>> {
        self.require_read_of(file).await?;
        self.workspace.versions(file, page).await
    }

    async fn version(&self, file: FileId, version: VersionId, max_bytes: i64) -> Result<(Version, Option<Content>)> {
        self.require_read_of(file).await?;
        self.workspace.version(file, version, max_bytes).await
    }

    async fn trash(&self, page: Page<FileId>) -> Result<Vec<Entry>> {
        self.require_read().await?;
        let mut entries = self.workspace.trash(page).await?;
        entries.retain(|entry| self.guard.shows(&entry.path));
        Ok(entries)
    }

    async fn commits(&self, page: Page<CommitId>) -> Result<Vec<CommitInfo>> {
        self.require_read().await?;
        let commits = self.workspace.commits(page).await?;
        Ok(commits.into_iter().map(|commit| self.shown_commit(commit)).collect())
    }

    async fn commit_info(&self, commit: CommitId) -> Result<CommitInfo> {
        self.require_read().await?;
        Ok(self.shown_commit(self.workspace.commit_info(commit).await?))
    }

    async fn undone_by(&self, commit: CommitId) -> Result<Option<CommitId>> {
        self.require_read().await?;
        self.workspace.undone_by(commit).await
    }
}
