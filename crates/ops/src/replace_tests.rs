use super::*;
use proptest::prelude::*;

fn only(text: &str, old: &str, new: &str) -> Result<String> {
    replace(text, old, new, Occurrences::Only, &WsPath::root()).map(|(text, _)| text)
}

#[test]
fn the_replacement_is_literal() {
    assert_eq!(only("a b c", "b", "$1 \\0 &").unwrap(), "a $1 \\0 & c");
}

#[test]
fn nothing_but_the_match_changes() {
    assert_eq!(only("a\r\nb\nc\r", "b", "B").unwrap(), "a\r\nB\nc\r");
}

#[test]
fn a_difference_in_line_endings_alone_does_not_count() {
    assert_eq!(only("one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2").unwrap(), "1\r\n2\r\nthree\r\n");
    assert_eq!(only("one\ntwo\n", "one\r\ntwo", "1").unwrap(), "1\n");
    assert_eq!(only("é\r\nb\r\nc", "b\nc", "x").unwrap(), "é\r\nx");
    assert_eq!(only("a\r\nb\nc\r\nd", "a\nb\nc\n", "A\nB\nC\n").unwrap(), "A\r\nB\nC\r\nd");
}

#[test]
fn lines_that_come_in_take_the_ending_of_the_file() {
    assert_eq!(only("a\r\nb\r\n", "a", "a\nnew").unwrap(), "a\r\nnew\r\nb\r\n");
    assert_eq!(only("a\r\nb\n", "b", "b\nnew").unwrap(), "a\r\nb\nnew\n", "mixed endings are left as given");
}

#[test]
fn a_text_that_is_not_there_is_refused() {
    let error = only("abc", "x", "y").unwrap_err();
    assert_eq!(error.kind, ErrorKind::FindNotFound);
    assert!(error.message.contains("\"x\""));
    assert_eq!(only("abc", "", "y").unwrap_err().kind, ErrorKind::InvalidArgument);
}

#[test]
fn an_ambiguous_text_is_refused_naming_the_lines() {
    let error = only("x\ny\nx\n", "x", "z").unwrap_err();
    assert_eq!(error.kind, ErrorKind::FindNotUnique);
    assert!(error.message.contains("2 times") && error.message.contains("lines 1, 3"), "{}", error.message);
    assert_eq!(only("aaa", "aa", "b").unwrap_err().kind, ErrorKind::FindNotUnique, "overlapping places count");
}

#[test]
fn all_occurrences_are_counted_without_overlap() {
    let all = |text, old, new| replace(text, old, new, Occurrences::All, &WsPath::root()).unwrap();
    assert_eq!(all("aaaa", "aa", "b"), ("bb".into(), 2));
    assert_eq!(all("ababa", "aba", "x"), ("xba".into(), 1));
    assert_eq!(all("é é", "é", "e"), ("e e".into(), 2));
}

proptest! {
    #[test]
    fn replacing_all_is_what_the_standard_library_does(text in "[ab]{0,12}", old in "[ab]{1,3}", new in "[xy]{0,3}") {
        let expected = text.replace(&old, &new);
        match replace(&text, &old, &new, Occurrences::All, &WsPath::root()) {
            Ok((replaced, _)) => prop_assert_eq!(replaced, expected),
            Err(_) => prop_assert!(!text.contains(&old)),
        }
    }

    #[test]
    fn the_text_around_a_match_across_endings_keeps_its_bytes(before in "[ab\r\n]{0,8}", after in "[ab\r\n]{0,8}") {
        let text = format!("{before}X\r\nY{after}");
        if let Ok(replaced) = only(&text, "X\nY", "Z") {
            prop_assert_eq!(replaced, format!("{before}Z{after}"));
        }
    }
}
