use super::*;
use crate::{Dialect, ToolError, Toolset};
use std::sync::Arc;

struct NoDialect;

impl Dialect for NoDialect {
    fn success(&self, _: &crate::Success<'_>) -> Vec<u8> {
        Vec::new()
    }

    fn failure(&self, _: &ToolError, _: &str) -> Vec<u8> {
        Vec::new()
    }

    fn status(&self, _: &ToolError) -> u16 {
        500
    }
}

fn metrics() -> CallMetrics {
    CallMetrics::new(&Toolsets::default().with(Toolset::new("set", Arc::new(NoDialect))))
}

#[test]
fn unknown_names_share_one_set_of_counters() {
    let metrics = metrics();
    assert_eq!(metrics.counts(), []);
    for name in ["a", "b", "set\"} 1\n"] {
        metrics.begin("set", name).end(Some(ErrorKind::UnknownTool));
    }
    metrics.begin("no such toolset", "a").end(None);
    let counts = metrics.counts();
    assert_eq!(counts.len(), 1);
    assert_eq!((counts[0].toolset, counts[0].tool, counts[0].ok), ("set", UNKNOWN_TOOL, 0));
    assert_eq!(counts[0].errors, [(ErrorKind::UnknownTool, 3)]);
}

#[test]
fn a_call_is_under_way_until_it_ends_and_an_abandoned_one_is_cancelled() {
    let metrics = metrics();
    let (first, second) = (metrics.begin("set", "a"), metrics.begin("set", "b"));
    assert_eq!(metrics.under_way(), 2);
    first.end(None);
    drop(second);
    assert_eq!(metrics.under_way(), 0);
    let counts = metrics.counts();
    assert_eq!((counts[0].ok, &counts[0].errors[..]), (1, &[(ErrorKind::Cancelled, 1)][..]));
}

#[test]
fn a_duration_is_counted_in_the_first_bucket_that_it_fits_into() {
    let tool = ToolMetrics::new();
    for us in [0, 500, 501, 60_000_000, 60_000_001] {
        tool.observe(Duration::from_micros(us), None);
    }
    let counts = tool.counts("set", "a");
    assert_eq!((counts.buckets[0], counts.buckets[1], counts.buckets[15], counts.buckets[16]), (2, 1, 1, 1));
    assert_eq!((counts.ok, counts.total_us), (5, 120_001_002));
}

#[test]
fn every_kind_of_error_has_a_counter() {
    let tool = ToolMetrics::new();
    for kind in ErrorKind::ALL {
        tool.observe(Duration::ZERO, Some(kind));
    }
    assert_eq!(tool.counts("set", "a").errors, ErrorKind::ALL.map(|kind| (kind, 1)));
}
