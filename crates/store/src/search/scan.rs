//! Searches a list of files on several threads, until the limits are reached.

use super::Keep;
use super::index::{IndexedFile, Source, TextView};
use super::lines::{FoundLines, Piece};
use crate::blob::stored_bytes;
use crate::error::{Result, StoreError};
use crate::signature::{Filter, Signature};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio::task::JoinSet;
use toolrest_core::{Encoding, Interrupt, JsonText, LineMatcher, Search, SearchResult, WorkspaceId};

/// Number of files that a thread takes at a time. Few at first, because common patterns are found soon.
const FIRST_CHUNKS: usize = 8;
const FIRST_CHUNK: usize = 16;
const CHUNK: usize = 64;

/// Returns the index of the first file of a chunk.
fn chunk_begin(number: usize) -> usize {
    match number.checked_sub(FIRST_CHUNKS) {
        None => number * FIRST_CHUNK,
        Some(further) => FIRST_CHUNKS * FIRST_CHUNK + further * CHUNK,
    }
}

/// Returns the files of a chunk; empty after the last chunk.
fn chunk_of<T>(files: &[T], number: usize) -> &[T] {
    &files[chunk_begin(number).min(files.len())..chunk_begin(number + 1).min(files.len())]
}

fn chunk_count(files: usize) -> usize {
    let first = files.min(FIRST_CHUNKS * FIRST_CHUNK);
    first.div_ceil(FIRST_CHUNK) + (files - first).div_ceil(CHUNK)
}

/// Reads texts from a database, on a thread that may block.
pub(crate) trait Texts: Send + Sync {
    /// Creates a reader for one thread. It keeps its resources between calls.
    fn reader(&self, ws: WorkspaceId) -> Result<Box<dyn TextReader>>;
}

/// Reads texts of one workspace.
pub(crate) trait TextReader {
    /// Passes the stored texts of these files to the visitor, in order, until the visitor stops.
    fn visit(&mut self, files: &[&IndexedFile], visitor: &mut dyn TextVisitor) -> Result<()>;
}

/// Receives the texts of a list of files. Files are referred to by their index in the list.
pub(crate) trait TextVisitor {
    /// Whether the visitor needs the stored signature before the text is read.
    fn asks_for_signature(&self, place: usize) -> bool;

    /// Whether the text is needed, given its stored signature.
    fn wants(&mut self, place: usize, signature: Option<&[u8]>) -> bool;

    /// Receives a text; none if it no longer exists in the database.
    fn take(&mut self, place: usize, stored: Option<Stored<'_>>) -> Result<ControlFlow<()>>;
}

/// A text as stored in a database.
pub(crate) enum Stored<'a> {
    Blob { encoding: i16, size: i64, data: &'a [u8] },
    Chat(String),
}

/// One search over consecutive lists of files.
pub(crate) struct Scan {
    texts: Arc<dyn Texts>,
    matcher: Arc<dyn LineMatcher>,
    workspace: WorkspaceId,
    search: Search,
    filter: Filter,
    interrupt: Arc<Interrupt>,
    /// Held as long as a thread works on the search.
    _slot: Arc<super::SearchSlot>,
    /// The matches of all threads so far. Files are taken in order, so these are before all files not taken yet.
    lines: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether a thread failed, so that the others stop.
    has_failed: AtomicBool,
    progress: Mutex<Progress>,
}

/// The matches by chunk.
#[derive(Default)]
struct Progress {
    /// The number of chunks in the previous lists.
    chunks_before: usize,
    found: BTreeMap<usize, FoundLines>,
    /// The first unfinished chunk, and the matches in the chunks before it.
    unfinished: usize,
    lines: usize,
    bytes: usize,
    /// The first failure in path order.
    failure: Option<(usize, StoreError)>,
}

impl Scan {
    pub(super) fn new(job: &super::Job, matcher: Arc<dyn LineMatcher>, texts: Arc<dyn Texts>) -> Self {
        Self {
            texts,
            filter: Filter::new(matcher.requirements()),
            matcher,
            workspace: job.access.workspace,
            search: job.search.clone(),
            interrupt: Arc::clone(&job.interrupt),
            _slot: Arc::clone(&job.slot),
            lines: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
            progress: Mutex::default(),
        }
    }

