use super::*;
use serde_json::json;

#[derive(Debug, PartialEq, Deserialize)]
struct Args {
    #[serde(deserialize_with = "list")]
    paths: Vec<String>,
    #[serde(default, deserialize_with = "number")]
    wait: Option<f64>,
    #[serde(default, deserialize_with = "switch")]
    all: Option<bool>,
}

fn paths(value: &Value) -> Vec<String> {
    serde_json::from_value::<Args>(json!({ "paths": value })).unwrap().paths
}

#[test]
fn lists_are_accepted_as_models_send_them() {
    assert_eq!(paths(&json!(["a", "b"])), ["a", "b"]);
    assert_eq!(paths(&json!("a")), ["a"]);
    assert_eq!(paths(&json!("[\"a\", \"b\"]")), ["a", "b"]);
    assert_eq!(paths(&json!("[slug].tsx")), ["[slug].tsx"], "a name, and no JSON");
    assert!(serde_json::from_value::<Args>(json!({ "paths": [1] })).is_err());
    assert!(serde_json::from_value::<Args>(json!({ "paths": null })).is_err());
}

#[test]
fn numbers_and_booleans_are_accepted_as_text() {
    let args = json!({ "paths": "a", "wait": "45", "all": "true" });
    let args: Args = serde_json::from_value(args).unwrap();
    assert_eq!((args.wait, args.all), (Some(45.0), Some(true)));
    let args: Args = serde_json::from_value(json!({ "paths": "a", "wait": null, "all": null })).unwrap();
    assert_eq!((args.wait, args.all), (None, None));
    assert!(serde_json::from_value::<Args>(json!({ "paths": "a", "wait": "soon" })).is_err());
}
