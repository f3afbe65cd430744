use super::*;
use toolrest_core::json_string_bytes;

const ALL: PageLimits = PageLimits { skip: 0, lines: usize::MAX, bytes: usize::MAX, separator: ':' };

fn all_of(text: &str, limits: PageLimits) -> LinePage {
    page(text, limits, usize::MAX).unwrap()
}

#[test]
fn a_final_newline_does_not_start_another_line() {
    for (text, total) in [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\n\n", 2), ("a\nb", 2), ("a\r\nb\r\n", 2)] {
        let page = all_of(text, ALL);
        let shown = page.text.matches(':').count();
        assert_eq!((page.total, shown, page.is_truncated), (total, total, false), "{text:?}");
    }
}

#[test]
fn a_page_has_the_requested_lines() {
    let text = "one\ntwo\r\nthree\nfour\n";
    let part = all_of(text, PageLimits { skip: 1, lines: 2, ..ALL });
    assert_eq!(part.text, "     2:two\r\n     3:three");
    assert_eq!((part.total, part.is_truncated), (4, true));
    let end = all_of(text, PageLimits { skip: 3, lines: 5, ..ALL });
    assert_eq!((end.text.as_str(), end.is_truncated), ("     4:four", false));
    let beyond = all_of(text, PageLimits { skip: 9, ..ALL });
    assert_eq!((beyond.text.as_str(), beyond.total, beyond.is_truncated), ("", 4, false));
}

#[test]
fn a_page_is_cut_between_lines_or_characters() {
    let text = "aaaa\nbbbb\ncccc\n";
    let part = all_of(text, PageLimits { bytes: 10, ..ALL });
    assert_eq!((part.text.as_str(), part.is_truncated, part.cut_bytes), ("     1:aaaa\n     2:bbbb", true, 0));
    let part = all_of("ääää\nb", PageLimits { bytes: 5, ..ALL });
    assert_eq!((part.text.as_str(), part.is_truncated, part.cut_bytes), ("     1:ää", true, 4));
}

#[test]
fn a_text_in_pieces_gives_the_same_page_as_the_whole_text() {
    let text = "erste\nzweite ä\n\nvierte 🐢🐢🐢\r\nlast";
    for skip in 0..6 {
        for lines in 1..6 {
            for bytes in [1, 3, 7, 20, usize::MAX] {
                for answer_bytes in [10, 40, usize::MAX] {
                    let limits = PageLimits { skip, lines, bytes, separator: '→' };
                    let whole = page(text, limits, answer_bytes);
                    for size in 1..9 {
                        let mut pager = Pager::new(limits, answer_bytes);
                        text.as_bytes().chunks(size).for_each(|piece| pager.feed(piece));
                        assert_eq!(pager.finish(), whole, "{limits:?} in pieces of {size}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_page_that_does_not_fit_into_an_answer_is_refused_early() {
    for text in ["\n\n\n", "one\ntwo", "\u{1}\u{2}\t\"\\ä\n", "a line without an end", ""] {
        let limits = PageLimits { separator: '\t', ..ALL };
        let whole = all_of(text, limits);
        let bytes = json_string_bytes(&whole.text) - 2;
        assert_eq!(page(text, limits, bytes), Some(whole), "{text:?}");
        assert!(bytes == 0 || page(text, limits, bytes - 1).is_none(), "{text:?}");
    }
    let mut pager = Pager::new(ALL, 1_000);
    pager.feed("\n".repeat(1_000_000).as_bytes());
    assert!(pager.is_over() && pager.page.text.capacity() < 4_000);
    let mut pager = Pager::new(ALL, 1_000);
    (0..1_000).for_each(|_| pager.feed(&[b'x'; 1_000]));
    assert!(pager.is_over() && pager.line.capacity() < 4_000);
}
