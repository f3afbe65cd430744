use std::sync::atomic::AtomicBool;

use crate::{MatchError, Options, Regex};

/// One pattern for each way in which lines are searched. All of them match empty lines and lines with an `a`.
const PATTERNS: [&str; 4] = ["a|^$", r"\ma|^$", "(?=a)a|^$", r"(a|^$)\1{0,1}"];

fn lines(pattern: &str, text: &str) -> Vec<(usize, usize)> {
    let regex = Regex::new(pattern, Options::default()).unwrap();
    regex.matching_lines(text.as_bytes()).map(Result::unwrap).map(|line| (line.start, line.end)).collect()
}

#[test]
fn lines_are_found_in_order() {
    for pattern in PATTERNS {
        assert_eq!(lines(pattern, "a\nb\n\na é\nb"), [(0, 1), (4, 4), (5, 9)], "{pattern}");
    }
}

#[test]
fn a_newline_at_the_end_starts_one_more_line() {
    for pattern in PATTERNS {
        assert_eq!(lines(pattern, "b\n"), [(2, 2)], "{pattern}");
        assert_eq!(lines(pattern, "\n"), [(0, 0), (1, 1)], "{pattern}");
    }
}

#[test]
fn an_empty_text_has_no_line_but_an_empty_line_can_match() {
    for pattern in PATTERNS {
        assert!(lines(pattern, "").is_empty(), "{pattern}");
        assert_eq!(Regex::new(pattern, Options::default()).unwrap().is_match(""), Ok(true), "{pattern}");
    }
}

#[test]
fn a_match_stays_within_its_line() {
    assert!(lines(r"a\sb", "a\nb").is_empty());
    assert!(lines("a[^x]b", "a\nb").is_empty());
    assert!(lines(r"\n", "a\nb").is_empty());
    assert!(lines("(?s)a.b", "a\nb").is_empty());
    assert!(lines("(?<=a.*)b", "a\nb").is_empty());
    assert_eq!(lines(r"(?<!x)\Mb|\Ab", "a\nb"), [(2, 3)]);
}

#[test]
fn a_search_can_start_at_any_line() {
    let regex = Regex::new("a", Options::default()).unwrap();
    let starts = |offset: usize| -> Vec<usize> {
        regex.matching_lines(b"a\nba\na").starting_at(offset).map(|line| line.unwrap().start).collect()
    };
    assert_eq!(starts(0), [0, 2, 5]);
    assert_eq!(starts(2), [2, 5]);
    assert_eq!(starts(3), [2, 5]);
    assert_eq!(starts(5), [5]);
    assert_eq!(starts(7), []);
}

#[test]
fn a_line_that_takes_too_long_does_not_end_the_search() {
    let regex = Regex::new(r"^(a*)(a*)\1\2b$", Options { step_limit: 400, ..Options::default() }).unwrap();
    let text = format!("aab\n{}b\naab", "a".repeat(200));
    let found: Vec<bool> = regex.matching_lines(text.as_bytes()).map(|line| line.is_ok()).collect();
    assert_eq!(found, [true, false, true]);
}

#[test]
fn a_set_flag_ends_the_iteration() {
    let flag = AtomicBool::new(true);
    for pattern in PATTERNS {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        let found: Vec<_> = regex.matching_lines(b"a\nb\na").interrupted_by(&flag).collect();
        assert_eq!(found, [Err(MatchError::Interrupted)], "{pattern}");
    }
}

#[test]
fn an_interruptible_search_finds_the_same_lines() {
    let flag = AtomicBool::new(false);
    let long = "x".repeat((1 << 20) + 1);
    let text = format!("b\n{long}\n{long}a\n\na é\n{}{long} a\n", "b\n".repeat(1 << 18));
    for pattern in PATTERNS {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        let all_lines = || regex.matching_lines(text.as_bytes());
        let found: Vec<_> = all_lines().interrupted_by(&flag).collect();
        assert!(found.iter().all(Result::is_ok), "{pattern}");
        assert_eq!(found, all_lines().collect::<Vec<_>>(), "{pattern}");
    }
}
