//! Prints the search speed for kinds of patterns in a generated text, and how soon a search ends when it is
//! interrupted.
//!
//! `cargo run --release -p pgregex --example bench`
#![allow(clippy::cast_precision_loss)]

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgregex::{MatchError, Options, Regex};

const TEXT_BYTES: usize = 16 << 20;

/// How long each pattern is searched for, again and again, to measure its speed.
const MEASURED_TIME: Duration = Duration::from_millis(300);

/// Kinds of patterns: a description, the pattern, and whether case is ignored.
const KINDS: &[(&str, &str, bool)] = &[
    ("literal", "needle_in_hay", false),
    ("literal, case-insensitive", "needle_in_hay", true),
    ("literal in many lines", "return", false),
    ("class", r"\d{4}-\d{2}-\d{2}", false),
    ("words of any script", r"\w+\s+\w+\s+=>", false),
    ("alternatives", "panic|unwrap|expect|todo", false),
    ("start and end of line", r"^\s*fn .*\{$", false),
    ("any characters", "let .* = .*needle", false),
    ("word boundary", r"\mvalue\M", false),
    ("look-ahead", r"fn \w+(?=\(self)", false),
    ("negative look-behind", r"(?<!pub )fn needle", false),
    ("back-reference", r"(\w+) \1", false),
    ("back-reference in quotes", r#"(["']).*\1"#, false),
];

/// Patterns with many states or many ways to match, none of which matches a text of `a`.
const HARD_PATTERNS: &[&str] = &[
    "[n-z]eedle",
    "(a{1,255}){1,20}[c-z]",
    "((a{1,20}){1,20}){1,20}[c-z]",
    r"(\w{1,100}){1,20}[^\w]",
    "(a|b|ab){100,200}[c-z]",
    "a[^u-z]{13}[c-z]",
    "a[ab]{18}[c-z]",
    "a.{60}[c-z]",
    "(a*)*(a*)*[c-z]",
    r"^(a*)\1\1a\1\1\1$",
    "(?<=a+)(?=a+)a(?!a*$)",
    r"\m(a|ä)+\M[c-z]",
    r"(\w{255}){20}=",
    r"(\m\w{255}){20}=",
    r"\w{200}\W{200}",
];

fn main() -> Result<(), Box<dyn Error>> {
    let code = text(&["value", "needle", "self", "return", "index", "result"], TEXT_BYTES);
    let mixed = text(&["value", "größe", "self", "return", "索引", "result"], TEXT_BYTES);
    println!("{:32} {:>12} {:>16} {:>14}", "kind", "ASCII", "not only ASCII", "in 10 KB");
    for (kind, pattern, case_insensitive) in KINDS {
        let regex = Regex::new(pattern, Options { case_insensitive: *case_insensitive, ..Options::default() })?;
        let speeds = [code.as_bytes(), mixed.as_bytes(), &code.as_bytes()[..10_000]].map(|text| speed(&regex, text));
        println!("{kind:32} {:7.0} MB/s {:11.0} MB/s {:9.0} MB/s", speeds[0], speeds[1], speeds[2]);
    }
    println!(
        "\n{:32} {:>12} {:>16} {:>14} {:>12}",
        "until interrupted", "one line", "short lines", "random lines", "compiled in"
    );
    let long = "a".repeat(50 << 20);
    let short = format!("{}\n", "a".repeat(99)).repeat(1 << 20);
    let random: String =
        text(&["a", "b"], TEXT_BYTES).chars().map(|c| if c == '\n' || c == 'b' { c } else { 'a' }).collect();
    for pattern in HARD_PATTERNS {
        let started = Instant::now();
        let regex = Regex::new(pattern, Options { step_limit: u64::MAX, ..Options::default() })?;
        let compiled = started.elapsed().as_secs_f64() * 1e3;
        let delays = [&long, &short, &random].map(|text| match worst_delay(&regex, text.as_bytes()) {
            Some(delay) => format!("{:.1} ms", delay.as_secs_f64() * 1e3),
            None => "finished".to_owned(),
        });
        println!("{pattern:32} {:>12} {:>16} {:>14} {compiled:>9.1} ms", delays[0], delays[1], delays[2]);
    }
    Ok(())
}

/// Generates lines that look like source code.
fn text(words: &[&str], bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 200);
    let mut seed = 1u64;
    let mut next = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    while text.len() < bytes {
        text.push_str(["", "    ", "        "][next(3)]);
        text.push_str(["let ", "if ", "pub fn ", "// ", "self.", "return "][next(6)]);
        for _ in 0..next(9) {
            text.push_str(words[next(words.len())]);
            text.push_str([" ", "_", "(", ") ", " = ", "."][next(6)]);
        }
        text.push_str([";\n", " {\n", "}\n", "\n"][next(4)]);
    }
    text
}

/// Returns the search speed in megabytes per second.
fn speed(regex: &Regex, text: &[u8]) -> f64 {
    let flag = AtomicBool::new(false);
    let (started, mut searches) = (Instant::now(), 0);
    while started.elapsed() < MEASURED_TIME {
        std::hint::black_box(regex.matching_lines(text).interrupted_by(&flag).count());
        searches += 1;
    }
    text.len() as f64 * f64::from(searches) / started.elapsed().as_secs_f64() / 1e6
}

/// Returns the longest delay for interruptions at several times; `None` if every search had ended before.
fn worst_delay(regex: &Regex, text: &[u8]) -> Option<Duration> {
    [3, 20, 60, 150, 300].into_iter().filter_map(|after| delay(regex, text, Duration::from_millis(after))).max()
}

/// Sets the flag `after` some time of searching; returns the time from then to the end of the search, or `None` if the
/// search had ended before.
fn delay(regex: &Regex, text: &[u8], after: Duration) -> Option<Duration> {
    let flag = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let search = scope.spawn(|| {
            let last = regex.matching_lines(text).interrupted_by(&flag).last();
            (last == Some(Err(MatchError::Interrupted)), Instant::now())
        });
        let started = Instant::now();
        while started.elapsed() < after && !search.is_finished() {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let set = Instant::now();
        flag.store(true, Ordering::Relaxed);
        let (was_interrupted, ended) = search.join().ok()?;
        was_interrupted.then(|| ended.saturating_duration_since(set))
    })
}
