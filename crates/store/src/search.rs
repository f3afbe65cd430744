//! Searching a workspace's files: the same for both databases but for how rows are read.
//!
//! Contents never change under their hash, so all that can be out of date in memory is the list of files. Each search
//! first asks the database what changed in that list, in the same statement that checks the caller's rights, and then
//! searches the list as it is at that moment. What is not in memory is read in the order of the paths, so that a search
//! that finds enough early reads little.

mod cache;
mod index;
mod lines;
mod scan;
mod turns;

pub(crate) use index::{Changed, Changes, Cursor, FoundFile, IndexedFile, Source};
pub use lines::{FoundLines, Piece, stopped};
pub use scan::without_mark;
pub(crate) use scan::{Stored, TextReader, TextVisitor, Texts};
pub use turns::{StopOnDrop, Turn, Turns, until};

use crate::error::{Result, StoreError};
use async_trait::async_trait;
use cache::{Cache, Memory};
use index::Index;
use scan::Scan;
use std::{sync::Arc, thread, time::Instant};
use toolrest_core::{Access, Found, Interrupt, LineMatcher, Search, WsPath};

/// How large the first part of a list is that is read. Small, because most of the time what is looked for is found soon.
const FIRST_PAGE: usize = 128;

/// From this size of a part on, the next one is read while one is searched. Before, the search may well be over with what
/// it has, and what is read in advance is in the way.
const READ_AHEAD_FROM: usize = 2_000;

/// How a database is searched.
#[async_trait]
pub(crate) trait Searchable: Texts {
    /// Checks the caller's rights and tells what changed since the cursor, at one moment.
    async fn snapshot(&self, access: Access, since: Option<Cursor>, rest: Rest) -> Result<(Changes, Box<dyn Files>)>;
}

/// Whether the list of files will be read on from where it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Known,
    Unknown,
}

/// The list of files at the moment of a snapshot.
#[async_trait]
pub(crate) trait Files: Send {
    /// The files after a path, in order: as many as asked for, or fewer if there are no more.
    async fn page(&mut self, after: Option<&WsPath>, limit: usize) -> Result<Vec<FoundFile>>;

    /// The largest page that is worth asking for.
    fn largest_page(&self) -> usize;

    /// How texts have to be read while this is open, where there is only one way.
    fn texts(&self) -> Option<Arc<dyn Texts>>;
}

/// Runs searches, and keeps in memory what they need.
pub(crate) struct Searcher {
    cache: Arc<Cache>,
    turns: Turns,
    threads: usize,
}

impl Searcher {
    /// A searcher that keeps at most so many bytes in memory.
    pub(crate) fn new(cache_bytes: usize) -> Self {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        Self { cache: Arc::new(Cache::new(cache_bytes)), turns: Turns::new(threads), threads }
    }

    /// Searches, and gives up at the deadline.
    pub(crate) async fn search(&self, database: Arc<dyn Searchable>, access: Access, search: Search) -> Result<Found> {
        let begun = Instant::now();
        let interrupt = Arc::new(Interrupt::at(search.deadline));
        let _stop = StopOnDrop(Arc::clone(&interrupt));
        let turn = self.turns.wait(access, search.deadline).await?;
        let job = Job { database, access, search, interrupt, turn: Arc::new(turn) };
        until(job.search.deadline, begun, self.search_anew_if_contents_vanish(&job)).await
    }

    async fn search_anew_if_contents_vanish(&self, job: &Job) -> Result<Found> {
        // However it ends, what it has read may have filled the memory.
        let _room = RoomOnDrop(&self.cache);
        let mut tries = 3;
        loop {
            match self.run(job).await {
                // A file was removed for good after the list was read; the next list does not have it.
                Err(StoreError::ContentVanished(_)) if tries > 1 => tries -= 1,
                Err(error @ StoreError::ContentVanished(_)) => return Err(StoreError::internal(error)),
                other => return other,
            }
        }
    }

    async fn run(&self, job: &Job) -> Result<Found> {
        let (access, books) = (job.access, self.cache.books());
        let memory = self.cache.memory(access.workspace);
        let known = memory.index();
        let rest = if known.is_complete { Rest::Known } else { Rest::Unknown };
        let (changes, mut files) = job.database.snapshot(access, known.cursor, rest).await?;
        let memory = self.cache.used(access.workspace, &memory);
        let mut index = known.after(changes, books);
        if rest == Rest::Known && !index.is_complete {
            // Too much has changed to be told, or there is no room for it.
            let (changes, rest_of_list) = job.database.snapshot(access, index.cursor, Rest::Unknown).await?;
            index = index.after(changes, books);
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

    /// Searches what is known and then what follows, reading the next part of the list while one is searched.
    async fn read_on(
        &self,
        scan: &Arc<Scan>,
        mut index: Index,
        mut files: Box<dyn Files>,
        memory: &Memory,
    ) -> Result<()> {
        let books = self.cache.books();
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
            if !books.has_room() {
                keep = Keep::Nothing;
            }
            part = Arc::new(page.into_iter().map(|file| file.indexed(books, None)).collect());
            if keep == Keep::Texts {
                index = index.extended(&part, is_last);
                // Kept at once: a search that runs out of time leaves the next one less to do.
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

/// A search whose turn it is.
pub(crate) struct Job {
    database: Arc<dyn Searchable>,
    access: Access,
    search: Search,
    interrupt: Arc<Interrupt>,
    /// Held for as long as a thread works on it, also after its caller went away.
    turn: Arc<Turn>,
}

impl Job {
    /// Makes the pattern ready, away from the threads that serve requests.
    async fn compiled(&self) -> Result<Arc<dyn LineMatcher>> {
        let (pattern, turn) = (Arc::clone(&self.search.pattern), Arc::clone(&self.turn));
        let compile = move || {
            let _turn = turn;
            pattern.compile()
        };
        Ok(tokio::task::spawn_blocking(compile).await.map_err(StoreError::internal)??)
    }
}

/// Sees to it that the memory does not stay full.
struct RoomOnDrop<'a>(&'a Arc<Cache>);

impl Drop for RoomOnDrop<'_> {
    fn drop(&mut self) {
        if self.0.is_tight() {
            let cache = Arc::clone(self.0);
            tokio::task::spawn_blocking(move || cache.make_room());
        }
    }
}

/// Whether texts that were read are kept for the next search, if there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Texts,
    Nothing,
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
