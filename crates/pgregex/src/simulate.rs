//! Simulates the NFAs of `crate::nfa` on one line.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ast::{Assertion, Direction, Polarity};
use crate::classes;
use crate::error::MatchError;
use crate::nfa::{Nfa, SharedParts, State, StateId};

/// The code of a byte that is not UTF-8; no set contains it.
const INVALID: u32 = u32::MAX;

/// Number of steps between two checks of the interrupt flag; they take a few milliseconds at most.
const STEPS_BETWEEN_CHECKS: u64 = 1 << 18;

/// Number of characters decoded between two checks of the interrupt flag.
const CHARACTERS_BETWEEN_CHECKS: usize = 1 << 18;

/// The steps that a search may still take. It ends at the limit or when it is interrupted.
#[derive(Debug)]
pub(crate) struct StepBudget<'i> {
    /// Steps left until the next check of the interrupt flag.
    until_check: u64,
    /// Steps left after that check.
    remaining: u64,
    limit: Option<u64>,
    interrupt: Option<&'i AtomicBool>,
}

impl<'i> StepBudget<'i> {
    pub(crate) fn new(limit: Option<u64>, interrupt: Option<&'i AtomicBool>) -> Self {
        Self { until_check: 0, remaining: limit.unwrap_or(u64::MAX), limit, interrupt }
    }

    /// Takes this many steps from the budget.
    pub(crate) fn take(&mut self, count: usize) -> Result<(), MatchError> {
        let count = count as u64;
        if let Some(until_check) = self.until_check.checked_sub(count) {
            self.until_check = until_check;
            return Ok(());
        }
        self.check_and_refill(count - self.until_check)
    }

    /// Returns the error for a search that exceeds its limit of steps or memory.
    pub(crate) fn exceeded(&self) -> MatchError {
        MatchError::StepLimit { limit: self.limit.unwrap_or(u64::MAX) }
    }

    /// Fails if the search was interrupted.
    pub(crate) fn check(&self) -> Result<(), MatchError> {
        match self.interrupt {
            Some(interrupt) if interrupt.load(Ordering::Relaxed) => Err(MatchError::Interrupted),
            _ => Ok(()),
        }
    }

    #[cold]
    fn check_and_refill(&mut self, missing: u64) -> Result<(), MatchError> {
        self.check()?;
        match (self.remaining.checked_sub(missing), self.limit) {
            (Some(remaining), _) => self.remaining = remaining,
            (None, Some(_)) => return Err(self.exceeded()),
            (None, None) => {}
        }
        self.until_check = self.remaining.min(STEPS_BETWEEN_CHECKS);
        self.remaining -= self.until_check;
        Ok(())
    }
}

/// One line as code points, with the positions at which each look-around holds.
#[derive(Debug)]
pub(crate) struct DecodedLine<'r> {
    shared: &'r SharedParts,
    pub(crate) codes: Vec<u32>,
    /// For each look-around, by its number, whether it holds at each position.
    look_arounds: Vec<Vec<bool>>,
}

impl<'r> DecodedLine<'r> {
    pub(crate) fn new(line: &[u8], shared: &'r SharedParts, steps: &mut StepBudget) -> Result<Self, MatchError> {
        let look_arounds = Vec::with_capacity(shared.look_arounds.len());
        let mut line = Self { shared, codes: decode(line, steps)?, look_arounds };
        for look in &shared.look_arounds {
            let mut holds = vec![look.polarity == Polarity::Negative; line.codes.len() + 1];
            line.run(&look.nfa, steps, |position| {
                holds[position] = look.polarity == Polarity::Positive;
                ControlFlow::Continue(())
            })?;
            line.look_arounds.push(holds);
        }
        Ok(line)
    }

