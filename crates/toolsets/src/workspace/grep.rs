//! `grep`: searches the text of files.

use crate::{arguments, counted};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolrest_core::{Action, CallCx, Result, Tool, WsPath};
use toolrest_ops::{Case, PathPattern, SearchOptions, Syntax};

/// The most matches that an answer carries, as the specification says.
const MATCHES_MOST: usize = 1000;

pub(crate) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Regular expression to search for, in PostgreSQL's syntax (`\y` is a word boundary). Each line is matched by itself.
    pattern: String,
    /// Which files to search, by their path, case ignored: with `*` or `%` for any characters the whole path must fit
    /// (`*.rs`, `/src/%`); without, the path must contain it.
    path_pattern: Option<String>,
    /// Whether case counts. Default: false.
    case_sensitive: Option<bool>,
    /// Whether to search files that `.gitignore` leaves out. Default: false.
    include_ignored: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The lines that match, by path and then by line.
    matches: Vec<Match>,
    /// Whether there were more than 1000 matches, or more than an answer can carry; narrow the search to see them.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    truncated: bool,
    /// How many files were passed over, by reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<Skipped>,
}

/// The warning for a pattern with `\b`, which is a word boundary in most other syntaxes.
const BACKSPACE: &str = r"`\b` is a backspace in PostgreSQL's regular expressions; write `\y` for a word boundary";

/// Whether a pattern has the escape for a backspace.
fn has_backspace(pattern: &str) -> bool {
    // After this prefix, all characters are literal.
    if pattern.starts_with("***=") {
        return false;
    }
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character == '\\' && characters.next() == Some('b') {
            return true;
        }
    }
    false
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// The file.
    path: WsPath,
    /// The line's number, counted from 1.
    line_number: u64,
    /// The line's text.
    line_text: String,
}

#[derive(Default, PartialEq, Serialize, JsonSchema)]
struct Skipped {
    /// Files that are not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    binary: Option<u64>,
    /// Files, and folders with all that is in them, that `.gitignore` leaves out.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<u64>,
    /// JSON files that are too large once they are laid out as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    too_large: Option<u64>,
    /// Files and folders that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<u64>,
    /// Files and folders with a name that no path can have: not UTF-8, or with control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    unnamed: Option<u64>,
}

#[async_trait]
impl Tool for Grep {
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str = "Search the text of all files in the workspace for a regular expression";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let paths = match &args.path_pattern {
            Some(pattern) => PathPattern::parse(&toolrest_ops::locate_pattern(cx, pattern).await?),
            None => None,
        };
        if has_backspace(&args.pattern) {
            cx.warn(BACKSPACE.to_owned());
        }
        let options = SearchOptions {
            pattern: args.pattern,
            syntax: Syntax::Postgres,
            case: if args.case_sensitive.unwrap_or(false) { Case::Sensitive } else { Case::Ignored },
            paths: paths.map(|paths| Arc::new(paths) as _),
            within: WsPath::root(),
            ignored: arguments::ignored_files(args.include_ignored),
            limit: MATCHES_MOST,
            context: 0,
        };
        let found = toolrest_ops::search(cx, options).await?;
        let skipped = Skipped {
            binary: counted(found.skipped.binary),
            ignored: counted(found.skipped.ignored),
            too_large: counted(found.skipped.too_large),
            unreadable: counted(found.skipped.unreadable),
            unnamed: counted(found.skipped.unnamed),
        };
        Ok(Output {
            matches: found
                .matches
                .into_iter()
                .map(|line| Match { path: line.path, line_number: line.line_number, line_text: line.line })
                .collect(),
            truncated: found.truncated,
            skipped: (skipped != Skipped::default()).then_some(skipped),
        })
    }
}
