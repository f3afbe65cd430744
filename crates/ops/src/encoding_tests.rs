use super::*;

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect()
}

#[test]
fn texts_in_other_encodings_are_recognised_and_written_as_they_were() {
    let cases = [
        (utf16("żółw 🐢\r\n", u16::to_le_bytes), Encoding::Utf16Le, "\u{feff}żółw 🐢\r\n"),
        (utf16("漢字", u16::to_be_bytes), Encoding::Utf16Be, "\u{feff}漢字"),
        (b"caf\xe9 \xa3\r\n".to_vec(), Encoding::Latin1, "café £\r\n"),
    ];
    for (bytes, encoding, text) in cases {
        assert_eq!(recognise(&bytes), Some((encoding, text.to_owned())));
        assert_eq!(encoding.write(text).unwrap(), bytes);
    }
}

#[test]
fn what_is_no_text_is_not_taken_for_one() {
    let odd_length = [&utf16("a", u16::to_le_bytes)[..], b"x"].concat();
    let half_a_pair = [0xff, 0xfe, 0x00, 0xd8];
    let nul = utf16("a\0", u16::to_le_bytes);
    for bytes in
        [&odd_length[..], &half_a_pair, &nul, b"%PDF-1.4\n\xe2\xe3", b"\x00\xe9", b"\x1b\xe9", b"\x93quoted\x94"]
    {
        assert_eq!(recognise(bytes), None, "{bytes:?}");
    }
    assert_eq!(recognise("UTF-8 é".as_bytes()), None);
}

#[test]
fn a_text_that_an_encoding_cannot_hold_is_refused() {
    assert!(Encoding::Latin1.write("10 €").unwrap_err().contains('€'));
    assert!(Encoding::Latin1.write("bell \u{7}").is_err());
    // As Latin-1 these are the bytes of an é in UTF-8.
    assert!(Encoding::Latin1.write("Ã©").is_err());
    assert!(Encoding::Utf16Le.write("without a mark").is_err());
    assert_eq!(Encoding::Latin1.write("plain").unwrap(), b"plain");
}
