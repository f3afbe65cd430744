//! A compiled pattern and the engines that answer for it.

use std::sync::atomic::AtomicBool;

use regex_automata::Input;

use crate::ast::{Direction, Pattern};
use crate::backtrack::{self, Code, Comparison};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, MatchError};
use crate::hir::{self, Words};
use crate::lines::MatchingLines;
use crate::literal::{self, Requirement};
use crate::program::{Compiler, Program, Shared};
use crate::simulate::{Line, Steps};
use crate::syntax;

/// How a pattern is to be understood and searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether case is ignored, as with `~*`; `(?i)` and `(?c)` in the pattern overrule it.
    pub case_insensitive: bool,
    /// How many steps look-around and back-references may take on one line; a million take some milliseconds.
    pub step_limit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { case_insensitive: false, step_limit: 20_000_000 }
    }
}

/// A pattern, ready to be searched for from any thread.
#[derive(Debug)]
pub struct Regex {
    pattern: String,
    finder: Finder,
    slow: Slow,
    requirements: Vec<Requirement>,
}

/// What `regex-automata` can say about a pattern.
#[derive(Debug)]
pub(crate) enum Finder {
    /// Everything.
    Exact(Engine),
    /// Everything where the text is ASCII; elsewhere which lines may match.
    Words { ascii: Option<Engine>, filter: Option<Engine> },
    /// Which lines may match, if the automaton was not too large.
    Filter(Option<Engine>),
}

/// The engines of this crate, which are always exact.
#[derive(Debug)]
struct Slow {
    shared: Shared,
    /// What the line must match before back-references are looked at; none if a filter has seen to it already.
    program: Option<Program>,
    back_references: Option<BackReferences>,
    /// None for patterns that take linear time.
    step_limit: Option<u64>,
}

#[derive(Debug)]
struct BackReferences {
    code: Code,
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
        // This comes first because it bounds the size: what passes here is safe to translate.
        let slow = Slow::new(&parsed, options.step_limit).map_err(too_complex)?;
        let root = &parsed.root;
        let engine = |words| Engine::new(hir::hir(root, words));
        let finder = if parsed.has_look_around || parsed.has_back_reference() {
            Finder::Filter(engine(Words::Ignored))
        } else if parsed.has_word_boundary {
            Finder::Words { ascii: engine(Words::Ascii), filter: engine(Words::Ignored) }
        } else {
            engine(Words::Ignored).map_or(Finder::Filter(None), Finder::Exact)
        };
        Ok(Self { pattern: pattern.to_owned(), finder, slow, requirements: literal::required(root) })
    }

    /// Gives the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Tells whether a line matches; if the text has several, whether one of them does.
    ///
    /// Only look-around and back-references can fail, by the limit of steps.
    pub fn is_match(&self, line: impl AsRef<[u8]>) -> Result<bool, MatchError> {
        let line = line.as_ref();
        if line.is_empty() {
            return self.slow.is_match(line, None);
        }
        Ok(self.matching_lines(line).next().transpose()?.is_some())
    }

    /// Finds the lines of a text that match, in their order.
    ///
    /// A newline at the end begins one more line, which is empty; an empty text has no line.
    pub fn matching_lines<'r, 't>(&'r self, text: &'t [u8]) -> MatchingLines<'r, 't> {
        MatchingLines::new(self, text)
    }

    /// Gives literals that a line must hold to match, all of the requirements at once; empty if nothing is known.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    pub(crate) fn finder(&self) -> &Finder {
        &self.finder
    }

    /// Decides about a single line that a filter let through.
    pub(crate) fn verify(&self, line: &[u8], interrupt: Option<&AtomicBool>) -> Result<bool, MatchError> {
        match &self.finder {
            Finder::Words { ascii: Some(engine), .. } if line.len() <= engine.text_in_one_go && line.is_ascii() => {
                Ok(engine.find(Input::new(line)).is_some())
            }
            _ => self.slow.is_match(line, interrupt),
        }
    }
}

impl Slow {
    fn new(pattern: &Pattern, step_limit: u64) -> Result<Self, ErrorKind> {
        let mut compiler = Compiler::default();
        let program = compiler.program(&pattern.root, Direction::Ahead)?;
        let back_references = if pattern.has_back_reference() {
            Some(BackReferences {
                code: Code::new(pattern, &mut compiler)?,
                comparison: if pattern.case_insensitive { Comparison::WithoutCase } else { Comparison::WithCase },
            })
        } else {
            None
        };
        let is_limited = pattern.has_look_around || back_references.is_some();
        let knows_more_than_filter = pattern.has_look_around || pattern.has_word_boundary || back_references.is_none();
        Ok(Self {
            shared: compiler.shared,
            program: knows_more_than_filter.then_some(program),
            back_references,
            step_limit: is_limited.then_some(step_limit),
        })
    }

    fn is_match(&self, line: &[u8], interrupt: Option<&AtomicBool>) -> Result<bool, MatchError> {
        let mut steps = Steps::new(self.step_limit, interrupt);
        let line = Line::new(line, &self.shared, &mut steps)?;
        if let Some(program) = &self.program
            && !line.is_match(program, &mut steps)?
        {
            return Ok(false);
        }
        match &self.back_references {
            Some(found) => backtrack::is_match(&found.code, found.comparison, &line, &mut steps),
            None => Ok(true),
        }
    }
}

#[cfg(test)]
#[path = "regex_tests.rs"]
mod tests;
