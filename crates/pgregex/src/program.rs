//! An automaton of our own, for what `regex-automata` has no words for: look-around and PostgreSQL's word characters.
//!
//! It reads characters, not bytes, in either direction, and takes time proportional to its size and the text's length.
//! Look-around needs no backtracking: which places satisfy it is worked out for the whole line beforehand.

use std::collections::HashMap;
use std::sync::Arc;

use regex_syntax::hir::ClassUnicode;

use crate::ast::{Assertion, Bounds, Conditions, Direction, Look, Node, Polarity};
use crate::error::ErrorKind;

/// How many states the automata of one pattern may have: about where PostgreSQL finds a pattern too complex.
const STATES_MAX: usize = 45_000;

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
    /// Passes where the look-around with this number holds.
    Look {
        look: u32,
        next: StateId,
    },
    Match,
}

/// States in the order in which they were made, read in one direction.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) states: Vec<State>,
    pub(crate) start: StateId,
    pub(crate) direction: Direction,
}

/// A look-around: the places where its program can end when it may start anywhere.
#[derive(Debug)]
pub(crate) struct LookProgram {
    pub(crate) program: Program,
    pub(crate) polarity: Polarity,
}

/// What all programs of one pattern share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) sets: Vec<CharacterSet>,
    /// Each stands after those inside it.
    pub(crate) looks: Vec<LookProgram>,
}

/// A set of characters that is quick to ask for ASCII.
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
            if find(&ranges, code) {
                ascii |= 1 << code;
            }
        }
        Self { ascii, ranges }
    }

    pub(crate) fn contains(&self, code: u32) -> bool {
        if code < 128 { self.ascii & (1 << code) != 0 } else { find(&self.ranges, code) }
    }
}

fn find(ranges: &[(u32, u32)], code: u32) -> bool {
    let index = ranges.partition_point(|&(_, end)| end < code);
    ranges.get(index).is_some_and(|&(start, _)| start <= code)
}

/// Makes the programs of one pattern and counts their states.
#[derive(Debug, Default)]
pub(crate) struct Compiler {
    pub(crate) shared: Shared,
    set_numbers: HashMap<Vec<(char, char)>, u32>,
    /// Look-around by the address of its node, so that each is compiled once however often it is repeated.
    look_numbers: HashMap<(*const Node, Direction, bool), u32>,
    states: usize,
}

impl Compiler {
    /// Counts one more state, or one more copy of what is repeated.
    fn count(&mut self) -> Result<(), ErrorKind> {
        self.states += 1;
        if self.states > STATES_MAX { Err(ErrorKind::TooComplex) } else { Ok(()) }
    }

    /// Makes the program that matches what the node matches, back-references taken for their groups.
    pub(crate) fn program(&mut self, node: &Node, direction: Direction) -> Result<Program, ErrorKind> {
        let mut builder = Builder {
            program: Program { states: vec![State::Match], start: 0, direction },
            compiler: self,
            conditions: Conditions::Kept,
        };
        let start = builder.node(node, 0)?;
        builder.program.start = start;
        Ok(builder.program)
    }

    pub(crate) fn set(&mut self, class: &ClassUnicode) -> u32 {
        let ranges: Vec<_> = class.iter().map(|range| (range.start(), range.end())).collect();
        let sets = &mut self.shared.sets;
        *self.set_numbers.entry(ranges).or_insert_with(|| {
            sets.push(CharacterSet::new(class));
            number(sets.len() - 1)
        })
    }

    pub(crate) fn look(&mut self, look: &Look) -> Result<u32, ErrorKind> {
        let key = (Arc::as_ptr(&look.node), look.direction, look.polarity == Polarity::Positive);
        if let Some(&number) = self.look_numbers.get(&key) {
            return Ok(number);
        }
        // A place satisfies a look ahead if its pattern, read backwards from some later place, can end there.
        let direction = match look.direction {
            Direction::Ahead => Direction::Behind,
            Direction::Behind => Direction::Ahead,
        };
        let program = self.program(&look.node, direction)?;
        self.shared.looks.push(LookProgram { program, polarity: look.polarity });
        let number = number(self.shared.looks.len() - 1);
        self.look_numbers.insert(key, number);
        Ok(number)
    }
}

/// Builds one program from its end to its start: each part is told where to go on.
struct Builder<'c> {
    program: Program,
    compiler: &'c mut Compiler,
    conditions: Conditions,
}

impl Builder<'_> {
    fn add(&mut self, state: State) -> Result<StateId, ErrorKind> {
        self.compiler.count()?;
        self.program.states.push(state);
        Ok(number(self.program.states.len() - 1))
    }

    /// Adds one copy of what is repeated or referred to.
    ///
    /// Even a copy without states counts, since copies of copies would double the work with each.
    fn copy(&mut self, node: &Node, next: StateId) -> Result<StateId, ErrorKind> {
        let before = self.compiler.states;
        let start = self.node(node, next)?;
        if self.compiler.states == before {
            self.compiler.count()?;
        }
        Ok(start)
    }

    fn node(&mut self, node: &Node, next: StateId) -> Result<StateId, ErrorKind> {
        match node {
            Node::Empty => Ok(next),
            Node::Set(class) => {
                let set = self.compiler.set(class);
                self.add(State::Set { set, next })
            }
            Node::Concat(nodes) => {
                let forward = self.program.direction == Direction::Ahead;
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
            Node::Assert(_) | Node::Look(_) if self.conditions == Conditions::Dropped => Ok(next),
            Node::Assert(assertion) => self.add(State::Assert { assertion: *assertion, next }),
            Node::Look(look) => {
                let look = self.compiler.look(look)?;
                self.add(State::Look { look, next })
            }
            Node::BackReference(reference) => {
                let outer = std::mem::replace(&mut self.conditions, Conditions::Dropped);
                let start = self.copy(&reference.node, next);
                self.conditions = outer;
                start
            }
        }
    }

    fn repeat(&mut self, node: &Node, bounds: Bounds, next: StateId) -> Result<StateId, ErrorKind> {
        let mut next = next;
        match bounds.max {
            None => {
                // The loop needs its number before its body is there.
                let again = self.add(State::Jump { next })?;
                let body = self.node(node, again)?;
                self.program.states[again as usize] = State::Split { first: body, second: next };
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

/// Numbers states, sets and look-around; there are never more of them than states.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
