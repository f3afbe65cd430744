use crate::text;
use crate::{arguments, counted};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolrest_core::{Action, CallCx, Result, Tool, WsPath};
use toolrest_ops::{Case, PathPattern, SearchOptions, Syntax};

/// The maximum number of matches, which the specification sets.
const MAX_MATCHES: usize = 1000;

pub(crate) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Regular expression in PostgreSQL's syntax (`\y` is a word boundary). Each line is matched separately.
    pattern: String,
    /// Pattern of the paths to search, without regard to case. `*` and `%` match any characters; a pattern with one of
    /// them must match the whole path (`*.rs`, `/src/%`). Other patterns match paths that contain them.
    path_pattern: Option<String>,
    /// Distinguish upper and lower case. Default: false.
    case_sensitive: Option<bool>,
    /// Also search files that `.gitignore` excludes. Default: false.
    include_ignored: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The lines that match, sorted by path, then by line.
    matches: Vec<Match>,
    /// Whether matches are missing: there were more than 1000, or more than fit into an answer. Narrow the search to
    /// see them.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    truncated: bool,
    /// Number of files that were not searched, by reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<Skipped>,
}

/// The warning for a pattern with `\b`, which is a word boundary in most other syntaxes.
const BACKSPACE: &str = r"`\b` is a backspace in PostgreSQL's regular expressions; write `\y` for a word boundary";

/// Whether a pattern contains the escape for a backspace.
fn has_backspace(pattern: &str) -> bool {
    // This prefix makes all characters literal.
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
    /// Files and folders that `.gitignore` excludes. A folder counts as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<u64>,
    /// JSON files that are too large when formatted as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    too_large: Option<u64>,
    /// Files and folders that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<u64>,
    /// Files and folders with an invalid name: not UTF-8, or with control characters.
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
            limit: MAX_MATCHES,
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

    fn text(&self, output: &Output) -> Option<String> {
        let shown = |found: &Match| text::search_match(found.path.as_str(), found.line_number, &found.line_text);
        let mut text = text::lines(output.matches.iter().map(shown), "no matches");
        if output.truncated {
            text::push_line(&mut text, "[there are more matches; narrow the search]");
        }
        if let Some(Skipped { binary, ignored, too_large, unreadable, unnamed }) = &output.skipped {
            let counts = [
                (*binary, "not text"),
                (*ignored, "ignored"),
                (*too_large, "too large"),
                (*unreadable, "unreadable"),
                (*unnamed, "with an invalid name"),
            ];
            text::push_left_out(&mut text, &counts);
        }
        Some(text)
    }
}
