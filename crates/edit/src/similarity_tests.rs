use super::*;
use crate::lines::split;

fn most_similar(file: &str, wanted: &str) -> Option<LineRange> {
    let wanted: Vec<&[u8]> = wanted.lines().map(str::as_bytes).collect();
    most_similar_range(&split(file.as_bytes()), &wanted, StopFlag::never())
}

#[test]
fn equal_rare_lines_determine_the_range() {
    let file = "x\n}\n}\nalpha\nbeta\ngamma\n}\n";
    assert_eq!(most_similar(file, "alpha\nBETA\ngamma"), Some(LineRange { start: 3, len: 3 }));
}

#[test]
fn a_similar_line_is_found_if_no_line_is_equal() {
    assert_eq!(most_similar("one\nlet total = 1;\nthree\n", "let totals = 1;"), Some(LineRange { start: 1, len: 1 }));
    assert_eq!(most_similar("one\ntwo\n", "something else"), None);
    assert_eq!(most_similar("", "x"), None);
}

#[test]
fn similarity_counts_from_both_ends() {
    assert_eq!(similarity_percent(b"abcdef", b"abXdef"), 83);
    assert_eq!(similarity_percent(b"  abc", b"ABC  "), 100);
    assert_eq!(similarity_percent(b"", b"a"), 0);
}
