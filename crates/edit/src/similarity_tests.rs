use super::*;
use crate::lines::split;

fn nearest_to(file: &str, wanted: &str) -> Option<Region> {
    let wanted: Vec<&[u8]> = wanted.lines().map(str::as_bytes).collect();
    nearest(&split(file.as_bytes()), &wanted, Stop::never())
}

#[test]
fn rare_lines_point_at_the_place() {
    let file = "x\n}\n}\nalpha\nbeta\ngamma\n}\n";
    assert_eq!(nearest_to(file, "alpha\nBETA\ngamma"), Some(Region { start: 3, len: 3 }));
}

#[test]
fn a_similar_line_is_found_where_none_is_the_same() {
    assert_eq!(nearest_to("one\nlet total = 1;\nthree\n", "let totals = 1;"), Some(Region { start: 1, len: 1 }));
    assert_eq!(nearest_to("one\ntwo\n", "something else"), None);
    assert_eq!(nearest_to("", "x"), None);
}

#[test]
fn similarity_counts_from_both_ends() {
    assert_eq!(similarity_percent(b"abcdef", b"abXdef"), 83);
    assert_eq!(similarity_percent(b"  abc", b"ABC  "), 100);
    assert_eq!(similarity_percent(b"", b"a"), 0);
}
