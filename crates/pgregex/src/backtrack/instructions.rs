//! The instructions of the backtracker: like the states of an NFA, with slots that record what groups have matched.

use std::collections::HashMap;

use crate::ast::{Assertion, Bounds, Node, Pattern, Repeat};
use crate::error::ErrorKind;
use crate::nfa::NfaCompiler;

pub(crate) type Address = u32;

/// Maximum number of instructions of a pattern. Usually the limit of NFA states is reached first.
const MAX_INSTRUCTIONS: usize = 400_000;

/// The number of a saved position: the start or end of a group, or the start of an iteration of a repetition.
pub(crate) type Slot = u32;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Instruction {
    /// Reads one character of the set with this number.
    Set {
        set: u32,
        next: Address,
    },
    /// Tries the first alternative and, if it fails, the second.
    Split {
        first: Address,
        second: Address,
    },
    Assert {
        assertion: Assertion,
        next: Address,
    },
    /// Continues where the look-around with this number holds.
    LookAround {
        look_around: u32,
        next: Address,
    },
    /// Saves the current position in a slot.
    SavePosition {
        slot: Slot,
        next: Address,
    },
    /// Clears the slots from `start` up to, but without, `end`.
    ClearSlots {
        start: Slot,
        end: Slot,
        next: Address,
    },
    /// Continues if something was read since the position in the slot was saved.
    RequireProgress {
        slot: Slot,
        next: Address,
    },
    /// Continues if the group whose first slot is `start` has matched.
    RequireGroup {
        start: Slot,
        next: Address,
    },
    /// Reads the text of the group whose first slot is `start` once more.
    BackReference {
        start: Slot,
        next: Address,
    },
    Match,
}

/// A compiled pattern with back-references.
#[derive(Debug)]
pub(crate) struct Instructions {
    pub(crate) list: Vec<Instruction>,
    /// For each instruction, whether a back-reference may follow. If not, the slots have no influence on the result.
    pub(crate) depends_on_groups: Vec<bool>,
    pub(crate) start: Address,
    pub(crate) slot_count: usize,
}

impl Instructions {
    pub(crate) fn new(pattern: &Pattern, compiler: &mut NfaCompiler) -> Result<Self, ErrorKind> {
        let mut builder = InstructionsBuilder {
            compiler,
            instructions: Vec::new(),
            group_slots: HashMap::new(),
            group_end: 0,
            depth: 0,
            slot_count: 0,
            counted: 0,
        };
        let numbers = pattern.referenced.iter().enumerate().filter(|(_, is_referenced)| **is_referenced);
        for (number, _) in numbers {
            builder.group_slots.insert(number, builder.slot_count);
            builder.slot_count += 2;
        }
        builder.group_end = builder.slot_count;
        let end = builder.add(Instruction::Match)?;
        let start = builder.node(&pattern.root, end)?;
        let depends_on_groups = depends_on_groups(&builder.instructions);
        Ok(Self { list: builder.instructions, depends_on_groups, start, slot_count: builder.slot_count as usize })
    }
}

/// Builds the instructions from the end to the start, because each instruction needs the address of the next one.
struct InstructionsBuilder<'c> {
    compiler: &'c mut NfaCompiler,
    instructions: Vec<Instruction>,
    /// For each group that a back-reference refers to, the first of its two slots.
    group_slots: HashMap<usize, Slot>,
    /// The first slot after those of the groups. From here on there is one for each level of nested repetitions.
    group_end: Slot,
    /// The current level of nested repetitions.
    depth: Slot,
    slot_count: Slot,
    counted: usize,
}

