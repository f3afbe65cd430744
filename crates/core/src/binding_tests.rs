use super::*;
use serde_json::json;

fn schema() -> Value {
    json!({ "properties": { "path": { "type": "string" }, "recursive": { "type": ["boolean", "null"] },
        "limit": { "type": ["integer", "null"] }, "offset": { "type": ["integer", "null"] } } })
}

fn binding_error_of(args: &str) -> ToolError {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors of binding are looked at")]
    struct Args {
        path: String,
        recursive: Option<bool>,
        limit: Option<std::num::NonZeroUsize>,
        offset: Option<std::num::NonZeroUsize>,
    }
    bind_arguments::<Args>(&JsonText::parse(args.into()).unwrap(), &schema()).err().unwrap()
}

#[test]
fn the_error_for_a_misspelt_argument_suggests_the_most_similar_one() {
    let error = binding_error_of(r#"{"pth": "/a"}"#);
    assert_eq!(error.message, "unknown argument `pth`; did you mean `path`?");
    assert_eq!(error.argument_at_fault(), Some("pth"));
}

#[test]
fn the_error_for_an_unknown_argument_lists_the_known_ones() {
    let error = binding_error_of(r#"{"path": "/a", "zzzzzzzz": 1}"#);
    assert_eq!(error.message, "unknown argument `zzzzzzzz`; known: `path`, `recursive`, `limit`, `offset`");
}

#[test]
fn a_missing_argument_has_the_message_of_the_specification() {
    let error = binding_error_of(r#"{"recursive":1}"#.replace('1', "true").as_str());
    assert_eq!(error.message, "missing field `path`");
    assert_eq!(error.argument_at_fault(), Some("path"));
}

#[test]
fn an_argument_of_the_wrong_type_is_named() {
    let error = binding_error_of(r#"{"path": "/a", "recursive": "yes"}"#);
    assert_eq!(error.argument_at_fault(), Some("recursive"));
    assert!(error.message.contains("invalid type: string \"yes\", expected a boolean"), "{}", error.message);
}

#[test]
fn the_error_for_a_number_out_of_range_names_its_argument() {
    let error = binding_error_of(r#"{"path": "/a", "limit": 0}"#);
    assert_eq!(error.argument_at_fault(), Some("limit"));
    assert_eq!(error.message, "`limit`: invalid value: integer `0`, expected a whole number from 1 on");
    let error = binding_error_of(r#"{"path": "/a", "limit": -1}"#);
    assert_eq!(error.argument_at_fault(), Some("limit"));
    assert!(!error.message.contains("usize"), "{}", error.message);
}

#[test]
fn a_duplicate_argument_is_refused() {
    let error = binding_error_of(r#"{"path": "/a", "path": "/b"}"#);
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
    assert!(error.message.contains("\"path\" occurs twice"), "{}", error.message);
    assert_eq!(error.argument_at_fault(), Some("path"));
}

#[test]
fn an_argument_with_a_duplicate_key_or_a_number_out_of_range_is_named() {
    for (value, words) in [(r#"{"a": {"b": 1, "b": 2}}"#, "\"b\" occurs twice"), ("[1e400]", "out of range")] {
        let error = binding_error_of(&format!(r#"{{"path": "/a", "limit": {value}}}"#));
        assert_eq!((error.kind, error.argument_at_fault()), (ErrorKind::InvalidArgument, Some("limit")), "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn of_two_arguments_with_the_same_fault_the_first_is_named() {
    let error = binding_error_of(r#"{"path": "/a", "limit": -1, "offset": -1}"#);
    assert_eq!(error.argument_at_fault(), Some("limit"), "{error}");
}

#[test]
fn messages_have_no_positions_in_the_parsed_text() {
    assert_eq!(without_position("missing field `path` at line 1 column 15"), "missing field `path`");
    for kept in ["look at line 3", "at line x column 2", " at line 1 column 2 and more"] {
        assert_eq!(without_position(kept), kept);
    }
}

fn refused_settings(body: &str) -> ToolError {
    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors of binding are looked at")]
    struct Body {
        name: Option<String>,
        settings: Option<crate::WorkspaceSettingsPatch>,
    }
    bind::<Body>(&JsonText::parse(body.into()).unwrap()).unwrap_err()
}

#[test]
fn the_error_for_a_nested_member_names_its_path() {
    for (body, message) in [
        (
            r#"{"name": "x", "settings": {"run": {"processes": 1, "timeout_ms": "x"}}}"#,
            "`settings.run.timeout_ms`: invalid type: string \"x\", expected a whole number from 0 on",
        ),
        (r#"{"settings": {"run": {"timeout_ms": 1e400}}}"#, "`settings.run.timeout_ms`: number out of range"),
        (r#"{"settings": {"run": 5}}"#, "`settings.run`: invalid type: integer `5`, expected an object"),
        (r#"{"settings": {"run": {}, "walk": {}}}"#, "`settings.walk`: unknown field `walk`, expected `run`"),
    ] {
        let error = refused_settings(body);
        assert_eq!((&*error.message, error.argument_at_fault()), (message, Some("settings")), "{body}");
    }
    let error = refused_settings(r#"{"nam": "x"}"#);
    assert_eq!(error.message, "unknown field `nam`, expected `name` or `settings`");
    assert_eq!(error.argument_at_fault(), Some("nam"));
    let error = refused_settings(r#"{"name": "x", "name": "y"}"#);
    assert_eq!((&*error.message, error.argument_at_fault()), ("duplicate field `name`", Some("name")));
}

#[test]
fn text_of_the_caller_is_quoted_unchanged() {
    let error = refused_settings(r#"{"settings": ", expected u64"}"#);
    assert_eq!(error.message, "`settings`: invalid type: string \", expected u64\", expected an object");
}
