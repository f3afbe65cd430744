use super::*;

const ALL: PageLimits = PageLimits { skip: 0, lines: usize::MAX, bytes: usize::MAX };

#[test]
fn a_final_newline_does_not_begin_one_more_line() {
    for (text, total) in [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\n\n", 2), ("a\nb", 2), ("a\r\nb\r\n", 2)] {
        let page = page(text, ALL);
        assert_eq!((page.total, page.lines.len(), page.is_truncated), (total, total, false), "{text:?}");
    }
}

#[test]
fn a_page_begins_and_ends_where_it_is_told() {
    let text = "one\ntwo\r\nthree\nfour\n";
    let part = page(text, PageLimits { skip: 1, lines: 2, ..ALL });
    assert_eq!(part.lines, [(2, "two\r"), (3, "three")]);
    assert_eq!((part.total, part.is_truncated), (4, true));
    let end = page(text, PageLimits { skip: 3, lines: 5, ..ALL });
    assert_eq!((end.lines, end.is_truncated), (vec![(4, "four")], false));
    let beyond = page(text, PageLimits { skip: 9, ..ALL });
    assert_eq!((beyond.lines.len(), beyond.total, beyond.is_truncated), (0, 4, false));
}

#[test]
fn bytes_are_bounded_between_lines_and_characters() {
    let text = "aaaa\nbbbb\ncccc\n";
    let part = page(text, PageLimits { bytes: 10, ..ALL });
    assert_eq!((part.lines.len(), part.is_truncated, part.cut_bytes), (2, true, 0));
    let part = page("ääää\nb", PageLimits { bytes: 5, ..ALL });
    assert_eq!((part.lines, part.is_truncated, part.cut_bytes), (vec![(1, "ää")], true, 4));
}
