//! The engines of `regex-automata`: a fast one that cannot be stopped, and for long lines one that can.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::{Compiler, Config};
use regex_automata::{Input, hybrid, meta};
use regex_syntax::hir::Hir;

use crate::error::MatchError;

/// How large an automaton may become before the one of `program` is used instead.
const SIZE_LIMIT_BYTES: usize = 8 << 20;

/// How much work is done in one go: bytes of text times bytes of automaton.
///
/// In the worst case an engine visits its whole automaton for each byte of text; this much takes some 20 ms.
const WORK_IN_ONE_GO: usize = 100 << 20;

/// How much text is searched in one go at least, and at most.
const TEXT_IN_ONE_GO: std::ops::RangeInclusive<usize> = 64..=(1 << 20);

/// One automaton, over a text of many lines.
#[derive(Debug)]
pub(crate) struct Engine {
    fast: meta::Regex,
    hir: Hir,
    /// Made when the first long line comes; none if it cannot be made.
    steady: OnceLock<Option<Box<DFA>>>,
    /// How much text is searched in one go if the search may be interrupted.
    pub(crate) text_in_one_go: usize,
}

impl Engine {
    /// Makes an engine; none if it would be too large.
    pub(crate) fn new(hir: Hir) -> Option<Self> {
        let config = meta::Config::new().utf8_empty(false).nfa_size_limit(Some(SIZE_LIMIT_BYTES));
        let fast = meta::Builder::new().configure(config).build_from_hir(&hir).ok()?;
        let text_in_one_go =
            (WORK_IN_ONE_GO / fast.memory_usage().max(1)).clamp(*TEXT_IN_ONE_GO.start(), *TEXT_IN_ONE_GO.end());
        Some(Self { fast, hir, steady: OnceLock::new(), text_in_one_go })
    }

    /// Gives a place in the first line that matches.
    pub(crate) fn find(&self, input: Input) -> Option<usize> {
        Some(self.fast.search_half(&input.earliest(true))?.offset())
    }

    /// Tells whether one line matches, and looks at the flag meanwhile; none if there is no engine for that.
    pub(crate) fn is_match_steady(&self, line: &[u8], interrupt: &AtomicBool) -> Option<Result<bool, MatchError>> {
        let dfa = self.steady.get_or_init(|| steady(&self.hir).map(Box::new)).as_ref()?;
        let mut cache = dfa.create_cache();
        let mut state = dfa.start_state_forward(&mut cache, &Input::new(line)).ok()?;
        for piece in line.chunks(self.text_in_one_go) {
            if interrupt.load(Ordering::Relaxed) {
                return Some(Err(MatchError::Interrupted));
            }
            for &byte in piece {
                state = dfa.next_state(&mut cache, state, byte).ok()?;
                if state.is_match() || state.is_dead() {
                    return Some(Ok(state.is_match()));
                }
            }
        }
        Some(Ok(dfa.next_eoi_state(&mut cache, state).ok()?.is_match()))
    }
}

fn steady(hir: &Hir) -> Option<DFA> {
    let nfa = Compiler::new()
        .configure(Config::new().utf8(false).nfa_size_limit(Some(SIZE_LIMIT_BYTES)))
        .build_from_hir(hir)
        .ok()?;
    let config = hybrid::dfa::Config::new().skip_cache_capacity_check(true);
    DFA::builder().configure(config).build_from_nfa(nfa).ok()
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
