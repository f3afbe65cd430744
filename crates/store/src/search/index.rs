//! The index of a workspace in memory: the list of its files, and some of their texts.

use super::cache::MemoryBudget;
use crate::blob::{compressed, decompressed};
use crate::error::Result;
use crate::signature::Signature;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use toolrest_core::{ChatId, ContentHash, FileId, FileType, Form, WsPath};

/// A position in the sequence of changes of a database. Later changes can be queried.
pub(crate) type Cursor = i64;

/// The files of a workspace in path order, as of one cursor. The list may end early.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    pub files: Arc<Vec<Arc<IndexedFile>>>,
    /// The cursor; none if the index is empty.
    pub cursor: Option<Cursor>,
    /// Whether the list has all files.
    pub is_complete: bool,
}

/// A file that can be searched.
#[derive(Debug)]
pub(crate) struct IndexedFile {
    pub id: FileId,
    pub path: WsPath,
    pub source: Source,
    /// The size of its content in bytes, as stored.
    pub size: usize,
    pub text: Arc<Text>,
}

/// The source of a file's text. The same source always gives the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Blob { key: ContentHash, view: TextView },
    Chat { id: ChatId, messages: i64 },
    Binary,
}

/// How a stored content is converted to the text that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextView {
    /// Unchanged.
    Plain,
    /// Decoded to UTF-8.
    Decoded,
    /// The `text` field of a JSON object.
    Document,
    /// Formatted JSON.
    Pretty,
}

impl Source {
    pub(crate) fn blob(key: ContentHash, form: Form, file_type: FileType) -> Self {
        let view = match form {
            Form::Bytes => return Self::Binary,
            Form::Text => TextView::Plain,
            Form::Encoded => TextView::Decoded,
            Form::Json if file_type == FileType::Document => TextView::Document,
            Form::Json => TextView::Pretty,
        };
        Self::Blob { key, view }
    }

    /// Whether the signature stored with the content is that of the text.
    pub(crate) fn has_stored_signature(&self) -> bool {
        matches!(self, Self::Blob { view: TextView::Plain | TextView::Decoded, .. })
    }
}

/// A file as listed by a database.
pub(crate) struct ListedFile {
    pub id: FileId,
    pub path: WsPath,
    pub source: Source,
    pub size: i64,
    /// The stored signature, if the query read it.
    pub signature: Option<Signature>,
}

/// The changes since a cursor.
pub(crate) struct Changes {
    /// The cursor after these changes.
    pub cursor: Cursor,
    pub changed: Changed,
}

pub(crate) enum Changed {
    /// The changed files: the current state, or none if the file was deleted.
    Files(Vec<(FileId, Option<ListedFile>)>),
    /// The changes are no longer recorded.
    Unknown,
}

impl Index {
    /// The last path of the list.
    pub(crate) fn end(&self) -> Option<&WsPath> {
        self.files.last().map(|file| &file.path)
    }

    /// Returns the index after the changes. If a new file does not fit into the cache, the list ends before it.
    pub(crate) fn after(&self, since: Changes, budget: &Arc<MemoryBudget>) -> Self {
        let cursor = Some(since.cursor);
        let changed = match since.changed {
            Changed::Unknown => return Self { cursor, ..Self::default() },
            Changed::Files(changed) if changed.is_empty() => return Self { cursor, ..self.clone() },
            Changed::Files(changed) => changed,
        };
        let mut changed: HashMap<FileId, Option<ListedFile>> = changed.into_iter().collect();
        let mut kept = Vec::with_capacity(self.files.len() + changed.len());
        let mut fresh = Vec::new();
        for file in &*self.files {
            match changed.get_mut(&file.id) {
                None => kept.push(Arc::clone(file)),
                // A file that only moved keeps its cached text.
                Some(found) => fresh.extend(found.take().map(|found| found.indexed(budget, Some(file)))),
            }
        }
        fresh.extend(changed.into_values().flatten().map(|found| found.indexed(budget, None)));
        if let (false, Some(end)) = (self.is_complete, self.end()) {
            fresh.retain(|file| file.path <= *end);
        } else if !self.is_complete {
            fresh.clear();
        }
        fresh.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut is_complete = self.is_complete;
        if let (false, Some(first)) = (budget.has_room(), fresh.first()) {
            kept.retain(|file| file.path < first.path);
            fresh.clear();
            is_complete = false;
        }
        Self { files: Arc::new(merge(kept, fresh)), cursor, is_complete }
    }

    /// Returns the index with the next files added.
    pub(crate) fn extended(&self, next: &[Arc<IndexedFile>], is_complete: bool) -> Self {
        let mut files = Vec::clone(&self.files);
        files.extend_from_slice(next);
        Self { files: Arc::new(files), cursor: self.cursor, is_complete }
    }
}

