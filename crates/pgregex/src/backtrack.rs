//! Back-references: tries all ways to divide a line until one makes every reference equal what its group holds.
//!
//! The stack is a vector of bounded length, so long lines are safe.

mod code;

use std::collections::HashSet;

pub(crate) use code::Code;
use code::{Address, Instruction, Slot};

use crate::classes;
use crate::error::MatchError;
use crate::simulate::{Line, Steps};

/// How many forks may be met from one start before they are remembered; most searches end long before.
const FORKS_FORGOTTEN: usize = 1 << 12;

/// How many numbers are remembered at most.
const REMEMBERED_MAX: usize = 1 << 22;

/// How long the stack may become: some 64 MB.
const STACK_MAX: usize = 1 << 22;

/// What a slot holds that is not marked.
const UNMARKED: u32 = u32::MAX;

/// How characters are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    WithCase,
    WithoutCase,
}

/// Tells whether the code matches some part of the line.
pub(crate) fn is_match(
    code: &Code,
    comparison: Comparison,
    line: &Line,
    steps: &mut Steps,
) -> Result<bool, MatchError> {
    let folded = match comparison {
        Comparison::WithCase => None,
        Comparison::WithoutCase => Some(lower(&line.codes, steps)?),
    };
    let mut machine = Machine {
        code,
        line,
        compared: folded.as_deref().unwrap_or(&line.codes),
        slots: vec![UNMARKED; code.slots],
        stack: Vec::new(),
        forks: 0,
        tried: HashSet::new(),
        remembered: 0,
    };
    for start in 0..=line.codes.len() {
        if machine.run(start, steps)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is done when a way has failed.
#[derive(Debug)]
enum Retreat {
    TryFrom { address: Address, place: usize },
    Restore { slot: Slot, value: u32 },
}

struct Machine<'m> {
    code: &'m Code,
    line: &'m Line<'m>,
    /// The line as back-references see it.
    compared: &'m [u32],
    slots: Vec<u32>,
    stack: Vec<Retreat>,
    /// How many forks were met from the present start.
    forks: usize,
    /// The forks that were tried: address, place and slots, on which all that follows depends.
    tried: HashSet<Box<[u32]>>,
    /// How many numbers stand in them.
    remembered: usize,
}

impl Machine<'_> {
    /// Tries all ways that start at a place.
    fn run(&mut self, start: usize, steps: &mut Steps) -> Result<bool, MatchError> {
        self.forks = 0;
        self.stack.push(Retreat::TryFrom { address: self.code.start, place: start });
        while let Some(retreat) = self.stack.pop() {
            match retreat {
                Retreat::Restore { slot, value } => self.slots[slot as usize] = value,
                Retreat::TryFrom { address, place } => {
                    if self.advance(address, place, steps)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Follows one way to its end, and leaves the others on the stack.
    fn advance(&mut self, mut address: Address, mut place: usize, steps: &mut Steps) -> Result<bool, MatchError> {
        loop {
            steps.take(1)?;
            if self.stack.len() > STACK_MAX {
                return Err(steps.exceeded());
            }
            let next = match self.code.instructions[address as usize] {
                Instruction::Match => return Ok(true),
                Instruction::Set { set, next } => {
                    let is_member = self.line.is_member(set, place);
                    place += 1;
                    is_member.then_some(next)
                }
                Instruction::Split { first, second } => {
                    let is_new = self.is_new(address, place);
                    if is_new {
                        self.stack.push(Retreat::TryFrom { address: second, place });
                    }
                    is_new.then_some(first)
                }
                Instruction::Assert { assertion, next } => self.line.holds(assertion, place).then_some(next),
                Instruction::Look { look, next } => self.line.look_holds(look, place).then_some(next),
                Instruction::Mark { slot, next } => {
                    self.set(slot, number(place));
                    Some(next)
                }
                Instruction::Forget { first, last, next } => {
                    for slot in first..last {
                        self.set(slot, UNMARKED);
                    }
                    Some(next)
                }
                Instruction::Progress { slot, next } => (self.slots[slot as usize] as usize != place).then_some(next),
                Instruction::Held { start, next } => self.held(start).map(|_| next),
                Instruction::Again { start, next } => {
                    let held = self.held(start);
                    steps.take(held.map_or(0, <[u32]>::len))?;
                    let length = held.filter(|held| self.compared[place..].starts_with(held)).map(<[u32]>::len);
                    place += length.unwrap_or(0);
                    length.map(|_| next)
                }
            };
            match next {
                Some(next) => address = next,
                None => return Ok(false),
            }
        }
    }

    /// Tells whether a fork is worth trying: it is not if it was tried before, for it failed or will be gone on with.
    fn is_new(&mut self, address: Address, place: usize) -> bool {
        self.forks += 1;
        if self.forks <= FORKS_FORGOTTEN || self.remembered >= REMEMBERED_MAX {
            return true;
        }
        let slots: &[u32] = if self.code.depends_on_groups[address as usize] { &self.slots } else { &[] };
        let fork: Box<[u32]> = [address, number(place)].into_iter().chain(slots.iter().copied()).collect();
        self.remembered += fork.len();
        self.tried.insert(fork)
    }

    fn set(&mut self, slot: Slot, value: u32) {
        let before = std::mem::replace(&mut self.slots[slot as usize], value);
        if before != value {
            self.stack.push(Retreat::Restore { slot, value: before });
        }
    }

    /// Gives what a group holds, if it took part.
    fn held(&self, start: Slot) -> Option<&[u32]> {
        let (start, end) = (self.slots[start as usize], self.slots[start as usize + 1]);
        (end != UNMARKED).then(|| &self.compared[start as usize..end as usize])
    }
}

/// Gives a place as slots hold it; a line beyond four billion characters would exceed any limit of steps.
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(UNMARKED)
}

fn lower(codes: &[u32], steps: &mut Steps) -> Result<Vec<u32>, MatchError> {
    let mut lower = Vec::with_capacity(codes.len());
    for &code in codes {
        steps.take(1)?;
        lower.push(classes::lower(code));
    }
    Ok(lower)
}

#[cfg(test)]
#[path = "backtrack_tests.rs"]
mod tests;
