use super::*;
use crate::error::ErrorKind;
use proptest::prelude::*;

const LIMIT: Limits = Limits::of_bytes(10_000);

fn edit<'a>(old: &'a str, new: &'a str, occurrences: Occurrences, leniency: Leniency) -> Edit<'a> {
    Edit { old: old.as_bytes(), new: new.as_bytes(), occurrences, leniency }
}

fn text(replaced: Result<ReplaceResult, EditError>) -> Result<String, EditError> {
    replaced.map(|replaced| String::from_utf8(replaced.text).unwrap())
}

fn single(within: &str, old: &str, new: &str) -> Result<String, EditError> {
    text(replace(within.as_bytes(), &edit(old, new, Occurrences::Single, Leniency::Exact), LIMIT))
}

fn all(within: &str, old: &str, new: &str) -> Result<String, EditError> {
    text(replace(within.as_bytes(), &edit(old, new, Occurrences::All, Leniency::Exact), LIMIT))
}

fn fuzzy(within: &str, old: &str, new: &str) -> Result<(String, MatchLevel), EditError> {
    let replaced = replace(within.as_bytes(), &edit(old, new, Occurrences::Single, Leniency::Fuzzy), LIMIT)?;
    Ok((String::from_utf8(replaced.text).unwrap(), replaced.level))
}

#[test]
fn the_replacement_is_literal() {
    assert_eq!(single("a b c", "b", "$1 \\0 &").unwrap(), "a $1 \\0 & c");
}

#[test]
fn nothing_but_the_match_changes() {
    assert_eq!(single("a\r\nb\nc\r", "b", "B").unwrap(), "a\r\nB\nc\r");
}

#[test]
fn a_difference_only_in_line_endings_is_ignored() {
    assert_eq!(single("one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2").unwrap(), "1\r\n2\r\nthree\r\n");
    assert_eq!(single("one\ntwo\n", "one\r\ntwo", "1").unwrap(), "1\n");
    assert_eq!(single("é\r\nb\r\nc", "b\nc", "x").unwrap(), "é\r\nx");
    assert_eq!(single("a\r\nb\nc\r\nd", "a\nb\nc\n", "A\nB\nC\n").unwrap(), "A\r\nB\nC\r\nd");
}

#[test]
fn new_lines_get_the_ending_of_the_file() {
    assert_eq!(single("a\r\nb\r\n", "a", "a\nnew").unwrap(), "a\r\nnew\r\nb\r\n");
    assert_eq!(single("a\r\nb\n", "b", "b\nnew").unwrap(), "a\r\nb\nnew\n", "mixed endings are left as given");
}

#[test]
fn a_match_never_separates_a_carriage_return_from_its_newline() {
    assert_eq!(single("a\r\nb\r\nc", "\nb", "").unwrap(), "a\r\nc");
    assert_eq!(single("a\r\nb\r\nc", "b\n", "").unwrap(), "a\r\nc");
    assert_eq!(single("a\r\r\nb", "\nb", "").unwrap(), "a\r");
}

#[test]
fn matches_with_different_endings_are_all_found() {
    let within = "a\nb\n--\na\r\nb\r\n";
    assert_eq!(single(within, "a\nb", "x").unwrap_err().kind(), ErrorKind::NotUnique);
    assert_eq!(all(within, "a\nb", "x\ny").unwrap(), "x\ny\n--\nx\r\ny\r\n");
}

#[test]
fn an_edit_that_changes_only_endings_keeps_the_given_endings() {
    assert_eq!(single("a\nb\n", "a\n", "a\r\n").unwrap(), "a\r\nb\n");
    assert_eq!(all("a\r\nb\r\n", "\r\n", "\n").unwrap(), "a\nb\n");
}

