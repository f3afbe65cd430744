use super::*;

fn found(text: &str, wanted: &str) -> Option<(usize, Vec<String>, &'static str)> {
    let near = find(text.as_bytes(), wanted.as_bytes(), Stop::never())?;
    let lines = near.lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    Some((near.first_line, lines, near.overlooks))
}

#[test]
fn a_text_in_other_case_is_found() {
    let (line, lines, overlooks) = found("x\nlet Größe = getÉtat();\n", "GETétat()").unwrap();
    assert_eq!((line, lines.as_slice(), overlooks), (1, &["getÉtat()".to_owned()][..], "upper and lower case"));
    assert_eq!(found("x = FooBar\n", "foobar").unwrap().1, ["FooBar"]);
    assert!(found("x = FooBar\n", "foobaz").is_none());
}

#[test]
fn a_text_with_other_spaces_is_found() {
    let (line, lines, overlooks) = found("a\nb\ncall(one,  two,\n     three);\n", "call(one, two, three)").unwrap();
    assert_eq!((line, overlooks), (2, "spaces and line breaks"));
    assert_eq!(lines, ["call(one,  two,", "     three)"]);
    assert!(found("ab", "a b").is_none(), "too little is everywhere");
}

#[test]
fn both_at_once_are_found() {
    let (_, lines, overlooks) = found("if (Ready)  {\n", "IF(ready) {").unwrap();
    assert_eq!(
        (lines.as_slice(), overlooks),
        (&["if (Ready)  {".to_owned()][..], "spaces, line breaks, upper and lower case")
    );
}
