use super::*;
use proptest::prelude::*;
use std::fs;
use std::ops::Range;
use toolrest_directory::Root;

/// A line with its number and what is shown around it.
type Shown = (u64, String, Vec<String>, Vec<String>);

/// All lines of a file as they are shown, with windows of a size.
fn lines(bytes: &[u8], context: usize, window_bytes: usize, largest_window_bytes: usize) -> (Outcome, Vec<Shown>) {
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    fs::write(place.path().join("file"), bytes).unwrap();
    let file = Root::open(place.path()).unwrap().open_reader("file".as_ref()).unwrap();
    let mut contents = Contents { buffer: Vec::new(), window_bytes, largest_window_bytes };
    let mut shown = Vec::new();
    let take = |piece: Piece<'_>| {
        let mut start = piece.part.start;
        let lines = piece.text[piece.part.clone()].split_inclusive(|byte| *byte == b'\n');
        for (number, line) in (piece.first_line..).zip(lines) {
            let range: Range<usize> = start..start + line.strip_suffix(b"\n").unwrap_or(line).len();
            let (before, after) = toolrest_core::lines_around(piece.text, &range, context);
            shown.push((number, toolrest_core::line_text(&piece.text[range]), before, after));
            start += line.len();
        }
        Ok(true)
    };
    let far = std::time::Instant::now() + std::time::Duration::from_secs(600);
    let outcome = contents.in_pieces(file, context, &Interrupt::at(far), take).unwrap();
    (outcome, shown)
}

proptest! {
    #[test]
    fn a_file_in_pieces_shows_what_it_shows_in_one(
        text in "(\u{feff})?([abc]{0,9}\n){0,40}[abc]{0,9}",
        context in 0..4_usize,
        window in 10..60_usize,
    ) {
        let whole = lines(text.as_bytes(), context, 1 << 20, 1 << 20);
        prop_assert_eq!(lines(text.as_bytes(), context, window, 1 << 20), whole);
    }

    #[test]
    fn utf_16_is_read_as_the_text_that_it_is(text in "([a-cäß€😀]{0,9}\n){0,20}[a-c😀]{0,9}", big: bool, window in 10..60_usize) {
        let unit = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        let bytes: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(unit).collect();
        let plain = lines(text.as_bytes(), 1, 1 << 20, 1 << 20);
        prop_assert_eq!(&lines(&bytes, 1, window, 1 << 20), &plain);
        prop_assert_eq!(lines(&bytes, 1, 1 << 20, 1 << 20), plain);
    }
}

#[test]
fn what_is_no_text_is_told_from_what_is() {
    let outcome = |bytes: &[u8]| lines(bytes, 0, 1 << 20, 1 << 20).0;
    assert_eq!(outcome(b""), Outcome::Text);
    assert_eq!(outcome(b"caf\xe9\n"), Outcome::Text);
    assert_eq!(outcome(b"\x7fELF\0\0"), Outcome::Binary);
    let late_nul = [&b"a".repeat(70_000)[..], b"\0"].concat();
    assert_eq!(outcome(&late_nul), Outcome::Binary);
    assert_eq!(lines(&late_nul, 0, 1 << 10, 1 << 20).0, Outcome::Binary);
    assert_eq!(outcome(b"\x89PNG\r\n\x1a\nIHDR"), Outcome::Binary);
    // Half a pair of UTF-16, half a unit of it, and UTF-32.
    assert_eq!(outcome(b"\xff\xfea\0\x00\xd8b\0"), Outcome::Binary);
    assert_eq!(outcome(b"\xff\xfea\0b"), Outcome::Binary);
    assert_eq!(outcome(b"\xff\xfe\0\0a\0\0\0"), Outcome::Binary);
    assert_eq!(outcome(b"\xff\xfe"), Outcome::Text);
}

#[test]
fn what_is_not_utf_8_is_shown_as_latin_1() {
    assert_eq!(lines(b"caf\xe9\ncaf\xc3\xa9\n", 0, 1 << 20, 1 << 20).1[0].1, "café");
    assert_eq!(lines(b"caf\xe9\ncaf\xc3\xa9\n", 0, 1 << 20, 1 << 20).1[1].1, "cafÃ©", "as it is read");
    assert_eq!(lines(b"caf\xe9\n\x80\n", 0, 4, 1 << 20).1[1].1, "€", "in pieces too");
}

#[test]
fn a_line_that_is_too_long_for_any_window_is_too_large() {
    let text = format!("short\n{}\nshort\n", "x".repeat(5000));
    assert_eq!(lines(text.as_bytes(), 0, 100, 1000).0, Outcome::TooLarge);
    let (outcome, shown) = lines(text.as_bytes(), 0, 100, 10_000);
    assert_eq!((outcome, shown.len(), shown[2].0), (Outcome::Text, 3, 3));
}
