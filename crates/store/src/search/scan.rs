//! Looking for lines in a list of files, on several threads, until enough are found.

use super::Keep;
use super::index::{IndexedFile, Source, View};
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
use toolrest_core::{Encoding, Found, Interrupt, JsonText, LineMatcher, Search, WorkspaceId};

/// How many files a thread takes at a time: a few at first, because what many files have is found soon.
const FIRST_CHUNKS: usize = 8;
const FIRST_CHUNK: usize = 16;
const CHUNK: usize = 64;

/// Where the chunk of this number begins.
fn chunk_begin(number: usize) -> usize {
    match number.checked_sub(FIRST_CHUNKS) {
        None => number * FIRST_CHUNK,
        Some(further) => FIRST_CHUNKS * FIRST_CHUNK + further * CHUNK,
    }
}

/// The part of a list that is the chunk of this number; empty behind the last.
fn chunk_of<T>(files: &[T], number: usize) -> &[T] {
    &files[chunk_begin(number).min(files.len())..chunk_begin(number + 1).min(files.len())]
}

fn chunk_count(files: usize) -> usize {
    let first = files.min(FIRST_CHUNKS * FIRST_CHUNK);
    first.div_ceil(FIRST_CHUNK) + (files - first).div_ceil(CHUNK)
}

/// Reads texts from a database, on a thread that may wait for it.
pub(crate) trait Texts: Send + Sync {
    /// A reader for one thread, which keeps what it needs from one call to the next.
    fn reader(&self, ws: WorkspaceId) -> Result<Box<dyn TextReader>>;
}

/// Reads texts of one workspace.
pub(crate) trait TextReader {
    /// Shows the stored texts of these files to the visitor, in order, until it has enough.
    fn visit(&mut self, files: &[&IndexedFile], visitor: &mut dyn TextVisitor) -> Result<()>;
}

/// Looks at the texts of a list of files.
pub(crate) trait TextVisitor {
    /// Whether the signature that is stored with the text is of use, before the text is read.
    fn asks_for_signature(&self, place: usize) -> bool;

    /// Whether the text is wanted, now that its stored signature is known.
    fn wants(&mut self, place: usize, signature: Option<&[u8]>) -> bool;

    /// Takes a text; none if the database has it no more.
    fn take(&mut self, place: usize, stored: Option<Stored<'_>>) -> Result<ControlFlow<()>>;
}

/// A text as a database keeps it.
pub(crate) enum Stored<'a> {
    Blob { encoding: i16, size: i64, data: &'a [u8] },
    Chat(String),
}

/// One search over any number of lists of files, each coming after the one before it.
pub(crate) struct Scan {
    texts: Arc<dyn Texts>,
    matcher: Arc<dyn LineMatcher>,
    workspace: WorkspaceId,
    search: Search,
    filter: Filter,
    interrupt: Arc<Interrupt>,
    /// Held for as long as a thread works on this.
    _turn: Arc<super::Turn>,
    /// What all threads found so far. Files are taken in order, so it lies before all that was not taken yet.
    lines: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether a thread failed, so that the others need not go on.
    has_failed: AtomicBool,
    progress: Mutex<Progress>,
}

/// What was found, by chunk.
#[derive(Default)]
struct Progress {
    /// How many chunks the lists before this one had.
    chunks_before: usize,
    found: BTreeMap<usize, FoundLines>,
    /// The first chunk that is not finished, and what those before it hold.
    unfinished: usize,
    lines: usize,
    bytes: usize,
    /// The failure that lies first.
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
            _turn: Arc::clone(&job.turn),
            lines: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
            progress: Mutex::default(),
        }
    }

    /// Whether what follows cannot add anything.
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
            // A failure behind all that is given concerns nobody.
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
            // Whatever other threads still look at comes later.
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
        let fates: Vec<Fate> = files.iter().map(|file| self.fate(file)).collect();
        let is_wanted = |place: &usize| fates[*place] == Fate::Search && !files[*place].text.is_held();
        let places: Vec<usize> = (0..files.len()).filter(is_wanted).collect();
        let wanted: Vec<&IndexedFile> = places.iter().map(|place| &*files[*place]).collect();
        let found = FoundLines::default();
        let mut chunk = Chunk { scan: self, keep, files, fates: &fates, next: 0, places: &places, found };
        if !wanted.is_empty() {
            let reader = match reader {
                Some(reader) => reader,
                None => reader.insert(self.texts.reader(self.workspace)?),
            };
            reader.visit(&wanted, &mut chunk)?;
        }
        if !chunk.is_full() {
            chunk.search_held_before(files.len())?;
        }
        Ok(chunk.found)
    }

    fn fate(&self, file: &IndexedFile) -> Fate {
        if self.search.paths.as_ref().is_some_and(|paths| !paths.accepts(file.path.as_str())) {
            return Fate::Pass;
        }
        if file.source == Source::Binary {
            return Fate::Count;
        }
        let may_match = file.text.signature().is_none_or(|signature| self.filter.admits(signature));
        if may_match { Fate::Search } else { Fate::Pass }
    }

    /// All that was found, in order and within the limits.
    pub(super) fn found(&self) -> Found {
        let chunks = std::mem::take(&mut self.progress().found);
        FoundLines::together(chunks.into_values(), &self.search)
    }
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Not chosen, or known not to have what is searched for.
    Pass,
    /// No text, which is counted.
    Count,
    Search,
}

/// Some files that a thread searches one after the other: those held in memory, and those read from the database.
struct Chunk<'a> {
    scan: &'a Scan,
    keep: Keep,
    files: &'a [Arc<IndexedFile>],
    fates: &'a [Fate],
    /// The first file that was not searched yet.
    next: usize,
    /// The places of the files that are read from the database.
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
        self.search_held_before(place)?;
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

    /// Searches what is held in memory of the files up to a place.
    fn search_held_before(&mut self, place: usize) -> Result<()> {
        while self.next < place && !self.is_full() {
            let (file, fate) = (&self.files[self.next], self.fates[self.next]);
            self.next += 1;
            match fate {
                Fate::Pass => {}
                Fate::Count => self.found.skipped.binary += 1,
                Fate::Search => {
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

/// JSON that is longer than this once it is laid out for people is passed over: a line for each of its values, indented
/// as deep as it lies, can make it a hundred times as long as it was.
const LAID_OUT_MOST_BYTES: usize = 64 << 20;

/// The text that is searched, of what is stored; none if it would be too large.
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
        View::Plain => Some(match bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(without_mark(bytes)),
            Cow::Owned(bytes) if without_mark(&bytes).len() < bytes.len() => without_mark(&bytes).to_vec().into(),
            owned @ Cow::Owned(_) => owned,
        }),
        View::Decoded => {
            let encoding = Encoding::of(&bytes).ok_or_else(|| StoreError::internal("a text is none any more"))?;
            let text = encoding.decode(&bytes).map_err(|_| StoreError::internal("a text cannot be decoded"))?;
            Some(without_mark(text.as_bytes()).to_vec().into())
        }
        View::Document => Some(json(bytes)?.document_text().unwrap_or_default().into_bytes().into()),
        View::Pretty => {
            let json = json(bytes)?;
            (json.pretty_bytes() <= LAID_OUT_MOST_BYTES).then(|| json.pretty().into_bytes().into())
        }
    })
}

/// A text without the byte order mark at its beginning, so that `^` matches behind it.
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}
