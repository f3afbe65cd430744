use super::*;
use crate::error::ErrorKind;
use crate::limits::Limits;
use crate::patch::{apply, parse};

const LIMIT: Limits = Limits::of_bytes(1 << 20);
const PATCH: &str = "diff --git a/blob b/blob\nindex 1..2 100644\nGIT binary patch\nliteral 10\n\
                     UcmV+l0QLU>0RjUA1qKHQ2>`DEE&u=k\n\nliteral 0\nKcmV+b0RR6000031\n\n";
const NEW: &[u8] = b"\0\x01\x02\x03\x04\x05\x06\x07\x08\t";

fn applied(patch: &str, base: &[u8]) -> Result<Vec<u8>, EditError> {
    let files = parse(patch.as_bytes())?;
    apply(&files[0], base, LIMIT).map(|applied| applied.content)
}

#[test]
fn a_literal_is_the_new_content() {
    assert_eq!(applied(PATCH, b"").unwrap(), NEW);
    let back = parse(PATCH.as_bytes()).unwrap()[0].reversed();
    assert_eq!(apply(&back, NEW, LIMIT).unwrap().content, b"");
}

#[test]
fn the_file_must_be_the_one_the_patch_was_made_for() {
    assert_eq!(applied(PATCH, b"other").unwrap_err().kind(), ErrorKind::BaseMismatch);
    assert_eq!(applied(PATCH, NEW).unwrap_err().kind(), ErrorKind::AlreadyApplied);
}

#[test]
fn damaged_data_is_refused_with_its_line() {
    let cut = PATCH.replace("UcmV+l0QLU>0RjUA1qKHQ2>`DEE&u=k", "DcmV+b");
    let garbled = PATCH.replace("UcmV", "Uc\"V");
    let announced_too_small = PATCH.replace("literal 10", "literal 9");
    for damaged in [cut, garbled, announced_too_small] {
        assert!(matches!(applied(&damaged, b""), Err(EditError::Syntax { line: 4, .. })), "{damaged}");
    }
    assert_eq!(applied(&PATCH.replace("literal 10", "literal x"), b"").unwrap_err().kind(), ErrorKind::Syntax);
}

#[test]
fn a_block_that_announces_too_much_is_refused_before_it_is_decompressed() {
    let bomb = PATCH.replace("literal 10", "literal 99999999999");
    assert_eq!(applied(&bomb, b"").unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn a_delta_copies_and_inserts() {
    assert_eq!(apply_delta(b"hello", &[0x90, 5, 3, b'a', b'b', b'c'], 8).unwrap(), b"helloabc");
    assert_eq!(apply_delta(b"hello", &[0x91, 1, 2], 2).unwrap(), b"el");
    assert_eq!(apply_delta(b"hello", &[0x91, 4, 2], 2), None, "beyond the base");
    assert_eq!(apply_delta(b"hello", &[0], 0), None, "reserved");
    assert_eq!(apply_delta(b"hello", &[0x90, 5], 4), None, "more than announced");
    assert_eq!(read_size(&mut &[0x80, 1][..]), Some(128));
    assert_eq!(read_size(&mut &[0xFF; 20][..]), None);
}
