//! PostgreSQL's regular expressions: the same lines match, the same patterns are refused.
//!
//! ```
//! use pgregex::{Options, Regex};
//!
//! let regex = Regex::new(r"\mfn\M", Options { case_insensitive: true, ..Options::default() })?;
//! assert!(regex.is_match("pub FN main()")?);
//! assert!(!regex.is_match("fnord")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The answers are those of `line ~ pattern`, or `line ~* pattern` without case, in PostgreSQL 15 with the locale
//! C.UTF-8. All of its syntax is known: advanced regular expressions with `***=`, `***:` and `(?letters)`, and through
//! `(?e)` and `(?b)` the extended and basic ones. Classes and case pairs come from tables made by a real server, for
//! they differ from Unicode's in thousands of characters.
//!
//! A text of many lines is searched at once, and a search can be interrupted from another thread:
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use pgregex::{Options, Regex};
//!
//! let stop = AtomicBool::new(false);
//! let regex = Regex::new(r"^\s*use", Options::default())?;
//! for line in regex.matching_lines(b"use std;\nfn main() {}\n").interrupted_by(&stop) {
//!     assert_eq!(line?, 0..8);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How
//!
//! A pattern is parsed into a tree of its own.
//!
//! - Without look-around and back-references it becomes an automaton of `regex-automata`, which searches whole texts.
//! - Where word boundaries meet text that is not ASCII, an automaton of this crate decides about the lines that remain,
//!   since PostgreSQL's word characters are its own.
//! - Look-around is worked out by the same automaton for all places of a line beforehand, in linear time.
//! - Back-references are found by backtracking, with a limit of steps for each line.
//!
//! A search that can be interrupted hands out the text in pieces, the smaller the larger the automaton is, and reads a
//! line that is longer than a piece with an engine that looks at the flag. It ends within some 50 milliseconds.
//!
//! # Differences
//!
//! Which patterns are refused, and which lines a pattern without back-references matches, is the same in millions of
//! random comparisons with a server. What is known to differ:
//!
//! - Only single lines are compared: a newline in a text separates lines, each matched by itself, and `\n` in a pattern
//!   matches nothing. The options `n`, `p`, `s` and `w` therefore change nothing.
//! - Text may hold NUL, which PostgreSQL cannot store; it counts as `[[:cntrl:]]` and `[[:ascii:]]`. A byte that is not
//!   UTF-8 is matched by nothing, not even by `.`, and is no word character.
//! - "Too complex" begins at about, not exactly, the same size, and at 250 nested groups; PostgreSQL's own limits depend
//!   on its memory layout and stack.
//! - A pattern with several faults may be refused for another of them.
//! - Patterns with back-references match some lines that PostgreSQL does not match, about one in five hundred in random
//!   comparisons, and never the other way round. Here all ways to divide a line are tried; PostgreSQL looks at one way
//!   to match a piece and does not come back to it. It misses
//!   - other ways to divide a piece among the parts of a group or among the rounds of a repetition:
//!     `^(?:(a|ab)(c|bcd)(d*))\1$` on `abcda`, `^(?:(b)|.?)+\1$` on `bb`;
//!   - two or more required rounds that hold a reference and read nothing: `(a)(?:\1?){2}$` on `a`;
//!   - an empty match at the end of a line after a start that looked promising: `($|a)\1` on `ab`, `(\Z)|\1` on `a`.
//!
//! What holds for back-references as in PostgreSQL: a reference to a group that took no part matches nothing, even if
//! it may be repeated no times; each round of a repetition forgets what the groups in it held in the round before; and a
//! reference does not repeat the conditions of its group, so `(^a)\1` matches `aa`.
//!
//! # Limits
//!
//! - A pattern may have 45,000 states and 250 nested groups; compiling takes 0.1 ms mostly, and some 100 ms at worst.
//! - Look-around and back-references end with [`MatchError::StepLimit`] when a line takes more than
//!   [`Options::step_limit`] steps, where PostgreSQL would go on. The limit bounds the memory as well.
//! - Speeds seen on one busy core with `examples/bench.rs`, over text like source code: a literal without case 0.65
//!   GB/s, a literal that many lines hold 1 GB/s, `^\s*fn .*\{$` 4 GB/s, word boundaries 0.8 GB/s, or 130 MB/s where the
//!   text is not ASCII, look-ahead 190 MB/s, back-references 20 MB/s where each line has to be looked at.

mod ast;
mod backtrack;
mod bracket;
mod classes;
mod cursor;
mod engine;
mod error;
mod escape;
mod flavor;
mod hir;
mod lines;
mod literal;
mod program;
mod regex;
mod simulate;
mod syntax;
mod tables;

pub use error::{Error, ErrorKind, MatchError};
pub use lines::MatchingLines;
pub use literal::Requirement;
pub use regex::{Options, Regex};
