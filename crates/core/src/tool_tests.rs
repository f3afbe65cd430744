use super::*;
use serde_json::json;

#[test]
fn the_schema_of_an_optional_argument_does_not_allow_null() {
    let mut property = json!({ "type": ["string", "null"], "enum": ["utf-8", "base64", null] });
    optional_without_null(&mut property);
    assert_eq!(property, json!({ "type": "string", "enum": ["utf-8", "base64"] }));
    let mut property = json!({ "description": "anything" });
    optional_without_null(&mut property);
    assert_eq!(property, json!({ "description": "anything" }));
}
