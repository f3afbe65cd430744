//! A compiled pattern and the automata that search for it.

use std::sync::atomic::AtomicBool;

use regex_automata::Input;

use crate::ast::{Direction, Pattern};
use crate::automaton::Automaton;
use crate::backtrack::{self, Comparison, Instructions};
use crate::error::{Error, ErrorKind, MatchError};
use crate::hir::{self, WordBoundaries};
use crate::matching_lines::MatchingLines;
use crate::nfa::{Nfa, NfaCompiler, SharedParts};
use crate::required_literals::{self, Requirement};
use crate::simulate::{DecodedLine, StepBudget};
use crate::syntax;

/// Options for compiling and searching a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether case is ignored, as with `~*`. `(?i)` and `(?c)` in the pattern override this.
    pub case_insensitive: bool,
    /// Maximum number of steps that a pattern with look-around or back-references may take on one line. A million steps
    /// take a few milliseconds.
    pub step_limit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { case_insensitive: false, step_limit: 20_000_000 }
    }
}

/// A compiled pattern, which any thread can search for.
#[derive(Debug)]
pub struct Regex {
    pattern: String,
    fast_path: FastPath,
    exact_matcher: ExactMatcher,
    requirements: Vec<Requirement>,
}

/// The automata of `regex-automata` for a pattern, which are fast.
#[derive(Debug)]
pub(crate) enum FastPath {
    /// The automaton finds exactly the lines that match.
    Exact(Automaton),
    /// `ascii` finds exactly the lines that match in a text that is all ASCII; `filter` finds those that may match.
    WordBoundaries { ascii: Option<Automaton>, filter: Option<Automaton> },
    /// The automaton finds lines that may match; `None` if it would be too large.
    Filter(Option<Automaton>),
}

/// The matchers of this crate, which are exact for every pattern, and slower.
#[derive(Debug)]
struct ExactMatcher {
    shared: SharedParts,
    /// The pattern with each back-reference replaced by a copy of its group. Matched first, because it is cheaper than
    /// backtracking. `None` if it rejects no more lines than the filter.
    nfa: Option<Nfa>,
    back_references: Option<BackReferences>,
    /// `None` for patterns that take linear time.
    step_limit: Option<u64>,
}

#[derive(Debug)]
struct BackReferences {
    instructions: Instructions,
    comparison: Comparison,
}

impl Regex {
    /// Compiles a pattern.
    pub fn new(pattern: &str, options: Options) -> Result<Self, Error> {
        let parsed = syntax::parse(pattern, options.case_insensitive)?;
        let too_complex = |kind| {
            let characters: Vec<char> = pattern.chars().collect();
            Error::at(kind, &characters, 0)
        };
        // Compiled first because it limits the size: a pattern that passes is safe to translate.
        let exact_matcher = ExactMatcher::new(&parsed, options.step_limit).map_err(too_complex)?;
        let root = &parsed.root;
        let automaton = |word_boundaries| Automaton::new(hir::translate(root, word_boundaries));
        let fast_path = if parsed.has_look_around || parsed.has_back_reference() {
            FastPath::Filter(automaton(WordBoundaries::Ignored))
        } else if parsed.has_word_boundary {
            FastPath::WordBoundaries {
                ascii: automaton(WordBoundaries::Ascii),
                filter: automaton(WordBoundaries::Ignored),
            }
        } else {
            automaton(WordBoundaries::Ignored).map_or(FastPath::Filter(None), FastPath::Exact)
        };
        Ok(Self {
            pattern: pattern.to_owned(),
            fast_path,
            exact_matcher,
            requirements: required_literals::requirements(root),
        })
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Returns whether a line matches; for a text of several lines, whether one of them does.
    ///
    /// Only patterns with look-around or back-references can fail, when they exceed the step limit.
    pub fn is_match(&self, line: impl AsRef<[u8]>) -> Result<bool, MatchError> {
        let line = line.as_ref();
        if line.is_empty() {
            return self.exact_matcher.is_match(line, None);
        }
        Ok(self.matching_lines(line).next().transpose()?.is_some())
    }

    /// Returns the matching lines of a text, in order.
    ///
    /// A newline at the end starts one more line, which is empty. An empty text has no lines.
    pub fn matching_lines<'r, 't>(&'r self, text: &'t [u8]) -> MatchingLines<'r, 't> {
        MatchingLines::new(self, text)
    }

    /// Returns the requirements for the literals of a line. A matching line meets all of them. Empty if none are known.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    pub(crate) fn fast_path(&self) -> &FastPath {
        &self.fast_path
    }

    /// Returns whether a single line that a filter has found matches.
    pub(crate) fn verify(&self, line: &[u8], interrupt: Option<&AtomicBool>) -> Result<bool, MatchError> {
        match &self.fast_path {
            FastPath::WordBoundaries { ascii: Some(automaton), .. }
                if line.len() <= automaton.chunk_bytes && line.is_ascii() =>
            {
                Ok(automaton.find(Input::new(line)).is_some())
            }
            _ => self.exact_matcher.is_match(line, interrupt),
        }
    }
}

impl ExactMatcher {
    fn new(pattern: &Pattern, step_limit: u64) -> Result<Self, ErrorKind> {
        let mut compiler = NfaCompiler::default();
        let nfa = compiler.nfa(&pattern.root, Direction::Ahead)?;
        let back_references = if pattern.has_back_reference() {
            Some(BackReferences {
                instructions: Instructions::new(pattern, &mut compiler)?,
                comparison: if pattern.case_insensitive { Comparison::IgnoreCase } else { Comparison::Exact },
            })
        } else {
            None
        };
        let is_limited = pattern.has_look_around || back_references.is_some();
        let is_stricter_than_filter = pattern.has_look_around || pattern.has_word_boundary || back_references.is_none();
        Ok(Self {
            shared: compiler.shared,
            nfa: is_stricter_than_filter.then_some(nfa),
            back_references,
            step_limit: is_limited.then_some(step_limit),
        })
    }

    fn is_match(&self, line: &[u8], interrupt: Option<&AtomicBool>) -> Result<bool, MatchError> {
        let mut steps = StepBudget::new(self.step_limit, interrupt);
        let line = DecodedLine::new(line, &self.shared, &mut steps)?;
        if let Some(nfa) = &self.nfa
            && !line.is_match(nfa, &mut steps)?
        {
            return Ok(false);
        }
        match &self.back_references {
            Some(BackReferences { instructions, comparison }) => {
                backtrack::is_match(instructions, *comparison, &line, &mut steps)
            }
            None => Ok(true),
        }
    }
}

#[cfg(test)]
#[path = "regex_tests.rs"]
mod tests;
