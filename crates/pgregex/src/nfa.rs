//! An NFA for what `regex-automata` does not support: look-around and PostgreSQL's word characters.
//!
//! It reads characters, not bytes, in either direction, and takes time proportional to its size times the length of the
//! line. Look-around needs no backtracking: the positions at which it holds are computed for the whole line beforehand.

use std::collections::HashMap;
use std::sync::Arc;

use regex_syntax::hir::ClassUnicode;

use crate::ast::{Assertion, AssertionMode, Bounds, Direction, LookAround, Node, Polarity};
use crate::error::ErrorKind;

/// Maximum number of states in all NFAs of one pattern. PostgreSQL refuses patterns as too complex at about this size.
const MAX_STATES: usize = 45_000;

pub(crate) type StateId = u32;

#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    /// Reads one character of the set with this number.
    Set {
        set: u32,
        next: StateId,
    },
    Split {
        first: StateId,
        second: StateId,
    },
    Jump {
        next: StateId,
    },
    Assert {
        assertion: Assertion,
        next: StateId,
    },
    /// Continues where the look-around with this number holds.
    LookAround {
        look_around: u32,
        next: StateId,
    },
    Match,
}

/// An NFA that reads a line in one direction.
#[derive(Debug)]
pub(crate) struct Nfa {
    pub(crate) states: Vec<State>,
    pub(crate) start: StateId,
    pub(crate) direction: Direction,
}

/// A compiled look-around. A positive one holds at the positions at which its NFA can end when it may start anywhere.
#[derive(Debug)]
pub(crate) struct LookAroundNfa {
    pub(crate) nfa: Nfa,
    pub(crate) polarity: Polarity,
}

/// The character sets and look-arounds that all NFAs of one pattern share.
#[derive(Debug, Default)]
pub(crate) struct SharedParts {
    pub(crate) sets: Vec<CharacterSet>,
    /// In an order in which nested look-arounds come before those that contain them.
    pub(crate) look_arounds: Vec<LookAroundNfa>,
}

/// A set of characters, with a bit mask for fast tests of ASCII characters.
#[derive(Debug)]
pub(crate) struct CharacterSet {
    ascii: u128,
    ranges: Box<[(u32, u32)]>,
}

impl CharacterSet {
    fn new(class: &ClassUnicode) -> Self {
        let ranges: Box<[_]> = class.iter().map(|range| (range.start().into(), range.end().into())).collect();
        let mut ascii = 0;
        for code in 0..128u32 {
            if contains(&ranges, code) {
                ascii |= 1 << code;
            }
        }
        Self { ascii, ranges }
    }

    pub(crate) fn contains(&self, code: u32) -> bool {
        if code < 128 { self.ascii & (1 << code) != 0 } else { contains(&self.ranges, code) }
    }
}

fn contains(ranges: &[(u32, u32)], code: u32) -> bool {
    let index = ranges.partition_point(|&(_, end)| end < code);
    ranges.get(index).is_some_and(|&(start, _)| start <= code)
}

/// Compiles the NFAs of one pattern and limits the number of their states.
#[derive(Debug, Default)]
pub(crate) struct NfaCompiler {
    pub(crate) shared: SharedParts,
    set_numbers: HashMap<Vec<(char, char)>, u32>,
    /// Numbers of look-arounds by the address of their node, so that each is compiled once however often it is
    /// repeated.
    look_around_numbers: HashMap<(*const Node, Direction, bool), u32>,
    states: usize,
}

impl NfaCompiler {
    /// Counts one more state, or one more copy of a repeated node.
    fn count(&mut self) -> Result<(), ErrorKind> {
        self.states += 1;
        if self.states > MAX_STATES { Err(ErrorKind::TooComplex) } else { Ok(()) }
    }

    /// Compiles a node. Each back-reference is replaced by a copy of its group.
    pub(crate) fn nfa(&mut self, node: &Node, direction: Direction) -> Result<Nfa, ErrorKind> {
        let mut builder = NfaBuilder {
            nfa: Nfa { states: vec![State::Match], start: 0, direction },
            compiler: self,
            assertion_mode: AssertionMode::Checked,
        };
        let start = builder.node(node, 0)?;
        builder.nfa.start = start;
        Ok(builder.nfa)
    }

    /// Returns the number of a character set.
    pub(crate) fn set(&mut self, class: &ClassUnicode) -> u32 {
        let ranges: Vec<_> = class.iter().map(|range| (range.start(), range.end())).collect();
        let sets = &mut self.shared.sets;
        *self.set_numbers.entry(ranges).or_insert_with(|| {
            sets.push(CharacterSet::new(class));
            number(sets.len() - 1)
        })
    }

