use super::*;

#[test]
fn only_the_first_changes_are_shown_and_the_others_counted() {
    let change = |n: usize| format!(r#"{{"op":"create","path":"/f{n}","file_id":"x","after":1}}"#);
    let stored = |count: usize| format!("[{}]", (0..count).map(change).collect::<Vec<_>>().join(","));
    for (count, more) in [(0, 0), (1, 0), (MAX_CHANGES, 0), (MAX_CHANGES + 7, 7)] {
        let changes = FirstChanges::parse(&stored(count)).unwrap();
        assert_eq!((changes.first.len(), changes.more), (count.min(MAX_CHANGES), more));
    }
    let moved = FirstChanges::parse(r#"[{"op":"move","path":"/b","from":"/a","file_id":"x"}]"#).unwrap();
    assert_eq!(serde_json::to_string(&moved.first).unwrap(), r#"[{"op":"move","path":"/b","from":"/a"}]"#);
    assert!(FirstChanges::parse("{").is_err());
}
