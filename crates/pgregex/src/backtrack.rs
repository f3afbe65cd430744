//! Matches patterns with back-references by backtracking: tries all ways to match the groups until one makes every
//! reference equal to the text of its group.
//!
//! The backtrack stack is a vector of limited length, so a long line cannot overflow the stack of the thread.

mod instructions;

use std::collections::HashSet;

pub(crate) use instructions::Instructions;
use instructions::{Address, Instruction, Slot};

use crate::classes;
use crate::error::MatchError;
use crate::simulate::{DecodedLine, StepBudget};

/// Number of splits executed from one start position before visited ones are recorded. Most searches end long before,
/// and recording takes time.
const SPLITS_BEFORE_RECORDING: usize = 1 << 12;

/// Maximum size of the recorded splits, in numbers of four bytes.
const MAX_RECORDED: usize = 1 << 22;

/// Maximum length of the backtrack stack: about 64 MB.
const MAX_STACK: usize = 1 << 22;

/// The value of a slot without a position.
const UNSET: u32 = u32::MAX;

/// How a back-reference compares characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Exact,
    IgnoreCase,
}

/// Returns whether the pattern matches some part of the line.
pub(crate) fn is_match(
    instructions: &Instructions,
    comparison: Comparison,
    line: &DecodedLine,
    steps: &mut StepBudget,
) -> Result<bool, MatchError> {
    let folded = match comparison {
        Comparison::Exact => None,
        Comparison::IgnoreCase => Some(to_lower(&line.codes, steps)?),
    };
    let mut backtracker = Backtracker {
        instructions,
        line,
        compared: folded.as_deref().unwrap_or(&line.codes),
        slots: vec![UNSET; instructions.slot_count],
        stack: Vec::new(),
        splits: 0,
        visited: HashSet::new(),
        recorded: 0,
    };
    for start in 0..=line.codes.len() {
        if backtracker.run(start, steps)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An entry of the backtrack stack: what to do when the current attempt has failed.
#[derive(Debug)]
enum Frame {
    /// Try another alternative.
    Resume { address: Address, position: usize },
    /// Undo a change of a slot.
    RestoreSlot { slot: Slot, value: u32 },
}

struct Backtracker<'m> {
    instructions: &'m Instructions,
    line: &'m DecodedLine<'m>,
    /// The line as back-references compare it: in lower case if case is ignored.
    compared: &'m [u32],
    slots: Vec<u32>,
    stack: Vec<Frame>,
    /// Number of splits executed from the current start position.
    splits: usize,
    /// The splits executed so far, each as its address, position and slots: all that its result depends on.
    visited: HashSet<Box<[u32]>>,
    /// The total size of the entries in `visited`.
    recorded: usize,
}

impl Backtracker<'_> {
    /// Returns whether there is a match that starts at a position.
    fn run(&mut self, start: usize, steps: &mut StepBudget) -> Result<bool, MatchError> {
        self.splits = 0;
        self.stack.push(Frame::Resume { address: self.instructions.start, position: start });
        while let Some(frame) = self.stack.pop() {
            match frame {
                Frame::RestoreSlot { slot, value } => self.slots[slot as usize] = value,
                Frame::Resume { address, position } => {
                    if self.execute(address, position, steps)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Executes instructions until a match or a failure; alternatives are pushed on the stack.
    fn execute(
        &mut self,
        mut address: Address,
        mut position: usize,
        steps: &mut StepBudget,
    ) -> Result<bool, MatchError> {
        loop {
            steps.take(1)?;
            if self.stack.len() > MAX_STACK {
                return Err(steps.exceeded());
            }
            let next = match self.instructions.list[address as usize] {
                Instruction::Match => return Ok(true),
                Instruction::Set { set, next } => {
                    let is_member = self.line.is_member(set, position);
                    position += 1;
                    is_member.then_some(next)
                }
                Instruction::Split { first, second } => {
                    let is_new = self.visit(address, position);
                    if is_new {
                        self.stack.push(Frame::Resume { address: second, position });
                    }
                    is_new.then_some(first)
                }
                Instruction::Assert { assertion, next } => {
                    self.line.assertion_holds(assertion, position).then_some(next)
                }
                Instruction::LookAround { look_around, next } => {
                    self.line.look_around_holds(look_around, position).then_some(next)
                }
                Instruction::SavePosition { slot, next } => {
                    self.set_slot(slot, slot_value(position));
                    Some(next)
                }
                Instruction::ClearSlots { start, end, next } => {
                    for slot in start..end {
                        self.set_slot(slot, UNSET);
                    }
                    Some(next)
                }
                Instruction::RequireProgress { slot, next } => {
                    (self.slots[slot as usize] as usize != position).then_some(next)
                }
                Instruction::RequireGroup { start, next } => self.group_text(start).map(|_| next),
                Instruction::BackReference { start, next } => {
                    let text = self.group_text(start);
                    steps.take(text.map_or(0, <[u32]>::len))?;
                    let length = text.filter(|text| self.compared[position..].starts_with(text)).map(<[u32]>::len);
                    position += length.unwrap_or(0);
                    length.map(|_| next)
                }
            };
            match next {
                Some(next) => address = next,
                None => return Ok(false),
            }
        }
    }

    /// Records a split; returns whether to execute it. One that was recorded before has failed already, or the
    /// alternative that is left of it is still on the stack.
    fn visit(&mut self, address: Address, position: usize) -> bool {
        self.splits += 1;
        if self.splits <= SPLITS_BEFORE_RECORDING || self.recorded >= MAX_RECORDED {
            return true;
        }
        let slots: &[u32] = if self.instructions.depends_on_groups[address as usize] { &self.slots } else { &[] };
        let split: Box<[u32]> = [address, slot_value(position)].into_iter().chain(slots.iter().copied()).collect();
        self.recorded += split.len();
        self.visited.insert(split)
    }

    fn set_slot(&mut self, slot: Slot, value: u32) {
        let before = std::mem::replace(&mut self.slots[slot as usize], value);
        if before != value {
            self.stack.push(Frame::RestoreSlot { slot, value: before });
        }
    }

    /// Returns the text that a group has matched; `None` if it has not matched. `start` is the first slot of the group.
    fn group_text(&self, start: Slot) -> Option<&[u32]> {
        let (start, end) = (self.slots[start as usize], self.slots[start as usize + 1]);
        (end != UNSET).then(|| &self.compared[start as usize..end as usize])
    }
}

/// Converts a position to the value of a slot. A line of more than four billion characters would exceed any step limit.
fn slot_value(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(UNSET)
}

fn to_lower(codes: &[u32], steps: &mut StepBudget) -> Result<Vec<u32>, MatchError> {
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
