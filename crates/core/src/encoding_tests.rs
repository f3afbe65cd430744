use super::*;
use proptest::prelude::*;

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect()
}

#[test]
fn texts_are_detected_and_encoded_as_they_were() {
    let cases = [
        ("grüße\r\n".as_bytes().to_vec(), Encoding::Utf8, "grüße\r\n"),
        ("\u{feff}grüße".as_bytes().to_vec(), Encoding::Utf8, "\u{feff}grüße"),
        (utf16("żółw 🐢\r\n", u16::to_le_bytes), Encoding::Utf16Le, "\u{feff}żółw 🐢\r\n"),
        (utf16("漢字", u16::to_be_bytes), Encoding::Utf16Be, "\u{feff}漢字"),
        (b"caf\xe9 \xa3\r\n".to_vec(), Encoding::Windows1252, "café £\r\n"),
        (b"\x93quoted\x94 \x80 10".to_vec(), Encoding::Windows1252, "“quoted” € 10"),
        // Windows-1251, decoded with wrong letters.
        (b"\xcf\xf0\xe8\xe2\xe5\xf2 \x90".to_vec(), Encoding::Windows1252, "Ïðèâåò \u{90}"),
    ];
    for (bytes, encoding, text) in cases {
        assert_eq!(Encoding::of(&bytes), Some(encoding), "{text}");
        assert_eq!(encoding.decode(&bytes).unwrap(), text);
        assert_eq!(encoding.encode(text).unwrap(), bytes);
    }
    assert_eq!(Encoding::of(b""), Some(Encoding::Utf8));
}

#[test]
fn binary_data_is_not_detected_as_text() {
    let odd_length = [&utf16("a", u16::to_le_bytes)[..], b"x"].concat();
    let half_a_pair = [0xff, 0xfe, 0x00, 0xd8];
    let nul = utf16("a\0", u16::to_le_bytes);
    let late_nul = [&b"a".repeat(70_000)[..], b"\0"].concat();
    let png = b"\x89PNG\r\n\x1a\nIHDR no NUL";
    for bytes in [&odd_length[..], &half_a_pair, &nul, &late_nul, png, b"%PDF-1.4\n\xe2\xe3", b"a\0b", b"\x1b\xe9"] {
        assert_eq!(Encoding::of(bytes), None, "{:?}", &bytes[..bytes.len().min(20)]);
    }
}

#[test]
fn a_text_that_cannot_be_encoded_is_refused() {
    assert!(Encoding::Windows1252.encode("漢").unwrap_err().contains('漢'));
    assert!(Encoding::Windows1252.encode("bell \u{7}").is_err());
    // In Windows-1252 these characters are the bytes of an é in UTF-8.
    assert!(Encoding::Windows1252.encode("Ã©").is_err());
    assert!(Encoding::Utf16Le.encode("without a mark").is_err());
    assert_eq!(Encoding::Windows1252.encode("plain").unwrap(), b"plain");
}

/// Detects the encoding of bytes in pieces of `size` bytes.
fn in_pieces(bytes: &[u8], size: usize) -> Option<Encoding> {
    let mut pieces = bytes.chunks(size);
    let first = pieces.next().unwrap_or_default();
    let mut detector = EncodingDetector::new(first);
    detector.feed(first);
    for piece in pieces {
        detector.feed(piece);
    }
    detector.finish()
}

proptest! {
    #[test]
    fn single_bytes_are_read_and_written_without_loss(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Some(encoding) = Encoding::of(&bytes) {
            let text = encoding.decode(&bytes).unwrap().into_owned();
            prop_assert_eq!(encoding.encode(&text).unwrap(), bytes);
        }
    }

    #[test]
    fn pieces_do_not_change_what_a_text_is(text in "[a-cäß€😀\n]{0,30}", kind in 0..3_u8, size in 8..12_usize) {
        let bytes = match kind {
            0 => text.into_bytes(),
            1 => utf16(&text, u16::to_le_bytes),
            _ => utf16(&text, u16::to_be_bytes),
        };
        prop_assert_eq!(in_pieces(&bytes, size), Encoding::of(&bytes));
    }
}