impl InstructionsBuilder<'_> {
    fn add(&mut self, instruction: Instruction) -> Result<Address, ErrorKind> {
        self.count()?;
        self.instructions.push(instruction);
        Ok(self.last())
    }

    /// Counts one more instruction or iteration. Iterations count because even those without instructions take time.
    fn count(&mut self) -> Result<(), ErrorKind> {
        self.counted += 1;
        if self.counted > MAX_INSTRUCTIONS { Err(ErrorKind::TooComplex) } else { Ok(()) }
    }

    fn last(&self) -> Address {
        Address::try_from(self.instructions.len() - 1).unwrap_or(Address::MAX)
    }

    /// Adds the instructions of a node, which lead to the address `next`; returns the first of them.
    fn node(&mut self, node: &Node, next: Address) -> Result<Address, ErrorKind> {
        match node {
            Node::Empty => Ok(next),
            Node::Set(class) => {
                let set = self.compiler.set(class);
                self.add(Instruction::Set { set, next })
            }
            Node::Concat(nodes) => nodes.iter().rev().try_fold(next, |next, node| self.node(node, next)),
            Node::Alternate(nodes) => {
                let mut start = None;
                for node in nodes.iter().rev() {
                    let first = self.node(node, next)?;
                    start = Some(match start {
                        Some(second) => self.add(Instruction::Split { first, second })?,
                        None => first,
                    });
                }
                Ok(start.unwrap_or(next))
            }
            Node::Repeat(repeat) => self.repeat(repeat, next),
            Node::Group(number, node) => match number.and_then(|number| self.group_slots.get(&number).copied()) {
                Some(slot) => {
                    let next = self.add(Instruction::SavePosition { slot: slot + 1, next })?;
                    let next = self.node(node, next)?;
                    self.add(Instruction::SavePosition { slot, next })
                }
                None => self.node(node, next),
            },
            Node::Assert(assertion) => self.add(Instruction::Assert { assertion: *assertion, next }),
            Node::LookAround(look) => {
                let look_around = self.compiler.look_around(look)?;
                self.add(Instruction::LookAround { look_around, next })
            }
            Node::BackReference(reference) => match self.group_slots.get(&reference.group) {
                Some(&start) => self.add(Instruction::BackReference { start, next }),
                None => Ok(next),
            },
        }
    }

    /// Adds the iterations of a repetition. The optional ones run first, and each must read something; then the required
    /// ones run.
    ///
    /// The last iteration is always a required one. It may be empty, and even then it decides what the groups in it
    /// have matched.
    fn repeat(&mut self, repeat: &Repeat, next: Address) -> Result<Address, ErrorKind> {
        let Bounds { min, max } = repeat.bounds;
        if max == Some(0) {
            return Ok(next);
        }
        let iterations = self.iterations(&repeat.node, Bounds { min: min.max(1), max }, next)?;
        if min > 0 {
            return Ok(iterations);
        }
        let start = self.add(Instruction::Split { first: next, second: iterations })?;
        // As in PostgreSQL, a reference to a group that has not matched fails, even if it is repeated zero times.
        match &*repeat.node {
            Node::BackReference(reference) => match self.group_slots.get(&reference.group) {
                Some(&group) => self.add(Instruction::RequireGroup { start: group, next: start }),
                None => Ok(start),
            },
            _ => Ok(start),
        }
    }

    fn iterations(&mut self, node: &Node, bounds: Bounds, next: Address) -> Result<Address, ErrorKind> {
        let Bounds { min, max } = bounds;
        let mut next = next;
        for _ in 0..min {
            next = self.iteration(node, next)?;
        }
        let end = next;
        // The order of alternatives does not change the result. Leaving the loop first keeps the stack short.
        if let Some(max) = max {
            for _ in min..max {
                let second = self.iteration_with_progress(node, next)?;
                next = self.add(Instruction::Split { first: end, second })?;
            }
            return Ok(next);
        }
        // The iteration needs the address of the loop, so this is added first and completed afterwards.
        let again = self.add(Instruction::Split { first: end, second: end })?;
        let second = self.iteration_with_progress(node, again)?;
        self.instructions[again as usize] = Instruction::Split { first: end, second };
        Ok(again)
    }

    /// Adds one optional iteration, which must read something.
    fn iteration_with_progress(&mut self, node: &Node, next: Address) -> Result<Address, ErrorKind> {
        if !can_be_empty(node) {
            return self.iteration(node, next);
        }
        let slot = self.group_end + self.depth;
        self.slot_count = self.slot_count.max(slot + 1);
        let next = self.add(Instruction::RequireProgress { slot, next })?;
        self.depth += 1;
        let next = self.iteration(node, next)?;
        self.depth -= 1;
        self.add(Instruction::SavePosition { slot, next })
    }

    /// Adds one iteration, which first clears what the groups in it matched in the iteration before.
    fn iteration(&mut self, node: &Node, next: Address) -> Result<Address, ErrorKind> {
        self.count()?;
        let next = self.node(node, next)?;
        let mut slots: Option<(Slot, Slot)> = None;
        self.extend_to_groups(node, &mut slots);
        match slots {
            Some((start, end)) => self.add(Instruction::ClearSlots { start, end, next }),
            None => Ok(next),
        }
    }

    /// Extends the range of slots to all groups in a node. Groups in one node have consecutive numbers.
    fn extend_to_groups(&self, node: &Node, slots: &mut Option<(Slot, Slot)>) {
        match node {
            Node::Concat(nodes) | Node::Alternate(nodes) => {
                for node in nodes {
                    self.extend_to_groups(node, slots);
                }
            }
            Node::Repeat(repeat) => self.extend_to_groups(&repeat.node, slots),
            Node::Group(number, node) => {
                if let Some(&slot) = number.and_then(|number| self.group_slots.get(&number)) {
                    let (start, end) = slots.unwrap_or((slot, slot + 2));
                    *slots = Some((start.min(slot), end.max(slot + 2)));
                }
                self.extend_to_groups(node, slots);
            }
            Node::Empty | Node::Set(_) | Node::Assert(_) | Node::LookAround(_) | Node::BackReference(_) => {}
        }
    }
}

fn can_be_empty(node: &Node) -> bool {
    match node {
        Node::Set(_) => false,
        Node::Concat(nodes) => nodes.iter().all(can_be_empty),
        Node::Alternate(nodes) => nodes.iter().any(can_be_empty),
        Node::Repeat(repeat) => repeat.bounds.min == 0 || can_be_empty(&repeat.node),
        Node::Group(_, node) => can_be_empty(node),
        Node::Empty | Node::Assert(_) | Node::LookAround(_) | Node::BackReference(_) => true,
    }
}

/// Computes for each instruction whether a back-reference may follow.
fn depends_on_groups(instructions: &[Instruction]) -> Vec<bool> {
    let mut depends = vec![false; instructions.len()];
    // Instructions mostly lead to earlier ones, so this takes about as many passes as loops are nested.
    loop {
        let mut is_final = true;
        for (address, instruction) in instructions.iter().enumerate() {
            let found = match *instruction {
                Instruction::BackReference { .. } | Instruction::RequireGroup { .. } => true,
                Instruction::Match => false,
                Instruction::Split { first, second } => depends[first as usize] || depends[second as usize],
                Instruction::Set { next, .. }
                | Instruction::Assert { next, .. }
                | Instruction::LookAround { next, .. }
                | Instruction::SavePosition { next, .. }
                | Instruction::ClearSlots { next, .. }
                | Instruction::RequireProgress { next, .. } => depends[next as usize],
            };
            is_final &= found == depends[address];
            depends[address] = found;
        }
        if is_final {
            return depends;
        }
    }
}
