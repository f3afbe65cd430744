use std::sync::atomic::AtomicBool;

use regex_automata::Input;

use super::Automaton;
use crate::hir::{self, WordBoundaries};
use crate::{MatchError, syntax};

fn automaton(pattern: &str) -> Automaton {
    Automaton::new(hir::translate(&syntax::parse(pattern, false).unwrap().root, WordBoundaries::Ascii)).unwrap()
}

#[test]
fn the_fast_and_the_interruptible_automaton_agree() {
    let flag = AtomicBool::new(false);
    for pattern in ["a", "^a", "a$", "^$", "^a*$", r"\ma\M", r"\yb|c\Z", "[^a]b", "", "a{3,5}b"] {
        let automaton = automaton(pattern);
        for line in ["", "a", "b", "ab", "ba", "aaaab", "b a", "é", "c"] {
            let fast = automaton.find(Input::new(line)).is_some();
            let interruptible = automaton.is_match_interruptible(line.as_bytes(), &flag);
            assert_eq!(interruptible, Some(Ok(fast)), "{pattern} on {line:?}");
        }
    }
}

#[test]
fn the_interruptible_automaton_checks_the_flag() {
    let flag = AtomicBool::new(true);
    assert_eq!(automaton("a").is_match_interruptible(b"bbb", &flag), Some(Err(MatchError::Interrupted)));
}

#[test]
fn a_larger_automaton_searches_smaller_chunks() {
    assert!(automaton("needle").chunk_bytes > 10_000);
    assert!(automaton("(a{1,255}){1,20}").chunk_bytes < 1_000);
}

#[test]
fn an_automaton_that_would_be_too_large_is_not_built() {
    let pattern = syntax::parse(r"(\w{255}){20}", false).unwrap();
    assert!(Automaton::new(hir::translate(&pattern.root, WordBoundaries::Ascii)).is_none());
}
