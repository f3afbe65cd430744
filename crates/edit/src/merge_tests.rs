use super::*;
use proptest::prelude::*;

fn merged(base: &str, ours: &str, theirs: &str) -> Result<String, MergeConflict> {
    merge(base, ours, theirs, StopFlag::never())
}

const BASE: &str = "1\n2\n3\n4\n5\n6\n";

#[test]
fn changes_of_separate_regions_are_both_made() {
    assert_eq!(
        merged(BASE, "one\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\nsix\nseven\n").unwrap(),
        "one\n2\n3\n4\n5\nsix\nseven\n"
    );
    assert_eq!(merged(BASE, "1\n2\n3\n4\n5\n6", "0\n1\n2\n4\n5\n6\n").unwrap(), "0\n1\n2\n4\n5\n6");
    assert_eq!(merged("", "", "new\n").unwrap(), "new\n");
}

#[test]
fn the_same_change_is_made_once() {
    assert_eq!(merged(BASE, "1\n2\nX\n4\n5\nY\n", "1\n2\nX\n4\n5\n6\n").unwrap(), "1\n2\nX\n4\n5\nY\n");
}

#[test]
fn changes_that_touch_are_a_conflict() {
    let conflict = merged(BASE, "1\n2\nours\n4\n5\n6\n", "1\n2\ntheirs\n4\n5\n6\n").unwrap_err();
    assert_eq!(conflict, MergeConflict { line: 3, ours: vec!["ours".into()], theirs: vec!["theirs".into()] });
    let adjacent = merged(BASE, "1\n2\nours\n4\n5\n6\n", "1\n2\n3\ntheirs\n5\n6\n");
    assert_eq!(adjacent.unwrap_err().line, 3);
    let removed = merged(BASE, "1\n2\n4\n5\n6\n", "1\n2\nthree\n4\n5\n6\n").unwrap_err();
    assert!(removed.ours.is_empty() && removed.line == 3, "{removed:?}");
}

fn text() -> impl Strategy<Value = String> {
    let lines = prop::collection::vec(prop::sample::select(vec!["a\n", "b\n", "c\r\n", "d\n"]), 0..12);
    (lines, prop::bool::ANY).prop_map(|(lines, ends)| {
        let text = lines.concat();
        if ends { text } else { text.trim_end().to_owned() }
    })
}

proptest! {
    #[test]
    fn an_unchanged_side_gives_the_other((base, other) in (text(), text())) {
        prop_assert_eq!(merged(&base, &base, &other).unwrap(), other.clone());
        prop_assert_eq!(merged(&base, &other, &base).unwrap(), other.clone());
        prop_assert_eq!(merged(&base, &other, &other).unwrap(), other);
    }

    #[test]
    fn a_merge_does_not_depend_on_the_order((base, one, other) in (text(), text(), text())) {
        prop_assert_eq!(merged(&base, &one, &other).ok(), merged(&base, &other, &one).ok());
    }
}