    /// Whether more files cannot add to the answer.
    pub(super) fn has_enough(&self) -> bool {
        self.is_beyond_limits(self.lines.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn is_beyond_limits(&self, lines: usize, bytes: usize) -> bool {
        lines > self.search.limit || bytes > self.search.limit_bytes
    }

    /// Searches the next files.
    pub(super) async fn run(
        self: &Arc<Self>,
        files: &Arc<Vec<Arc<IndexedFile>>>,
        threads: usize,
        keep: Keep,
    ) -> Result<()> {
        if files.is_empty() || self.has_enough() {
            return Ok(());
        }
        let chunks = chunk_count(files.len());
        let next = Arc::new(AtomicUsize::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..threads.min(chunks) {
            let (scan, files, next) = (Arc::clone(self), Arc::clone(files), Arc::clone(&next));
            workers.spawn_blocking(move || scan.take_chunks(&files, &next, keep));
        }
        while let Some(worker) = workers.join_next().await {
            worker.map_err(StoreError::internal)?;
        }
        let mut progress = self.progress();
        progress.chunks_before += chunks;
        match progress.failure.take() {
            // A failure after the last match of the answer does not affect the answer.
            Some((_, error)) if !self.is_beyond_limits(progress.lines, progress.bytes) => Err(error),
            _ => Ok(()),
        }
    }

    fn take_chunks(&self, files: &[Arc<IndexedFile>], next: &AtomicUsize, keep: Keep) {
        let before = self.progress().chunks_before;
        let mut reader = None;
        while !self.has_enough() && !self.has_failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let files = chunk_of(files, number);
            if files.is_empty() {
                break;
            }
            match self.search_chunk(files, keep, &mut reader) {
                Ok(found) => self.finish(before + number, found),
                Err(error) => self.fail(before + number, error),
            }
        }
    }

    fn finish(&self, number: usize, found: FoundLines) {
        self.lines.fetch_add(found.matches.len(), Ordering::Relaxed);
        self.bytes.fetch_add(found.bytes, Ordering::Relaxed);
        let mut progress = self.progress();
        progress.found.insert(number, found);
        while let Some(found) = progress.found.get(&progress.unfinished) {
            let (lines, bytes) = (found.matches.len(), found.bytes);
            progress.lines += lines;
            progress.bytes += bytes;
            progress.unfinished += 1;
        }
        if self.is_beyond_limits(progress.lines, progress.bytes) {
            // Other threads only work on later files.
            self.interrupt.stop();
        }
    }

    fn fail(&self, number: usize, error: StoreError) {
        self.has_failed.store(true, Ordering::Relaxed);
        let mut progress = self.progress();
        if progress.failure.as_ref().is_none_or(|(first, _)| number < *first) {
            progress.failure = Some((number, error));
        }
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn search_chunk(
        &self,
        files: &[Arc<IndexedFile>],
        keep: Keep,
        reader: &mut Option<Box<dyn TextReader>>,
    ) -> Result<FoundLines> {
        let handlings: Vec<FileHandling> = files.iter().map(|file| self.handling(file)).collect();
        let is_wanted = |place: &usize| handlings[*place] == FileHandling::Search && !files[*place].text.is_cached();
        let places: Vec<usize> = (0..files.len()).filter(is_wanted).collect();
        let wanted: Vec<&IndexedFile> = places.iter().map(|place| &*files[*place]).collect();
        let found = FoundLines::default();
        let mut chunk = Chunk { scan: self, keep, files, handlings: &handlings, next: 0, places: &places, found };
        if !wanted.is_empty() {
            let reader = match reader {
                Some(reader) => reader,
                None => reader.insert(self.texts.reader(self.workspace)?),
            };
            reader.visit(&wanted, &mut chunk)?;
        }
        if !chunk.is_full() {
            chunk.search_cached_before(files.len())?;
        }
        Ok(chunk.found)
    }

    fn handling(&self, file: &IndexedFile) -> FileHandling {
        if self.search.paths.as_ref().is_some_and(|paths| !paths.accepts(file.path.as_str())) {
            return FileHandling::Skip;
        }
        if file.source == Source::Binary {
            return FileHandling::CountBinary;
        }
        let may_match = file.text.signature().is_none_or(|signature| self.filter.admits(signature));
        if may_match { FileHandling::Search } else { FileHandling::Skip }
    }

    /// Returns all matches, in order and within the limits.
    pub(super) fn found(&self) -> SearchResult {
        let chunks = std::mem::take(&mut self.progress().found);
        FoundLines::together(chunks.into_values(), &self.search)
    }
}

/// How a file is treated by a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileHandling {
    /// Not selected, or excluded by its signature.
    Skip,
    /// Counted as binary.
    CountBinary,
    Search,
}

/// Files that a thread searches in order: cached texts, and texts read from the database.
struct Chunk<'a> {
    scan: &'a Scan,
    keep: Keep,
    files: &'a [Arc<IndexedFile>],
    handlings: &'a [FileHandling],
    /// The first file that was not searched yet.
    next: usize,
    /// The indexes of the files that are read from the database.
    places: &'a [usize],
    found: FoundLines,
}

impl TextVisitor for Chunk<'_> {
    fn asks_for_signature(&self, place: usize) -> bool {
        let file = &self.files[self.places[place]];
        let is_unknown = file.source.has_stored_signature() && file.text.signature().is_none();
        is_unknown && (self.scan.filter.is_selective() || self.keep == Keep::Texts)
    }

