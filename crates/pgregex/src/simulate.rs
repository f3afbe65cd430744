//! Runs the automata of `program` over one line.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::ast::{Assertion, Direction, Polarity};
use crate::classes;
use crate::error::MatchError;
use crate::program::{Program, Shared, State, StateId};

/// Stands for a byte that is not UTF-8; no set has it.
const INVALID: u32 = u32::MAX;

/// How many steps are taken between two looks at the flag; they take some milliseconds at most.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 18;

/// How many characters are decoded between two looks at the flag.
const CHARACTERS_BETWEEN_LOOKS: usize = 1 << 18;

/// Counts what a search does, and ends it at the limit or when it is interrupted.
#[derive(Debug)]
pub(crate) struct Steps<'i> {
    /// What is left until the next look at the flag.
    until_look: u64,
    /// What is left after that.
    left: u64,
    limit: Option<u64>,
    interrupt: Option<&'i AtomicBool>,
}

impl<'i> Steps<'i> {
    pub(crate) fn new(limit: Option<u64>, interrupt: Option<&'i AtomicBool>) -> Self {
        Self { until_look: 0, left: limit.unwrap_or(u64::MAX), limit, interrupt }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<(), MatchError> {
        let count = count as u64;
        if let Some(until_look) = self.until_look.checked_sub(count) {
            self.until_look = until_look;
            return Ok(());
        }
        self.look(count - self.until_look)
    }

    /// Gives the error for a search that needs too much of something.
    pub(crate) fn exceeded(&self) -> MatchError {
        MatchError::StepLimit { limit: self.limit.unwrap_or(u64::MAX) }
    }

    /// Fails if the search is to end.
    pub(crate) fn check(&self) -> Result<(), MatchError> {
        match self.interrupt {
            Some(interrupt) if interrupt.load(Ordering::Relaxed) => Err(MatchError::Interrupted),
            _ => Ok(()),
        }
    }

    #[cold]
    fn look(&mut self, missing: u64) -> Result<(), MatchError> {
        self.check()?;
        match (self.left.checked_sub(missing), self.limit) {
            (Some(left), _) => self.left = left,
            (None, Some(_)) => return Err(self.exceeded()),
            (None, None) => {}
        }
        self.until_look = self.left.min(STEPS_BETWEEN_LOOKS);
        self.left -= self.until_look;
        Ok(())
    }
}

/// One line as characters, with the places where each look-around holds.
#[derive(Debug)]
pub(crate) struct Line<'r> {
    shared: &'r Shared,
    pub(crate) codes: Vec<u32>,
    looks: Vec<Vec<bool>>,
}

impl<'r> Line<'r> {
    pub(crate) fn new(line: &[u8], shared: &'r Shared, steps: &mut Steps) -> Result<Self, MatchError> {
        let mut line = Self { shared, codes: codes(line, steps)?, looks: Vec::with_capacity(shared.looks.len()) };
        for look in &shared.looks {
            let mut holds = vec![look.polarity == Polarity::Negative; line.codes.len() + 1];
            line.run(&look.program, steps, |place| {
                holds[place] = look.polarity == Polarity::Positive;
                Go::On
            })?;
            line.looks.push(holds);
        }
        Ok(line)
    }

    /// Tells whether the program matches some part of the line.
    pub(crate) fn is_match(&self, program: &Program, steps: &mut Steps) -> Result<bool, MatchError> {
        let mut found = false;
        self.run(program, steps, |_| {
            found = true;
            Go::Stop
        })?;
        Ok(found)
    }

    /// Runs a program that may start anywhere; tells each place where it can end, in the order of its direction.
    fn run(&self, program: &Program, steps: &mut Steps, mut found: impl FnMut(usize) -> Go) -> Result<(), MatchError> {
        let length = self.codes.len();
        let mut place = match program.direction {
            Direction::Ahead => 0,
            Direction::Behind => length,
        };
        let mut active = Active::new(program.states.len());
        let mut reading: Vec<(u32, StateId)> = Vec::new();
        let mut pending: Vec<StateId> = vec![program.start];
        loop {
            active.clear();
            if self.settle(program, place, &mut pending, &mut active, &mut reading) && found(place) == Go::Stop {
                return Ok(());
            }
            steps.take(1 + active.count)?;
            let code = match program.direction {
                Direction::Ahead if place < length => self.codes[place],
                Direction::Behind if place > 0 => self.codes[place - 1],
                _ => return Ok(()),
            };
            for (set, next) in reading.drain(..) {
                if self.shared.sets[set as usize].contains(code) {
                    pending.push(next);
                }
            }
            pending.push(program.start);
            place = if program.direction == Direction::Ahead { place + 1 } else { place - 1 };
        }
    }

    /// Follows the states that read nothing; collects those that read and tells whether the program can end here.
    fn settle(
        &self,
        program: &Program,
        place: usize,
        pending: &mut Vec<StateId>,
        active: &mut Active,
        reading: &mut Vec<(u32, StateId)>,
    ) -> bool {
        let mut is_match = false;
        while let Some(state) = pending.pop() {
            if !active.insert(state) {
                continue;
            }
            match program.states[state as usize] {
                State::Match => is_match = true,
                State::Set { set, next } => reading.push((set, next)),
                State::Jump { next } => pending.push(next),
                State::Split { first, second } => pending.extend([first, second]),
                State::Assert { assertion, next } if self.holds(assertion, place) => pending.push(next),
                State::Look { look, next } if self.looks[look as usize][place] => pending.push(next),
                State::Assert { .. } | State::Look { .. } => {}
            }
        }
        is_match
    }

    /// Tells whether the character behind a place is in the set with this number.
    pub(crate) fn is_member(&self, set: u32, place: usize) -> bool {
        self.codes.get(place).is_some_and(|&code| self.shared.sets[set as usize].contains(code))
    }

    pub(crate) fn look_holds(&self, look: u32, place: usize) -> bool {
        self.looks[look as usize][place]
    }

    pub(crate) fn holds(&self, assertion: Assertion, place: usize) -> bool {
        let is_word = |code: &u32| classes::is_word(*code);
        let before = place.checked_sub(1).and_then(|place| self.codes.get(place)).map(is_word);
        assertion.holds(before, self.codes.get(place).map(is_word))
    }
}

/// Decodes a line; each byte that is not UTF-8 stands for itself.
fn codes(line: &[u8], steps: &mut Steps) -> Result<Vec<u32>, MatchError> {
    // A line that cannot be read within the limit is not even copied.
    steps.take(line.len())?;
    let mut codes = Vec::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        let mut characters = chunk.valid().chars();
        while !characters.as_str().is_empty() {
            steps.check()?;
            codes.extend(characters.by_ref().take(CHARACTERS_BETWEEN_LOOKS).map(u32::from));
        }
        codes.extend(chunk.invalid().iter().map(|_| INVALID));
    }
    Ok(codes)
}

/// Whether a run goes on after a place where it can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    On,
    Stop,
}

/// The states seen at one place; clearing costs nothing.
#[derive(Debug)]
struct Active {
    seen_in: Vec<u32>,
    round: u32,
    count: usize,
}

impl Active {
    fn new(states: usize) -> Self {
        Self { seen_in: vec![0; states], round: 0, count: 0 }
    }

    fn clear(&mut self) {
        self.count = 0;
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.seen_in.fill(0);
            self.round = 1;
        }
    }

    fn insert(&mut self, state: StateId) -> bool {
        let seen = std::mem::replace(&mut self.seen_in[state as usize], self.round) == self.round;
        self.count += usize::from(!seen);
        !seen
    }
}
