use super::*;

#[test]
fn outcomes_are_the_names_of_error_kinds() {
    for outcome in ["ok", "interrupted", "timeout", "not_found", "not_a_directory", "quota_exceeded"] {
        assert!(is_outcome(outcome), "{outcome}");
    }
    for other in ["", "Timeout", "NotFound", "OK", "\0"] {
        assert!(!is_outcome(other), "{other}");
    }
}

#[test]
fn text_is_made_storable() {
    assert_eq!(storable("a\0b", 10), "ab");
    assert_eq!(storable("éééé", 2), "éé");
    assert_eq!(recordable_name("a\n\0b"), "ab");
}

#[test]
fn objects_are_joined_within_the_limit() {
    let join = |objects: &[&str]| joined(objects.iter().map(|&object| object.to_owned()).collect());
    assert_eq!(join(&[r#"{"a":1}"#, r#"{"b":2}"#]), r#"{"a":1,"b":2}"#);
    assert_eq!(join(&["{}", r#"{"b":2}"#]), r#"{"b":2}"#);
    assert_eq!(join(&[r#"{"a":1}"#]), r#"{"a":1}"#);
    assert_eq!(join(&[r#"{"a":1}"#, "[2]"]), "[2]");
    let long = format!(r#"{{"b":"{}"}}"#, "x".repeat(MAX_ARGS_BYTES - 8));
    assert_eq!(join(&[r#"{"a":1}"#, &long]), long);
}
