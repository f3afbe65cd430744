//! The syntax tree of a pattern: what PostgreSQL's three flavours have in common.

use std::sync::Arc;

use regex_syntax::hir::ClassUnicode;

/// A parsed pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) root: Node,
    /// Whether back-references compare without case.
    pub(crate) case_insensitive: bool,
    /// For each group, by its number, whether a back-reference names it.
    pub(crate) referenced: Vec<bool>,
    pub(crate) has_look_around: bool,
    pub(crate) has_word_boundary: bool,
}

impl Pattern {
    pub(crate) fn has_back_reference(&self) -> bool {
        self.referenced.contains(&true)
    }
}

/// A part of a pattern.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Empty,
    /// One character of a set; a set may be empty and then matches nothing.
    Set(Arc<ClassUnicode>),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Repeat(Repeat),
    /// A group with its number, or none if it does not capture.
    Group(Option<usize>, Arc<Node>),
    Assert(Assertion),
    Look(Look),
    BackReference(BackReference),
}

#[derive(Debug, Clone)]
pub(crate) struct Repeat {
    pub(crate) node: Arc<Node>,
    pub(crate) bounds: Bounds,
}

/// How often something is repeated; no maximum means any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

/// A condition on the place between two characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assertion {
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordBoundary,
    NotWordBoundary,
}

impl Assertion {
    /// Tells whether the condition holds, given whether the neighbours are word characters; none at a line's end.
    pub(crate) fn holds(self, before: Option<bool>, after: Option<bool>) -> bool {
        let (word_before, word_after) = (before.unwrap_or(false), after.unwrap_or(false));
        match self {
            Self::LineStart => before.is_none(),
            Self::LineEnd => after.is_none(),
            Self::WordStart => !word_before && word_after,
            Self::WordEnd => word_before && !word_after,
            Self::WordBoundary => word_before != word_after,
            Self::NotWordBoundary => word_before == word_after,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) direction: Direction,
    pub(crate) polarity: Polarity,
    pub(crate) node: Arc<Node>,
}

/// Where look-around looks, and which way an automaton reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Ahead,
    Behind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polarity {
    Positive,
    Negative,
}

#[derive(Debug, Clone)]
pub(crate) struct BackReference {
    pub(crate) group: usize,
    /// What the group can match: the reference matches some of it, regardless of the group's conditions on its place.
    pub(crate) node: Arc<Node>,
}

/// Whether conditions on the place count; inside what stands for a back-reference they do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conditions {
    Kept,
    Dropped,
}
