use super::*;
use serde_json::json;

fn edits(value: Value) -> Result<Vec<(String, String)>, String> {
    let args: Args = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(args.edits.into_iter().map(|edit| (edit.path, edit.new)).collect())
}

#[test]
fn edits_are_accepted_in_the_forms_that_models_send() {
    let one = json!({ "path": "a", "old": "x", "new": "y" });
    let expected = Ok(vec![("a".to_owned(), "y".to_owned())]);
    assert_eq!(edits(json!({ "edits": [one] })), expected);
    assert_eq!(edits(json!({ "edits": one })), expected);
    assert_eq!(edits(json!({ "edits": json!([one]).to_string() })), expected);
    assert_eq!(edits(one.clone()), expected);
    assert_eq!(
        edits(json!({ "file_path": "a", "old_string": "x", "new_string": "y", "replace_all": "false" })),
        expected
    );
    assert_eq!(edits(json!({ "edits": null })), Err("missing field `edits`".to_owned()));
    assert_eq!(edits(json!({ "path": "a", "new": "y" })), Err("missing field `old`".to_owned()));
    assert!(edits(json!({ "path": "a", "old": "x", "new": "y", "colour": 1 })).unwrap_err().contains("`colour`"));
}

#[test]
fn a_diff_has_no_context() {
    let change = |line, removed: &[&str], added: &[&str]| ChangedLines {
        line,
        removed: removed.iter().map(|line| (*line).to_owned()).collect(),
        added: added.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(diff(&[change(262, &["a"], &["b"]), change(300, &[], &["c"])]), "@@ 262\n-a\n+b\n@@ 300\n+c");
}
