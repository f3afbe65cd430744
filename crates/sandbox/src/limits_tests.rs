use std::time::Duration;

use super::Limits;

#[test]
fn what_is_asked_for_holds_below_the_ceiling_only() {
    let asked = Limits { wall: Duration::from_secs(5), memory_bytes: 8 << 30, ..Limits::default() };
    let capped = asked.capped(&Limits::default());
    assert_eq!(capped, Limits { wall: Duration::from_secs(5), ..Limits::default() });
}
