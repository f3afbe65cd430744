use crate::{MatchError, Options, Regex};

fn is_match(pattern: &str, line: &str) -> bool {
    Regex::new(pattern, Options::default()).unwrap().is_match(line).unwrap()
}

#[test]
fn all_ways_to_match_the_groups_are_tried() {
    assert!(is_match(r"^(a*)(a*)\1\2b$", "aaaab"));
    assert!(is_match(r"^(?:(a|ab)(c|bcd)(d*))\1$", "abcda"));
    assert!(is_match(r"^(?:(b)|.?)+\1$", "bb"));
    assert!(!is_match(r"^(a+)\1$", "aaa"));
}

#[test]
fn a_reference_to_a_group_that_has_not_matched_fails() {
    assert!(!is_match(r"^(?:(a)|b)\1$", "b"));
    assert!(!is_match(r"^(?:(a)|b)\1?$", "b"));
    assert!(!is_match(r"(a){0}\1", "aa"));
    assert!(is_match(r"^(?:(a)|b)(?:\1|c)$", "bc"));
}

#[test]
fn an_iteration_clears_what_its_groups_matched_in_the_iteration_before() {
    assert!(!is_match(r"^(?:(a)|b)*\1$", "aba"));
    assert!(!is_match(r"^(?:(a)|b){2}\1$", "aba"));
    assert!(is_match(r"^(?:(a)|b)*\1$", "baa"));
}

#[test]
fn the_last_iteration_may_be_empty() {
    assert!(is_match(r"^(a?)+\1$", "a"));
    assert!(is_match(r"^(a?){3}\1$", "aa"));
    assert!(is_match(r"^(a?)*\1$", ""));
}

#[test]
fn a_reference_does_not_repeat_the_assertions_of_its_group() {
    assert!(is_match(r"(^a)\1", "aa"));
    assert!(is_match(r"(\ma)\1", "aa"));
    assert!(!is_match(r"(a$)\1", "aa"));
}

#[test]
fn a_case_insensitive_reference_folds_case_as_postgresql_does() {
    let regex = Regex::new(r"^(.)\1$", Options { case_insensitive: true, ..Options::default() }).unwrap();
    for (line, expected) in [("aA", true), ("éÉ", true), ("sſ", false), ("k\u{212A}", true), ("ab", false)] {
        assert_eq!(regex.is_match(line), Ok(expected), "{line}");
    }
}

#[test]
fn nested_repetitions_stay_within_the_step_limit_on_short_lines() {
    let line = format!("{}c", "ab".repeat(12));
    for pattern in [r"^(?:(?:(a*)|b*)*)*\1c\1d?$", r"^((a|b|ab)*)*\2+c$", r"^(?:(a|ab)*(b*)*)*\1\2c$"] {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        assert!(regex.is_match(&line).is_ok(), "{pattern}");
    }
}

#[test]
fn a_long_line_ends_at_the_step_limit_and_does_not_overflow_the_stack() {
    let options = Options { step_limit: 2_000_000, ..Options::default() };
    let regex = Regex::new(r"^(?:(a)|b)*(a*)(a*)\3\2\1c", options).unwrap();
    let line = "a".repeat(100_000) + "c";
    assert_eq!(regex.is_match(line), Err(MatchError::StepLimit { limit: 2_000_000 }));
}
