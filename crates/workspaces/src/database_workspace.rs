//! A workspace whose files are in the database.

use crate::check_in_room::CheckInBudget;
use crate::checkout::{self, WorkingCopyPool};
use crate::discovery;
use crate::program_caches::{ProgramCaches, program_home};
use crate::read_room::ReadRoom;
use async_trait::async_trait;
use std::sync::Arc;
use toolrest_core::{
    Access, CallCx, Changeset, Checkout, CheckoutOptions, Commit, Depth, Entry, FeedCursor, FeedPage, FeedSources,
    File, Find, FindResult, Listing, Preview, ProgramHome, Result, Search, SearchResult, Workspace, WsPath,
};
use toolrest_store::{CallInfo, FileStore, Store};

/// A workspace in the database, opened for one caller.
pub(crate) struct DatabaseWorkspace {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) working_copies: Arc<WorkingCopyPool>,
    pub(crate) access: Access,
    pub(crate) room: Arc<ReadRoom>,
    pub(crate) check_ins: Arc<CheckInBudget>,
    pub(crate) caches: Option<Arc<ProgramCaches>>,
}

#[async_trait]
impl Workspace for DatabaseWorkspace {
    async fn authorise(&self) -> Result<()> {
        Ok(self.store.authorise(self.access).await?)
    }

    async fn is_owner(&self) -> Result<bool> {
        Ok(self.store.is_owner(self.access).await?)
    }

    async fn stat(&self, path: &WsPath) -> Result<Option<Entry>> {
        Ok(self.store.stat(self.access, path).await?)
    }

    async fn read(&self, path: &WsPath, max_bytes: u64) -> Result<File> {
        let read = |free| FileStore::read(&*self.store, self.access, path, i64::try_from(free).unwrap_or(i64::MAX));
        self.room.read(path, max_bytes, read).await
    }

    async fn make_room(&self, bytes: u64) -> Result<()> {
        self.room.make_room(bytes).await
    }

    async fn list(&self, folder: &WsPath, depth: Depth, limit: usize) -> Result<Listing> {
        Ok(self.store.list(self.access, folder, depth, limit).await?)
    }

    async fn find(&self, find: Find) -> Result<FindResult> {
        discovery::find(&*self.store, self.access, find).await
    }

    async fn search(&self, search: Search) -> Result<SearchResult> {
        discovery::search(&*self.store, self.access, search).await
    }

    async fn feed(&self, after: Option<&FeedCursor>, sources: FeedSources) -> Result<FeedPage> {
        Ok(self.store.feed(self.access, after, sources).await?)
    }

    async fn check_out(&self, options: CheckoutOptions) -> Result<Box<dyn Checkout>> {
        let (store, check_ins) = (Arc::clone(&self.store), Arc::clone(&self.check_ins));
        checkout::check_out(store, &self.working_copies, check_ins, self.access, options).await
    }

    async fn program_home(&self) -> Result<Option<ProgramHome>> {
        program_home(self.caches.as_ref(), self.access).await
    }

    async fn commit(&self, changes: Changeset, cx: &CallCx) -> Result<Commit> {
        let commit = self.store.commit(self.access, changes, CallInfo::of(cx)).await?;
        if let Some(id) = commit.id {
            cx.recorded_with(id);
        }
        Ok(commit)
    }

    async fn preview(&self, changes: Changeset, cx: &CallCx) -> Result<Preview> {
        Ok(self.store.preview(self.access, changes, CallInfo::of(cx)).await?)
    }
}
