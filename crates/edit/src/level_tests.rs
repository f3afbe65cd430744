use super::*;

#[test]
fn each_level_compares_what_it_says() {
    let line = "\t“a” – b…\u{A0} ".as_bytes();
    assert_eq!(&*Level::Exact.key(line), line);
    assert_eq!(&*Level::TrailingWhitespace.key(b"\ta \t"), b"\ta");
    assert_eq!(&*Level::Punctuation.key(line), b"\t\"a\" - b...");
    assert_eq!(&*Level::Indentation.key(b"\ta \t"), b"a");
}

#[test]
fn bytes_that_are_no_utf8_pass_through() {
    assert_eq!(&*Level::Punctuation.key(b"caf\xe9 \xe2\x80\x94 x"), b"caf\xe9 - x");
}

#[test]
fn levels_are_ordered_from_strict_to_loose() {
    assert!(Level::Exact < Level::TrailingWhitespace && Level::Punctuation < Level::Indentation);
    assert_eq!(Level::Indentation.to_string(), "indentation");
}
