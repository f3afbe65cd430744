use super::*;
use proptest::prelude::*;

fn required(literals: &[&[u8]]) -> Filter {
    let literals = literals.iter().map(|literal| literal.to_ascii_lowercase()).collect();
    Filter::new(&[Requirement { literals }])
}

fn source_like(bytes: usize) -> Vec<u8> {
    let words =
        ["fn ", "let ", "self.", "Result<", "value", "index", "return ", "(", ");\n", "    ", "match ", "Some("];
    let mut state = 7u32;
    let mut text = Vec::new();
    while text.len() < bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.extend_from_slice(words[(state >> 24) as usize % words.len()].as_bytes());
        text.extend_from_slice(((state >> 8) & 0xfff).to_string().as_bytes());
    }
    text
}

proptest! {
    #[test]
    fn no_text_is_excluded_by_a_part_of_itself(text in any::<Vec<u8>>(), from in 0usize..200, length in 0usize..40) {
        let from = from.min(text.len());
        let part = &text[from..(from + length).min(text.len())];
        let signature = Signature::of(&text);
        prop_assert!(required(&[part]).admits(signature.as_bytes()));
        prop_assert!(required(&[b"something else", part]).admits(signature.as_bytes()));
    }
}

#[test]
fn case_of_ascii_does_not_count() {
    assert!(required(&[b"HELLO"]).admits(Signature::of(b"say hello").as_bytes()));
    assert!(required(&[b"hello"]).admits(Signature::of(b"SAY HELLO").as_bytes()));
}

#[test]
fn most_absent_literals_are_excluded() {
    for size in [100, 1_000, 10_000, 100_000] {
        let signature = Signature::of(&source_like(size));
        let absent = (0..1_000).filter(|n| required(&[format!("absent{n}q").as_bytes()]).admits(signature.as_bytes()));
        assert!(absent.count() < 50, "{size} bytes");
    }
}

#[test]
fn a_signature_is_a_fraction_of_the_text() {
    let text = source_like(10_000);
    assert!(Signature::of(&text).as_bytes().len() * 4 <= text.len());
    assert_eq!(Signature::of(b"").as_bytes().len(), MIN_BYTES);
    assert!(Signature::of(&source_like(4 << 20)).as_bytes().len() <= MAX_BYTES);
}

#[test]
fn short_literals_and_invalid_signatures_exclude_nothing() {
    assert!(required(&[b"ab"]).admits(&[0; 8]));
    assert!(required(&[b"abcdef", b"x"]).admits(&[0; 8]));
    assert!(required(&[b"abcdef"]).admits(&[0; 7]));
    assert!(!required(&[b"abcdef"]).admits(&[0; 8]));
    assert_eq!(Signature::from_bytes(&[0; 12]), None);
}