    fn wants(&mut self, place: usize, signature: Option<&[u8]>) -> bool {
        let Some(signature) = signature else { return true };
        let file = &self.files[self.places[place]];
        if self.keep == Keep::Texts {
            file.text.keep_signature(|| Signature::from_bytes(signature));
        }
        self.scan.filter.admits(signature)
    }

    fn take(&mut self, place: usize, stored: Option<Stored<'_>>) -> Result<ControlFlow<()>> {
        let place = self.places[place];
        let file = &self.files[place];
        self.search_cached_before(place)?;
        if self.is_full() {
            return Ok(ControlFlow::Break(()));
        }
        self.next = place + 1;
        match stored
            .ok_or_else(|| StoreError::ContentVanished(file.path.clone()))
            .and_then(|stored| readable(file, stored))?
        {
            None => self.found.skipped.too_large += 1,
            Some(text) => {
                self.search_text(file, &text)?;
                if self.keep == Keep::Texts {
                    file.text.keep(&text);
                }
            }
        }
        Ok(if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl Chunk<'_> {
    fn is_full(&self) -> bool {
        self.found.is_full(&self.scan.search)
    }

    /// Searches the cached texts of the files before an index.
    fn search_cached_before(&mut self, place: usize) -> Result<()> {
        while self.next < place && !self.is_full() {
            let (file, handling) = (&self.files[self.next], self.handlings[self.next]);
            self.next += 1;
            match handling {
                FileHandling::Skip => {}
                FileHandling::CountBinary => self.found.skipped.binary += 1,
                FileHandling::Search => {
                    if let Some(text) = file.text.get()? {
                        self.search_text(file, &text)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn search_text(&mut self, file: &IndexedFile, text: &[u8]) -> Result<()> {
        let Scan { search, matcher, interrupt, .. } = self.scan;
        Ok(self.found.search(&Piece::whole(text), || file.path.clone(), search, &**matcher, interrupt)?)
    }
}

/// Maximum size of formatted JSON that is searched. Formatting can make JSON a hundred times longer, because each value
/// gets a line with its indentation.
const MAX_FORMATTED_BYTES: usize = 64 << 20;

/// Returns the text to search; none if it would be too large.
fn readable<'a>(file: &IndexedFile, stored: Stored<'a>) -> Result<Option<Cow<'a, [u8]>>> {
    let (bytes, view) = match (stored, file.source) {
        (Stored::Chat(text), _) => return Ok(Some(text.into_bytes().into())),
        (Stored::Blob { encoding, size, data }, Source::Blob { view, .. }) => {
            (stored_bytes(encoding, size, data)?, view)
        }
        (Stored::Blob { .. }, _) => return Err(StoreError::internal("a file without a content has one")),
    };
    let json =
        |bytes: Cow<'_, [u8]>| JsonText::parse(String::from_utf8(bytes.into_owned()).map_err(StoreError::internal)?);
    Ok(match view {
        TextView::Plain => Some(match bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(without_mark(bytes)),
            Cow::Owned(bytes) if without_mark(&bytes).len() < bytes.len() => without_mark(&bytes).to_vec().into(),
            owned @ Cow::Owned(_) => owned,
        }),
        TextView::Decoded => {
            let encoding = Encoding::of(&bytes).ok_or_else(|| StoreError::internal("a text is none any more"))?;
            let text = encoding.decode(&bytes).map_err(|_| StoreError::internal("a text cannot be decoded"))?;
            Some(without_mark(text.as_bytes()).to_vec().into())
        }
        TextView::Document => Some(json(bytes)?.document_text().unwrap_or_default().into_bytes().into()),
        TextView::Pretty => {
            let json = json(bytes)?;
            (json.pretty_bytes() <= MAX_FORMATTED_BYTES).then(|| json.pretty().into_bytes().into())
        }
    })
}

/// Returns the text without a byte order mark, so that `^` matches after it.
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}
