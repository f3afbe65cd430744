//! Compares a fixed list of patterns, and the tables of characters, with PostgreSQL.

use pgregex::{Options, Regex};

use crate::oracle::{self, Oracle, TestCase};

/// Lines that the patterns are matched with, separated by newlines.
const LINES: &str = concat!(
    "\na\nb\nab\naa\naab\nabab\naba\nabc\nA\nK\nk\n\u{212A}\ns\nS\nſ\nß\né\nÉ\nİ\nı\ni\nI\nσ\nς\nΣ\n",
    "ǅ\nǆ\nǄ\nfoo bar\nfoo_bar\n foo \nföö bär\nx\u{300}y\na\r\n\r\n\t\na\tb\n\u{a0}\n\u{85}\n",
    "\u{2028}\n漢字\n٣\n3\n1a\n-\n]\n[\n[a\n^\n$\n\\\n{\n}\na{\na{x\na{,2}\n&&\na&b\n--\n~~\n*\n**\n",
    "***\n(?i)\na.b\n(\n)\n()\n\u{8}\n\u{1b}\n#\na b\n1\n12\n\u{1}\n",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n+\n?\n",
    "|\na|b\nbababbb\nbababa\nabbabaaaaaabb\nabaaaa\nbbabbbbbaaaa\nbaba\n",
);

/// Patterns, one per line, each compared with and without case. Empty lines and lines that start with `## ` are
/// skipped.
const PATTERNS: &str = include_str!("patterns.txt");

fn patterns() -> Vec<&'static str> {
    let written = PATTERNS.lines().filter(|line| !line.is_empty() && !line.starts_with("## "));
    // These patterns are empty or contain a newline, so the file cannot hold them.
    written.chain(["", "(?x)a #c\nb", "(?x)#", "a\nb"]).collect()
}

#[tokio::test]
async fn fixed_patterns_find_the_lines_that_postgresql_finds() {
    let oracle = Oracle::connect().await;
    let mut differences = Vec::new();
    let (mut compared, mut refused) = (0, 0);
    for pattern in patterns() {
        for case_insensitive in [false, true] {
            let lines: Vec<String> = LINES.split('\n').map(str::to_owned).collect();
            let case = TestCase { pattern: pattern.to_owned(), case_insensitive, lines };
            let theirs = oracle.run(&case).await;
            let ours = oracle::run_pgregex(&case);
            match &theirs {
                Ok(results) => compared += results.len(),
                Err(_) => refused += 1,
            }
            differences.extend(oracle::difference(&case, &theirs, &ours));
        }
    }
    println!("{} patterns, {refused} refused, {compared} results compared", patterns().len() * 2);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// Matches that PostgreSQL does not find, each of a kind that the crate's documentation lists.
const EXTRA_MATCHES: &[(&str, &str)] = &[
    (r"^(?:(a|ab)(c|bcd)(d*))\1$", "abcda"),
    (r"^(?:(b)|.?)+\1$", "bb"),
    (r"(?:(a*b)|.)+\1a", "ababaab"),
    (r"(a)(?:\1?){2}$", "a"),
    (r"(a)(?:\1|){2}$", "a"),
    (r"($|a)\1", "ab"),
    (r"(\Z)|\1", "a"),
    (r"([[:>:]])|\1", "a"),
];

#[tokio::test]
async fn documented_extra_matches_are_found_here_and_not_by_postgresql() {
    let oracle = Oracle::connect().await;
    for (pattern, line) in EXTRA_MATCHES {
        let case =
            TestCase { pattern: (*pattern).to_owned(), case_insensitive: false, lines: vec![(*line).to_owned()] };
        assert_eq!(oracle.run(&case).await, Ok(vec![false]), "{pattern}");
        assert_eq!(oracle::run_pgregex(&case), Ok(vec![true]), "{pattern}");
    }
}

#[tokio::test]
async fn every_character_is_in_the_classes_that_postgresql_puts_it_in() {
    let oracle = Oracle::connect().await;
    let text: String = ('\u{1}'..=char::MAX).filter(|character| *character != '\n').flat_map(|c| [c, '\n']).collect();
    for pattern in [
        "^[[:alpha:]]$",
        r"^\w$",
        r"^\s$",
        r"^[[:punct:]]$",
        r"^[[:print:]]$",
        r"^\d$",
        "^[[:upper:]]$",
        "^[[:lower:]]$",
    ] {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        let ours: Vec<i32> = regex
            .matching_lines(text.as_bytes())
            .map(|line| text[line.unwrap()].chars().next().map_or(0, |character| character as i32))
            .collect();
        // PostgreSQL matches single characters here, so it needs no anchors, which would only slow it down.
        let row = oracle
            .client()
            .query_one(
                "SELECT array(SELECT code FROM generate_series(1, 1114111) AS code
                 WHERE code NOT BETWEEN 55296 AND 57343 AND code <> 10 AND chr(code) ~ $1 ORDER BY code)",
                &[&pattern.trim_matches(['^', '$'])],
            )
            .await
            .unwrap();
        assert!(ours == row.get::<_, Vec<i32>>(0), "{pattern}");
    }
}

#[tokio::test]
async fn every_character_name_means_the_same_as_in_postgresql() {
    let oracle = Oracle::connect().await;
    let names = "NUL SOH STX ETX EOT ENQ ACK BEL alert BS backspace HT tab LF newline VT vertical-tab FF form-feed CR \
        carriage-return SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC IS4 FS IS3 GS IS2 RS IS1 US space \
        exclamation-mark quotation-mark number-sign dollar-sign percent-sign ampersand apostrophe left-parenthesis \
        right-parenthesis asterisk plus-sign comma hyphen hyphen-minus period full-stop slash solidus zero one two three \
        four five six seven eight nine colon semicolon less-than-sign equals-sign greater-than-sign case-mark \
        commercial-at left-square-bracket backslash reverse-solidus right-square-bracket circumflex circumflex-accent \
        underscore low-line grave-accent left-brace left-curly-bracket vertical-line right-brace right-curly-bracket \
        tilde DEL hyphens Space ten";
    let lines: Vec<String> =
        (1..=127u8).map(char::from).filter(|character| *character != '\n').map(String::from).collect();
    for name in names.split_whitespace() {
        let case = TestCase { pattern: format!("[[.{name}.]]"), case_insensitive: false, lines: lines.clone() };
        assert_eq!(oracle::run_pgregex(&case), oracle.run(&case).await, "{name}");
    }
}

#[tokio::test]
async fn every_character_folds_as_in_postgresql() {
    let oracle = Oracle::connect().await;
    let rows = oracle
        .client()
        .query(
            "SELECT chr(code), lower(chr(code)), upper(chr(code)) FROM generate_series(1, 1114111) AS code
             WHERE code NOT BETWEEN 55296 AND 57343 AND (lower(chr(code)) <> chr(code) OR upper(chr(code)) <> chr(code))",
            &[],
        )
        .await
        .unwrap();
    assert!(rows.len() > 2_000, "the locale has upper and lower case");
    for row in rows {
        let (character, lower, upper): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let regex = Regex::new(character, Options { case_insensitive: true, ..Options::default() }).unwrap();
        for form in [character, lower, upper] {
            assert_eq!(regex.is_match(form).unwrap(), form == lower || form == upper, "{character} and {form}");
        }
    }
}
