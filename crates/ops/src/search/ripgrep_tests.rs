use super::*;
use std::time::{Duration, Instant};

fn lines(pattern: &str, case: Case, text: &str) -> Vec<String> {
    let interrupt = Interrupt::at(Instant::now() + Duration::from_secs(60));
    let mut lines = Vec::new();
    let pattern = Pattern::new(pattern, case).unwrap();
    let mut take = |line: Range<usize>| {
        lines.push(text[line].to_owned());
        ControlFlow::Continue(())
    };
    pattern.find_lines(text.as_bytes(), &interrupt, &mut take).unwrap();
    lines
}

#[test]
fn lines_are_found_one_by_one() {
    assert_eq!(lines(r"\bfn\b", Case::Sensitive, "fn a\nb\n  fn c fn\nfnord\n"), ["fn a", "  fn c fn"]);
    assert_eq!(lines("^$", Case::Sensitive, "a\n\nb\n"), [""]);
    assert_eq!(lines("FN", Case::Ignored, "fn a"), ["fn a"]);
    assert_eq!(lines("x*", Case::Sensitive, ""), Vec::<String>::new());
    assert_eq!(lines("c$", Case::Sensitive, "abc\r\nabc"), ["abc"]);
    assert_eq!(lines("[0-9]*$", Case::Sensitive, "v = 1;\nend"), ["v = 1;", "end"]);
    assert_eq!(lines("$", Case::Sensitive, "a\n"), ["a"]);
}

#[test]
fn lines_with_only_a_literal_of_the_pattern_do_not_match() {
    let pattern = r"\s+(Sherlock|[A-Z]atso[a-z]|Moriarty)\s+";
    let text = "a Watson b\natso\n Sherlock\n Moriarty x\nwatson\n Sherlock \n";
    assert_eq!(lines(pattern, Case::Sensitive, text), ["a Watson b", " Moriarty x", " Sherlock "]);
}

#[test]
fn the_start_of_the_text_is_not_the_start_of_every_line() {
    assert_eq!(lines(r"\Aa", Case::Sensitive, "a\na\na\n"), ["a"]);
    assert_eq!(lines(r"^a", Case::Sensitive, "a\na\nba\n"), ["a", "a"]);
}

#[test]
fn a_text_of_many_pieces_is_searched_whole() {
    let text = format!("{}needle\n{}needle", "hay hay hay\n".repeat(200_000), "hay\n".repeat(300_000));
    assert_eq!(lines("needle", Case::Sensitive, &text), ["needle", "needle"]);
}

#[test]
fn required_literals_are_extracted() {
    let required = |pattern: &str, case| -> Vec<Vec<String>> {
        let text = |literal: &Vec<u8>| String::from_utf8(literal.clone()).unwrap();
        let all = Pattern::new(pattern, case).unwrap().requirements;
        all.iter().map(|one| one.literals.iter().map(text).collect()).collect()
    };
    assert_eq!(required(r"fn poll_\w+\(", Case::Sensitive), [vec!["fn poll_"], vec!["("]]);
    assert_eq!(required("(foo|Barbaz)x?", Case::Sensitive), [vec!["foo", "barbaz"]]);
    assert_eq!(required("Hello", Case::Ignored), [vec!["hello"]]);
    // Without case the Kelvin sign equals k, and it is not ASCII.
    assert_eq!(required("aka", Case::Ignored), [vec!["a"], vec!["a"]]);
    assert_eq!(required("a+b", Case::Sensitive), [vec!["a"], vec!["b"]]);
    assert!(required("a*|b", Case::Sensitive).is_empty());
}

#[test]
fn the_error_for_an_invalid_pattern_explains_it() {
    let error = Pattern::new("a(", Case::Sensitive).err().unwrap();
    assert_eq!(error.argument_at_fault(), Some("pattern"));
    assert!(error.message.contains("unclosed group"), "{error}");
}
