//! Points in time.

/// A point in time, printed as RFC 3339 in UTC.
pub type Timestamp = jiff::Timestamp;

/// Returns the current time in whole microseconds, the precision of both databases.
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}
