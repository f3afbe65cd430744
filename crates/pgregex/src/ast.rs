//! The syntax tree of a pattern, the same for all of PostgreSQL's flavours.

use std::sync::Arc;

use regex_syntax::hir::ClassUnicode;

/// A parsed pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) root: Node,
    /// Whether back-references ignore case.
    pub(crate) case_insensitive: bool,
    /// For each group, by its number, whether a back-reference refers to it.
    pub(crate) referenced: Vec<bool>,
    pub(crate) has_look_around: bool,
    pub(crate) has_word_boundary: bool,
}

impl Pattern {
    pub(crate) fn has_back_reference(&self) -> bool {
        self.referenced.contains(&true)
    }
}

/// A node of the syntax tree.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Empty,
    /// One character of a set; an empty set matches nothing.
    Set(Arc<ClassUnicode>),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Repeat(Repeat),
    /// A group with its number, or with `None` if it does not capture.
    Group(Option<usize>, Arc<Node>),
    Assert(Assertion),
    LookAround(LookAround),
    BackReference(BackReference),
}

#[derive(Debug, Clone)]
pub(crate) struct Repeat {
    pub(crate) node: Arc<Node>,
    pub(crate) bounds: Bounds,
}

/// The minimum and maximum number of repetitions; without a maximum the number is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

/// A zero-width condition on a position between two characters.
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
    /// Returns whether the assertion holds between two characters.
    ///
    /// Each argument says whether that neighbour is a word character; it is `None` at the start or end of the line.
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

/// A look-ahead or look-behind.
#[derive(Debug, Clone)]
pub(crate) struct LookAround {
    pub(crate) direction: Direction,
    pub(crate) polarity: Polarity,
    pub(crate) node: Arc<Node>,
}

/// The direction of a look-around, and the direction in which an NFA reads a line.
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
    /// The content of the group. What the reference matches also matches this node with its assertions ignored.
    pub(crate) node: Arc<Node>,
}

/// Whether a translation keeps assertions. Those in the copy of a group that replaces a back-reference are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AssertionMode {
    Checked,
    Ignored,
}
