//! Memories: what both databases share.

use crate::error::StoreError;
use std::{collections::HashSet, fmt::Write};
use toolrest_core::{Memory, MemoryPage, NewMemory, ToolError, WordMatch, WorkspaceId, hex};
use uuid::Uuid;

/// Maximum number of memories of a workspace.
pub const MAX_MEMORIES: i64 = 250_000;

/// Number of entries up to which tags are counted, to start with the rarest.
pub(crate) const COUNTED_TAGS: i64 = 1_000;

/// Maximum number of characters of an indexed word; the rest is cut off.
const MAX_WORD_CHARS: usize = 40;
/// Maximum size of the indexed words of one memory, with their prefixes. Later words are not found. PostgreSQL allows a
/// megabyte.
const MAX_INDEXED_BYTES: usize = 384 << 10;
/// Number of letters that stand for the workspace.
const PREFIX_CHARS: usize = 16;
/// Minimum number of letters of a word that also finds longer words.
const MIN_OPEN_CHARS: usize = 4;
/// Maximum number of words of a search.
const MAX_SEARCH_WORDS: usize = 32;
/// The last position that PostgreSQL stores.
const MAX_POSITION: usize = 16_383;

/// Returns the letters with which the words of a workspace begin: the last 8 bytes of its id, which are random.
fn prefix(ws: WorkspaceId) -> String {
    hex(&ws.0.as_bytes()[8..])
}

/// Returns the words of a text in lower case. Languages without spaces between words have single characters as words.
fn words(text: &str) -> impl Iterator<Item = String> {
    let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    let pieces = runs.flat_map(|run| {
        let mut pieces: Vec<&str> = Vec::new();
        let mut rest = run;
        while let Some(at) = rest.find(is_ideograph) {
            let end = at + rest[at..].chars().next().map_or(0, char::len_utf8);
            pieces.extend([&rest[..at], &rest[at..end]]);
            rest = &rest[end..];
        }
        pieces.push(rest);
        pieces
    });
    let shortened = |word: &str| word.chars().take(MAX_WORD_CHARS).flat_map(char::to_lowercase).collect::<String>();
    pieces
        .map(shortened)
        .map(|word| word.chars().filter(|c| c.is_alphanumeric()).collect::<String>())
        .filter(|word| !word.is_empty())
}

/// Whether a character is written without spaces around words: Han, Hiragana and Katakana.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}')
}

/// The indexed words of a memory: of its key, its tags and its value.
pub(crate) struct IndexedWords([Vec<String>; 3]);

impl IndexedWords {
    pub(crate) fn of(ws: WorkspaceId, memory: &NewMemory) -> Self {
        let prefix = prefix(ws);
        let mut room = MAX_INDEXED_BYTES;
        let mut indexed = |text: &str| {
            let prefixed = words(text).map(|word| format!("{prefix}{word}"));
            let fitting = prefixed.take_while(|word| {
                let fits = word.len() < room;
                room = room.saturating_sub(word.len() + 1);
                fits
            });
            fitting.collect::<Vec<_>>()
        };
        Self([indexed(memory.key()), indexed(&memory.tags().join(" ")), indexed(memory.value())])
    }

    /// Returns them as the columns of SQLite's index.
    pub(crate) fn columns(&self) -> [String; 3] {
        self.0.each_ref().map(|words| words.join(" "))
    }

    /// Returns them as a `tsvector`. Words have letters and digits only, so nothing needs to be escaped.
    pub(crate) fn tsvector(&self) -> String {
        let mut vector = String::new();
        let mut position = 1;
        for (words, weight) in self.0.iter().zip(["A", "B", ""]) {
            for word in words {
                // Writing to a string does not fail.
                let _ = write!(vector, "'{word}':{position}{weight} ");
                position = (position + 1).min(MAX_POSITION);
            }
        }
        vector
    }
}

/// The words of a search.
pub(crate) struct SearchWords(Vec<String>);

impl SearchWords {
    pub(crate) fn of(ws: WorkspaceId, text: &str) -> Self {
        let prefix = prefix(ws);
        let mut found: Vec<String> = Vec::new();
        for word in words(text).map(|word| format!("{prefix}{word}")) {
            if !found.contains(&word) && found.len() < MAX_SEARCH_WORDS {
                found.push(word);
            }
        }
        Self(found)
    }

