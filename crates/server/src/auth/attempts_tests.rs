use super::*;

const WINDOW: Duration = Duration::from_secs(60);

fn attempt(key: &str, limit: u32) -> Vec<Attempt> {
    vec![Attempt { key: key.to_owned(), limit }]
}

#[test]
fn one_attempt_too_many_has_to_wait_and_good_ones_are_not_counted() {
    let attempts = AttemptsInMemory::default();
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
fn so_many_keys_are_counted_and_more_are_refused() {
    let attempts = AttemptsInMemory::default();
    for n in 0..COUNTED {
        assert_eq!(attempts.count(&attempt(&n.to_string(), 1), WINDOW), None);
    }
    assert_eq!(attempts.count(&attempt("one more", 1), WINDOW), Some(WINDOW));
    assert!(attempts.count(&attempt("0", 1), WINDOW).is_some(), "those that are known are still counted");
    assert_eq!(attempts.count(&attempt("one more", 1), Duration::ZERO), None, "there is room when windows have ended");
}
