//! Collects matching lines, up to the limits of an answer.

use std::ops::{ControlFlow, Range};
use toolrest_core::{
    ErrorKind, Interrupt, LineMatch, LineMatcher, Result, Search, SearchResult, Skipped, ToolError, WsPath, line_text,
    lines_around,
};

/// The matches in consecutive files.
#[derive(Default)]
pub struct FoundLines {
    pub matches: Vec<LineMatch>,
    pub bytes: usize,
    /// Whether a line was cut, or lines were left out.
    pub is_cut: bool,
    pub skipped: Skipped,
}

/// A part of a text that ends at the end of a line.
pub struct Piece<'a> {
    /// The part and the context lines around it.
    pub text: &'a [u8],
    /// The range of the part in `text`.
    pub part: Range<usize>,
    /// The number of the part's first line.
    pub first_line: u64,
    /// Whether the text ends with this part.
    pub is_last: bool,
}

impl<'a> Piece<'a> {
    /// Creates a piece that is the whole text.
    pub fn whole(text: &'a [u8]) -> Self {
        Self { text, part: 0..text.len(), first_line: 1, is_last: true }
    }
}

impl FoundLines {
    /// Whether there are more matches than an answer can have.
    pub fn is_full(&self, search: &Search) -> bool {
        self.is_cut || self.matches.len() > search.limit || self.bytes > search.limit_bytes
    }

    /// Searches a part of a text until the limits are reached.
    pub fn search(
        &mut self,
        piece: &Piece<'_>,
        path: impl Fn() -> WsPath,
        search: &Search,
        matcher: &dyn LineMatcher,
        interrupt: &Interrupt,
    ) -> Result<()> {
        if interrupt.is_due() {
            return Err(stopped());
        }
        let part = &piece.text[piece.part.clone()];
        let (mut line_number, mut counted) = (piece.first_line, 0);
        let mut take = |line: Range<usize>| {
            // If the text continues, what follows the last newline belongs to the next part.
            if line.start == part.len() && !piece.is_last {
                return ControlFlow::Break(());
            }
            line_number += memchr::memchr_iter(b'\n', &part[counted..line.start]).count() as u64;
            counted = line.start;
            let line = line.start + piece.part.start..line.end + piece.part.start;
            self.take(piece.text, &line, line_number, path(), search);
            if self.is_full(search) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        matcher.find_lines(part, interrupt, &mut take).map_err(|error| error.at_path(&path()))
    }

    fn take(&mut self, text: &[u8], line: &Range<usize>, line_number: u64, path: WsPath, search: &Search) {
        let (before, after) = lines_around(text, line, search.context);
        let bytes = &text[line.clone()];
        let line = match bytes.get(..search.limit_bytes) {
            Some(first) if first.len() < bytes.len() => {
                self.is_cut = true;
                whole_characters(first)
            }
            _ => line_text(bytes),
        };
        let mut line = LineMatch { path, line_number, line, before, after };
        if line.json_bytes() > search.limit_bytes {
            self.is_cut = true;
            line.cut_to(search.limit_bytes);
        }
        self.bytes += line.json_bytes();
        self.matches.push(line);
    }

    /// Joins the matches of consecutive parts, within the limits.
    pub fn together(parts: impl IntoIterator<Item = Self>, search: &Search) -> SearchResult {
        let mut found = SearchResult::default();
        let mut bytes = 0;
        for part in parts {
            found.skipped += part.skipped;
            for line in part.matches {
                bytes += line.json_bytes();
                let fits =
                    found.matches.len() < search.limit && (bytes <= search.limit_bytes || found.matches.is_empty());
                if !fits {
                    found.truncated = true;
                    return found;
                }
                found.matches.push(line);
            }
            if part.is_cut {
                found.truncated = true;
                return found;
            }
        }
        found
    }
}

/// Returns the error of a search that was interrupted by its deadline or because its caller disconnected.
pub fn stopped() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "The search was stopped")
}

/// Converts bytes to text, without an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => line_text(&bytes[..error.valid_up_to()]),
        _ => line_text(bytes),
    }
}
