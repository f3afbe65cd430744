use std::time::Duration;

use super::Limits;

#[test]
fn limits_are_capped_by_the_ceiling() {
    let asked = Limits { wall: Duration::from_secs(5), memory_bytes: 8 << 30, ..Limits::default() };
    let capped = asked.capped(&Limits::default());
    assert_eq!(capped, Limits { wall: Duration::from_secs(5), ..Limits::default() });
}

#[test]
fn only_limits_below_the_minimum_are_raised() {
    let little = Limits { memory_bytes: 4096, processes: 1, disk_bytes: 0, ..Limits::default() };
    let raised_to_minimum = little.raised_to_minimum();
    assert_eq!(
        (raised_to_minimum.memory_bytes, raised_to_minimum.processes, raised_to_minimum.disk_bytes),
        (16 << 20, 4, 0)
    );
    assert_eq!(Limits::default().raised_to_minimum(), Limits::default());
}
