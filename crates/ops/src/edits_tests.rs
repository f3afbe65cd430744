use super::*;

fn edit(old: &str, new: &str) -> FileEdit {
    FileEdit {
        path: WsPath::root(),
        old: old.to_owned(),
        new: new.to_owned(),
        which: Occurrences::Single,
        expected: None,
    }
}

fn made(text: &str, old: &str, new: &str) -> (String, Option<&'static str>) {
    let limits = Limits { bytes: 1 << 20, stop: StopFlag::never() };
    match replaced(text, &edit(old, new), limits).unwrap() {
        Replaced::Text { text, loosely } => (text, loosely),
        Replaced::AlreadyThere { line } => panic!("already there, at line {line}"),
    }
}

#[test]
fn line_numbers_that_were_copied_are_removed_from_both_texts() {
    let text = "a\n  b\nc\n";
    assert_eq!(made(text, "2\t  b\n3\tc\n", "2\t  b2\n3\tc\n"), ("a\n  b2\nc\n".to_owned(), Some("line numbers")));
    assert_eq!(made(text, "     2→  b", "     2→  x"), ("a\n  x\nc\n".to_owned(), Some("line numbers")));
    // Text that only looks like a number is found as it is.
    assert_eq!(made("1\tx\n", "1\tx", "1\ty"), ("1\ty\n".to_owned(), None));
}

#[test]
fn numbers_that_do_not_count_up_are_part_of_the_text() {
    assert!(without_line_numbers("1:a\n5:b\n", "x").is_none());
    assert!(without_line_numbers("a\n2:b\n", "x").is_none());
}

#[test]
fn an_edit_that_was_made_already_is_recognised() {
    assert_eq!(line_of_result("x\nreturn B;\n", &edit("return A;", "return B;")), Some(2));
    assert_eq!(line_of_result("foo bar\n", &edit("foo", "foo bar")), Some(1));
    assert_eq!(line_of_result("foo\n", &edit("foo", "foo bar")), None);
    // The new text is there twice, so neither is known to be the result.
    assert_eq!(line_of_result("return B;\nreturn B;\n", &edit("return A;", "return B;")), None);
    // A part is removed: what is left says nothing.
    assert_eq!(line_of_result("call();\n", &edit("log(); call();", "call();")), None);
}

#[test]
fn the_occurrence_near_a_line_is_replaced() {
    let text = "x\n".repeat(3) + "y\n" + &"z\n".repeat(10) + "x\n";
    let near = |line| FileEdit { which: Occurrences::Near(line), ..edit("x", "w") };
    let limits = Limits { bytes: 1 << 20, stop: StopFlag::never() };
    let lines = |line| match replaced(&text, &near(line), limits) {
        Ok(Replaced::Text { text, .. }) => text.lines().position(|line| line == "w").map(|at| at + 1),
        _ => None,
    };
    assert_eq!(lines(2), Some(2));
    assert_eq!(lines(13), Some(15), "the only one within three lines");
    assert_eq!(lines(4), None, "three are near");
    assert_eq!(lines(9), None, "none is near");
}
