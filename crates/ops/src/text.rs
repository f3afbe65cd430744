//! Files as the texts that people and programs see, and parts of such texts.

use crate::document::Editable;
use crate::read;
use std::fmt::Write;
use toolrest_core::{CallCx, Entry, Result, WsPath};

/// A file seen as text.
pub struct TextFile {
    /// What it is.
    pub entry: Entry,
    /// What it says: text as it is, of a document its `text`, other JSON laid out for people.
    pub text: String,
}

/// Reads a file as text. Bytes that are no text are refused.
pub async fn read_text(cx: &CallCx, path: &WsPath) -> Result<TextFile> {
    let (entry, content) = read(cx, path).await?;
    let text = Editable::of(content, entry.file_type, path, cx.limits.response_bytes)?.text;
    Ok(TextFile { entry, text })
}

/// Some lines of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct LinePage<'a> {
    /// The lines without their newlines, each with its number counted from 1.
    pub lines: Vec<(usize, &'a str)>,
    /// How many lines the text has. A final newline does not begin one more.
    pub total: usize,
    /// Whether lines follow, or the last one is not whole.
    pub is_truncated: bool,
    /// How many bytes of the last line were left out.
    pub cut_bytes: usize,
}

impl LinePage<'_> {
    /// The lines as `cat -n` shows them: the number right-aligned in six columns, a separator, the line.
    pub fn numbered(&self, separator: char) -> String {
        let mut text = String::new();
        for (i, (number, line)) in self.lines.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            // Writing to a string does not fail.
            let _ = write!(text, "{newline}{number:>6}{separator}{line}");
        }
        text
    }
}

/// How much of a text to give.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// How many lines to pass over.
    pub skip: usize,
    /// The most lines.
    pub lines: usize,
    /// The most bytes. A first line that is longer is cut between characters.
    pub bytes: usize,
}

/// Takes a page of lines out of a text.
pub fn page(text: &str, limits: PageLimits) -> LinePage<'_> {
    let total = line_count(text);
    let mut page = LinePage { lines: Vec::new(), total, is_truncated: false, cut_bytes: 0 };
    let mut bytes = 0;
    for (index, line) in text.split_terminator('\n').enumerate().skip(limits.skip) {
        if page.lines.len() == limits.lines || (bytes + line.len() > limits.bytes && !page.lines.is_empty()) {
            page.is_truncated = true;
            break;
        }
        let shown = start_of(line, limits.bytes);
        page.cut_bytes = line.len() - shown.len();
        page.is_truncated |= page.cut_bytes > 0;
        bytes += shown.len() + 1;
        page.lines.push((index + 1, shown));
    }
    page
}

/// The start of a text, at most so many bytes of it, ending between characters.
fn start_of(text: &str, bytes: usize) -> &str {
    let fits = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=bytes.min(text.len())).rev().find(fits).unwrap_or(0);
    &text[..end]
}

fn line_count(text: &str) -> usize {
    let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    newlines + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
