use serde_json::json;

use super::*;

fn reply() -> Reply {
    Reply { status: 200, headers: Vec::new(), text: String::new(), request: "POST /tools".to_owned() }
}

fn validator() -> Validator {
    jsonschema::validator_for(&json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "limit": { "type": "integer" } },
        "required": ["path"],
        "additionalProperties": false,
    }))
    .unwrap()
}

#[test]
#[should_panic(expected = "the result: invalid by the tool's output_schema")]
fn a_result_without_a_required_field_fails() {
    assert_valid(&validator(), &json!({"limit": 1}), "the result", "output_schema", &reply());
}

#[test]
#[should_panic(expected = "the arguments: invalid by")]
fn an_argument_of_another_type_fails() {
    assert_valid(&validator(), &json!({"path": 1}), "the arguments", "input_schema", &reply());
}

#[test]
fn only_the_routes_that_call_tools_are_checked() {
    assert_eq!(toolset_of("/api/v1/workspaces/1/tools"), Some("workspace"));
    assert_eq!(toolset_of("/api/v1/workspaces/1/toolsets/coding"), Some("coding"));
    assert_eq!(toolset_of("/api/v1/workspaces/1/members"), None);
    assert_eq!(toolset_of("/api/v1/auth/login"), None);
}

#[test]
fn a_string_that_contains_a_number_counts_as_a_number() {
    let schema = json!({"properties": {"limit": {"type": "integer"}, "path": {"type": "string"}}});
    assert_eq!(coerced(&json!({"limit": "10", "path": "10"}), &schema), json!({"limit": 10, "path": "10"}));
}
