use super::*;
use proptest::prelude::*;

#[track_caller]
fn chooses(pattern: &str, chosen: &[&str], others: &[&str]) {
    let accepts = |path: &str| PathPattern::parse(pattern).is_none_or(|pattern| pattern.accepts(path));
    for path in chosen {
        assert!(accepts(path), "{pattern} should choose {path}");
    }
    for path in others {
        assert!(!accepts(path), "{pattern} should not choose {path}");
    }
}

#[test]
fn a_pattern_without_wildcards_matches_paths_that_contain_it() {
    chooses("src", &["/src/main.rs", "/lib/SRC.txt", "/a/mysrc2"], &["/sr/c"]);
    chooses("/src", &["/src/main.rs", "/a/src"], &["/asrc"]);
    chooses("src/", &["/src/main.rs", "/xsrc/a"], &["/src.rs"]);
    chooses("main.rs", &["/src/main.rs", "/main.rs.bak", "/xmain.rs"], &["/mainxrs"]);
    chooses("config", &["/etc/Config.toml", "/config/a"], &["/conf"]);
}

#[test]
fn a_pattern_with_a_wildcard_must_match_the_whole_path() {
    chooses("%.rs", &["/a.rs", "/deep/down/b.RS"], &["/a.rs.bak"]);
    chooses("*.rs", &["/a.rs", "/deep/down/b.rs"], &["/a.rsx"]);
    chooses("src/*", &["/src/a", "/src/a/b"], &["/lib/src/a", "/src"]);
    chooses("/src/%", &["/src/a"], &["/x/src/a"]);
    chooses("*/test/*", &["/a/test/b", "/test/b"], &["/a/tests/b", "/test"]);
    chooses("50%", &["/50", "/50 percent", "/50/x"], &["/150", "/a/50"]);
    chooses("*", &["/", "/anything"], &[]);
    chooses("a*b*c", &["/abc", "/a/b/c", "/aXbYbZc"], &["/acb", "/ab"]);
    chooses("a*a", &["/aa", "/a/a"], &["/a"]);
}

#[test]
fn an_underscore_is_an_ordinary_character() {
    chooses("a_b", &["/x/a_b.txt"], &["/x/aXb.txt", "/ab"]);
    chooses("a_b*", &["/a_b.txt"], &["/aXb.txt"]);
}

#[test]
fn other_characters_are_ordinary_too() {
    chooses("a?b[c]\\*", &["/a?b[c]\\d"], &["/axbc", "/a?b[c]d"]);
    chooses("ΟΔΟΣ", &["/ΟΔΟΣ.txt", "/οδοσx"], &[]);
    chooses("ΟΔΟΣ*", &["/ΟΔΟΣ.txt"], &[]);
    chooses("ÄRGER", &["/ärger.txt"], &["/arger.txt"]);
}

#[test]
fn surrounding_white_space_and_doubled_slashes_are_ignored() {
    chooses("  src//lib ", &["/src/lib.rs"], &["/srclib"]);
    chooses("", &["/anything"], &[]);
    chooses("   ", &["/anything"], &[]);
}

#[test]
fn dots_are_resolved_from_the_root() {
    chooses("./src/*", &["/src/a", "/SRC/a/b"], &["/lib/src/a"]);
    chooses("../*", &["/a", "/a/b"], &[]);
    chooses("src/./a/../*.rs", &["/src/main.rs"], &["/src.rs"]);
    chooses("./src", &["/src/main.rs", "/a/src"], &["/asrc"]);
    chooses(".", &["/anything"], &[]);
    chooses("..", &["/anything"], &[]);
    chooses(".rs", &["/main.rs"], &["/mainrs"]);
}

/// The same rule, implemented in the simplest way.
fn fits(pattern: &[char], path: &[char]) -> bool {
    match pattern {
        [] => path.is_empty(),
        ['*', rest @ ..] => (0..=path.len()).any(|skip| fits(rest, &path[skip..])),
        [one, rest @ ..] => path.first() == Some(one) && fits(rest, &path[1..]),
    }
}

proptest! {
    #[test]
    fn wildcards_match_like_the_simple_algorithm(pattern in "[ab*]{1,8}", path in "/[ab]{0,10}") {
        prop_assume!(pattern.contains('*'));
        let anchored = if pattern.starts_with('*') { pattern.clone() } else { format!("/{pattern}") };
        let (characters, letters): (Vec<char>, Vec<char>) = (anchored.chars().collect(), path.chars().collect());
        prop_assert_eq!(PathPattern::parse(&pattern).unwrap().accepts(&path), fits(&characters, &letters));
    }
}
