//! From the syntax tree to that of `regex-syntax`, for a text of many lines.
//!
//! No set holds a newline, so a match never leaves its line.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition};

use crate::ast::{Assertion, Conditions, Node};

/// What stands for a word boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// ASCII's word characters, which are right in a text that is all ASCII.
    Ascii,
    /// Nothing: what matches is more than should.
    Ignored,
}

/// Translates a pattern.
///
/// Look-around is left out and a back-reference becomes its group, so patterns with them match more than they should.
pub(crate) fn hir(node: &Node, words: Words) -> Hir {
    translate(node, words, Conditions::Kept)
}

fn translate(node: &Node, words: Words, conditions: Conditions) -> Hir {
    let all = |nodes: &[Node]| nodes.iter().map(|node| translate(node, words, conditions)).collect();
    match node {
        Node::Empty | Node::Look(_) => Hir::empty(),
        Node::Set(set) => Hir::class(Class::Unicode(without_newline(set))),
        Node::Concat(nodes) => Hir::concat(all(nodes)),
        Node::Alternate(nodes) => Hir::alternation(all(nodes)),
        Node::Repeat(repeat) => Hir::repetition(Repetition {
            min: repeat.bounds.min,
            max: repeat.bounds.max,
            greedy: true,
            sub: Box::new(translate(&repeat.node, words, conditions)),
        }),
        Node::Group(_, node) => translate(node, words, conditions),
        Node::Assert(_) if conditions == Conditions::Dropped => Hir::empty(),
        Node::Assert(assertion) => look(*assertion, words),
        Node::BackReference(reference) => translate(&reference.node, words, Conditions::Dropped),
    }
}

fn look(assertion: Assertion, words: Words) -> Hir {
    match assertion {
        Assertion::LineStart => Hir::look(Look::StartLF),
        Assertion::LineEnd => Hir::look(Look::EndLF),
        _ if words == Words::Ignored => Hir::empty(),
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
