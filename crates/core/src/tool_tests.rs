use super::*;
use serde_json::json;

fn schema() -> Value {
    json!({ "properties": { "path": { "type": "string" }, "recursive": { "type": ["boolean", "null"] } } })
}

fn explained(args: &str) -> ToolError {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only the errors of binding are looked at")]
    struct Args {
        path: String,
        recursive: Option<bool>,
    }
    let error = serde_json::from_str::<Args>(args).err().unwrap();
    explain(&error, &JsonText::parse(args.into()).unwrap(), &schema())
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
    assert_eq!(error.message, "unknown argument `zzzzzzzz`; known: `path`, `recursive`");
}

#[test]
fn a_missing_argument_is_told_in_the_words_of_the_specification() {
    let error = explained(r#"{"recursive":1}"#.replace('1', "true").as_str());
    assert_eq!(error.message, "missing field `path` at line 1 column 18");
    assert_eq!(error.argument_at_fault(), Some("path"));
}

#[test]
fn an_argument_of_the_wrong_type_is_named() {
    let error = explained(r#"{"path": "/a", "recursive": "yes"}"#);
    assert_eq!(error.argument_at_fault(), Some("recursive"));
    assert!(error.message.contains("invalid type: string \"yes\", expected a boolean"), "{}", error.message);
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
