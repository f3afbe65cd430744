//! Files as the texts that people and programs see, a part of their lines at a time.

use crate::document::{Editable, binary};
use crate::heavy;
use crate::read::read_up_to;
use std::fmt::Write;
use toolrest_core::{
    CallCx, ContentHash, ContentHasher, Decoder, Encoding, EncodingDetector, Entry, ErrorKind, NotText, OpenFile,
    Result, ToolError, WsPath, json_bytes_of,
};
use toolrest_edit::StopFlag;

/// Files from here on are read piece by piece where they can be.
const STREAM_FROM_BYTES: u64 = 4 << 20;

/// How much is read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Texts from here on are looked through away from the threads that serve requests.
const HEAVY_FROM_BYTES: usize = 1 << 20;

/// A page of up to this many bytes takes no room of the large files that are read at once.
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
    /// The lines as `cat -n` shows them, without the final newline: each after its number, counted from 1 and
    /// right-aligned in six columns, and a separator.
    pub text: String,
    /// How many lines the text has. A final newline does not begin one more.
    pub total: usize,
    /// Whether lines follow, or the last one is not whole.
    pub is_truncated: bool,
    /// How many bytes of the last line were left out.
    pub cut_bytes: usize,
}

/// How much of a text to give, and how.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// How many lines to pass over.
    pub skip: usize,
    /// The most lines.
    pub lines: usize,
    /// The most bytes. A first line that is longer is cut between characters.
    pub bytes: usize,
    /// Stands between a line's number and the line.
    pub separator: char,
}

/// Reads some lines of a file, seen as text. Bytes that are no text are refused, and a page that does not fit into an
/// answer.
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

/// The refusal of a page that does not fit into an answer.
fn too_long(path: &WsPath, limit_bytes: usize) -> ToolError {
    let message = format!(
        "The lines of {path} take more than the {limit_bytes} bytes that fit into an answer; read a part of them with \
         `offset` and `limit`"
    );
    ToolError::new(ErrorKind::ResponseTooLarge, message)
}

/// Takes a page of lines out of a text; nothing if it does not fit into an answer.
fn page(text: &str, limits: PageLimits, answer_bytes: usize) -> Option<LinePage> {
    let mut pager = Pager::new(limits, answer_bytes);
    pager.feed(text.as_bytes());
    pager.finish()
}

/// Takes a page of lines out of a file that is too large to be held in memory. All of it is read twice:
/// for its encoding and its hash, and for its lines and their number. A long page is made once more, with room for it.
async fn page_of_stream(cx: &CallCx, open: OpenFile, limits: PageLimits) -> Result<FilePage> {
    let answer_bytes = cx.limits.response_bytes;
    let path = open.entry.path.clone();
    let page_bytes = open.entry.size.unsigned_abs().min(answer_bytes as u64);
    let mut examined = heavy::run(cx, usize::MAX, move |stop| Examined::new(open, stop)).await?;
    for most_bytes in [FREE_PAGE_BYTES.min(answer_bytes), answer_bytes] {
        if most_bytes > FREE_PAGE_BYTES {
            cx.workspace.make_room(page_bytes).await?;
        }
        let work = move |stop: StopFlag<'_>| examined.page(limits, most_bytes, stop).map(|page| (page, examined));
        let (page, again) = heavy::run(cx, usize::MAX, work).await?;
        if let Some(page) = page {
            return Ok(FilePage { page, hash: Some(again.hash) });
        }
        examined = again;
    }
    Err(too_long(&path, answer_bytes))
}

/// A text file that is read piece by piece, of which all is known but its lines.
struct Examined {
    open: OpenFile,
    encoding: Encoding,
    hash: ContentHash,
}

impl Examined {
    fn new(mut open: OpenFile, stop: StopFlag<'_>) -> Result<Self> {
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

    /// Takes a page of lines; nothing if it takes more bytes than so many.
    fn page(&mut self, limits: PageLimits, most_bytes: usize, stop: StopFlag<'_>) -> Result<Option<LinePage>> {
        let mut decoder = Decoder::new(self.encoding);
        let mut pager = Pager::new(limits, most_bytes);
        pieces(&mut self.open, stop, |piece, entry| {
            // It may have become something else since.
            decoder.feed(piece, &mut |text| pager.feed(text.as_bytes())).map_err(|NotText| no_text(entry))?;
            Ok(!pager.is_over())
        })?;
        Ok(pager.finish())
    }
}

/// Reads a file from its beginning, piece by piece, until it ends or no more is wanted.
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

/// Collects a page of lines from a text that comes in pieces.
struct Pager {
    limits: PageLimits,
    /// The most that the page may take in an answer, as a string of JSON.
    answer_most_bytes: usize,
    page: LinePage,
    lines: usize,
    /// How much the lines of the page take: by themselves, and in an answer.
    bytes: usize,
    answer_bytes: usize,
    /// How much there is of the line that has not ended yet, and its start, as far as it may be shown.
    line_bytes: usize,
    line: Vec<u8>,
    line_answer_bytes: usize,
    is_full: bool,
    has_begun: bool,
}

impl Pager {
    fn new(limits: PageLimits, answer_most_bytes: usize) -> Self {
        Self {
            limits,
            answer_most_bytes,
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

    /// Whether the page does not fit into an answer. A first line that has not ended yet counts too: a file may be one
    /// line. A later one may turn out to be too long for the page, and is then left out.
    fn is_over(&self) -> bool {
        self.answer_bytes > self.answer_most_bytes || (self.lines == 0 && self.is_over_with_line())
    }

    /// Whether the page does not fit into an answer together with the line that has not ended yet.
    fn is_over_with_line(&self) -> bool {
        self.answer_bytes + self.line_answer_bytes > self.answer_most_bytes
    }

    /// Takes the next piece. The byte order mark is not part of the first line, as in searches.
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

    /// Ends the page; nothing if it does not fit into an answer.
    fn finish(mut self) -> Option<LinePage> {
        if self.line_bytes > 0 && !self.is_over() {
            self.end_line();
        }
        (!self.is_over()).then_some(self.page)
    }
}

/// The start of a text that may have been cut within a character.
fn whole_characters(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or_else(|error| str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default())
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
