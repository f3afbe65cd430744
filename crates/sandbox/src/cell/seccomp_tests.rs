use std::collections::BTreeSet;

use super::{ALLOWED, ALLOWED_ON_THIS_ARCHITECTURE, REFUSED, arguments};

#[test]
fn no_call_is_both_allowed_and_refused() {
    let allowed: BTreeSet<_> = ALLOWED.iter().chain(ALLOWED_ON_THIS_ARCHITECTURE).collect();
    let refused: BTreeSet<_> = REFUSED.iter().collect();
    assert_eq!(allowed.intersection(&refused).count(), 0);
}

#[test]
fn no_call_is_listed_twice() {
    let allowed: BTreeSet<_> = ALLOWED.iter().chain(ALLOWED_ON_THIS_ARCHITECTURE).collect();
    assert_eq!(allowed.len(), ALLOWED.len() + ALLOWED_ON_THIS_ARCHITECTURE.len());
}

#[test]
fn every_call_with_argument_rules_is_in_the_allowed_list() {
    let allowed: BTreeSet<_> = ALLOWED.iter().chain(ALLOWED_ON_THIS_ARCHITECTURE).copied().collect();
    for (_, rules) in arguments::refusals().unwrap() {
        for call in rules.keys() {
            assert!(allowed.contains(call), "call {call}");
        }
    }
}