    /// Returns the ways to match, in the order in which they are tried.
    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        let endings = [Endings::Exact, Endings::Open];
        let endings = endings.into_iter().filter(|endings| *endings == Endings::Exact || self.has_open_words());
        let attempts = [WordMatch::All, WordMatch::Any].into_iter();
        let attempts = attempts.filter(|how| self.0.len() > usize::from(*how == WordMatch::Any));
        attempts.flat_map(|how| endings.clone().map(move |endings| Attempt { how, endings })).collect()
    }

    fn has_open_words(&self) -> bool {
        self.0.iter().any(|word| is_open(word))
    }

    /// Returns a query of FTS5.
    pub(crate) fn fts5(&self, attempt: Attempt) -> String {
        let operator = if attempt.how == WordMatch::All { " AND " } else { " OR " };
        let star = |word| if attempt.endings == Endings::Open && is_open(word) { "*" } else { "" };
        self.0.iter().map(|word| format!("\"{word}\"{}", star(word))).collect::<Vec<_>>().join(operator)
    }

    /// Returns a `tsquery`.
    pub(crate) fn tsquery(&self, attempt: Attempt) -> String {
        let operator = if attempt.how == WordMatch::All { " & " } else { " | " };
        let star = |word| if attempt.endings == Endings::Open && is_open(word) { ":*" } else { "" };
        self.0.iter().map(|word| format!("'{word}'{}", star(word))).collect::<Vec<_>>().join(operator)
    }
}

/// Whether a word, which has its prefix, is long enough to be searched with further letters. The index of the beginnings of
/// a word is read as a whole, which would take long for a short one.
fn is_open(word: &str) -> bool {
    word.chars().count() >= PREFIX_CHARS + MIN_OPEN_CHARS
}

/// A way to match the words of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    how: WordMatch,
    endings: Endings,
}

/// Whether words may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endings {
    Exact,
    Open,
}

/// The memories that the attempts of a search have found.
#[derive(Default)]
pub(crate) struct SearchResults {
    memories: Vec<Memory>,
    how: WordMatch,
}

impl SearchResults {
    /// Whether an attempt is still needed.
    pub(crate) fn need(&self, attempt: Attempt, limit: usize) -> bool {
        self.memories.is_empty() || (attempt.how == WordMatch::All && self.memories.len() <= limit)
    }

    /// Adds what an attempt has found after what earlier ones have found.
    pub(crate) fn add(&mut self, attempt: Attempt, found: Vec<Memory>) {
        if self.memories.is_empty() && !found.is_empty() {
            self.how = attempt.how;
        }
        let known: HashSet<String> = self.memories.iter().map(|memory| memory.key.clone()).collect();
        self.memories.extend(found.into_iter().filter(|memory| !known.contains(&memory.key)));
    }

    pub(crate) fn into_page(self, limit: usize) -> (MemoryPage, WordMatch) {
        (page_of(self.memories, limit), self.how)
    }
}

/// Returns the page of a query that asked for one memory more than the limit.
pub(crate) fn page_of(mut memories: Vec<Memory>, limit: usize) -> MemoryPage {
    let has_more = memories.len() > limit;
    memories.truncate(limit);
    MemoryPage { memories, has_more }
}

/// Returns the limit of a query for a page, which fetches one memory more.
pub(crate) fn fetched(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

/// Returns the size of a memory for the storage quota.
pub(crate) fn size_of(memory: &NewMemory) -> i64 {
    i64::try_from(memory.bytes()).unwrap_or(i64::MAX)
}

/// Creates the error for a workspace that has as many memories as it may have.
pub(crate) fn too_many_memories() -> StoreError {
    let limit = MAX_MEMORIES.unsigned_abs();
    let message = format!("The workspace has {limit} memories, which is the limit; delete some that are not needed");
    ToolError::new(toolrest_core::ErrorKind::QuotaExceeded, message).detail("limit", limit).into()
}

/// The id of an agent key, as it is stored.
pub(crate) fn key_uuid(key: Option<toolrest_core::KeyId>) -> Option<Uuid> {
    key.map(|key| key.0)
}

#[cfg(test)]
#[path = "memories_tests.rs"]
mod tests;