    /// Returns the number of a look-around, which it compiles the first time.
    pub(crate) fn look_around(&mut self, look: &LookAround) -> Result<u32, ErrorKind> {
        let key = (Arc::as_ptr(&look.node), look.direction, look.polarity == Polarity::Positive);
        if let Some(&number) = self.look_around_numbers.get(&key) {
            return Ok(number);
        }
        // A look-ahead holds at a position if its pattern, read backwards from some later position, can end there.
        let direction = match look.direction {
            Direction::Ahead => Direction::Behind,
            Direction::Behind => Direction::Ahead,
        };
        let nfa = self.nfa(&look.node, direction)?;
        self.shared.look_arounds.push(LookAroundNfa { nfa, polarity: look.polarity });
        let number = number(self.shared.look_arounds.len() - 1);
        self.look_around_numbers.insert(key, number);
        Ok(number)
    }
}

/// Builds one NFA from its end to its start, because each state needs the number of the next one.
struct NfaBuilder<'c> {
    nfa: Nfa,
    compiler: &'c mut NfaCompiler,
    assertion_mode: AssertionMode,
}

impl NfaBuilder<'_> {
    fn add(&mut self, state: State) -> Result<StateId, ErrorKind> {
        self.compiler.count()?;
        self.nfa.states.push(state);
        Ok(number(self.nfa.states.len() - 1))
    }

    /// Adds one copy of a node that is repeated or referred to.
    ///
    /// A copy without states is counted as one state: copies of copies take exponential time even if they are empty.
    fn copy(&mut self, node: &Node, next: StateId) -> Result<StateId, ErrorKind> {
        let before = self.compiler.states;
        let start = self.node(node, next)?;
        if self.compiler.states == before {
            self.compiler.count()?;
        }
        Ok(start)
    }

    /// Adds the states of a node, which lead to the state `next`; returns the first of them.
    fn node(&mut self, node: &Node, next: StateId) -> Result<StateId, ErrorKind> {
        match node {
            Node::Empty => Ok(next),
            Node::Set(class) => {
                let set = self.compiler.set(class);
                self.add(State::Set { set, next })
            }
            Node::Concat(nodes) => {
                let forward = self.nfa.direction == Direction::Ahead;
                let mut next = next;
                for index in 0..nodes.len() {
                    next = self.node(&nodes[if forward { nodes.len() - 1 - index } else { index }], next)?;
                }
                Ok(next)
            }
            Node::Alternate(nodes) => {
                let mut start = None;
                for node in nodes.iter().rev() {
                    let first = self.node(node, next)?;
                    start = Some(match start {
                        Some(second) => self.add(State::Split { first, second })?,
                        None => first,
                    });
                }
                Ok(start.unwrap_or(next))
            }
            Node::Repeat(repeat) => self.repeat(&repeat.node, repeat.bounds, next),
            Node::Group(_, node) => self.node(node, next),
            Node::Assert(_) | Node::LookAround(_) if self.assertion_mode == AssertionMode::Ignored => Ok(next),
            Node::Assert(assertion) => self.add(State::Assert { assertion: *assertion, next }),
            Node::LookAround(look) => {
                let look_around = self.compiler.look_around(look)?;
                self.add(State::LookAround { look_around, next })
            }
            Node::BackReference(reference) => {
                let outer = std::mem::replace(&mut self.assertion_mode, AssertionMode::Ignored);
                let start = self.copy(&reference.node, next);
                self.assertion_mode = outer;
                start
            }
        }
    }

    fn repeat(&mut self, node: &Node, bounds: Bounds, next: StateId) -> Result<StateId, ErrorKind> {
        let mut next = next;
        match bounds.max {
            None => {
                // The body needs the number of the loop state, so this is added first and completed afterwards.
                let again = self.add(State::Jump { next })?;
                let body = self.node(node, again)?;
                self.nfa.states[again as usize] = State::Split { first: body, second: next };
                if bounds.min == 0 {
                    return Ok(again);
                }
                next = body;
            }
            Some(max) => {
                let end = next;
                for _ in bounds.min..max {
                    let first = self.copy(node, next)?;
                    next = self.add(State::Split { first, second: end })?;
                }
            }
        }
        let copies = if bounds.max.is_none() { bounds.min.saturating_sub(1) } else { bounds.min };
        for _ in 0..copies {
            next = self.copy(node, next)?;
        }
        Ok(next)
    }
}

/// Converts the index of a state, set or look-around to its number. There are at most `MAX_STATES` of each.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
