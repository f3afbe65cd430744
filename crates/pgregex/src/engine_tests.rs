use std::sync::atomic::AtomicBool;

use regex_automata::Input;

use super::Engine;
use crate::hir::{self, Words};
use crate::{MatchError, syntax};

fn engine(pattern: &str) -> Engine {
    Engine::new(hir::hir(&syntax::parse(pattern, false).unwrap().root, Words::Ascii)).unwrap()
}

#[test]
fn both_engines_say_the_same_about_a_line() {
    let flag = AtomicBool::new(false);
    for pattern in ["a", "^a", "a$", "^$", "^a*$", r"\ma\M", r"\yb|c\Z", "[^a]b", "", "a{3,5}b"] {
        let engine = engine(pattern);
        for line in ["", "a", "b", "ab", "ba", "aaaab", "b a", "é", "c"] {
            let fast = engine.find(Input::new(line)).is_some();
            assert_eq!(engine.is_match_steady(line.as_bytes(), &flag), Some(Ok(fast)), "{pattern} on {line:?}");
        }
    }
}

#[test]
fn the_steady_engine_looks_at_the_flag() {
    let flag = AtomicBool::new(true);
    assert_eq!(engine("a").is_match_steady(b"bbb", &flag), Some(Err(MatchError::Interrupted)));
}

#[test]
fn the_larger_the_automaton_the_less_text_is_searched_in_one_go() {
    assert!(engine("needle").text_in_one_go > 10_000);
    assert!(engine("(a{1,255}){1,20}").text_in_one_go < 1_000);
}

#[test]
fn an_automaton_that_would_be_too_large_is_not_made() {
    let pattern = syntax::parse(r"(\w{255}){20}", false).unwrap();
    assert!(Engine::new(hir::hir(&pattern.root, Words::Ascii)).is_none());
}
