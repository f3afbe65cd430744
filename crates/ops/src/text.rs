//! Pages of lines from files.

use crate::document::{Editable, binary};
use crate::heavy;
use crate::read::read_up_to;
use std::fmt::Write;
use toolrest_core::{
    CallCx, ContentHash, ContentHasher, Decoder, Encoding, EncodingDetector, Entry, ErrorKind, NotText, OpenFile,
    Result, ToolError, WsPath, json_bytes_of,
};
use toolrest_edit::StopFlag;

/// Minimum size of files that are read in pieces.
pub(crate) const STREAM_FROM_BYTES: u64 = 4 << 20;

/// Size of a piece.
const PIECE_BYTES: usize = 256 << 10;

/// Minimum size of texts that are processed on other threads.
pub(crate) const HEAVY_FROM_BYTES: usize = 1 << 20;

/// Maximum size of a page that needs no reservation of memory.
const FREE_PAGE_BYTES: usize = 256 << 10;

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
    /// The lines as in `cat -n`, without the final newline: the number, counted from 1 and right-aligned in six
    /// columns, a separator, and the line.
    pub text: String,
    /// Number of lines of the text. A final newline does not start another line.
    pub total: usize,
    /// Whether there are more lines, or the last one is cut.
    pub is_truncated: bool,
    /// Number of bytes that were cut from the last line.
    pub cut_bytes: usize,
}

/// The part of a text to return, and its format.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Number of lines to skip.
    pub skip: usize,
    /// Maximum number of lines.
    pub lines: usize,
    /// Maximum number of bytes. If the first line is longer, it is cut between characters.
    pub bytes: usize,
    /// The separator between a line's number and the line.
    pub separator: char,
}

/// Reads some lines of a file. It is an error if the file is binary, or if the page does not fit into an answer.
pub async fn read_page(cx: &CallCx, path: &WsPath, limits: PageLimits) -> Result<FilePage> {
    if let Some(open) = cx.workspace.open(path, STREAM_FROM_BYTES).await? {
        return page_of_stream(cx, open, limits).await;
    }
    let answer_bytes = cx.limits.response_bytes;
    let (entry, content) = read_up_to(cx, path, usize::MAX).await?;
    let hash = entry.hash;
    let size = content.stored().len();
    let work = move || {
        let text = Editable::of_file(&entry, content, answer_bytes)?.text;
        page(&text, limits, answer_bytes).ok_or_else(|| too_long(&entry.path, answer_bytes))
    };
    let page = if size < HEAVY_FROM_BYTES { work() } else { heavy::run(cx, size, move |_| work()).await };
    Ok(FilePage { page: page?, hash })
}

/// Creates the error for a page that does not fit into an answer.
fn too_long(path: &WsPath, limit_bytes: usize) -> ToolError {
    let message = format!(
        "The lines of {path} take more than the {limit_bytes} bytes that fit into an answer; read a part of them with \
         `offset` and `limit`"
    );
    ToolError::new(ErrorKind::ResponseTooLarge, message)
}

/// Extracts a page of lines from a text. Returns `None` if it does not fit into an answer.
fn page(text: &str, limits: PageLimits, answer_bytes: usize) -> Option<LinePage> {
    let mut pager = Pager::new(limits, answer_bytes);
    pager.feed(text.as_bytes());
    pager.finish()
}

