//! Properties that hold for any input: no panic, and a result or a typed error within a limited time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgregex::{ErrorKind, MatchError, Options, Regex};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_pattern_and_no_line_cause_a_panic(
        pattern in r"(\*\*\*[:=?]|\(\?[a-z]{1,3}\))?([\[\](){}*+?|^$.\\:=!<>#,&-]|[a-z0-9]|\PC|\\[a-zA-Z0-9]|\[\[:[a-z]{4,5}:\]\]){0,24}",
        line in any::<Vec<u8>>(),
        case_insensitive in any::<bool>(),
    ) {
        let options = Options { case_insensitive, step_limit: 100_000 };
        match Regex::new(&pattern, options) {
            Ok(regex) => {
                let _ = regex.is_match(&line);
                prop_assert!(regex.matching_lines(&line).count() <= line.len() + 1);
            }
            Err(error) => prop_assert!(pattern.is_char_boundary(error.offset())),
        }
    }
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern, Options::default()).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// Maximum time of a test: enough for a debug build on a busy machine, and far less than catastrophic backtracking
/// takes.
const MAX_TIME: Duration = Duration::from_secs(20);

#[test]
fn catastrophic_regular_patterns_take_linear_time() {
    let line = format!("{}b", "a".repeat(20_000));
    let started = Instant::now();
    for (pattern, expected) in [
        ("(a+)+$", false),
        ("^(a+)+$", false),
        ("(a|a)*c", false),
        ("^(a|aa)+b$", true),
        (r"\m(a+)+\M", false),
        ("(a{1,255}){1,20}c", false),
        ("((a{2}){3}){4}b", true),
    ] {
        assert_eq!(regex(pattern).is_match(&line), Ok(expected), "{pattern}");
    }
    assert!(started.elapsed() < MAX_TIME, "{:?}", started.elapsed());
}

#[test]
fn look_around_over_long_lines_takes_linear_time() {
    let line = format!("{}b", "a".repeat(20_000));
    let started = Instant::now();
    for (pattern, expected) in
        [("^(?=(a+)+$)", false), ("(?<=(a|aa)+)b", true), ("(?!a+b)a", false), ("^(?=.*b$)(?!.*c)", true)]
    {
        assert_eq!(regex(pattern).is_match(&line), Ok(expected), "{pattern}");
    }
    assert!(started.elapsed() < MAX_TIME, "{:?}", started.elapsed());
}

#[test]
fn back_references_over_long_lines_end_with_a_result_or_at_the_step_limit() {
    let line = format!("{}b", "a".repeat(20_000));
    let options = Options { step_limit: 1_000_000, ..Options::default() };
    let started = Instant::now();
    for pattern in [r"^(a+)\1+$", r"(a*)(a*)\1\2c", r"^(.*)(.*)(.*)\3\2\1$", r"(?:(a|aa)+\1)+$", r"((a*)*\2)*c"] {
        let answer = Regex::new(pattern, options).unwrap().is_match(&line);
        assert!(matches!(answer, Ok(false) | Err(MatchError::StepLimit { limit: 1_000_000 })), "{pattern}: {answer:?}");
    }
    assert!(started.elapsed() < MAX_TIME, "{:?}", started.elapsed());
}

/// Maximum time from an interruption to the end of the search, in a debug build on a busy machine.
const MAX_INTERRUPT_DELAY: Duration = Duration::from_secs(3);

#[test]
fn a_search_ends_soon_after_it_is_interrupted() {
    let long_line = "a".repeat(8 << 20);
    let short_lines = format!("{}\n", "a".repeat(99)).repeat(100_000);
    for pattern in [
        "((a{1,20}){1,20}){1,20}[c-z]",
        r"(\w{1,100}){1,20}[^\w]",
        r"^(a*)\1\1a\1\1\1$",
        r"(\m\w{255}){20}=",
        "(?!a*$)a",
    ] {
        let regex = Regex::new(pattern, Options { step_limit: u64::MAX, ..Options::default() }).unwrap();
        for text in [&long_line, &short_lines] {
            let delay = interrupt_delay(&regex, text.as_bytes());
            assert!(delay < MAX_INTERRUPT_DELAY, "{pattern}: {delay:?}");
        }
    }
}

/// Returns the time from the interruption of a search to its end.
fn interrupt_delay(regex: &Regex, text: &[u8]) -> Duration {
    let flag = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let search = scope.spawn(|| {
            let last = regex.matching_lines(text).interrupted_by(&flag).last();
            assert!(matches!(last, None | Some(Err(MatchError::Interrupted))), "{last:?}");
        });
        std::thread::park_timeout(Duration::from_millis(50));
        let interrupted = Instant::now();
        flag.store(true, Ordering::Relaxed);
        search.join().unwrap();
        interrupted.elapsed()
    })
}

#[test]
fn patterns_that_grow_without_bound_are_refused() {
    let doubling: Vec<String> = (1..60).map(|group| format!("(\\{group}\\{group})")).collect();
    let doubling = doubling.concat();
    let started = Instant::now();
    for pattern in [
        "((a{255}){255}){255}".to_owned(),
        "((((){255}){255}){255}){255}".to_owned(),
        format!("(a){doubling}"),
        format!("(){doubling}"),
        format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000)),
        format!("{}a{}", "(?=".repeat(10_000), ")".repeat(10_000)),
    ] {
        let kind = Regex::new(&pattern, Options::default()).err().map(|error| error.kind());
        assert_eq!(kind, Some(ErrorKind::TooComplex), "{}", &pattern[..20]);
    }
    assert!(started.elapsed() < MAX_TIME, "{:?}", started.elapsed());
}

#[test]
fn repeated_large_classes_are_matched_even_if_an_automaton_over_bytes_would_be_too_large() {
    let line = "ä".repeat(6_000);
    assert_eq!(regex(r"^(\w{255}){20}").is_match(&line), Ok(true));
    assert_eq!(regex(r"^(\w{255}){24}").is_match(&line), Ok(false));
}

#[test]
fn patterns_just_within_the_limits_are_compiled_and_searched_for() {
    let started = Instant::now();
    for (open, close) in
        [("(", ")"), ("(", ")+"), ("(?:", ")*"), ("(b|", ")"), ("(", "){1,1}"), ("(?=", ")"), ("(?:a?", ")?")]
    {
        let pattern = format!("{}a{}", open.repeat(240), close.repeat(240));
        assert_eq!(regex(&pattern).is_match("xa"), Ok(true), "{open} {close}");
    }
    let nested = format!(r"{}a{}\1", "(".repeat(120), ")".repeat(120));
    assert_eq!(regex(&nested).is_match("aa"), Ok(true));
    let sequence = "(a)".repeat(120) + r"\1";
    assert_eq!(regex(&sequence).is_match("a".repeat(121)), Ok(true));
    assert_eq!(regex(&sequence).is_match("a".repeat(120)), Ok(false));
    assert!(started.elapsed() < MAX_TIME, "{:?}", started.elapsed());
}
