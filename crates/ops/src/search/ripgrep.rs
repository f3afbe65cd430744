//! Ripgrep's regular expressions, by its own library.

use super::{Case, interrupted, invalid};
use grep_matcher::{LineMatchKind, Matcher, NoError};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};
use std::ops::{ControlFlow, Range};
use toolrest_core::{Interrupt, LineMatcher, Requirement, Result};

/// Number of bytes that are searched between two checks of the deadline.
const PIECE_BYTES: usize = 1 << 20;

/// Maximum number of alternative literals of a requirement; more would exclude hardly any file.
const MAX_CHOICES: usize = 16;

pub(super) struct Pattern {
    regex: RegexMatcher,
    requirements: Vec<Requirement>,
    /// Whether each line can be matched separately.
    is_of_lines: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    Matches,
    MayMatch,
}

impl Pattern {
    pub(super) fn new(pattern: &str, case: Case) -> Result<Self> {
        let ignore_case = case == Case::Ignored;
        let regex = RegexMatcherBuilder::new()
            .case_insensitive(ignore_case)
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .build(pattern)
            .map_err(|error| invalid(format!("invalid regular expression: {error}")))?;
        let mut parser = regex_syntax::ParserBuilder::new().case_insensitive(ignore_case).utf8(false).build();
        let hir = parser.parse(pattern).ok();
        let requirements = hir.as_ref().map_or(Vec::new(), required);
        let is_of_lines = hir.is_some_and(|hir| !hir.properties().look_set().contains_anchor_haystack());
        Ok(Self { regex, requirements, is_of_lines })
    }

    /// Returns a position in the next line that matches, or that may match: searching for a literal of the pattern is
    /// often faster than searching for the pattern.
    fn next(&self, text: &[u8], from: usize) -> std::result::Result<Option<(usize, Certainty)>, NoError> {
        if !self.is_of_lines {
            let found = self.regex.find_at(text, from)?;
            return Ok(found.map(|found| (found.start(), Certainty::Matches)));
        }
        Ok(self.regex.find_candidate_line(&text[from..])?.map(|kind| match kind {
            LineMatchKind::Confirmed(position) => (from + position, Certainty::Matches),
            LineMatchKind::Candidate(position) => (from + position, Certainty::MayMatch),
        }))
    }
}

impl LineMatcher for Pattern {
    fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    fn find_lines(
        &self,
        text: &[u8],
        interrupt: &Interrupt,
        found: &mut dyn FnMut(Range<usize>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut piece_start = 0;
        while piece_start < text.len() {
            if interrupt.is_due() {
                return Err(interrupted());
            }
            let piece_end = match text.get(piece_start + PIECE_BYTES..) {
                Some(rest) => memchr::memchr(b'\n', rest).map_or(text.len(), |at| piece_start + PIECE_BYTES + at + 1),
                None => text.len(),
            };
            let piece = &text[piece_start..piece_end];
            let mut from = 0;
            // A final newline does not start another line.
            while from < piece.len() {
                let position = self.next(piece, from).map_err(|error| invalid(error.to_string()))?;
                let Some((position, certainty)) = position else { break };
                // A match after the final newline is not in a line.
                if position == piece.len() && piece.ends_with(b"\n") {
                    break;
                }
                let start = memchr::memrchr(b'\n', &piece[..position]).map_or(0, |newline| newline + 1);
                let end = memchr::memchr(b'\n', &piece[position..]).map_or(piece.len(), |newline| position + newline);
                from = end + 1;
                let matches = match certainty {
                    Certainty::Matches => true,
                    Certainty::MayMatch => {
                        self.regex.is_match(&piece[start..end]).map_err(|error| invalid(error.to_string()))?
                    }
                };
                if matches && found(piece_start + start..piece_start + end).is_break() {
                    return Ok(());
                }
            }
            piece_start = piece_end;
        }
        Ok(())
    }
}

/// Returns what every match must contain.
fn required(hir: &Hir) -> Vec<Requirement> {
    let mut literals = Literals::default();
    literals.add(hir);
    literals.end_run();
    literals.found
}

/// Collects runs of adjacent literal characters from an expression.
#[derive(Default)]
struct Literals {
    run: Vec<u8>,
    found: Vec<Requirement>,
}

impl Literals {
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if !run.is_empty() {
            self.found.push(Requirement { literals: vec![run] });
        }
    }

    fn add(&mut self, hir: &Hir) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => self.run.extend(literal.0.to_ascii_lowercase()),
            HirKind::Class(class) => match only_letter(class) {
                Some(letter) => self.run.push(letter),
                None => self.end_run(),
            },
            HirKind::Capture(group) => self.add(&group.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.add(part)),
            HirKind::Repetition(repetition) if repetition.min > 0 => {
                // The first repetition follows what precedes it, and the last one precedes what follows.
                self.add(&repetition.sub);
                if repetition.max != Some(1) {
                    self.end_run();
                }
            }
            HirKind::Repetition(_) => self.end_run(),
            HirKind::Alternation(branches) => {
                self.end_run();
                let longest = |branch: &Hir| {
                    let shortest = |one: &Requirement| one.literals.iter().map(Vec::len).min();
                    required(branch).into_iter().max_by_key(shortest).map(|one| one.literals)
                };
                let literals: Option<Vec<Vec<Vec<u8>>>> = branches.iter().map(longest).collect();
                let literals: Vec<Vec<u8>> = literals.into_iter().flatten().flatten().collect();
                if !literals.is_empty() && literals.len() <= MAX_CHOICES {
                    self.found.push(Requirement { literals });
                }
            }
        }
    }
}

/// Returns the ASCII letter that a class consists of in both cases, if it does.
fn only_letter(class: &Class) -> Option<u8> {
    let Class::Unicode(class) = class else { return None };
    let mut letters = class.iter().flat_map(|range| [range.start(), range.end()]);
    let first = letters.next()?.to_ascii_lowercase();
    (first.is_ascii() && class.ranges().len() <= 2 && letters.all(|letter| letter.to_ascii_lowercase() == first))
        .then_some(first as u8)
}

#[cfg(test)]
#[path = "ripgrep_tests.rs"]
mod tests;
