use super::{OutputLog, OutputPiece};

fn piece(text: &str, next_offset: u64, dropped_bytes: u64) -> OutputPiece {
    OutputPiece { text: text.to_owned(), next_offset, dropped_bytes }
}

#[test]
fn reading_continues_where_the_last_piece_ended() {
    let mut log = OutputLog::new(100);
    log.push(b"one\n");
    assert_eq!(log.read(0, 50, true), piece("one\n", 4, 0));
    log.push(b"two\n");
    assert_eq!(log.read(4, 50, true), piece("two\n", 8, 0));
    assert_eq!(log.read(8, 50, true), piece("", 8, 0));
    assert_eq!(log.read(1000, 50, true), piece("", 8, 0));
    assert_eq!(log.read(0, 5, true), piece("one\nt", 5, 0));
}

#[test]
fn only_the_end_of_a_long_output_is_kept_and_the_gap_is_reported() {
    let mut log = OutputLog::new(10);
    (0..100).for_each(|number| log.push(format!("{number:02}").as_bytes()));
    assert_eq!(log.total(), 200);
    let read = log.read(20, 1000, true);
    assert!(read.text.ends_with("9899") && read.text.len() < 20, "{read:?}");
    assert_eq!(read.dropped_bytes, 200 - 20 - read.text.len() as u64);
}

#[test]
fn no_character_is_cut() {
    let mut log = OutputLog::new(100);
    log.push("a€".as_bytes());
    for most in [2, 3] {
        assert_eq!(log.read(0, most, false), piece("a", 1, 0));
    }
    assert_eq!(log.read(0, 4, false), piece("a€", 4, 0));
    log.push(&"😀".as_bytes()[..3]);
    assert_eq!(log.read(4, 100, true), piece("", 4, 0), "more can come");
    assert_eq!(log.read(4, 100, false), piece("\u{fffd}", 7, 0));
    log.push(&"😀".as_bytes()[3..]);
    assert_eq!(log.read(4, 100, true), piece("😀", 8, 0));
}

#[test]
fn bytes_that_are_not_utf8_do_not_delay_the_output() {
    let mut log = OutputLog::new(100);
    log.push(&[0xff, 0xfe, b'x', 0x80]);
    assert_eq!(log.read(0, 100, true), piece("\u{fffd}\u{fffd}x\u{fffd}", 4, 0));
}
