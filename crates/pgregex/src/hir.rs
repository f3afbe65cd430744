//! Translates the syntax tree into the one of `regex-syntax`, for searching a text of many lines.
//!
//! The translated sets never contain a newline, so a match never extends beyond its line.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition};

use crate::ast::{Assertion, AssertionMode, Node};

/// How word boundaries are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordBoundaries {
    /// By ASCII's word characters, which is exact in a text that is all ASCII.
    Ascii,
    /// Not at all: the result matches at least what the pattern matches.
    Ignored,
}

/// Translates a pattern.
///
/// Look-around is dropped, and a back-reference becomes a copy of its group. So the translation of a pattern that has
/// them matches at least what the pattern matches.
pub(crate) fn translate(node: &Node, word_boundaries: WordBoundaries) -> Hir {
    translate_node(node, word_boundaries, AssertionMode::Checked)
}

fn translate_node(node: &Node, word_boundaries: WordBoundaries, assertion_mode: AssertionMode) -> Hir {
    let all = |nodes: &[Node]| nodes.iter().map(|node| translate_node(node, word_boundaries, assertion_mode)).collect();
    match node {
        Node::Empty | Node::LookAround(_) => Hir::empty(),
        Node::Set(set) => Hir::class(Class::Unicode(without_newline(set))),
        Node::Concat(nodes) => Hir::concat(all(nodes)),
        Node::Alternate(nodes) => Hir::alternation(all(nodes)),
        Node::Repeat(repeat) => Hir::repetition(Repetition {
            min: repeat.bounds.min,
            max: repeat.bounds.max,
            greedy: true,
            sub: Box::new(translate_node(&repeat.node, word_boundaries, assertion_mode)),
        }),
        Node::Group(_, node) => translate_node(node, word_boundaries, assertion_mode),
        Node::Assert(_) if assertion_mode == AssertionMode::Ignored => Hir::empty(),
        Node::Assert(assertion) => translate_assertion(*assertion, word_boundaries),
        Node::BackReference(reference) => translate_node(&reference.node, word_boundaries, AssertionMode::Ignored),
    }
}

fn translate_assertion(assertion: Assertion, word_boundaries: WordBoundaries) -> Hir {
    match assertion {
        Assertion::LineStart => Hir::look(Look::StartLF),
        Assertion::LineEnd => Hir::look(Look::EndLF),
        _ if word_boundaries == WordBoundaries::Ignored => Hir::empty(),
        Assertion::WordStart => Hir::look(Look::WordStartAscii),
        Assertion::WordEnd => Hir::look(Look::WordEndAscii),
        Assertion::WordBoundary => Hir::look(Look::WordAscii),
        Assertion::NotWordBoundary => Hir::look(Look::WordAsciiNegate),
    }
}

fn without_newline(set: &ClassUnicode) -> ClassUnicode {
    let mut set = set.clone();
    set.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
    set
}
