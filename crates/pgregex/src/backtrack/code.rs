//! The instructions of the backtracker: like the automaton's states, and marks for what groups hold.

use std::collections::HashMap;

use crate::ast::{Assertion, Bounds, Node, Pattern, Repeat};
use crate::error::ErrorKind;
use crate::program::Compiler;

pub(crate) type Address = u32;

/// How many instructions a pattern may have; the automaton's limit mostly comes first.
const INSTRUCTIONS_MAX: usize = 400_000;

/// A place that is remembered: where a group starts or ends, or where a round of a repetition starts.
pub(crate) type Slot = u32;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Instruction {
    /// Reads one character of the set with this number.
    Set {
        set: u32,
        next: Address,
    },
    /// Tries one way and, if it fails, the other.
    Split {
        first: Address,
        second: Address,
    },
    Assert {
        assertion: Assertion,
        next: Address,
    },
    /// Passes where the look-around with this number holds.
    Look {
        look: u32,
        next: Address,
    },
    Mark {
        slot: Slot,
        next: Address,
    },
    /// Forgets what was marked in all slots from the first up to the last, which is left out.
    Forget {
        first: Slot,
        last: Slot,
        next: Address,
    },
    /// Passes if something was read since the slot was marked.
    Progress {
        slot: Slot,
        next: Address,
    },
    /// Passes if the group with this first slot holds something.
    Held {
        start: Slot,
        next: Address,
    },
    /// Reads once more what stands between two slots.
    Again {
        start: Slot,
        next: Address,
    },
    Match,
}

/// A pattern with back-references, ready to be run.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) instructions: Vec<Instruction>,
    /// For each instruction, whether a back-reference may still follow; if not, what groups hold is irrelevant.
    pub(crate) depends_on_groups: Vec<bool>,
    pub(crate) start: Address,
    pub(crate) slots: usize,
}

impl Code {
    pub(crate) fn new(pattern: &Pattern, compiler: &mut Compiler) -> Result<Self, ErrorKind> {
        let mut builder = Builder {
            compiler,
            instructions: Vec::new(),
            group_slots: HashMap::new(),
            group_end: 0,
            depth: 0,
            slots: 0,
            counted: 0,
        };
        let numbers = pattern.referenced.iter().enumerate().filter(|(_, is_referenced)| **is_referenced);
        for (number, _) in numbers {
            builder.group_slots.insert(number, builder.slots);
            builder.slots += 2;
        }
        builder.group_end = builder.slots;
        let end = builder.add(Instruction::Match)?;
        let start = builder.node(&pattern.root, end)?;
        let depends_on_groups = depends_on_groups(&builder.instructions);
        Ok(Self { instructions: builder.instructions, depends_on_groups, start, slots: builder.slots as usize })
    }
}

/// Builds the instructions from the end to the start: each part is told where to go on.
struct Builder<'c> {
    compiler: &'c mut Compiler,
    instructions: Vec<Instruction>,
    /// The first of the two slots of each group that is referred to.
    group_slots: HashMap<usize, Slot>,
    /// Where the slots of the groups end and those of the rounds begin, one for each depth of repetition.
    group_end: Slot,
    depth: Slot,
    slots: Slot,
    counted: usize,
}

