use super::*;
use serde_json::json;

#[test]
fn the_schema_of_an_optional_argument_does_not_allow_null() {
    let mut property = json!({ "type": ["string", "null"], "enum": ["utf-8", "base64", null], "default": null });
    remove_null(&mut property);
    assert_eq!(property, json!({ "type": "string", "enum": ["utf-8", "base64"] }));
    let mut property = json!({ "anyOf": [{ "type": "string" }, { "type": "object" }, { "type": "null" }] });
    remove_null(&mut property);
    assert_eq!(property, json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] }));
    let mut property = json!({ "description": "anything" });
    remove_null(&mut property);
    assert_eq!(property, json!({ "description": "anything" }));
}

#[test]
fn a_portable_schema_has_no_null_and_no_formats_of_numbers_at_any_depth() {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "all": { "type": ["boolean", "null"] },
                        "at": { "type": ["integer", "null"], "format": "uint", "minimum": 0 },
                        "value": { "type": ["string", "null"] },
                        "when": { "type": "string", "format": "date-time" },
                    },
                    "required": ["value"],
                },
            },
        },
    });
    make_portable(&mut schema);
    assert_eq!(
        schema["properties"]["edits"]["items"]["properties"],
        json!({
            "all": { "type": "boolean" },
            "at": { "type": "integer", "minimum": 0 },
            "value": { "type": ["string", "null"] },
            "when": { "type": "string", "format": "date-time" },
        })
    );
}
