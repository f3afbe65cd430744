use super::*;
use proptest::prelude::*;

#[test]
fn a_final_newline_does_not_start_a_line() {
    assert_eq!(split(b"").len(), 0);
    assert_eq!(split(b"a\n").len(), 1);
    assert_eq!(split(b"a\nb").len(), 2);
    assert_eq!(split(b"\n\n").len(), 2);
}

#[test]
fn a_text_of_the_maximum_number_of_lines_is_split() {
    for (text, lines) in [("", 0), ("\n", 1), ("a", 1), ("a\nb", 2), ("a\nb\n", 2), ("\n\n\n", 3)] {
        assert_eq!(split_limited(text.as_bytes(), lines).unwrap().len(), lines, "{text:?}");
        assert!(lines == 0 || split_limited(text.as_bytes(), lines - 1).is_none(), "{text:?}");
    }
}

#[test]
fn a_lone_carriage_return_belongs_to_the_line() {
    assert_eq!(split(b"a\rb\r")[0], Line { body: b"a\rb\r", ending: LineEnding::Missing, start: 0 });
}

#[test]
fn a_common_ending_is_one_that_all_lines_have() {
    let common_in = |text: &[u8]| common_ending(split(text).iter().map(|line| line.ending));
    assert_eq!(common_in(b"a\r\nb\r\nc"), Some(LineEnding::CrLf));
    assert_eq!(common_in(b"a\r\nb\n"), None);
    assert_eq!(common_in(b"a"), None);
}

proptest! {
    #[test]
    fn the_lines_joined_are_the_text(text in "[ab\r\n]{0,20}") {
        let lines = split(text.as_bytes());
        let joined: Vec<u8> = lines.iter().flat_map(|line| [line.body, line.ending.bytes()].concat()).collect();
        prop_assert_eq!(joined, text.as_bytes());
        prop_assert!(lines.windows(2).all(|pair| pair[0].end() == pair[1].start));
    }
}