/// Extracts a page of lines from a file that is too large for memory. The file is read twice: for its encoding and
/// hash, and for its lines. A long page is extracted once more, after its memory was reserved.
async fn page_of_stream(cx: &CallCx, open: OpenFile, limits: PageLimits) -> Result<FilePage> {
    let answer_bytes = cx.limits.response_bytes;
    let path = open.entry.path.clone();
    let page_bytes = open.entry.size.unsigned_abs().min(answer_bytes as u64);
    let mut examined = heavy::run(cx, usize::MAX, move |stop| StreamedText::new(open, stop)).await?;
    for max_bytes in [FREE_PAGE_BYTES.min(answer_bytes), answer_bytes] {
        if max_bytes > FREE_PAGE_BYTES {
            cx.workspace.make_room(page_bytes).await?;
        }
        let work = move |stop: StopFlag<'_>| examined.page(limits, max_bytes, stop).map(|page| (page, examined));
        let (page, again) = heavy::run(cx, usize::MAX, work).await?;
        if let Some(page) = page {
            return Ok(FilePage { page, hash: Some(again.hash) });
        }
        examined = again;
    }
    Err(too_long(&path, answer_bytes))
}

/// A text file that is read in pieces, after the first pass: its encoding and hash are known.
pub(crate) struct StreamedText {
    open: OpenFile,
    pub(crate) encoding: Encoding,
    pub(crate) hash: ContentHash,
}

impl StreamedText {
    pub(crate) fn new(mut open: OpenFile, stop: StopFlag<'_>) -> Result<Self> {
        let mut hasher = ContentHasher::default();
        let mut detector = None;
        pieces(&mut open, stop, |piece, entry| {
            hasher.update(piece);
            let is_text = detector.get_or_insert_with(|| EncodingDetector::new(piece)).feed(piece);
            if is_text { Ok(true) } else { Err(no_text(entry)) }
        })?;
        let detector = detector.unwrap_or_else(|| EncodingDetector::new(&[]));
        let encoding = detector.finish().ok_or_else(|| no_text(&open.entry))?;
        Ok(Self { open, encoding, hash: hasher.finish() })
    }

    /// Extracts a page of lines. Returns `None` if it is larger than `max_bytes`.
    fn page(&mut self, limits: PageLimits, max_bytes: usize, stop: StopFlag<'_>) -> Result<Option<LinePage>> {
        let mut pager = Pager::new(limits, max_bytes);
        self.feed(stop, |text| {
            pager.feed(text.as_bytes());
            !pager.is_over()
        })?;
        Ok(pager.finish())
    }

    /// Passes the text to `take` in pieces, until its end or until `take` returns false.
    pub(crate) fn feed(&mut self, stop: StopFlag<'_>, mut take: impl FnMut(&str) -> bool) -> Result<()> {
        let mut decoder = Decoder::new(self.encoding);
        pieces(&mut self.open, stop, |piece, entry| {
            let mut goes_on = true;
            // The file may have changed since.
            decoder.feed(piece, &mut |text| goes_on = take(text)).map_err(|NotText| no_text(entry))?;
            Ok(goes_on)
        })
    }
}

/// Reads a file in pieces from its beginning, until its end or until `take` returns false.
fn pieces(open: &mut OpenFile, stop: StopFlag<'_>, mut take: impl FnMut(&[u8], &Entry) -> Result<bool>) -> Result<()> {
    let OpenFile { entry, bytes } = open;
    let fault = |error: std::io::Error| ToolError::internal(format!("{}: {error}", entry.path));
    bytes.rewind().map_err(fault)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        if stop.is_set() {
            let message = format!("{} was not read to its end", entry.path);
            return Err(ToolError::new(ErrorKind::Cancelled, message));
        }
        let count = bytes.read(&mut piece).map_err(fault)?;
        if count == 0 || !take(&piece[..count], entry)? {
            return Ok(());
        }
    }
}

fn no_text(entry: &Entry) -> ToolError {
    binary(&entry.path, usize::try_from(entry.size).unwrap_or(usize::MAX))
}

/// Extracts a page of lines from a text in pieces.
struct Pager {
    limits: PageLimits,
    /// Maximum size of the page as a JSON string in an answer.
    max_answer_bytes: usize,
    page: LinePage,
    lines: usize,
    /// Size of the lines of the page: as they are, and as a JSON string.
    bytes: usize,
    answer_bytes: usize,
    /// The size of the current, incomplete line, and the part of it that may be shown.
    line_bytes: usize,
    line: Vec<u8>,
    line_answer_bytes: usize,
    is_full: bool,
    has_begun: bool,
}

