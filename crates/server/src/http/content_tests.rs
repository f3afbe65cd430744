use super::*;

#[test]
fn ranges_are_read_as_http_has_them() {
    let part = |first, count| Asked::For(Part { first, count });
    for (range, size, expected) in [
        ("bytes=0-9", 100, part(0, 10)),
        ("bytes=90-", 100, part(90, 10)),
        ("bytes=90-500", 100, part(90, 10)),
        ("bytes=-7", 100, part(93, 7)),
        ("bytes=-700", 100, part(0, 100)),
        ("bytes=100-", 100, Asked::PastTheEnd),
        ("bytes=5-4", 100, Asked::Everything),
        ("bytes=500-600", 100, Asked::PastTheEnd),
        ("bytes=0-", 0, Asked::PastTheEnd),
        ("bytes=-0", 100, Asked::PastTheEnd),
        ("bytes=-", 100, Asked::Everything),
        ("bytes=a-b", 100, Asked::Everything),
        ("bytes=0-1,4-5", 100, Asked::Everything),
        ("lines=0-1", 100, Asked::Everything),
    ] {
        assert_eq!(Asked::by(range, size), expected, "{range} of {size}");
    }
}
