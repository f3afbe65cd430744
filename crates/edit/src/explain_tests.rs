use super::*;
use crate::lines::split;

fn at_lines(lines: impl IntoIterator<Item = usize>) -> Vec<Position> {
    lines.into_iter().map(|line| Position { line, column: None }).collect()
}

#[test]
fn the_kind_of_a_difference_is_described() {
    let kind = |expected: &str, found: &str| describe_difference(expected.as_bytes(), found.as_bytes());
    assert_eq!(kind("\tx", "    x"), "tab vs 4 spaces in the indentation");
    assert_eq!(kind("x", "x  "), "trailing whitespace");
    assert_eq!(kind("say 'x'", "say ‘x’"), "different quote character");
    assert_eq!(kind("a - b", "a – b"), "different dash character");
    assert_eq!(kind("a b", "a\u{A0}b"), "different space character");
    assert_eq!(kind("Foo", "foo"), "upper and lower case");
    assert_eq!(kind("f(a,  b)", "f(a, b)"), "spaces within the line");
    assert_eq!(kind("let total = 1;", "let total = 2;"), "column 13: `1;` vs `2;`");
    assert_eq!(kind("abc", "xyz"), "a different line");
}

#[test]
fn positions_are_distinguished_by_the_nearest_line_that_differs() {
    let text = b"fn a() {\n  x\n  y\n}\nfn b() {\n  x\n  y\n}\n";
    let error = not_unique("the text", &split(text), &at_lines([2, 6]), 2, 1).to_string();
    assert!(error.contains("line 3 (2 lines above: `fn a() {`)"), "{error}");
    assert!(error.contains("line 7 (2 lines above: `fn b() {`)"), "{error}");
}

#[test]
fn positions_are_distinguished_by_the_edge_of_the_file() {
    let error = not_unique("the text", &split(b"x\nx\n"), &at_lines([0, 1]), 2, 1).to_string();
    assert!(error.contains("line 1 (1 line above: the file's edge)"), "{error}");
}

#[test]
fn of_many_positions_the_first_are_listed_and_all_counted() {
    let text = b"x\n".repeat(50);
    let starts = at_lines(0..50);
    let error = not_unique("the text", &split(&text), &starts, starts.len(), 1);
    let EditError::NotUnique { lines, count, message } = error else { panic!("{error}") };
    assert_eq!((lines.len(), count), (10, 50));
    assert!(message.contains("found 50 times") && message.ends_with("and 40 more"), "{message}");
}

#[test]
fn the_most_similar_lines_are_shown_with_the_first_difference() {
    let file = split(b"fn main() {\n    let x = 1;\n    let y = 2;\n}\n");
    let wanted: [&[u8]; 3] = [b"fn main() {", b"    let x = 1;", b"    let y = 3;"];
    let error = not_found("the text", &file, &wanted, None, StopFlag::never()).to_string();
    assert!(error.contains("most similar: lines 1 to 3"), "{error}");
    assert!(error.contains("First difference at line 3: column 13: `3;` vs `2;`"), "{error}");
    assert!(error.contains("\n-           let y = 3;\n+     3     let y = 2;"), "{error}");
}

#[test]
fn positions_in_one_line_are_listed_with_their_columns() {
    let text = "é ab ab; ab\nab\n".as_bytes();
    let positions = positions(text, [3, 6, 10, 13]);
    let error = not_unique("the text", &split(text), &positions, 4, 1);
    let EditError::NotUnique { lines, count, message } = error else { panic!("{error}") };
    assert_eq!((lines, count), (vec![1, 2], 4));
    assert!(message.contains("\n  line 1, columns 3, 6 and 10 (1 line above: the file's edge)"), "{message}");
    assert!(message.contains("\n  line 2 (1 line above: `é ab ab; ab`)"), "{message}");
}
