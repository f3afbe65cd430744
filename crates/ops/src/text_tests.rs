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
    assert_eq!(part.lines, [(2, "two\r".to_owned()), (3, "three".to_owned())]);
    assert_eq!((part.total, part.is_truncated), (4, true));
    let end = page(text, PageLimits { skip: 3, lines: 5, ..ALL });
    assert_eq!((end.lines, end.is_truncated), (vec![(4, "four".to_owned())], false));
    let beyond = page(text, PageLimits { skip: 9, ..ALL });
    assert_eq!((beyond.lines.len(), beyond.total, beyond.is_truncated), (0, 4, false));
}

#[test]
fn bytes_are_bounded_between_lines_and_characters() {
    let text = "aaaa\nbbbb\ncccc\n";
    let part = page(text, PageLimits { bytes: 10, ..ALL });
    assert_eq!((part.lines.len(), part.is_truncated, part.cut_bytes), (2, true, 0));
    let part = page("ääää\nb", PageLimits { bytes: 5, ..ALL });
    assert_eq!((part.lines, part.is_truncated, part.cut_bytes), (vec![(1, "ää".to_owned())], true, 4));
}

#[test]
fn a_text_in_pieces_gives_the_same_page_as_the_whole() {
    let text = "erste\nzweite ä\n\nvierte 🐢🐢🐢\r\nlast";
    for skip in 0..6 {
        for lines in 1..6 {
            for bytes in [1, 3, 7, 20, usize::MAX] {
                let limits = PageLimits { skip, lines, bytes };
                let whole = page(text, limits);
                for size in 1..9 {
                    let mut pager = Pager::new(limits);
                    text.as_bytes().chunks(size).for_each(|piece| pager.feed(piece));
                    assert_eq!(pager.finish(), whole, "{limits:?} in pieces of {size}");
                }
            }
        }
    }
}
