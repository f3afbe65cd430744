use super::*;
use serde_json::json;

fn read(pairs: &[&str]) -> Outcome<Value> {
    let schema = json!({
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": ["number", "null"]},
            "all": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "timeout": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "mode": {"$ref": "#/$defs/Mode"},
            "content": {},
        },
        "$defs": {"Mode": {"enum": ["a", "b"]}},
    });
    let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
    by_schema(&schema, &pairs)
}

#[test]
fn values_get_the_type_of_the_schema() {
    let args = read(&["path=1", "limit=1", "ratio=1.5", "all=true", "timeout=5", "mode=a", "content=7"]).unwrap();
    let expected =
        json!({"path": "1", "limit": 1, "ratio": 1.5, "all": true, "timeout": 5, "mode": "a", "content": "7"});
    assert_eq!(args, expected);
    assert_eq!(read(&["timeout=5s", "content:={\"a\": 1}"]).unwrap(), json!({"timeout": "5s", "content": {"a": 1}}));
    assert_eq!(read(&["path=a=b", "path"]).unwrap_err().exit_code(), 2);
}

#[test]
fn lists_are_given_one_by_one_or_as_json() {
    assert_eq!(read(&["names=a", "names=b"]).unwrap(), json!({"names": ["a", "b"]}));
    assert_eq!(read(&["names=[\"a\",\"b\"]"]).unwrap(), json!({"names": ["a", "b"]}));
}

#[test]
fn wrong_arguments_are_refused_with_what_the_tool_takes() {
    let message = read(&["pth=x"]).unwrap_err().to_string();
    assert!(message.contains("'pth'") && message.contains("path, limit"), "{message}");
    let message = read(&["limit=many"]).unwrap_err().to_string();
    assert!(message.contains("`limit` must be of the type integer"), "{message}");
    assert!(read(&["path=a", "path=b"]).unwrap_err().to_string().contains("twice"));
    assert!(read(&["limit=1.5"]).is_err());
}
