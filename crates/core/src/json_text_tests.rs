use super::*;
use proptest::prelude::*;

fn json(text: &str) -> JsonText {
    JsonText::parse(text.to_owned()).unwrap()
}

#[test]
fn numbers_and_key_order_stay_as_written() {
    let given = r#"{ "z": 1.0, "a": 1e5, "m": [ 12345678901234567890123, -0 ] }"#;
    assert_eq!(json(given).compact().as_str(), r#"{"z":1.0,"a":1e5,"m":[12345678901234567890123,-0]}"#);
}

#[test]
fn formatted_json_is_indented_and_ends_with_a_newline() {
    let pretty = json(r#"{"a":[],"b":{},"c":[1,{"d":"x, {\"y\": [1]}"}]}"#).pretty();
    assert_eq!(
        pretty,
        "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": \"x, {\\\"y\\\": [1]}\"\n    }\n  ]\n}\n"
    );
}

#[test]
fn the_canonical_form_ignores_order_and_spelling() {
    let one = json(r#"{"b": 1.0, "a": "\u00e9"}"#).canonical().unwrap();
    let other = json(r#"{"a":"é","b":1}"#).canonical().unwrap();
    assert_eq!(one, other);
    assert_eq!(String::from_utf8(one).unwrap(), r#"{"a":"é","b":1}"#);
}

#[test]
fn a_number_beyond_the_range_of_doubles_is_refused() {
    assert_eq!(json("[1e400]").canonical().unwrap_err().kind, ErrorKind::InvalidArgument);
}

#[test]
fn members_keep_their_order_and_their_text() {
    let members = json(r#"{"text": "hi", "n": 1.50, "o": {"k": [ ]}}"#).members().unwrap();
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["text", "n", "o"]);
    assert_eq!(JsonText::from_members(&members).unwrap().compact().as_str(), r#"{"text":"hi","n":1.50,"o":{"k":[]}}"#);
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[a\"\\\\{}\\[\\], :\n]{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::hash_map("[a-c\"\\\\]{0,3}", inner, 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn both_layouts_hold_the_same_value(value in any_json()) {
        let spaced = json(&serde_json::to_string_pretty(&value).unwrap());
        prop_assert_eq!(spaced.compact().as_str().to_owned(), serde_json::to_string(&value).unwrap());
        prop_assert_eq!(spaced.pretty(), serde_json::to_string_pretty(&value).unwrap() + "\n");
    }
}

proptest! {
    #[test]
    fn a_string_is_written_as_the_serialiser_would(text in "[a\"\\\\\n\u{0}\u{7f}é✓ ]{0,12}") {
        let mut out = String::new();
        push_json_string(&mut out, &text);
        prop_assert_eq!(out, serde_json::to_string(&text).unwrap());
    }
}

#[test]
fn the_computed_length_of_a_json_string_is_exact() {
    let every: String = ('\0'..='\u{ff}').chain(['\u{2028}', '\u{10ffff}']).collect();
    for text in ["", "plain", "quote \" and \\", "line\r\n\ttab", &every] {
        let mut written = String::new();
        push_json_string(&mut written, text);
        assert_eq!(json_string_bytes(text), written.len(), "{text:?}");
        assert_eq!(serde_json::to_string(text).unwrap().len(), written.len(), "{text:?}");
    }
}

#[test]
fn the_error_for_invalid_json_names_line_and_column() {
    let message = JsonText::parse("{\n  \"a\": oops\n}".to_owned()).unwrap_err().message;
    assert_eq!(message, "Content is not valid JSON: expected value (line 2, column 8 of the new text)");
    let message = json("{\"a\": 1e999}").canonical().unwrap_err().message;
    assert!(!message.contains(" at line "), "{message}");
}