/// Merges two lists that are sorted by path.
fn merge(one: Vec<Arc<IndexedFile>>, other: Vec<Arc<IndexedFile>>) -> Vec<Arc<IndexedFile>> {
    let mut merged = Vec::with_capacity(one.len() + other.len());
    let mut other = other.into_iter().peekable();
    for file in one {
        while let Some(earlier) = other.next_if(|candidate| candidate.path < file.path) {
            merged.push(earlier);
        }
        merged.push(file);
    }
    merged.extend(other);
    merged
}

impl ListedFile {
    /// The memory that a file takes besides its path, signature and text.
    const BASE_BYTES: usize = size_of::<IndexedFile>() + size_of::<Text>() + 64;

    /// The memory that a file takes in the list, without its signature.
    fn listed_bytes(&self) -> usize {
        Self::BASE_BYTES + self.path.as_str().len()
    }

    /// Creates the index entry of the file. `before` is its previous entry.
    pub(crate) fn indexed(self, budget: &Arc<MemoryBudget>, before: Option<&IndexedFile>) -> Arc<IndexedFile> {
        let text = match before {
            Some(before) if before.source == self.source => Arc::clone(&before.text),
            _ => {
                let listed_bytes = self.listed_bytes();
                let signature = self.signature.filter(|_| self.source.has_stored_signature());
                Arc::new(Text::new(signature, Arc::clone(budget), listed_bytes))
            }
        };
        let size = usize::try_from(self.size).unwrap_or(0);
        Arc::new(IndexedFile { id: self.id, path: self.path, source: self.source, size, text })
    }
}

/// The cached text of a file, if any.
#[derive(Debug)]
pub(crate) struct Text {
    signature: OnceLock<Signature>,
    cached: Mutex<CachedText>,
    budget: Arc<MemoryBudget>,
    /// The memory that the file takes in the list, without the signature.
    listed_bytes: usize,
}

#[derive(Clone, Debug, Default)]
enum CachedText {
    #[default]
    Nothing,
    Raw(Arc<[u8]>),
    Compressed {
        data: Arc<[u8]>,
        size: usize,
    },
}

impl CachedText {
    fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Raw(data) | Self::Compressed { data, .. } => data.len(),
        }
    }
}

impl Text {
    fn new(signature: Option<Signature>, budget: Arc<MemoryBudget>, listed_bytes: usize) -> Self {
        let signature = signature.map_or_else(OnceLock::new, OnceLock::from);
        let text = Self { signature, cached: Mutex::default(), budget, listed_bytes };
        text.budget.charge(listed_bytes + text.signature_bytes());
        text
    }

    fn signature_bytes(&self) -> usize {
        self.signature().map_or(0, <[u8]>::len)
    }

    pub(crate) fn signature(&self) -> Option<&[u8]> {
        self.signature.get().map(Signature::as_bytes)
    }

    fn cached(&self) -> std::sync::MutexGuard<'_, CachedText> {
        // The value is replaced as a whole, so a panic cannot leave it in an invalid state.
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text, if it is cached.
    pub(crate) fn get(&self) -> Result<Option<Arc<[u8]>>> {
        let cached = self.cached().clone();
        Ok(match cached {
            CachedText::Nothing => None,
            CachedText::Raw(text) => Some(text),
            CachedText::Compressed { data, size } => Some(decompressed(&data, size)?.into()),
        })
    }

    pub(crate) fn is_cached(&self) -> bool {
        !matches!(*self.cached(), CachedText::Nothing)
    }

    /// Caches the signature, by which later searches skip the text.
    pub(crate) fn keep_signature(&self, make: impl FnOnce() -> Option<Signature>) {
        if self.signature.get().is_some() {
            return;
        }
        let Some(signature) = make() else { return };
        let bytes = signature.as_bytes().len();
        if self.budget.try_charge(bytes) && self.signature.set(signature).is_err() {
            self.budget.refund(bytes);
        }
    }

    /// Caches the text, if it fits.
    pub(crate) fn keep(&self, text: &[u8]) {
        if !self.budget.try_charge(text.len()) {
            return;
        }
        self.keep_signature(|| Some(Signature::of(text)));
        let mut cached = self.cached();
        if matches!(*cached, CachedText::Nothing) {
            *cached = CachedText::Raw(text.into());
        } else {
            self.budget.refund(text.len());
        }
    }

    /// Compresses the cached text.
    pub(crate) fn compress(&self) {
        let CachedText::Raw(raw) = self.cached().clone() else { return };
        let Ok(Some(data)) = compressed(&raw) else { return };
        let (before, after) = (raw.len(), data.len());
        let mut cached = self.cached();
        if matches!(*cached, CachedText::Raw(_)) {
            *cached = CachedText::Compressed { data: data.into(), size: before };
            self.budget.refund(before - after);
        }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let cached = self.cached.get_mut().unwrap_or_else(PoisonError::into_inner).bytes();
        self.budget.refund(cached + self.listed_bytes + self.signature_bytes());
    }
}
