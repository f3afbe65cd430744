use super::*;
use proptest::prelude::*;

#[test]
fn a_final_newline_is_no_line_of_its_own() {
    assert_eq!(split(b"").len(), 0);
    assert_eq!(split(b"a\n").len(), 1);
    assert_eq!(split(b"a\nb").len(), 2);
    assert_eq!(split(b"\n\n").len(), 2);
}

#[test]
fn a_lone_carriage_return_belongs_to_the_line() {
    assert_eq!(split(b"a\rb\r")[0], Line { body: b"a\rb\r", ending: Ending::Missing, start: 0 });
}

#[test]
fn endings_agree_only_if_all_do() {
    let agreed_in = |text: &[u8]| agreed(split(text).iter().map(|line| line.ending));
    assert_eq!(agreed_in(b"a\r\nb\r\nc"), Some(Ending::CrLf));
    assert_eq!(agreed_in(b"a\r\nb\n"), None);
    assert_eq!(agreed_in(b"a"), None);
}

proptest! {
    #[test]
    fn the_lines_put_together_are_the_text(text in "[ab\r\n]{0,20}") {
        let lines = split(text.as_bytes());
        let joined: Vec<u8> = lines.iter().flat_map(|line| [line.body, line.ending.bytes()].concat()).collect();
        prop_assert_eq!(joined, text.as_bytes());
        prop_assert!(lines.windows(2).all(|pair| pair[0].end() == pair[1].start));
    }
}
