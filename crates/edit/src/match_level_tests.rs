use super::*;

#[test]
fn each_level_compares_without_what_it_ignores() {
    let line = "\t“a” – b…\u{A0} ".as_bytes();
    assert_eq!(&*MatchLevel::Exact.comparison_key(line), line);
    assert_eq!(&*MatchLevel::TrailingWhitespace.comparison_key(b"\ta \t"), b"\ta");
    assert_eq!(&*MatchLevel::Punctuation.comparison_key(line), b"\t\"a\" - b...");
    assert_eq!(&*MatchLevel::Indentation.comparison_key(b"\ta \t"), b"a");
}

#[test]
fn bytes_that_are_not_utf8_are_kept() {
    assert_eq!(&*MatchLevel::Punctuation.comparison_key(b"caf\xe9 \xe2\x80\x94 x"), b"caf\xe9 - x");
}

#[test]
fn levels_are_ordered_from_strict_to_loose() {
    assert!(MatchLevel::Exact < MatchLevel::TrailingWhitespace && MatchLevel::Punctuation < MatchLevel::Indentation);
    assert_eq!(MatchLevel::Indentation.to_string(), "indentation");
}
