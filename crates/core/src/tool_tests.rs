use super::*;
use serde_json::json;

fn schema() -> Value {
    json!({ "properties": { "path": { "type": "string" }, "recursive": { "type": ["boolean", "null"] },
        "limit": { "type": ["integer", "null"] } } })
}

fn explained(args: &str) -> ToolError {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors of binding are looked at")]
    struct Args {
        path: String,
        recursive: Option<bool>,
        limit: Option<std::num::NonZeroUsize>,
    }
    bind::<Args>(&JsonText::parse(args.into()).unwrap(), &schema()).err().unwrap()
}

#[test]
fn a_misspelt_argument_is_named_with_the_nearest_known_one() {
    let error = explained(r#"{"pth": "/a"}"#);
    assert_eq!(error.message, "unknown argument `pth`; did you mean `path`?");
    assert_eq!(error.argument_at_fault(), Some("pth"));
}

#[test]
fn an_argument_like_no_other_gets_the_list() {
    let error = explained(r#"{"path": "/a", "zzzzzzzz": 1}"#);
    assert_eq!(error.message, "unknown argument `zzzzzzzz`; known: `path`, `recursive`, `limit`");
}

#[test]
fn a_missing_argument_is_told_in_the_words_of_the_specification() {
    let error = explained(r#"{"recursive":1}"#.replace('1', "true").as_str());
    assert_eq!(error.message, "missing field `path`");
    assert_eq!(error.argument_at_fault(), Some("path"));
}

#[test]
fn an_argument_of_the_wrong_type_is_named() {
    let error = explained(r#"{"path": "/a", "recursive": "yes"}"#);
    assert_eq!(error.argument_at_fault(), Some("recursive"));
    assert!(error.message.contains("invalid type: string \"yes\", expected a boolean"), "{}", error.message);
}

#[test]
fn a_number_out_of_range_is_told_with_its_argument() {
    let error = explained(r#"{"path": "/a", "limit": 0}"#);
    assert_eq!(error.argument_at_fault(), Some("limit"));
    assert_eq!(error.message, "`limit`: invalid value: integer `0`, expected a whole number from 1 on");
    let error = explained(r#"{"path": "/a", "limit": -1}"#);
    assert_eq!(error.argument_at_fault(), Some("limit"));
    assert!(!error.message.contains("usize"), "{}", error.message);
}

#[test]
fn an_argument_that_stands_twice_is_refused() {
    let error = explained(r#"{"path": "/a", "path": "/b"}"#);
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
    assert!(error.message.contains("\"path\" stands twice"), "{}", error.message);
}

#[test]
fn positions_in_a_text_that_callers_do_not_see_are_left_out() {
    assert_eq!(without_position("missing field `path` at line 1 column 15"), "missing field `path`");
    for kept in ["look at line 3", "at line x column 2", " at line 1 column 2 and more"] {
        assert_eq!(without_position(kept), kept);
    }
}

#[test]
fn an_optional_argument_is_not_said_to_be_null() {
    let mut property = json!({ "type": ["string", "null"], "enum": ["utf-8", "base64", null] });
    optional_without_null(&mut property);
    assert_eq!(property, json!({ "type": "string", "enum": ["utf-8", "base64"] }));
    let mut property = json!({ "description": "anything" });
    optional_without_null(&mut property);
    assert_eq!(property, json!({ "description": "anything" }));
}
