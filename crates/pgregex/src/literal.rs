//! Literals that every matching line must hold, so that a searcher can pass over texts by an index.

use std::collections::BTreeSet;

use regex_syntax::hir::ClassUnicode;

use crate::ast::{Node, Polarity};

/// How many literals one requirement may name; more would hardly rule anything out.
const ALTERNATIVES_MAX: usize = 16;

/// At least one of these literals stands in every line that matches.
///
/// They are in lower case where they are ASCII: the line has to be folded the same way, byte by byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The literals, none of them empty.
    pub literals: Vec<Vec<u8>>,
}

impl Requirement {
    /// The shortest literal decides how much the requirement rules out.
    fn strength(&self) -> (usize, std::cmp::Reverse<usize>) {
        let shortest = self.literals.iter().map(Vec::len).min().unwrap_or(0);
        (shortest, std::cmp::Reverse(self.literals.len()))
    }
}

/// Gives requirements that all hold for every matching line.
pub(crate) fn required(node: &Node) -> Vec<Requirement> {
    let mut collector = Collector::default();
    collector.visit(node);
    collector.cut();
    collector.found.dedup();
    collector.found
}

/// Walks along a sequence and gathers neighbouring characters.
#[derive(Default)]
struct Collector {
    run: Vec<u8>,
    found: Vec<Requirement>,
}

impl Collector {
    fn cut(&mut self) {
        let run = std::mem::take(&mut self.run);
        if !run.is_empty() {
            self.found.push(Requirement { literals: vec![run] });
        }
    }

    fn visit(&mut self, node: &Node) {
        match node {
            Node::Set(set) => match folded(set) {
                Some(bytes) => self.run.extend(bytes),
                None => self.cut(),
            },
            Node::Concat(nodes) => nodes.iter().for_each(|node| self.visit(node)),
            Node::Group(_, node) => self.visit(node),
            Node::Alternate(nodes) => {
                self.cut();
                self.found.extend(any_of(nodes));
            }
            Node::Repeat(repeat) => {
                if repeat.bounds.min == 0 {
                    return self.cut();
                }
                // The first round follows on what stands before it; what follows comes after some later round.
                self.visit(&repeat.node);
                if repeat.bounds.max != Some(1) {
                    self.cut();
                }
            }
            // What stands around a look-around are neighbours; what it requires may lie elsewhere in the line.
            Node::Look(look) if look.polarity == Polarity::Positive => self.found.extend(required(&look.node)),
            Node::Empty | Node::Assert(_) | Node::Look(_) => {}
            Node::BackReference(_) => self.cut(),
        }
    }
}

/// Joins the best requirement of each alternative; none if one alternative has none.
fn any_of(nodes: &[Node]) -> Option<Requirement> {
    let mut literals = BTreeSet::new();
    for node in nodes {
        literals.extend(required(node).into_iter().max_by_key(Requirement::strength)?.literals);
        if literals.len() > ALTERNATIVES_MAX {
            return None;
        }
    }
    Some(Requirement { literals: literals.into_iter().collect() })
}

/// Gives the bytes of a set's only character, if it has but one when the case of ASCII is folded.
fn folded(set: &ClassUnicode) -> Option<Vec<u8>> {
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
