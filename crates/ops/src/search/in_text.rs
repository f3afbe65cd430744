//! Searching one text in memory, and the place of a match in its line.

use super::{Case, invalid, ripgrep};
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use std::ops::{ControlFlow, Range};
use std::time::Instant;
use toolrest_core::{Interrupt, LineMatcher, Result, line_text, lines_around};

/// A match in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextMatch {
    /// The line's number, counted from 1.
    pub line_number: u64,
    /// The line.
    pub line: String,
    /// The lines before it.
    pub before: Vec<String>,
    /// The lines after it.
    pub after: Vec<String>,
}

/// How much a search in a text returns.
#[derive(Clone, Copy, Debug)]
pub struct TextLimits {
    /// Maximum number of matches.
    pub matches: usize,
    /// Size of all returned lines after which the search ends.
    pub bytes: usize,
}

/// Finds lines in a text, in ripgrep's syntax. Returns the first matches, and whether a limit ended the search.
pub fn search_text(
    text: &[u8],
    pattern: &str,
    case: Case,
    context: usize,
    limits: TextLimits,
    deadline: Instant,
) -> Result<(Vec<TextMatch>, bool)> {
    let matcher = ripgrep::Pattern::new(pattern, case)?;
    let (mut found, mut number, mut counted) = (Vec::new(), 0, 0);
    let (mut bytes, mut is_cut) = (0, false);
    matcher.find_lines(text, &Interrupt::at(deadline), &mut |line: Range<usize>| {
        number += memchr::memchr_iter(b'\n', &text[counted..line.start]).count() as u64;
        counted = line.start;
        let (before, after) = lines_around(text, &line, context);
        let shown = line_text(&text[line.clone()]);
        bytes += shown.len() + before.iter().chain(&after).map(String::len).sum::<usize>();
        found.push(TextMatch { line_number: number + 1, line: shown, before, after });
        is_cut = found.len() >= limits.matches || bytes >= limits.bytes;
        if is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok((found, is_cut))
}

/// Finds the place of a match in a line.
pub struct MatchFinder(RegexMatcher);

impl MatchFinder {
    /// Compiles a pattern in ripgrep's syntax.
    pub fn new(pattern: &str, case: Case) -> Result<Self> {
        let built = RegexMatcherBuilder::new().case_insensitive(case == Case::Ignored).build(pattern);
        built.map(Self).map_err(|error| invalid(format!("invalid regular expression: {error}")))
    }

    /// Returns the place of the first match.
    pub fn find(&self, line: &str) -> Option<Range<usize>> {
        let found = self.0.find(line.as_bytes()).ok().flatten()?;
        Some(found.start()..found.end())
    }
}

/// Returns the pattern that finds a text as it is.
pub fn plain_pattern(text: &str) -> String {
    regex_syntax::escape(text)
}
