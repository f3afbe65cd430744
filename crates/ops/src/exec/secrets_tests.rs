use super::{ProgramSecrets, Redaction};
use toolrest_core::Secret;

fn redaction(secrets: &[(&str, &str)]) -> Redaction {
    try_redaction(secrets).unwrap()
}

fn try_redaction(secrets: &[(&str, &str)]) -> toolrest_core::Result<Redaction> {
    let secrets: ProgramSecrets =
        secrets.iter().map(|(name, value)| ((*name).to_owned(), Secret::new((*value).to_owned()).unwrap())).collect();
    Redaction::of(&secrets)
}

/// Redacts a text that arrives in pieces of this size.
fn redacted(redaction: &Redaction, text: &str, piece: usize) -> String {
    let mut stream = redaction.stream();
    let mut all: Vec<u8> = text.as_bytes().chunks(piece).flat_map(|piece| stream.push(piece)).collect();
    all.extend(stream.finish());
    String::from_utf8(all).unwrap()
}

#[test]
fn a_secret_is_replaced_however_the_output_is_divided() {
    let redaction = redaction(&[("TOKEN", "hunter2hunter3"), ("LONGER", "hunter2hunter3-and-more")]);
    let text = "a hunter2hunter3 b hunter2hunter2hunter3 c hunter2hunter3-and-more d hunter2hunter3-and e hunter2hunt";
    let expected = "a [secret TOKEN] b hunter2[secret TOKEN] c [secret LONGER] d [secret TOKEN]-and e hunter2hunt";
    for piece in 1..=text.len() {
        assert_eq!(redacted(&redaction, text, piece), expected, "in pieces of {piece}");
    }
}

#[test]
fn lines_and_escaped_forms_of_a_secret_are_replaced() {
    let redaction = redaction(&[("KEY", "-----BEGIN-----\nabcdefghij\"k\n-----END-----\n")]);
    for (text, expected) in [
        ("1: abcdefghij\"k\r\n", "1: [secret KEY]\r\n"),
        ("{\"a\":\"-----BEGIN-----\\nabcdefghij\\\"k\\n-----END-----\\n\"}", "{\"a\":\"[secret KEY]\"}"),
        ("abcdefghij k", "abcdefghij k"),
    ] {
        assert_eq!(redacted(&redaction, text, 3), expected);
    }
}

#[test]
fn secrets_of_too_many_lines_are_refused() {
    let lines = |count: usize| (0..count).map(|n| format!("line {n:04}\n")).collect::<Vec<_>>().concat();
    try_redaction(&[("A", &lines(250)), ("B", &lines(250))]).expect("the lines are the same");
    let text: String = lines(2_000);
    let error = try_redaction(&[("A", &text)]).err().unwrap();
    assert!(error.message.contains("512 lines"), "{error}");
}

#[test]
fn the_parts_of_a_secret_beside_a_cut_are_left_out() {
    let redaction = redaction(&[("TOKEN", "0123456789abcdef")]);
    assert_eq!(redaction.rest_of_secret(b"abcdef and more"), 6);
    assert_eq!(redaction.rest_of_secret(b"f"), 1);
    assert_eq!(redaction.rest_of_secret(b"other"), 0);
    assert_eq!(redaction.rest_of_secret(b""), 0);
    assert_eq!(redaction.stream().push(b"kept 01234567"), b"kept ");
}
