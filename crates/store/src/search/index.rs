//! What is known of a workspace's files without asking the database: the list of paths, and some of their texts.

use super::cache::Books;
use crate::blob::{compressed, decompressed};
use crate::error::Result;
use crate::signature::Signature;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use toolrest_core::{ChatId, ContentHash, FileId, FileType, Form, WsPath};

/// A moment in the life of a database, in its own numbers: what changed later can be asked for.
pub(crate) type Cursor = i64;

/// The files of a workspace as they were at one moment, by path, up to where the list has been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    pub files: Arc<Vec<Arc<IndexedFile>>>,
    /// The moment; none if nothing is known yet.
    pub cursor: Option<Cursor>,
    /// Whether no files follow after the last one.
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

/// Where a file's text comes from. The same source always gives the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Blob { key: ContentHash, view: View },
    Chat { id: ChatId, messages: i64 },
    Binary,
}

/// How a stored content is seen as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// As it is.
    Plain,
    /// In UTF-8, from whatever encoding it is in.
    Decoded,
    /// The `text` of an object.
    Document,
    /// JSON laid out for people.
    Pretty,
}

impl Source {
    pub(crate) fn blob(key: ContentHash, form: Form, file_type: FileType) -> Self {
        let view = match form {
            Form::Bytes => return Self::Binary,
            Form::Text => View::Plain,
            Form::Encoded => View::Decoded,
            Form::Json if file_type == FileType::Document => View::Document,
            Form::Json => View::Pretty,
        };
        Self::Blob { key, view }
    }

    /// Whether the signature that is stored with the content is that of the text.
    pub(crate) fn has_stored_signature(&self) -> bool {
        matches!(self, Self::Blob { view: View::Plain | View::Decoded, .. })
    }
}

/// A file as a database describes it.
pub(crate) struct FoundFile {
    pub id: FileId,
    pub path: WsPath,
    pub source: Source,
    pub size: i64,
    /// The signature that is stored with the content, where it was read along.
    pub signature: Option<Signature>,
}

/// What happened since a cursor.
pub(crate) struct Changes {
    /// The moment up to which this tells.
    pub cursor: Cursor,
    pub changed: Changed,
}

pub(crate) enum Changed {
    /// These files: as they are now, or none where they are gone.
    Files(Vec<(FileId, Option<FoundFile>)>),
    /// It is not known any more.
    Anything,
}

impl Index {
    /// The last path that is known.
    pub(crate) fn end(&self) -> Option<&WsPath> {
        self.files.last().map(|file| &file.path)
    }

    /// The files as they are after the changes. Where the cache has no room for a new file, the list ends.
    pub(crate) fn after(&self, since: Changes, books: &Arc<Books>) -> Self {
        let cursor = Some(since.cursor);
        let changed = match since.changed {
            Changed::Anything => return Self { cursor, ..Self::default() },
            Changed::Files(changed) if changed.is_empty() => return Self { cursor, ..self.clone() },
            Changed::Files(changed) => changed,
        };
        let mut changed: HashMap<FileId, Option<FoundFile>> = changed.into_iter().collect();
        let mut kept = Vec::with_capacity(self.files.len() + changed.len());
        let mut fresh = Vec::new();
        for file in &*self.files {
            match changed.get_mut(&file.id) {
                None => kept.push(Arc::clone(file)),
                // A file that only moved keeps its text.
                Some(found) => fresh.extend(found.take().map(|found| found.indexed(books, Some(file)))),
            }
        }
        fresh.extend(changed.into_values().flatten().map(|found| found.indexed(books, None)));
        if let (false, Some(end)) = (self.is_complete, self.end()) {
            fresh.retain(|file| file.path <= *end);
        } else if !self.is_complete {
            fresh.clear();
        }
        fresh.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut is_complete = self.is_complete;
        if let (false, Some(first)) = (books.has_room(), fresh.first()) {
            kept.retain(|file| file.path < first.path);
            fresh.clear();
            is_complete = false;
        }
        Self { files: Arc::new(merge(kept, fresh)), cursor, is_complete }
    }

