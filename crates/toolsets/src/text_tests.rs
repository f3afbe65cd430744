use super::*;

#[test]
fn the_output_of_a_program_ends_with_its_exit_code() {
    assert_eq!(program_output("out\n", "", 0), "out\n[exit code 0]");
    assert_eq!(program_output("no newline", "err\n", 3), "no newline\n[stderr]\nerr\n[exit code 3]");
    assert_eq!(program_output("", "", 0), "[no output]\n[exit code 0]");
}

#[test]
fn an_empty_list_says_so() {
    assert_eq!(lines([], "no matches"), "[no matches]");
    assert_eq!(lines(["a".to_owned(), "b".to_owned()], "no matches"), "a\nb");
}

#[test]
fn only_what_was_left_out_is_counted() {
    let mut text = "a".to_owned();
    push_left_out(&mut text, &[(Some(0), "ignored"), (None, "binary")]);
    assert_eq!(text, "a");
    push_left_out(&mut text, &[(Some(2), "ignored"), (Some(1), "unreadable")]);
    assert_eq!(text, "a\n[left out: 2 ignored, 1 unreadable]");
}

#[test]
fn a_match_names_its_place() {
    assert_eq!(search_match("src/a.rs", 7, "fn a()"), "src/a.rs:7: fn a()");
    assert_eq!(search_match("a", 7, "    x\n--> y"), "a:7:\n    x\n--> y");
}