    /// Returns whether the NFA matches some part of the line.
    pub(crate) fn is_match(&self, nfa: &Nfa, steps: &mut StepBudget) -> Result<bool, MatchError> {
        let mut found = false;
        self.run(nfa, steps, |_| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Runs an NFA that may start anywhere; calls `on_match` with each position at which it can end, in the order in
    /// which it reads the line.
    fn run(
        &self,
        nfa: &Nfa,
        steps: &mut StepBudget,
        mut on_match: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(), MatchError> {
        let length = self.codes.len();
        let mut position = match nfa.direction {
            Direction::Ahead => 0,
            Direction::Behind => length,
        };
        let mut active = StateSet::new(nfa.states.len());
        let mut transitions: Vec<(u32, StateId)> = Vec::new();
        let mut pending: Vec<StateId> = vec![nfa.start];
        loop {
            active.clear();
            let can_end = self.epsilon_closure(nfa, position, &mut pending, &mut active, &mut transitions);
            if can_end && on_match(position).is_break() {
                return Ok(());
            }
            steps.take(1 + active.count)?;
            let code = match nfa.direction {
                Direction::Ahead if position < length => self.codes[position],
                Direction::Behind if position > 0 => self.codes[position - 1],
                _ => return Ok(()),
            };
            for (set, next) in transitions.drain(..) {
                if self.shared.sets[set as usize].contains(code) {
                    pending.push(next);
                }
            }
            pending.push(nfa.start);
            position = if nfa.direction == Direction::Ahead { position + 1 } else { position - 1 };
        }
    }

    /// Follows the transitions that read nothing, and collects those that read a character: its set and the next state. Returns whether the
    /// NFA can end here.
    fn epsilon_closure(
        &self,
        nfa: &Nfa,
        position: usize,
        pending: &mut Vec<StateId>,
        active: &mut StateSet,
        transitions: &mut Vec<(u32, StateId)>,
    ) -> bool {
        let mut is_match = false;
        while let Some(state) = pending.pop() {
            if !active.insert(state) {
                continue;
            }
            match nfa.states[state as usize] {
                State::Match => is_match = true,
                State::Set { set, next } => transitions.push((set, next)),
                State::Jump { next } => pending.push(next),
                State::Split { first, second } => pending.extend([first, second]),
                State::Assert { assertion, next } if self.assertion_holds(assertion, position) => pending.push(next),
                State::LookAround { look_around, next } if self.look_around_holds(look_around, position) => {
                    pending.push(next);
                }
                State::Assert { .. } | State::LookAround { .. } => {}
            }
        }
        is_match
    }

    /// Returns whether the character after a position is in the set with this number.
    pub(crate) fn is_member(&self, set: u32, position: usize) -> bool {
        self.codes.get(position).is_some_and(|&code| self.shared.sets[set as usize].contains(code))
    }

    pub(crate) fn look_around_holds(&self, look_around: u32, position: usize) -> bool {
        self.look_arounds[look_around as usize][position]
    }

    pub(crate) fn assertion_holds(&self, assertion: Assertion, position: usize) -> bool {
        let is_word = |code: &u32| classes::is_word(*code);
        let before = position.checked_sub(1).and_then(|position| self.codes.get(position)).map(is_word);
        assertion.holds(before, self.codes.get(position).map(is_word))
    }
}

/// Decodes a line; each byte that is not UTF-8 becomes one `INVALID`.
fn decode(line: &[u8], steps: &mut StepBudget) -> Result<Vec<u32>, MatchError> {
    // Checked first, so that a line too long for the limit is not even copied.
    steps.take(line.len())?;
    let mut codes = Vec::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        let mut characters = chunk.valid().chars();
        while !characters.as_str().is_empty() {
            steps.check()?;
            codes.extend(characters.by_ref().take(CHARACTERS_BETWEEN_CHECKS).map(u32::from));
        }
        codes.extend(chunk.invalid().iter().map(|_| INVALID));
    }
    Ok(codes)
}

/// A set of states that can be cleared in constant time.
#[derive(Debug)]
struct StateSet {
    /// For each state, the generation in which it was inserted last. It is a member if that is the current one.
    inserted_in: Vec<u32>,
    generation: u32,
    count: usize,
}

impl StateSet {
    fn new(states: usize) -> Self {
        Self { inserted_in: vec![0; states], generation: 0, count: 0 }
    }

    fn clear(&mut self) {
        self.count = 0;
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.inserted_in.fill(0);
            self.generation = 1;
        }
    }

    /// Inserts a state; returns whether it was not a member before.
    fn insert(&mut self, state: StateId) -> bool {
        let before = std::mem::replace(&mut self.inserted_in[state as usize], self.generation);
        let is_new = before != self.generation;
        self.count += usize::from(is_new);
        is_new
    }
}
