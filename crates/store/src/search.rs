//! Searches the files of a workspace. Both databases share this code; only the reading of rows differs.
//!
//! A content never changes under its hash, so only the list of files in memory can be out of date. Each search first
//! reads what changed in the list, in the statement that checks the caller's rights, and then searches the list as of
//! that snapshot. What is not in memory is read in path order, so that a search that finds enough early reads little.

mod cache;
mod index;
mod lines;
mod queue;
mod scan;

pub(crate) use index::{Changed, Changes, Cursor, IndexedFile, ListedFile, Source};
pub use lines::{FoundLines, Piece, stopped};
pub use queue::{SearchQueue, SearchSlot, StopOnDrop, with_deadline};
pub use scan::without_mark;
pub(crate) use scan::{Stored, TextReader, TextVisitor, Texts};

use crate::error::{Result, StoreError};
use crate::store::StoreLoad;
use async_trait::async_trait;
use cache::{Cache, CachedWorkspace};
use index::Index;
use scan::Scan;
use std::{sync::Arc, thread, time::Instant};
use toolrest_core::{Access, Interrupt, LineMatcher, Search, SearchResult, WsPath};

/// Number of files in the first page of the list. Small, because most searches find enough early.
const FIRST_PAGE: usize = 128;

/// Pages of at least this size are read while the previous page is searched. Smaller pages are not, because the search
/// often ends before it needs them.
const READ_AHEAD_FROM: usize = 2_000;

/// A database that can be searched.
#[async_trait]
pub(crate) trait Searchable: Texts {
    /// Checks the caller's rights and reads what changed since the cursor, in one snapshot.
    async fn snapshot(
        &self,
        access: Access,
        since: Option<Cursor>,
        rest: KnownList,
    ) -> Result<(Changes, Box<dyn Files>)>;
}

/// Whether the index in memory has the complete list of files. If not, the rest of the list is read from the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownList {
    Complete,
    Partial,
}

/// The list of files in a snapshot.
#[async_trait]
pub(crate) trait Files: Send {
    /// Returns the files after a path, in path order; fewer than `limit` if there are no more.
    async fn page(&mut self, after: Option<&WsPath>, limit: usize) -> Result<Vec<ListedFile>>;

    /// Maximum page size.
    fn largest_page(&self) -> usize;

    /// Returns the only way to read texts while this is open, if there is one.
    fn texts(&self) -> Option<Arc<dyn Texts>>;
}

/// Runs searches and caches indexes and texts.
pub(crate) struct Searcher {
    cache: Arc<Cache>,
    queue: SearchQueue,
    threads: usize,
}

impl Searcher {
    /// Creates a searcher with a cache of at most so many bytes.
    pub(crate) fn new(cache_bytes: usize) -> Self {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        Self { cache: Arc::new(Cache::new(cache_bytes)), queue: SearchQueue::new(threads), threads }
    }

    /// Returns the load of searches.
    pub(crate) fn load(&self) -> StoreLoad {
        StoreLoad {
            database: "",
            pool: None,
            queued_writes: None,
            searches: self.queue.depth(),
            search_cache_bytes: self.cache.used_bytes(),
            search_cache_limit_bytes: self.cache.limit_bytes(),
        }
    }

    /// Searches until the deadline.
    pub(crate) async fn search(
        &self,
        database: Arc<dyn Searchable>,
        access: Access,
        search: Search,
    ) -> Result<SearchResult> {
        let started = Instant::now();
        let interrupt = Arc::new(Interrupt::at(search.deadline));
        let _stop = StopOnDrop(Arc::clone(&interrupt));
        let slot = self.queue.wait(access, search.deadline).await?;
        let job = Job { database, access, search, interrupt, slot: Arc::new(slot) };
        with_deadline(job.search.deadline, started, self.search_with_retries(&job)).await
    }

    async fn search_with_retries(&self, job: &Job) -> Result<SearchResult> {
        // What the search read may have filled the cache, however it ends.
        let _room = EvictOnDrop(&self.cache);
        let mut tries = 3;
        loop {
            match self.run(job).await {
                // A file was purged after the list was read; the next list does not contain it.
                Err(StoreError::ContentVanished(_)) if tries > 1 => tries -= 1,
                Err(error @ StoreError::ContentVanished(_)) => return Err(StoreError::internal(error)),
                other => return other,
            }
        }
    }

