//! Excerpts of texts for models: ranges of lines within a budget, long lines cut, and an outline of what is left out.

use crate::document::Editable;
use crate::heavy;
use crate::read::read_up_to;
use crate::text::{HEAVY_FROM_BYTES, STREAM_FROM_BYTES, StreamedText};
use toolrest_core::{CallCx, Content, ContentHash, Encoding, Result, WsPath};

/// Maximum size of the part of a line that is looked at for the outline.
const OUTLINE_LINE_BYTES: usize = 160;
/// Maximum number of lines of an outline that are collected.
const MAX_OUTLINE_LINES: usize = 2_000;

/// Which lines to read, and how much of them.
#[derive(Clone, Copy, Debug)]
pub struct ExcerptOptions {
    /// The first line, counted from 1.
    pub from: usize,
    /// The last line.
    pub to: usize,
    /// Maximum size of the lines together, with their numbers.
    pub bytes: usize,
    /// Maximum size of a line; the rest is cut. A single line may take the whole budget.
    pub line_bytes: usize,
}

/// Some lines of a text.
#[derive(Clone, Debug, Default)]
pub struct Excerpt {
    /// The lines.
    pub lines: Vec<ExcerptLine>,
    /// The number of lines of the text. A final newline does not begin another.
    pub total: usize,
    /// The first line of the range that did not fit.
    pub next: Option<usize>,
    /// The hash of the whole file.
    pub hash: Option<ContentHash>,
    /// What is not plain about the text: its encoding, its line endings.
    pub forms: Vec<&'static str>,
    /// Lines that look like definitions or headings, with their numbers.
    pub outline: Vec<(usize, String)>,
}

/// A line of an excerpt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcerptLine {
    /// Its number, counted from 1.
    pub number: usize,
    /// The line without its ending.
    pub text: String,
    /// Number of bytes that were cut from its end.
    pub cut_bytes: usize,
}

impl ExcerptLine {
    /// Returns the size of the line with its number.
    pub fn shown_bytes(&self) -> usize {
        self.text.len() + 10 + if self.cut_bytes > 0 { 20 } else { 0 }
    }
}

/// Reads an excerpt of a file. It is an error if the file is binary.
pub async fn excerpt(cx: &CallCx, path: &WsPath, options: ExcerptOptions) -> Result<Excerpt> {
    if let Some(open) = cx.workspace.open(path, STREAM_FROM_BYTES).await? {
        return heavy::run(cx, usize::MAX, move |stop| {
            let mut text = StreamedText::new(open, stop)?;
            let mut collector = Collector::new(options);
            text.feed(stop, |piece| {
                collector.feed(piece);
                true
            })?;
            let mut excerpt = collector.finish();
            excerpt.hash = Some(text.hash);
            excerpt.forms.extend(form_of(text.encoding));
            Ok(excerpt)
        })
        .await;
    }
    let limit_bytes = cx.limits.response_bytes;
    let (entry, content) = read_up_to(cx, path, usize::MAX).await?;
    let size = content.stored().len();
    let work = move || {
        let hash = entry.hash.map_or_else(|| content.hash(), Ok)?;
        let form = match &content {
            Content::Encoded(text) => form_of(text.encoding()),
            _ => None,
        };
        let mut excerpt = excerpt_of_text(&Editable::of_file(&entry, content, limit_bytes)?.text, options);
        excerpt.hash = Some(hash);
        excerpt.forms.extend(form);
        Ok(excerpt)
    };
    if size < HEAVY_FROM_BYTES { work() } else { heavy::run(cx, size, move |_| work()).await }
}

/// Returns an excerpt of a text.
pub fn excerpt_of_text(text: &str, options: ExcerptOptions) -> Excerpt {
    let mut collector = Collector::new(options);
    collector.feed(text);
    collector.finish()
}

/// Returns the name of an encoding, if it is not UTF-8.
fn form_of(encoding: Encoding) -> Option<&'static str> {
    match encoding {
        Encoding::Utf8 => None,
        Encoding::Utf16Le | Encoding::Utf16Be => Some("utf-16"),
        Encoding::Windows1252 => Some("latin-1"),
    }
}

/// Collects the lines of an excerpt from a text in pieces.
struct Collector {
    options: ExcerptOptions,
    excerpt: Excerpt,
    bytes: usize,
    /// The beginning of the current line, and its whole size.
    line: Vec<u8>,
    line_bytes: usize,
    ends_in_carriage_return: bool,
    crlf_lines: usize,
    ended_lines: usize,
    has_begun: bool,
}

