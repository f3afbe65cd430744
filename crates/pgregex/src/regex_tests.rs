use crate::{ErrorKind, MatchError, Options, Regex};

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern, Options::default()).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

fn compile_case_insensitive(pattern: &str) -> Regex {
    let options = Options { case_insensitive: true, ..Options::default() };
    Regex::new(pattern, options).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

#[track_caller]
fn assert_matches(pattern: &str, lines: &[&str]) {
    for line in lines {
        assert_eq!(compile(pattern).is_match(line), Ok(true), "{pattern} on {line:?}");
    }
}

#[track_caller]
fn assert_misses(pattern: &str, lines: &[&str]) {
    for line in lines {
        assert_eq!(compile(pattern).is_match(line), Ok(false), "{pattern} on {line:?}");
    }
}

#[track_caller]
fn assert_refused(pattern: &str, kind: ErrorKind, offset: usize) {
    let error = Regex::new(pattern, Options::default()).expect_err(pattern);
    assert_eq!((error.kind(), error.offset()), (kind, offset), "{pattern}: {error}");
}

#[test]
fn lower_case_b_escapes_a_backspace_and_upper_case_b_a_backslash() {
    assert_matches(r"a\bc", &["a\u{8}c"]);
    assert_misses(r"\ba", &["a"]);
    assert_matches(r"^\B$", &["\\"]);
}

#[test]
fn word_boundaries_match_at_the_edges_of_words() {
    assert_matches(r"\mfoo\M", &["a foo b", "foo"]);
    assert_misses(r"\mfoo\M", &["foobar", "xfoo"]);
    assert_matches(r"[[:<:]]foo[[:>:]]", &["(foo)"]);
    assert_matches(r"o\yb|b\Ya", &["bar"]);
    assert_misses(r"\yoo", &["foo"]);
    assert_matches(r"\Afoo\Z", &["foo"]);
    assert_misses(r"\Afoo\Z", &["foo "]);
}

#[test]
fn word_boundaries_use_postgresqls_word_characters() {
    assert_misses(r"\mb", &["äb", "漢b"]);
    // A combining accent is a word character in Unicode, but not in C.UTF-8.
    assert_matches(r"\mb", &["x\u{300}b"]);
    assert_matches(r"\mä\M", &["a ä b"]);
}

#[test]
fn a_brace_without_a_digit_is_literal() {
    assert_matches("^a{x$", &["a{x"]);
    assert_matches("^a{,2}$", &["a{,2}"]);
    assert_matches("^{$", &["{"]);
}

#[test]
fn bounds_up_to_255_are_accepted() {
    assert_matches("a{255}", &["a".repeat(255).as_str()]);
    assert_refused("a{256}", ErrorKind::RepetitionCount, 5);
    assert_refused("a{2,1}", ErrorKind::RepetitionCount, 5);
    assert_refused("a{1", ErrorKind::Braces, 3);
}

#[test]
fn a_quantifier_cannot_repeat_a_quantifier_or_an_assertion() {
    assert_refused("a**", ErrorKind::QuantifierOperand, 2);
    assert_refused("*a", ErrorKind::QuantifierOperand, 0);
    assert_refused("^*", ErrorKind::QuantifierOperand, 1);
    assert_refused("(?=a)*", ErrorKind::QuantifierOperand, 5);
}

#[test]
fn set_operators_of_other_languages_are_literal_in_brackets() {
    assert_matches("^[a&&b]+$", &["a&b"]);
    assert_matches("^[+--]+$", &["+,-"]);
    assert_matches("^[~~]$", &["~"]);
    assert_matches("^[[a]+$", &["[a"]);
    assert_matches("^[]a]+$", &["]a"]);
}

#[test]
fn the_prefix_selects_flavour_and_options() {
    assert_matches("***=a.b", &["a.b"]);
    assert_misses("***=a.b", &["axb"]);
    assert_matches("***:(?i)A", &["a"]);
    assert_matches("(?q)a*", &["a*"]);
    assert_matches("(?x) a  b # both", &["ab"]);
    assert_matches("(?e)a)", &["a)"]);
    assert_matches(r"(?b)\(a\)\1*", &["aaa"]);
    assert_matches("(?b)*a+", &["*a+"]);
    assert_matches("(?n)^a$", &["a"]);
    assert_refused("(?z)a", ErrorKind::EmbeddedOption, 2);
    assert_refused("***?", ErrorKind::Version, 3);
}

#[test]
fn classes_are_those_of_the_locale() {
    assert_misses(r"\d", &["٣"]);
    assert_misses(r"\s", &["\u{a0}"]);
    assert_matches(r"\s", &["\u{2028}"]);
    assert_misses(r"\w", &["\u{300}"]);
}

#[test]
fn case_folds_as_in_postgresql() {
    assert_eq!(compile_case_insensitive("k").is_match("K"), Ok(true));
    assert_eq!(compile_case_insensitive("k").is_match("\u{212A}"), Ok(false));
    assert_eq!(compile_case_insensitive("s").is_match("ſ"), Ok(false));
    assert_eq!(compile_case_insensitive("σ").is_match("ς"), Ok(false));
    assert_eq!(compile_case_insensitive("É").is_match("é"), Ok(true));
    assert_eq!(compile_case_insensitive("(?c)a").is_match("A"), Ok(false));
}

#[test]
fn upper_and_lower_classes_match_all_letters_if_case_is_ignored() {
    assert_eq!(compile_case_insensitive("^[[:upper:]]$").is_match("漢"), Ok(true));
    assert_eq!(compile("^[[:upper:]]$").is_match("漢"), Ok(false));
    assert_eq!(compile_case_insensitive("^[[:lower:]]$").is_match("A"), Ok(true));
}

#[test]
fn a_line_does_not_end_before_a_carriage_return() {
    assert_misses("a$", &["a\r"]);
    assert_matches("a.$", &["a\r"]);
}

#[test]
fn look_around_reads_nothing() {
    assert_matches("^(?=.*a)(?=.*b)", &["xbya"]);
    assert_misses("^(?=.*a)(?=.*b)", &["xa"]);
    assert_matches("(?<=a+b)c", &["aabc"]);
    assert_misses("(?<!ab)c", &["abc"]);
}

#[test]
fn a_back_reference_matches_the_text_of_its_group() {
    assert_matches(r"^(a|b)\1$", &["aa", "bb"]);
    assert_misses(r"^(a|b)\1$", &["ab"]);
    assert_eq!(compile_case_insensitive(r"^(a)\1$").is_match("aA"), Ok(true));
    assert_misses(r"(a)|b\1", &["b"]);
    assert_refused(r"\1", ErrorKind::BackReference, 0);
    assert_refused(r"(a\1)", ErrorKind::BackReference, 2);
    assert_refused(r"(a)(?=\1)", ErrorKind::BackReference, 6);
}

#[test]
fn an_error_has_postgresqls_message_and_the_position() {
    let error = Regex::new("é(a", Options::default()).expect_err("unbalanced");
    assert_eq!(error.to_string(), "invalid regular expression: parentheses () not balanced (at character 4)");
    assert_eq!(error.offset(), "é(a".len());
    assert_refused(r"a\q", ErrorKind::Escape, 1);
    assert_refused("[a", ErrorKind::Brackets, 0);
    assert_refused("[b-a]", ErrorKind::CharacterRange, 0);
    assert_refused("a)", ErrorKind::Parentheses, 1);
    assert_refused("[[:foo:]]", ErrorKind::CharacterClass, 0);
    assert_refused("[[.foo.]]", ErrorKind::CollatingElement, 0);
}

#[test]
fn exceeding_the_step_limit_is_an_error() {
    let options = Options { step_limit: 100, ..Options::default() };
    let regex = Regex::new(r"^(a*)(a*)\1\2b$", options).unwrap();
    let error = regex.is_match("a".repeat(100) + "b").expect_err("too many steps");
    assert_eq!(error, MatchError::StepLimit { limit: 100 });
}

#[test]
fn bytes_that_are_not_utf8_match_nothing() {
    for pattern in [".", r"\W", "[^a]", r"(?=.)", r"(.)\1"] {
        assert_eq!(compile(pattern).is_match(b"\xff\xff"), Ok(false), "{pattern}");
    }
    assert_eq!(compile(r"a\M").is_match(b"\xffa\xff"), Ok(true));
}

#[test]
fn requirements_are_literals_in_lower_case() {
    let literals = |pattern: &str| -> Vec<Vec<String>> {
        let text = |literal: &Vec<u8>| String::from_utf8_lossy(literal).into_owned();
        let regex = compile_case_insensitive(pattern);
        regex.requirements().iter().map(|requirement| requirement.literals.iter().map(text).collect()).collect()
    };
    assert_eq!(literals(r"fn Poll_\w+\("), [vec!["fn poll_"], vec!["("]]);
    assert_eq!(literals("(foo|BAR)baz"), [vec!["bar", "foo"], vec!["baz"]]);
    assert_eq!(literals("ab(?=c)d?"), [vec!["c"], vec!["ab"]]);
    assert_eq!(literals("a*|b"), Vec::<Vec<String>>::new());
    assert_eq!(literals("x(ab)+"), [vec!["xab"]]);
}

#[test]
fn a_pattern_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&compile(r"(a)\1"));
}
