use super::CapturedOutput;

fn captured(kept_bytes: usize, pieces: &[&[u8]]) -> CapturedOutput {
    let mut captured = CapturedOutput::new(kept_bytes);
    for piece in pieces {
        captured.push(piece);
    }
    captured.finish()
}

#[test]
fn short_output_is_kept_complete() {
    let captured = captured(10, &[b"0123", b"45", b"6789"]);
    assert_eq!(captured.text(), "0123456789");
    assert_eq!((captured.total_bytes(), captured.cut_bytes()), (10, 0));
}

#[test]
fn beginning_and_end_are_kept_and_the_cut_is_marked_with_its_size() {
    let captured = captured(4, &[b"abcdef", b"ghijkl", b"mnopqr"]);
    assert_eq!(captured.text(), "ab\n[… 14 bytes cut …]\nqr");
    assert_eq!(captured.bytes(), b"abqr");
}

#[test]
fn the_size_of_chunks_does_not_matter() {
    let stream: Vec<u8> = (0..1000_u32).map(|n| (n % 251) as u8).collect();
    let whole = captured(100, &[&stream]);
    for size in [1, 3, 49, 50, 51, 99, 100, 101, 333] {
        let pieces: Vec<&[u8]> = stream.chunks(size).collect();
        assert_eq!(captured(100, &pieces), whole, "in pieces of {size}");
    }
}

#[test]
fn a_cut_splits_no_character() {
    let stream = "ä€𝄞".repeat(100);
    for kept in 2..60 {
        let captured = captured(kept, &[stream.as_bytes()]);
        assert!(!captured.text().contains('\u{fffd}'), "keeping {kept} bytes: {}", captured.text());
    }
}

#[test]
fn invalid_utf8_is_replaced_and_nul_is_kept() {
    assert_eq!(captured(10, &[b"a\0\xff\x80b"]).text(), "a\0\u{fffd}\u{fffd}b");
}

#[test]
fn long_output_uses_bounded_memory() {
    let mut captured = CapturedOutput::new(1000);
    for _ in 0..10_000 {
        captured.push(&[b'y'; 777]);
        assert!(captured.head.len() + captured.tail.capacity() <= 4000);
    }
    assert_eq!(captured.finish().cut_bytes(), 7_770_000 - 1000);
}
