use std::collections::BTreeSet;

use super::{ALLOWED, ALLOWED_HERE, MODES, MODES_HERE, OPENS, REFUSED};

#[test]
fn no_call_is_both_allowed_and_refused() {
    let allowed: BTreeSet<_> = ALLOWED.iter().chain(ALLOWED_HERE).collect();
    let refused: BTreeSet<_> = REFUSED.iter().collect();
    assert_eq!(allowed.intersection(&refused).count(), 0);
}

#[test]
fn no_call_is_named_twice() {
    let allowed: BTreeSet<_> = ALLOWED.iter().chain(ALLOWED_HERE).collect();
    assert_eq!(allowed.len(), ALLOWED.len() + ALLOWED_HERE.len());
}

#[test]
fn every_call_that_is_looked_into_is_allowed_otherwise() {
    let allowed: BTreeSet<_> = ALLOWED.iter().chain(ALLOWED_HERE).copied().collect();
    let modes = MODES.iter().chain(MODES_HERE).map(|(call, _)| *call);
    for call in modes.chain(OPENS.iter().map(|(call, ..)| *call)) {
        assert!(allowed.contains(&call), "call {call}");
    }
}
