//! Answers: a text for the model, the data for programs, and pictures.

use schemars::JsonSchema;
use serde::Serialize;
use toolrest_core::{CommitId, ContentHash, Timestamp, now};

/// Number of digits by which commits and hashes are named.
pub(super) const SHORT_DIGITS: usize = 8;

/// The answer of a tool.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer<D> {
    /// The answer as a model reads it.
    pub(super) text: String,
    /// The same for programs.
    pub(super) data: D,
    /// Pictures that follow the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) blocks: Vec<Block>,
}

/// A picture.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Block {
    /// `image`.
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// Its bytes in base64.
    pub(super) data: String,
    /// Its media type.
    pub(super) mime_type: &'static str,
}

impl<D> Answer<D> {
    pub(super) fn new(text: String, data: D) -> Self {
        Self { text, data, blocks: Vec::new() }
    }
}

/// Adds a line to a text.
pub(super) fn push(text: &mut String, line: impl AsRef<str>) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line.as_ref());
}

/// Adds to the last line of a text.
pub(super) fn append(text: &mut String, more: impl AsRef<str>) {
    text.push_str(more.as_ref());
}

/// Returns the name of a commit: the last digits of its id, because the first are its time.
pub(super) fn short_commit(commit: CommitId) -> String {
    let id = commit.0.simple().to_string();
    id[id.len() - SHORT_DIGITS..].to_owned()
}

/// Returns the name of a hash.
pub(super) fn short_hash(hash: ContentHash) -> String {
    hash.to_string()[..SHORT_DIGITS].to_owned()
}

/// Returns how long ago a time was: `20 s ago`, `2 min ago`.
pub(super) fn ago(at: Timestamp) -> String {
    let seconds = (now().as_second() - at.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// Returns a size in few characters: `224`, `14K`, `2.1M`.
pub(super) fn size(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    match bytes {
        0..KIB => bytes.to_string(),
        KIB..MIB => format!("{}K", bytes.div_ceil(KIB)),
        _ => {
            let tenths = bytes.saturating_mul(10) / MIB;
            format!("{}.{}M", tenths / 10, tenths % 10)
        }
    }
}

/// Returns a number with its noun, which gets an `s` for more than one.
pub(super) fn count(number: usize, noun: &str) -> String {
    let plural = match noun {
        _ if number == 1 => noun.to_owned(),
        "match" => "matches".to_owned(),
        noun => format!("{noun}s"),
    };
    format!("{number} {plural}")
}

/// Returns the beginning of a text, up to a number of bytes and to the end of a line if there is one.
pub(super) fn head(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let beginning = &text[..end];
    beginning.rfind('\n').map_or(beginning, |newline| &beginning[..=newline])
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
