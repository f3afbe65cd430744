use super::*;
use proptest::prelude::*;

const LIMIT: usize = 10_000;

fn only(text: &str, old: &str, new: &str) -> Result<String> {
    replace(text, old, new, Occurrences::Only, &WsPath::root(), LIMIT)
}

fn all(text: &str, old: &str, new: &str) -> Result<String> {
    replace(text, old, new, Occurrences::All, &WsPath::root(), LIMIT)
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
fn a_match_never_parts_a_carriage_return_from_its_newline() {
    assert_eq!(only("a\r\nb\r\nc", "\nb", "").unwrap(), "a\r\nc");
    assert_eq!(only("a\r\nb\r\nc", "b\n", "").unwrap(), "a\r\nc");
}

#[test]
fn places_that_differ_in_their_endings_alone_are_all_found() {
    let text = "a\nb\n--\na\r\nb\r\n";
    assert_eq!(only(text, "a\nb", "x").unwrap_err().kind, ErrorKind::FindNotUnique);
    assert_eq!(all(text, "a\nb", "x\ny").unwrap(), "x\ny\n--\nx\r\ny\r\n");
}

#[test]
fn an_edit_of_nothing_but_endings_is_taken_as_given() {
    assert_eq!(only("a\nb\n", "a\n", "a\r\n").unwrap(), "a\r\nb\n");
    assert_eq!(all("a\r\nb\r\n", "\r\n", "\n").unwrap(), "a\nb\n");
}

#[test]
fn a_result_that_would_be_too_large_is_refused_before_it_is_made() {
    let text = "a".repeat(5_000);
    let error = all(&text, "a", &"b".repeat(20_000_000)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PayloadTooLarge);
    assert!(all(&text, "a", "b").is_ok());
}

#[test]
fn a_long_search_in_a_long_text_takes_no_time() {
    let text = "a".repeat(4_000_000);
    let error = replace(&text, &text[..2_000_000], "b", Occurrences::Only, &WsPath::root(), LIMIT).unwrap_err();
    assert_eq!(error.kind, ErrorKind::FindNotUnique);
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
fn all_occurrences_are_replaced_without_overlap() {
    assert_eq!(all("aaaa", "aa", "b").unwrap(), "bb");
    assert_eq!(all("ababa", "aba", "x").unwrap(), "xba");
    assert_eq!(all("é é", "é", "e").unwrap(), "e e");
    assert_eq!(all("a", "x", "e").unwrap_err().kind, ErrorKind::FindNotFound);
}

proptest! {
    #[test]
    fn replacing_all_is_what_the_standard_library_does(text in "[ab]{0,12}", old in "[ab]{1,3}", new in "[xy]{0,3}") {
        let expected = text.replace(&old, &new);
        match all(&text, &old, &new) {
            Ok(replaced) => prop_assert_eq!(replaced, expected),
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
