use super::*;

#[test]
fn control_characters_of_agents_do_not_reach_the_terminal() {
    assert_eq!(visible("a\u{1b}[2Jb\tc\n"), "a\\u{1b}[2Jb\tc\n");
    assert_eq!(visible("ab\u{202e}cd"), "ab\\u{202e}cd");
    assert_eq!(one_line("a\nb\u{7}", 80), "a b\\u{7}");
    let painted = Paint { has_color: true }.diff("+x\u{1b}[8m\n");
    assert_eq!(painted, "\u{1b}[32m+x\\u{1b}[8m\u{1b}[0m\n");
}

#[test]
fn long_texts_are_cut_at_characters() {
    assert_eq!(one_line("äöüß", 3), "äö…");
    assert_eq!(one_line("äöüß", 4), "äöüß");
}

#[test]
fn a_diff_without_colours_stays_as_it_is() {
    assert_eq!(Paint { has_color: false }.diff("-a\n+b\n"), "-a\n+b\n");
}