impl Builder<'_> {
    fn add(&mut self, instruction: Instruction) -> Result<Address, ErrorKind> {
        self.count()?;
        self.instructions.push(instruction);
        Ok(self.last())
    }

    /// Counts one more instruction, or one more round, since even rounds without instructions take time to add.
    fn count(&mut self) -> Result<(), ErrorKind> {
        self.counted += 1;
        if self.counted > INSTRUCTIONS_MAX { Err(ErrorKind::TooComplex) } else { Ok(()) }
    }

    fn last(&self) -> Address {
        Address::try_from(self.instructions.len() - 1).unwrap_or(Address::MAX)
    }

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
                    let next = self.add(Instruction::Mark { slot: slot + 1, next })?;
                    let next = self.node(node, next)?;
                    self.add(Instruction::Mark { slot, next })
                }
                None => self.node(node, next),
            },
            Node::Assert(assertion) => self.add(Instruction::Assert { assertion: *assertion, next }),
            Node::Look(look) => {
                let look = self.compiler.look(look)?;
                self.add(Instruction::Look { look, next })
            }
            Node::BackReference(reference) => match self.group_slots.get(&reference.group) {
                Some(&start) => self.add(Instruction::Again { start, next }),
                None => Ok(next),
            },
        }
    }

    /// Adds the rounds of a repetition: first those that may be left out, which must read something, then the others.
    ///
    /// The last round is always among the others, because an empty one decides what its groups hold.
    fn repeat(&mut self, repeat: &Repeat, next: Address) -> Result<Address, ErrorKind> {
        let Bounds { min, max } = repeat.bounds;
        if max == Some(0) {
            return Ok(next);
        }
        let rounds = self.rounds(&repeat.node, Bounds { min: min.max(1), max }, next)?;
        if min > 0 {
            return Ok(rounds);
        }
        let start = self.add(Instruction::Split { first: next, second: rounds })?;
        // As in PostgreSQL, a reference to a group that took no part fails even if it is repeated no times.
        match &*repeat.node {
            Node::BackReference(reference) => match self.group_slots.get(&reference.group) {
                Some(&group) => self.add(Instruction::Held { start: group, next: start }),
                None => Ok(start),
            },
            _ => Ok(start),
        }
    }

    fn rounds(&mut self, node: &Node, bounds: Bounds, next: Address) -> Result<Address, ErrorKind> {
        let Bounds { min, max } = bounds;
        let mut next = next;
        for _ in 0..min {
            next = self.round(node, next)?;
        }
        let end = next;
        // To leave first keeps the stack short, and the order makes no difference to the answer.
        if let Some(max) = max {
            for _ in min..max {
                let second = self.round_with_progress(node, next)?;
                next = self.add(Instruction::Split { first: end, second })?;
            }
            return Ok(next);
        }
        // The loop needs its address before its round is there.
        let again = self.add(Instruction::Split { first: end, second: end })?;
        let second = self.round_with_progress(node, again)?;
        self.instructions[again as usize] = Instruction::Split { first: end, second };
        Ok(again)
    }

    fn round_with_progress(&mut self, node: &Node, next: Address) -> Result<Address, ErrorKind> {
        if !can_be_empty(node) {
            return self.round(node, next);
        }
        let slot = self.group_end + self.depth;
        self.slots = self.slots.max(slot + 1);
        let next = self.add(Instruction::Progress { slot, next })?;
        self.depth += 1;
        let next = self.round(node, next)?;
        self.depth -= 1;
        self.add(Instruction::Mark { slot, next })
    }

    /// Adds one round; what the groups in it held in the round before is forgotten.
    fn round(&mut self, node: &Node, next: Address) -> Result<Address, ErrorKind> {
        self.count()?;
        let next = self.node(node, next)?;
        let mut slots: Option<(Slot, Slot)> = None;
        self.groups_within(node, &mut slots);
        match slots {
            Some((first, last)) => self.add(Instruction::Forget { first, last, next }),
            None => Ok(next),
        }
    }

    /// Widens the slots to those of all groups in a node; groups within one node have neighbouring numbers.
    fn groups_within(&self, node: &Node, slots: &mut Option<(Slot, Slot)>) {
        match node {
            Node::Concat(nodes) | Node::Alternate(nodes) => {
                for node in nodes {
                    self.groups_within(node, slots);
                }
            }
            Node::Repeat(repeat) => self.groups_within(&repeat.node, slots),
            Node::Group(number, node) => {
                if let Some(&slot) = number.and_then(|number| self.group_slots.get(&number)) {
                    let (first, last) = slots.unwrap_or((slot, slot + 2));
                    *slots = Some((first.min(slot), last.max(slot + 2)));
                }
                self.groups_within(node, slots);
            }
            Node::Empty | Node::Set(_) | Node::Assert(_) | Node::Look(_) | Node::BackReference(_) => {}
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
        Node::Empty | Node::Assert(_) | Node::Look(_) | Node::BackReference(_) => true,
    }
}

fn depends_on_groups(instructions: &[Instruction]) -> Vec<bool> {
    let mut depends = vec![false; instructions.len()];
    // Instructions mostly lead to earlier ones, so this settles after as many passes as loops are nested.
    loop {
        let mut is_settled = true;
        for (address, instruction) in instructions.iter().enumerate() {
            let found = match *instruction {
                Instruction::Again { .. } | Instruction::Held { .. } => true,
                Instruction::Match => false,
                Instruction::Split { first, second } => depends[first as usize] || depends[second as usize],
                Instruction::Set { next, .. }
                | Instruction::Assert { next, .. }
                | Instruction::Look { next, .. }
                | Instruction::Mark { next, .. }
                | Instruction::Forget { next, .. }
                | Instruction::Progress { next, .. } => depends[next as usize],
            };
            is_settled &= found == depends[address];
            depends[address] = found;
        }
        if is_settled {
            return depends;
        }
    }
}
