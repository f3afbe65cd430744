use super::*;

fn found(text: &str, wanted: &str) -> Option<(usize, Vec<String>, &'static str)> {
    let near = find(text.as_bytes(), wanted.as_bytes(), StopFlag::never())?;
    let lines = near.lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    Some((near.first_line, lines, near.ignores))
}

#[test]
fn a_text_with_different_case_is_found() {
    let (line, lines, ignores) = found("x\nlet Größe = getÉtat();\n", "GETétat()").unwrap();
    assert_eq!((line, lines.as_slice(), ignores), (1, &["getÉtat()".to_owned()][..], "upper and lower case"));
    assert_eq!(found("x = FooBar\n", "foobar").unwrap().1, ["FooBar"]);
    assert!(found("x = FooBar\n", "foobaz").is_none());
}

#[test]
fn a_text_with_different_spaces_is_found() {
    let (line, lines, ignores) = found("a\nb\ncall(one,  two,\n     three);\n", "call(one, two, three)").unwrap();
    assert_eq!((line, ignores), (2, "spaces and line breaks"));
    assert_eq!(lines, ["call(one,  two,", "     three)"]);
    assert!(found("ab", "a b").is_none(), "the wanted text is too short");
}

#[test]
fn a_text_with_different_case_and_spaces_is_found() {
    let (_, lines, ignores) = found("if (Ready)  {\n", "IF(ready) {").unwrap();
    assert_eq!(
        (lines.as_slice(), ignores),
        (&["if (Ready)  {".to_owned()][..], "spaces, line breaks, upper and lower case")
    );
}