    /// The files with those that follow.
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

impl FoundFile {
    /// What a file costs besides its path, its signature and its text.
    const BASE_BYTES: usize = size_of::<IndexedFile>() + size_of::<Text>() + 64;

    /// The bytes that the file takes in the list, its signature aside.
    fn listed_bytes(&self) -> usize {
        Self::BASE_BYTES + self.path.as_str().len()
    }

    /// The file in the list; `before` is how it stood there.
    pub(crate) fn indexed(self, books: &Arc<Books>, before: Option<&IndexedFile>) -> Arc<IndexedFile> {
        let text = match before {
            Some(before) if before.source == self.source => Arc::clone(&before.text),
            _ => {
                let listed_bytes = self.listed_bytes();
                let signature = self.signature.filter(|_| self.source.has_stored_signature());
                Arc::new(Text::new(signature, Arc::clone(books), listed_bytes))
            }
        };
        let size = usize::try_from(self.size).unwrap_or(0);
        Arc::new(IndexedFile { id: self.id, path: self.path, source: self.source, size, text })
    }
}

/// A file's text as far as it is kept in memory.
#[derive(Debug)]
pub(crate) struct Text {
    signature: OnceLock<Signature>,
    held: Mutex<Held>,
    books: Arc<Books>,
    /// What its file takes in the list, the signature aside.
    listed_bytes: usize,
}

#[derive(Clone, Debug, Default)]
enum Held {
    #[default]
    Nothing,
    Raw(Arc<[u8]>),
    Compressed {
        data: Arc<[u8]>,
        size: usize,
    },
}

impl Held {
    fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Raw(data) | Self::Compressed { data, .. } => data.len(),
        }
    }
}

impl Text {
    fn new(signature: Option<Signature>, books: Arc<Books>, listed_bytes: usize) -> Self {
        let signature = signature.map_or_else(OnceLock::new, OnceLock::from);
        let text = Self { signature, held: Mutex::default(), books, listed_bytes };
        text.books.charge(listed_bytes + text.signature_bytes());
        text
    }

    fn signature_bytes(&self) -> usize {
        self.signature().map_or(0, <[u8]>::len)
    }

    pub(crate) fn signature(&self) -> Option<&[u8]> {
        self.signature.get().map(Signature::as_bytes)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        // What is held is replaced as a whole, so a panic elsewhere cannot have left it half done.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text, if it is kept.
    pub(crate) fn get(&self) -> Result<Option<Arc<[u8]>>> {
        let held = self.held().clone();
        Ok(match held {
            Held::Nothing => None,
            Held::Raw(text) => Some(text),
            Held::Compressed { data, size } => Some(decompressed(&data, size)?.into()),
        })
    }

    pub(crate) fn is_held(&self) -> bool {
        !matches!(*self.held(), Held::Nothing)
    }

    /// Keeps the signature, so that the text need not be looked at when it cannot have what is searched for.
    pub(crate) fn keep_signature(&self, make: impl FnOnce() -> Option<Signature>) {
        if self.signature.get().is_some() {
            return;
        }
        let Some(signature) = make() else { return };
        let bytes = signature.as_bytes().len();
        if self.books.try_charge(bytes) && self.signature.set(signature).is_err() {
            self.books.refund(bytes);
        }
    }

    /// Keeps the text, if there is room for it.
    pub(crate) fn keep(&self, text: &[u8]) {
        if !self.books.try_charge(text.len()) {
            return;
        }
        self.keep_signature(|| Some(Signature::of(text)));
        let mut held = self.held();
        if matches!(*held, Held::Nothing) {
            *held = Held::Raw(text.into());
        } else {
            self.books.refund(text.len());
        }
    }

    /// Keeps the text in less room.
    pub(crate) fn compress(&self) {
        let Held::Raw(raw) = self.held().clone() else { return };
        let Ok(Some(data)) = compressed(&raw) else { return };
        let (before, after) = (raw.len(), data.len());
        let mut held = self.held();
        if matches!(*held, Held::Raw(_)) {
            *held = Held::Compressed { data: data.into(), size: before };
            self.books.refund(before - after);
        }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner).bytes();
        self.books.refund(held + self.listed_bytes + self.signature_bytes());
    }
}
