//! The automata of `regex-automata` for a pattern: a fast one that cannot be interrupted, and for long lines a slower
//! one that can.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::{Compiler, Config};
use regex_automata::{Input, hybrid, meta};
use regex_syntax::hir::Hir;

use crate::error::MatchError;

/// Maximum size of the NFA that `regex-automata` compiles; for a larger one `crate::nfa` is used instead.
const SIZE_LIMIT_BYTES: usize = 8 << 20;

/// Maximum work between two checks of the interrupt flag: bytes of text times bytes of automaton.
///
/// In the worst case a search visits the whole automaton for each byte of text; this much work takes about 20 ms.
const MAX_CHUNK_WORK: usize = 100 << 20;

/// Minimum and maximum amount of text that is searched between two checks of the interrupt flag.
const CHUNK_BYTES: std::ops::RangeInclusive<usize> = 64..=(1 << 20);

/// An automaton that searches a text of many lines.
#[derive(Debug)]
pub(crate) struct Automaton {
    fast: meta::Regex,
    hir: Hir,
    /// Built for the first long line; `None` inside if it cannot be built.
    interruptible: OnceLock<Option<Box<DFA>>>,
    /// How much text is searched between two checks of the interrupt flag.
    pub(crate) chunk_bytes: usize,
}

impl Automaton {
    /// Builds an automaton; returns `None` if it would be too large.
    pub(crate) fn new(hir: Hir) -> Option<Self> {
        let config = meta::Config::new().utf8_empty(false).nfa_size_limit(Some(SIZE_LIMIT_BYTES));
        let fast = meta::Builder::new().configure(config).build_from_hir(&hir).ok()?;
        let chunk_bytes = (MAX_CHUNK_WORK / fast.memory_usage().max(1)).clamp(*CHUNK_BYTES.start(), *CHUNK_BYTES.end());
        Some(Self { fast, hir, interruptible: OnceLock::new(), chunk_bytes })
    }

    /// Returns a position in the first line that matches.
    pub(crate) fn find(&self, input: Input) -> Option<usize> {
        Some(self.fast.search_half(&input.earliest(true))?.offset())
    }

    /// Returns whether one line matches, and checks the interrupt flag while it searches.
    ///
    /// Returns `None` if no interruptible automaton could be built or if it gave up.
    pub(crate) fn is_match_interruptible(
        &self,
        line: &[u8],
        interrupt: &AtomicBool,
    ) -> Option<Result<bool, MatchError>> {
        let dfa = self.interruptible.get_or_init(|| build_dfa(&self.hir).map(Box::new)).as_ref()?;
        let mut cache = dfa.create_cache();
        let mut state = dfa.start_state_forward(&mut cache, &Input::new(line)).ok()?;
        for chunk in line.chunks(self.chunk_bytes) {
            if interrupt.load(Ordering::Relaxed) {
                return Some(Err(MatchError::Interrupted));
            }
            for &byte in chunk {
                state = dfa.next_state(&mut cache, state, byte).ok()?;
                if state.is_match() || state.is_dead() {
                    return Some(Ok(state.is_match()));
                }
            }
        }
        Some(Ok(dfa.next_eoi_state(&mut cache, state).ok()?.is_match()))
    }
}

/// Builds a lazy DFA that this crate runs itself byte by byte, so that it can check the flag in between.
fn build_dfa(hir: &Hir) -> Option<DFA> {
    let nfa = Compiler::new()
        .configure(Config::new().utf8(false).nfa_size_limit(Some(SIZE_LIMIT_BYTES)))
        .build_from_hir(hir)
        .ok()?;
    let config = hybrid::dfa::Config::new().skip_cache_capacity_check(true);
    DFA::builder().configure(config).build_from_nfa(nfa).ok()
}

#[cfg(test)]
#[path = "automaton_tests.rs"]
mod tests;
