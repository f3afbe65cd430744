use std::time::Duration;

use super::Limits;

#[test]
fn what_is_asked_for_holds_below_the_ceiling_only() {
    let asked = Limits { wall: Duration::from_secs(5), memory_bytes: 8 << 30, ..Limits::default() };
    let capped = asked.capped(&Limits::default());
    assert_eq!(capped, Limits { wall: Duration::from_secs(5), ..Limits::default() });
}

#[test]
fn what_is_too_little_is_raised_and_the_rest_stays() {
    let little = Limits { memory_bytes: 4096, processes: 1, disk_bytes: 0, ..Limits::default() };
    let raised = little.raised();
    assert_eq!((raised.memory_bytes, raised.processes, raised.disk_bytes), (16 << 20, 4, 0));
    assert_eq!(Limits::default().raised(), Limits::default());
}
