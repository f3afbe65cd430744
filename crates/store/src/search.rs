//! Searching a workspace's files: the same for both databases but for how rows are read.
//!
//! Contents never change under their hash, so all that can be out of date in memory is the list of files. Each search
//! first asks the database what changed in that list, in the same statement that checks the caller's rights, and then
//! searches the list as it is at that moment. What is not in memory is read in the order of the paths, so that a search
//! that finds enough early reads little.

mod cache;
mod index;
mod scan;

pub(crate) use index::{Changed, Changes, Cursor, FoundFile, IndexedFile, Source};
pub(crate) use scan::{Stored, TextReader, TextVisitor, Texts};

use async_trait::async_trait;
use cache::{Books, Cache};
use futures_util::future::{Either, select};
use index::Index;
use scan::Scan;
use std::{
    pin::pin,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;
use toolrest_core::{Access, ErrorKind, Found, Interrupt, Result, Search, ToolError, WsPath};

/// How large the first part of a list is that is read, and the largest. Small at first, because most of the time what
/// is looked for is found soon.
const FIRST_PAGE: usize = 128;
const LARGEST_PAGE: usize = 4096;

/// How many searches run at once, for each core; more wait. Each has threads of its own, so that a slow one does not
/// hold up the others.
const SEARCHES_PER_CORE: usize = 4;

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
}

/// Runs searches, and keeps in memory what they need.
pub(crate) struct Searcher {
    cache: Arc<Cache>,
    turns: Arc<Semaphore>,
    threads: usize,
}

impl Searcher {
    /// A searcher that keeps at most so many bytes in memory.
    pub(crate) fn new(cache_bytes: usize) -> Self {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        let turns = Arc::new(Semaphore::new(threads * SEARCHES_PER_CORE));
        Self { cache: Arc::new(Cache::new(cache_bytes)), turns, threads }
    }

    /// Searches, and gives up at the deadline.
    pub(crate) async fn search(&self, database: Arc<dyn Searchable>, access: Access, search: Search) -> Result<Found> {
        let begun = Instant::now();
        let interrupt = Arc::new(Interrupt::at(search.deadline));
        // Whatever ends this future, a caller that went away included, ends the work on other threads.
        let _stop = StopOnDrop(Arc::clone(&interrupt));
        let work = self.search_again_if_contents_vanish(database, access, &search, &interrupt);
        match tokio::time::timeout_at(search.deadline.into(), work).await {
            Ok(Err(error)) if error.kind == ErrorKind::Cancelled => Err(out_of_time(begun.elapsed())),
            Ok(result) => result,
            Err(_) => Err(out_of_time(begun.elapsed())),
        }
    }

    async fn search_again_if_contents_vanish(
        &self,
        database: Arc<dyn Searchable>,
        access: Access,
        search: &Search,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Found> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(ToolError::internal)?;
        let turn = Arc::new(turn);
        let mut tries = 3;
        loop {
            let scan = Scan::new(&database, access.workspace, search, interrupt, Arc::clone(&turn));
            match self.run(&*database, access, Arc::new(scan)).await {
                // A file was removed for good after the list was read; the next list does not have it.
                Err(error) if scan::has_vanished(&error) && tries > 1 => tries -= 1,
                Err(error) if scan::has_vanished(&error) => return Err(ToolError::internal(error)),
                other => return other,
            }
        }
    }

    async fn run(&self, database: &dyn Searchable, access: Access, scan: Arc<Scan>) -> Result<Found> {
        let memory = self.cache.memory(access.workspace);
        let known = memory.index();
        let rest = if known.is_complete { Rest::Known } else { Rest::Unknown };
        let (changes, mut files) = database.snapshot(access, known.cursor, rest).await?;
        let mut index = known.after(changes, &memory.books);
        if rest == Rest::Known && !index.is_complete {
            // Too much has changed to be told, or there is no room for it.
            let (changes, rest_of_list) = database.snapshot(access, index.cursor, Rest::Unknown).await?;
            index = index.after(changes, &memory.books);
            files = rest_of_list;
        }
        if index.is_complete {
            drop(files);
            scan.run(&index.files, self.threads, Keep::Texts).await?;
        } else {
            self.read_on(&scan, &mut index, &mut *files, &memory.books).await?;
        }
        memory.keep(&index);
        if self.cache.is_tight() {
            let cache = Arc::clone(&self.cache);
            tokio::task::spawn_blocking(move || cache.make_room());
        }
        Ok(scan.found())
    }

    /// Searches what is known and then what follows, reading the next part of the list while one is searched.
    async fn read_on(
        &self,
        scan: &Arc<Scan>,
        index: &mut Index,
        files: &mut dyn Files,
        books: &Arc<Books>,
    ) -> Result<()> {
        let mut end = index.end().cloned();
        let mut part = Arc::clone(&index.files);
        let mut limit = FIRST_PAGE;
        let mut keep = Keep::Texts;
        loop {
            let page = {
                let scanning = pin!(scan.run(&part, self.threads, keep));
                let reading = pin!(files.page(end.as_ref(), limit));
                match select(scanning, reading).await {
                    Either::Left((scanned, reading)) => {
                        scanned?;
                        // What was asked for in advance is not waited for.
                        if scan.has_enough() {
                            return Ok(());
                        }
                        reading.await?
                    }
                    Either::Right((page, scanning)) => {
                        scanning.await?;
                        page?
                    }
                }
            };
            let is_last = page.len() < limit;
            if !books.has_room() {
                keep = Keep::Nothing;
            }
            part = Arc::new(page.into_iter().map(|file| file.indexed(books, None)).collect());
            if keep == Keep::Texts {
                *index = index.extended(&part, is_last);
            }
            if scan.has_enough() {
                return Ok(());
            }
            if is_last {
                return scan.run(&part, self.threads, keep).await;
            }
            end = part.last().map(|file| file.path.clone());
            limit = (limit * 4).min(LARGEST_PAGE);
        }
    }
}

/// Whether texts that were read are kept for the next search, if there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Texts,
    Nothing,
}

struct StopOnDrop(Arc<Interrupt>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn out_of_time(after: Duration) -> ToolError {
    let message = format!(
        "The search was not finished after {} ms; narrow it with a path pattern, or use a pattern with a literal in it",
        after.as_millis()
    );
    ToolError::new(ErrorKind::Timeout, message)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