impl Collector {
    fn new(options: ExcerptOptions) -> Self {
        Self {
            options,
            excerpt: Excerpt::default(),
            bytes: 0,
            line: Vec::new(),
            line_bytes: 0,
            ends_in_carriage_return: false,
            crlf_lines: 0,
            ended_lines: 0,
            has_begun: false,
        }
    }

    fn feed(&mut self, mut text: &str) {
        if !self.has_begun && !text.is_empty() {
            self.has_begun = true;
            if let Some(rest) = text.strip_prefix('\u{feff}') {
                text = rest;
                self.excerpt.forms.push("bom");
            }
        }
        let mut rest = text.as_bytes();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.take(&rest[..end]);
            self.ended_lines += 1;
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.take(rest);
    }

    fn take(&mut self, part: &[u8]) {
        if part.is_empty() {
            return;
        }
        self.line_bytes += part.len();
        self.ends_in_carriage_return = part.ends_with(b"\r");
        // One line alone is given as far as the budget goes.
        let most = self.options.bytes.max(OUTLINE_LINE_BYTES);
        let room = most.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn end_line(&mut self) {
        self.excerpt.total += 1;
        let number = self.excerpt.total;
        let is_crlf = std::mem::take(&mut self.ends_in_carriage_return);
        self.crlf_lines += usize::from(is_crlf);
        let whole = std::mem::take(&mut self.line_bytes) - usize::from(is_crlf);
        let mut line = std::mem::take(&mut self.line);
        line.truncate(whole);
        self.add_to_outline(number, &line);
        if (self.options.from..=self.options.to).contains(&number) && self.excerpt.next.is_none() {
            let alone = self.options.from == self.options.to;
            let most = if alone { self.options.bytes } else { self.options.line_bytes };
            let shown = whole_characters(&line[..line.len().min(most)]);
            let cut_bytes = whole - shown.len();
            let shown = ExcerptLine { number, text: shown.to_owned(), cut_bytes };
            if self.bytes + shown.shown_bytes() > self.options.bytes && !self.excerpt.lines.is_empty() {
                self.excerpt.next = Some(number);
            } else {
                self.bytes += shown.shown_bytes();
                self.excerpt.lines.push(shown);
            }
        }
        line.clear();
        self.line = line;
    }

    fn add_to_outline(&mut self, number: usize, line: &[u8]) {
        if self.excerpt.outline.len() == MAX_OUTLINE_LINES {
            return;
        }
        let beginning = whole_characters(&line[..line.len().min(OUTLINE_LINE_BYTES)]);
        if is_definition(beginning) {
            self.excerpt.outline.push((number, beginning.trim_end().to_owned()));
        }
    }

    fn finish(mut self) -> Excerpt {
        if self.line_bytes > 0 {
            self.end_line();
        }
        match (self.crlf_lines, self.ended_lines) {
            (0, _) => {}
            (crlf, all) if crlf >= all => self.excerpt.forms.push("crlf"),
            _ => self.excerpt.forms.push("mixed line endings"),
        }
        self.excerpt
    }
}

/// Words with which lines begin that define something, in common languages.
const DEFINING_WORDS: [&str; 30] = [
    "abstract",
    "class",
    "const",
    "def",
    "enum",
    "export",
    "fn",
    "func",
    "function",
    "impl",
    "interface",
    "internal",
    "macro_rules!",
    "mod",
    "module",
    "namespace",
    "object",
    "package",
    "private",
    "protected",
    "public",
    "pub",
    "record",
    "static",
    "struct",
    "sub",
    "trait",
    "type",
    "typedef",
    "union",
];

/// Whether a line looks like a definition or a heading.
fn is_definition(line: &str) -> bool {
    let trimmed = line.trim_start();
    let indent = line.len() - trimmed.len();
    if trimmed.is_empty() || indent > 8 {
        return false;
    }
    if let Some(heading) = trimmed.strip_prefix('#') {
        // Headings of Markdown, not comments or directives.
        return indent == 0 && heading.trim_start_matches('#').starts_with(' ') && heading.len() > 2;
    }
    let word = trimmed.split(|c: char| c.is_whitespace() || c == '(' || c == '<').next().unwrap_or_default();
    if DEFINING_WORDS.contains(&word.trim_end_matches(':')) || word == "async" {
        return true;
    }
    // A function in C and its relatives: at the beginning of a line, with parameters, and without an end of a statement.
    let first = trimmed.chars().next().unwrap_or(' ');
    indent == 0
        && (first.is_alphabetic() || first == '_')
        && trimmed.contains('(')
        && (trimmed.trim_end().ends_with('{') || trimmed.trim_end().ends_with(')'))
}

/// Returns the text without an incomplete character at its end.
fn whole_characters(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or_else(|error| str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default())
}

#[cfg(test)]
#[path = "excerpt_tests.rs"]
mod tests;