    async fn run(&self, job: &Job) -> Result<SearchResult> {
        let (access, budget) = (job.access, self.cache.budget());
        let memory = self.cache.memory(access.workspace);
        let known = memory.index();
        let rest = if known.is_complete { KnownList::Complete } else { KnownList::Partial };
        let (changes, mut files) = job.database.snapshot(access, known.cursor, rest).await?;
        let memory = self.cache.used(access.workspace, &memory);
        let mut index = known.after(changes, budget);
        if rest == KnownList::Complete && !index.is_complete {
            // The changes are too many or unknown, or do not fit into the cache.
            let (changes, rest_of_list) = job.database.snapshot(access, index.cursor, KnownList::Partial).await?;
            index = index.after(changes, budget);
            files = rest_of_list;
        }
        memory.keep(known.cursor, &index);
        let texts = files.texts().unwrap_or_else(|| Arc::<dyn Searchable>::clone(&job.database));
        let scan = Arc::new(Scan::new(job, job.compiled().await?, texts));
        if index.is_complete {
            drop(files);
            scan.run(&index.files, self.threads, Keep::Texts).await?;
        } else {
            self.read_on(&scan, index, files, &memory).await?;
        }
        Ok(scan.found())
    }

    /// Searches the indexed files and then the rest of the list, reading the next page while one is searched.
    async fn read_on(
        &self,
        scan: &Arc<Scan>,
        mut index: Index,
        mut files: Box<dyn Files>,
        memory: &CachedWorkspace,
    ) -> Result<()> {
        let budget = self.cache.budget();
        let mut end = index.end().cloned();
        let mut part = Arc::clone(&index.files);
        let mut limit = FIRST_PAGE;
        let mut keep = Keep::Texts;
        loop {
            let page = if limit < READ_AHEAD_FROM {
                scan.run(&part, self.threads, keep).await?;
                if scan.has_enough() {
                    return Ok(());
                }
                files.page(end.as_ref(), limit).await?
            } else {
                let scanning = scan.run(&part, self.threads, keep);
                let (scanned, page) = tokio::join!(scanning, files.page(end.as_ref(), limit));
                scanned?;
                page?
            };
            let is_last = page.len() < limit;
            if !budget.has_room() {
                keep = Keep::Nothing;
            }
            part = Arc::new(page.into_iter().map(|file| file.indexed(budget, None)).collect());
            if keep == Keep::Texts {
                index = index.extended(&part, is_last);
                // Stored immediately, so that the next search continues here if this one times out.
                memory.keep(index.cursor, &index);
            }
            if scan.has_enough() {
                return Ok(());
            }
            if is_last {
                drop(files);
                return scan.run(&part, self.threads, keep).await;
            }
            end = part.last().map(|file| file.path.clone());
            limit = (limit * 4).min(files.largest_page());
        }
    }
}

/// A search that has a slot.
pub(crate) struct Job {
    database: Arc<dyn Searchable>,
    access: Access,
    search: Search,
    interrupt: Arc<Interrupt>,
    /// Held as long as a thread works on the search, also after its caller disconnected.
    slot: Arc<SearchSlot>,
}

impl Job {
    /// Compiles the pattern on a blocking thread.
    async fn compiled(&self) -> Result<Arc<dyn LineMatcher>> {
        let (pattern, slot) = (Arc::clone(&self.search.pattern), Arc::clone(&self.slot));
        let compile = move || {
            let _slot = slot;
            pattern.compile()
        };
        Ok(tokio::task::spawn_blocking(compile).await.map_err(StoreError::internal)??)
    }
}

/// Starts an eviction when dropped, if the cache is nearly full.
struct EvictOnDrop<'a>(&'a Arc<Cache>);

impl Drop for EvictOnDrop<'_> {
    fn drop(&mut self) {
        if self.0.is_nearly_full() {
            let cache = Arc::clone(self.0);
            tokio::task::spawn_blocking(move || cache.evict());
        }
    }
}

/// Whether texts that were read are cached for the next search, if they fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Texts,
    Nothing,
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
