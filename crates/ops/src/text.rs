//! Files as the texts that people and programs see, a part of their lines at a time.

use crate::document::{Editable, binary};
use crate::read;
use std::fmt::Write;
use std::time::Instant;
use toolrest_core::{
    CallCx, ContentHash, ContentHasher, Decoder, EncodingDetector, ErrorKind, NotText, OpenFile, ReadSeek, Result,
    ToolError, WsPath,
};

/// Files from here on are read piece by piece where they can be.
const STREAM_FROM_BYTES: u64 = 4 << 20;

/// How much is read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Some lines of a file.
#[derive(Debug)]
pub struct FilePage {
    /// The lines.
    pub page: LinePage,
    /// The hash of the whole file.
    pub hash: Option<ContentHash>,
}

/// Some lines of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LinePage {
    /// The lines without their newlines, each with its number counted from 1.
    pub lines: Vec<(usize, String)>,
    /// How many lines the text has. A final newline does not begin one more.
    pub total: usize,
    /// Whether lines follow, or the last one is not whole.
    pub is_truncated: bool,
    /// How many bytes of the last line were left out.
    pub cut_bytes: usize,
}

impl LinePage {
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

/// Reads some lines of a file, seen as text. Bytes that are no text are refused.
pub async fn read_page(cx: &CallCx, path: &WsPath, limits: PageLimits) -> Result<FilePage> {
    if let Some(open) = cx.workspace.open(path, STREAM_FROM_BYTES).await? {
        let limit_bytes = cx.limits.response_bytes;
        let deadline = Instant::now() + cx.limits.call_timeout;
        let work = move || page_of_stream(open, limits, limit_bytes, deadline);
        return tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)?;
    }
    let (entry, content) = read(cx, path).await?;
    let limit_bytes = cx.limits.response_bytes;
    let text = Editable::of_file(&entry, content, limit_bytes)?.text;
    let page = page(&text, limits);
    let bytes: usize = page.lines.iter().map(|(_, line)| line.len() + 1).sum();
    if bytes > limit_bytes { Err(too_long(path, limit_bytes)) } else { Ok(FilePage { page, hash: entry.hash }) }
}

/// The refusal of a page that does not fit into an answer.
fn too_long(path: &WsPath, limit_bytes: usize) -> ToolError {
    let message = format!(
        "{path} is longer than the {limit_bytes} bytes that fit into an answer; read a part of its lines with `offset` \
         and `limit`"
    );
    ToolError::new(ErrorKind::ResponseTooLarge, message)
}

/// Takes a page of lines out of a text.
fn page(text: &str, limits: PageLimits) -> LinePage {
    let mut pager = Pager::new(limits);
    pager.feed(text.as_bytes());
    pager.finish()
}

/// Takes a page of lines out of a file that is too large to be held in memory. All of it is read twice:
/// for its encoding and its hash, and for its lines and their number.
fn page_of_stream(open: OpenFile, limits: PageLimits, limit_bytes: usize, deadline: Instant) -> Result<FilePage> {
    let OpenFile { entry, mut bytes } = open;
    let fault = |error: &std::io::Error| ToolError::internal(format!("{}: {error}", entry.path));
    let mut piece = vec![0; PIECE_BYTES];
    let mut next = |bytes: &mut dyn ReadSeek| -> Result<Vec<u8>> {
        if Instant::now() > deadline {
            // Nobody waits for it any more.
            let message = format!("{} is too long to be read through in time", entry.path);
            return Err(ToolError::new(ErrorKind::Timeout, message));
        }
        let count = bytes.read(&mut piece).map_err(|error| fault(&error))?;
        Ok(piece[..count].to_vec())
    };
    let no_text = || binary(&entry.path, usize::try_from(entry.size).unwrap_or(usize::MAX));
    let mut hasher = ContentHasher::default();
    let mut read = next(&mut *bytes)?;
    let mut detector = EncodingDetector::new(&read);
    while !read.is_empty() {
        hasher.update(&read);
        if !detector.feed(&read) {
            return Err(no_text());
        }
        read = next(&mut *bytes)?;
    }
    let mut decoder = Decoder::new(detector.finish().ok_or_else(no_text)?);
    bytes.rewind().map_err(|error| fault(&error))?;
    let mut pager = Pager::new(limits);
    loop {
        let read = next(&mut *bytes)?;
        // It may have become something else since.
        decoder.feed(&read, &mut |text| pager.feed(text.as_bytes())).map_err(|NotText| no_text())?;
        // A line that has not ended yet counts too: a file may be one line.
        if pager.bytes + pager.line.len() > limit_bytes {
            return Err(too_long(&entry.path, limit_bytes));
        }
        if read.is_empty() {
            return Ok(FilePage { page: pager.finish(), hash: Some(hasher.finish()) });
        }
    }
}

/// Collects a page of lines from a text that comes in pieces.
struct Pager {
    limits: PageLimits,
    page: LinePage,
    /// How much the lines of the page take.
    bytes: usize,
    /// How much there is of the line that has not ended yet, and its start, as far as it may be shown.
    line_bytes: usize,
    line: Vec<u8>,
    is_full: bool,
    has_begun: bool,
}

impl Pager {
    fn new(limits: PageLimits) -> Self {
        let page = LinePage::default();
        Self { limits, page, bytes: 0, line_bytes: 0, line: Vec::new(), is_full: false, has_begun: false }
    }

    /// Takes the next piece. The byte order mark is not part of the first line, as in searches.
    fn feed(&mut self, mut text: &[u8]) {
        if !self.has_begun && !text.is_empty() {
            self.has_begun = true;
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        while let Some(end) = memchr::memchr(b'\n', text) {
            self.take(&text[..end]);
            self.end_line();
            text = &text[end + 1..];
            if self.is_full {
                // From here on lines are only counted.
                self.page.total += memchr::memchr_iter(b'\n', text).count();
                let last = memchr::memrchr(b'\n', text).map_or(0, |end| end + 1);
                text = &text[last..];
            }
        }
        self.take(text);
    }

    fn take(&mut self, part: &[u8]) {
        self.line_bytes += part.len();
        if self.page.total >= self.limits.skip && !self.is_full {
            let room = self.limits.bytes.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    fn end_line(&mut self) {
        let (line, line_bytes) = (std::mem::take(&mut self.line), std::mem::take(&mut self.line_bytes));
        self.page.total += 1;
        if self.page.total <= self.limits.skip || self.is_full {
            return;
        }
        let is_too_much = self.bytes + line_bytes > self.limits.bytes && !self.page.lines.is_empty();
        if self.page.lines.len() == self.limits.lines || is_too_much {
            self.page.is_truncated = true;
            self.is_full = true;
            return;
        }
        let shown = whole_characters(line);
        self.page.cut_bytes = line_bytes - shown.len();
        self.page.is_truncated |= self.page.cut_bytes > 0;
        self.bytes += shown.len() + 1;
        self.page.lines.push((self.page.total, shown));
    }

    fn finish(mut self) -> LinePage {
        if self.line_bytes > 0 {
            self.end_line();
        }
        self.page
    }
}

/// The start of a text that may have been cut within a character.
fn whole_characters(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let end = error.utf8_error().valid_up_to();
        String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned()
    })
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
