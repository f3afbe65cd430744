//! Literals that every matching line contains. With an index of texts a searcher can use them to skip texts.

use std::collections::BTreeSet;

use regex_syntax::hir::ClassUnicode;

use crate::ast::{Node, Polarity};

/// Maximum number of literals in one requirement; more would hardly rule anything out.
const MAX_ALTERNATIVES: usize = 16;

/// Literals of which every matching line contains at least one.
///
/// Their ASCII letters are in lower case: compare them with the line after lowering its ASCII letters, byte by byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The literals, none of them empty.
    pub literals: Vec<Vec<u8>>,
}

impl Requirement {
    /// Ranks how much the requirement rules out: by its shortest literal, then by how few literals it has.
    fn strength(&self) -> (usize, std::cmp::Reverse<usize>) {
        let shortest = self.literals.iter().map(Vec::len).min().unwrap_or(0);
        (shortest, std::cmp::Reverse(self.literals.len()))
    }
}

/// Returns requirements that every matching line meets, all of them.
pub(crate) fn requirements(node: &Node) -> Vec<Requirement> {
    let mut collector = Collector::default();
    collector.visit(node);
    collector.end_literal();
    collector.found.dedup();
    collector.found
}

/// Walks through a sequence and joins neighbouring characters to literals.
#[derive(Default)]
struct Collector {
    /// The characters collected so far for the next literal.
    literal: Vec<u8>,
    found: Vec<Requirement>,
}

impl Collector {
    fn end_literal(&mut self) {
        let literal = std::mem::take(&mut self.literal);
        if !literal.is_empty() {
            self.found.push(Requirement { literals: vec![literal] });
        }
    }

    fn visit(&mut self, node: &Node) {
        match node {
            Node::Set(set) => match only_character(set) {
                Some(bytes) => self.literal.extend(bytes),
                None => self.end_literal(),
            },
            Node::Concat(nodes) => nodes.iter().for_each(|node| self.visit(node)),
            Node::Group(_, node) => self.visit(node),
            Node::Alternate(nodes) => {
                self.end_literal();
                self.found.extend(any_of(nodes));
            }
            Node::Repeat(repeat) => {
                if repeat.bounds.min == 0 {
                    return self.end_literal();
                }
                // Only the first iteration is next to what precedes the repetition, and what follows the repetition
                // may come after a later iteration.
                self.visit(&repeat.node);
                if repeat.bounds.max != Some(1) {
                    self.end_literal();
                }
            }
            // A look-around reads nothing, so the literal goes on behind it. What a positive one requires may be
            // anywhere in the line.
            Node::LookAround(look) if look.polarity == Polarity::Positive => {
                self.found.extend(requirements(&look.node));
            }
            Node::Empty | Node::Assert(_) | Node::LookAround(_) => {}
            Node::BackReference(_) => self.end_literal(),
        }
    }
}

/// Joins the strongest requirement of each alternative; returns `None` if an alternative has no requirement.
fn any_of(nodes: &[Node]) -> Option<Requirement> {
    let mut literals = BTreeSet::new();
    for node in nodes {
        literals.extend(requirements(node).into_iter().max_by_key(Requirement::strength)?.literals);
        if literals.len() > MAX_ALTERNATIVES {
            return None;
        }
    }
    Some(Requirement { literals: literals.into_iter().collect() })
}

/// Returns the bytes of a set's only character in lower case; `None` if it has several that differ in more than ASCII
/// case.
fn only_character(set: &ClassUnicode) -> Option<Vec<u8>> {
    if set.ranges().len() > 2 {
        return None;
    }
    let mut only = None;
    for range in set.iter() {
        let character = range.start().to_ascii_lowercase();
        if range.start() != range.end() || only.is_some_and(|other| other != character) {
            return None;
        }
        only = Some(character);
    }
    only.map(|character| character.to_string().into_bytes())
}
