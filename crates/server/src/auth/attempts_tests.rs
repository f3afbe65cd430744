use super::*;

const WINDOW: Duration = Duration::from_secs(60);

fn attempt(key: &str, limit: u32) -> Vec<Attempt> {
    vec![Attempt { key: key.to_owned(), limit }]
}

#[test]
fn attempts_over_the_limit_have_to_wait_and_successful_ones_do_not_count() {
    let attempts = AttemptCounter::default();
    for _ in 0..10 {
        assert_eq!(attempts.count(&attempt("a", 2), WINDOW), None);
        attempts.forgive(&["a".to_owned()]);
    }
    for _ in 0..2 {
        assert_eq!(attempts.count(&attempt("a", 2), WINDOW), None);
    }
    assert!(attempts.count(&attempt("a", 2), WINDOW).is_some_and(|wait| wait <= WINDOW));
    assert_eq!(attempts.count(&attempt("b", 2), WINDOW), None);
    assert_eq!(attempts.count(&attempt("a", 2), Duration::ZERO), None, "a window that has passed is over");
}

#[test]
fn new_keys_are_refused_when_the_counter_is_full() {
    let attempts = AttemptCounter::default();
    for n in 0..KEYS_LIMIT {
        assert_eq!(attempts.count(&attempt(&n.to_string(), 1), WINDOW), None);
    }
    assert_eq!(attempts.count(&attempt("one more", 1), WINDOW), Some(WINDOW));
    assert!(attempts.count(&attempt("0", 1), WINDOW).is_some(), "known keys are still counted");
    assert_eq!(
        attempts.count(&attempt("one more", 1), Duration::ZERO),
        None,
        "there is room again when windows have ended"
    );
}
