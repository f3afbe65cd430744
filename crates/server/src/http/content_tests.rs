use super::*;

#[test]
fn ranges_are_parsed_by_the_rules_of_http() {
    let part = |first, count| RequestedRange::Part(Part { first, count });
    for (range, size, expected) in [
        ("bytes=0-9", 100, part(0, 10)),
        ("bytes=90-", 100, part(90, 10)),
        ("bytes=90-500", 100, part(90, 10)),
        ("bytes=-7", 100, part(93, 7)),
        ("bytes=-700", 100, part(0, 100)),
        ("bytes=100-", 100, RequestedRange::PastTheEnd),
        ("bytes=5-4", 100, RequestedRange::WholeFile),
        ("bytes=500-600", 100, RequestedRange::PastTheEnd),
        ("bytes=0-", 0, RequestedRange::PastTheEnd),
        ("bytes=-0", 100, RequestedRange::PastTheEnd),
        ("bytes=-", 100, RequestedRange::WholeFile),
        ("bytes=a-b", 100, RequestedRange::WholeFile),
        ("bytes=0-1,4-5", 100, RequestedRange::WholeFile),
        ("lines=0-1", 100, RequestedRange::WholeFile),
    ] {
        assert_eq!(RequestedRange::parse(range, size), expected, "{range} of {size}");
    }
}