#[test]
fn a_result_that_would_be_too_large_is_refused_before_it_is_built() {
    let within = "a".repeat(5_000);
    let error = all(&within, "a", &"b".repeat(20_000_000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(all(&within, "a", "b").is_ok());
}

#[test]
fn a_long_text_is_searched_for_in_a_long_file_in_linear_time() {
    let within = "a".repeat(4_000_000);
    assert_eq!(single(&within, &within[..2_000_000], "b").unwrap_err().kind(), ErrorKind::NotUnique);
    let missing = format!("{}b", &within[..2_000_000]);
    assert_eq!(single(&within, &missing, "b").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fuzzy(&within, &missing, "b").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_text_that_is_not_found_is_refused() {
    assert_eq!(single("abc", "x", "y").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(single("abc", "", "y").unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn an_ambiguous_text_is_refused_with_the_lines_of_its_matches() {
    let error = single("x\ny\nx\n", "x", "z").unwrap_err();
    assert!(matches!(&error, EditError::NotUnique { lines, count: 2, .. } if *lines == [1, 3]), "{error}");
    assert_eq!(single("aaa", "aa", "b").unwrap_err().kind(), ErrorKind::NotUnique, "overlapping matches count");
}

#[test]
fn all_occurrences_are_replaced_without_overlap() {
    assert_eq!(all("aaaa", "aa", "b").unwrap(), "bb");
    assert_eq!(all("ababa", "aba", "x").unwrap(), "xba");
    assert_eq!(all("é é", "é", "e").unwrap(), "e e");
    assert_eq!(all("a", "x", "e").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn trailing_whitespace_is_ignored_only_by_a_fuzzy_edit() {
    let within = "one  \r\ntwo\t\r\nthree\r\n";
    let (result, level) = fuzzy(within, "one\ntwo\n", "1\n2\n").unwrap();
    assert_eq!((result.as_str(), level), ("1\r\n2\r\nthree\r\n", MatchLevel::TrailingWhitespace));
    let error = single(within, "one\ntwo\n", "1").unwrap_err();
    assert!(
        matches!(&error, EditError::NotFound { looser_level: Some(MatchLevel::TrailingWhitespace), .. }),
        "{error}"
    );
    let message = error.to_string();
    assert!(message.contains("lines 1 to 2 would match if whitespace at the ends of lines did not count"), "{message}");
    assert!(message.contains("First difference at line 1: trailing whitespace"), "{message}");
}

#[test]
fn whitespace_at_the_end_of_the_old_text_matches_only_at_the_end_of_a_line() {
    assert_eq!(fuzzy("a\nret xyz\n", "ret x  ", "y").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(fuzzy("a\nret x\n", "ret x  ", "y").unwrap().0, "a\ny\n");
}

#[test]
fn typographic_characters_match_ascii_ones() {
    let (result, level) = fuzzy("say “hi” — now…\nbye\n", "\"hi\" - now...", "'ho'").unwrap();
    assert_eq!((result.as_str(), level), ("say 'ho'\nbye\n", MatchLevel::Punctuation));
    assert_eq!(fuzzy("a\u{A0}b\u{A0}\nc", "a b\nc", "x").unwrap().0, "x");
    assert_eq!(fuzzy("x = 'a'\n", "x = ‘a’", "y").unwrap().0, "y\n");
    assert_eq!(fuzzy("wait… now", "..", "x").unwrap_err().kind(), ErrorKind::NotFound, "no part of a character");
}

#[test]
fn the_new_text_is_indented_like_the_file() {
    let within = "fn a() {\n        if x {\n            y();\n        }\n}\n";
    let (result, level) = fuzzy(within, "if x {\n    y();\n}\n", "if z {\n    w();\n\n    v();\n}\n").unwrap();
    assert_eq!(level, MatchLevel::Indentation);
    assert_eq!(result, "fn a() {\n        if z {\n            w();\n\n            v();\n        }\n}\n");
    let (result, _) = fuzzy("a\n  b\n", "    a\n      b", "    c").unwrap();
    assert_eq!(result, "c\n");
}

#[test]
fn spaces_in_the_new_text_become_tabs_if_the_file_has_tabs() {
    let within = "{\n\tif x {\n\t\ty();\n\t}\n}\n";
    let (result, _) = fuzzy(within, "    if x {\n        y();\n    }", "    if x {\n        z();\n    }").unwrap();
    assert_eq!(result, "{\n\tif x {\n\t\tz();\n\t}\n}\n");
}

#[test]
fn a_text_that_ends_within_a_line_ending_is_found() {
    assert_eq!(single("a\nb\r\nc", "a\nb\r", "x").unwrap(), "x\nc");
    assert_eq!(all("a\r\n\r\na\r\n\r\n", "\n\r", "x").unwrap(), "a\rx\na\rx\n");
}

#[test]
fn a_looser_level_must_have_exactly_one_match() {
    let error = fuzzy("a \nb\n--\na  \nb\n", "a\nb", "x").unwrap_err();
    assert!(matches!(&error, EditError::NotUnique { lines, .. } if *lines == [1, 4]), "{error}");
    let neighbours = "  a\n  a\n";
    assert_eq!(fuzzy(neighbours, "      a\n", "      b\n").unwrap_err().kind(), ErrorKind::NotUnique);
    assert_eq!(
        fuzzy("  \n \n", "   \n", "x").unwrap_err().kind(),
        ErrorKind::NotFound,
        "whitespace alone is not matched"
    );
}

#[test]
fn matches_beyond_the_limit_still_make_a_match_ambiguous() {
    let similar_lines = "a\n    b\n".repeat(120);
    let within = format!("{}  a\n    b\n{similar_lines}  a\n    b\n", &similar_lines[..8 * 99]);
    assert_eq!(fuzzy(&within, "a\n  b\n", "c\n").unwrap_err().kind(), ErrorKind::NotUnique);
    let everywhere = "a\n    b\n".repeat(20_000);
    let within = format!("  a\n    b\n{everywhere}");
    assert_eq!(fuzzy(&within, "a\n  b\n", "c\n").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_match_that_the_new_text_does_not_fit_still_makes_the_other_ambiguous() {
    let within = "\ta\n--\na\n";
    assert_eq!(fuzzy(within, "  a\n", "b\n").unwrap_err().kind(), ErrorKind::NotUnique);
    assert_eq!(fuzzy("a\n", "  a\n", "b\n").unwrap_err().kind(), ErrorKind::NotFound, "b cannot be moved to the left");
}

#[test]
fn bytes_that_are_not_utf8_are_found_and_kept() {
    let edit = Edit { old: b"\xe9t", new: b"\xe8", occurrences: Occurrences::Single, leniency: Leniency::Exact };
    assert_eq!(replace(b"caf\xe9t\xff", &edit, LIMIT).unwrap().text, b"caf\xe8\xff");
}

#[test]
fn edits_in_order_see_the_ones_before_and_fail_together() {
    let edits = [
        edit("a", "b", Occurrences::Single, Leniency::Exact),
        edit("b", "c", Occurrences::All, Leniency::Exact),
        edit("x", "y", Occurrences::Single, Leniency::Exact),
    ];
    let done = replace_in_order(b"a b", &edits[..2], LIMIT).unwrap();
    assert_eq!((done.text.as_slice(), done.edits), (&b"c c"[..], vec![(1, MatchLevel::Exact), (2, MatchLevel::Exact)]));
    let error = replace_in_order(b"a b", &edits, LIMIT).unwrap_err();
    assert!(matches!(&error, EditError::Edit { number: 3, count: 3, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

proptest! {
    #[test]
    fn replacing_all_is_what_the_standard_library_does(within in "[ab]{0,12}", old in "[ab]{1,3}", new in "[xy]{0,3}") {
        let expected = within.replace(&old, &new);
        match all(&within, &old, &new) {
            Ok(replaced) => prop_assert_eq!(replaced, expected),
            Err(_) => prop_assert!(!within.contains(&old)),
        }
    }

    #[test]
    fn the_text_around_a_match_keeps_its_bytes(
        before in "[ab \t\r\n“…]{0,8}", after in "[ab \t\r\n“…]{0,8}", spread in "[ \t]{0,2}\r?\n"
    ) {
        let within = format!("{before}X{spread}“Y”{after}");
        for leniency in [Leniency::Exact, Leniency::Fuzzy] {
            let edit = edit("X\n\"Y\"", "Z", Occurrences::Single, leniency);
            if let Ok(replaced) = replace(within.as_bytes(), &edit, LIMIT) {
                prop_assert_eq!(String::from_utf8(replaced.text).unwrap(), format!("{}Z{}", before, after));
            }
        }
    }

    #[test]
    fn any_old_and_new_text_is_handled(within in "[ab \t\r\n“…]{0,20}", old in "[ab \t\r\n\"….]{1,6}", new in "[ab\r\n]{0,6}") {
        for occurrences in [Occurrences::Single, Occurrences::All] {
            for leniency in [Leniency::Exact, Leniency::Fuzzy] {
                let replaced = replace(within.as_bytes(), &edit(&old, &new, occurrences, leniency), LIMIT);
                if let Ok(replaced) = replaced {
                    prop_assert!(String::from_utf8(replaced.text).is_ok());
                }
            }
        }
    }
}