impl Pager {
    fn new(limits: PageLimits, max_answer_bytes: usize) -> Self {
        Self {
            limits,
            max_answer_bytes,
            page: LinePage::default(),
            lines: 0,
            bytes: 0,
            answer_bytes: 0,
            line_bytes: 0,
            line: Vec::new(),
            line_answer_bytes: 0,
            is_full: false,
            has_begun: false,
        }
    }

    /// Whether the page does not fit into an answer. An incomplete first line counts too, because a file may be one
    /// line. An incomplete later line does not count: if it is too long, it is left out.
    fn is_over(&self) -> bool {
        self.answer_bytes > self.max_answer_bytes || (self.lines == 0 && self.is_over_with_line())
    }

    /// Whether the page does not fit into an answer together with the incomplete line.
    fn is_over_with_line(&self) -> bool {
        self.answer_bytes + self.line_answer_bytes > self.max_answer_bytes
    }

    /// Adds the next piece. The byte order mark is not a part of the first line, as in searches.
    fn feed(&mut self, mut text: &[u8]) {
        if !self.has_begun && !text.is_empty() {
            self.has_begun = true;
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        while let Some(end) = memchr::memchr(b'\n', text)
            && !self.is_over()
        {
            self.take(&text[..end]);
            self.end_line();
            text = &text[end + 1..];
            if self.is_full {
                // The following lines are only counted.
                self.page.total += memchr::memchr_iter(b'\n', text).count();
                let last = memchr::memrchr(b'\n', text).map_or(0, |end| end + 1);
                text = &text[last..];
            }
        }
        self.take(text);
    }

    fn take(&mut self, part: &[u8]) {
        self.line_bytes += part.len();
        let is_shown = self.page.total >= self.limits.skip && self.lines < self.limits.lines && !self.is_full;
        if is_shown && !self.is_over_with_line() {
            let room = self.limits.bytes.saturating_sub(self.line.len());
            let shown = &part[..part.len().min(room)];
            self.line_answer_bytes += shown.iter().map(|byte| json_bytes_of(*byte)).sum::<usize>();
            self.line.extend_from_slice(shown);
        }
    }

    fn end_line(&mut self) {
        let line_bytes = std::mem::take(&mut self.line_bytes);
        let line_answer_bytes = std::mem::take(&mut self.line_answer_bytes);
        self.page.total += 1;
        if self.page.total <= self.limits.skip || self.is_full {
            return;
        }
        let is_too_much = self.bytes + line_bytes > self.limits.bytes && self.lines > 0;
        if self.lines == self.limits.lines || is_too_much {
            self.page.is_truncated = true;
            self.is_full = true;
            return;
        }
        let before = self.page.text.len();
        // Writing to a string does not fail.
        let newline = if self.lines == 0 { "" } else { "\n" };
        let _ = write!(self.page.text, "{newline}{:>6}{}", self.page.total, self.limits.separator);
        let number = &self.page.text.as_bytes()[before..];
        self.answer_bytes += number.iter().map(|byte| json_bytes_of(*byte)).sum::<usize>() + line_answer_bytes;
        let shown = whole_characters(&self.line);
        self.page.text.push_str(shown);
        self.page.cut_bytes = line_bytes - shown.len();
        self.page.is_truncated |= self.page.cut_bytes > 0;
        self.bytes += shown.len() + 1;
        self.lines += 1;
        self.line.clear();
    }

    /// Ends the page. Returns `None` if it does not fit into an answer.
    fn finish(mut self) -> Option<LinePage> {
        if self.line_bytes > 0 && !self.is_over() {
            self.end_line();
        }
        (!self.is_over()).then_some(self.page)
    }
}

/// Returns the text without an incomplete character at its end.
fn whole_characters(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or_else(|error| str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default())
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
