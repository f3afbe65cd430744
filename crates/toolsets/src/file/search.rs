use crate::text;
use crate::{arguments, counted};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use toolrest_core::{Action, CallCx, LineMatch, Result, Tool, ToolError};
use toolrest_ops::{Case, SkipRules, TreeSearch, search_tree};

/// How many matches are returned where the caller does not say.
const RESULTS: usize = 100;

/// More context than this is no context.
const MAX_CONTEXT: usize = 100;

pub(super) struct Search;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Regular expression, in ripgrep's syntax.
    pattern: String,
    /// Directory or file to search, relative to the workspace root. Default: the root.
    path: Option<String>,
    /// Glob pattern of the files to search: `*.py` matches names at any depth, `src/**/*.rs` matches paths. Default:
    /// all files.
    glob: Option<String>,
    /// Distinguish upper and lower case. Default: true.
    case_sensitive: Option<bool>,
    /// Lines to show before and after each match, at most 100. Default: 0.
    #[schemars(range(max = 100))]
    context_lines: Option<usize>,
    /// Maximum number of matches, over all files. Default: 100.
    max_results: Option<NonZeroUsize>,
    /// Also search files and directories whose names begin with a dot. Default: false.
    include_hidden: Option<bool>,
    /// Also search files that `.gitignore` excludes. Default: false.
    include_ignored: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Output {
    /// The matches, sorted by path, then by line.
    matches: Vec<Match>,
    /// Whether there are more matches.
    truncated: bool,
    /// Number of files that were not searched, by reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<Skipped>,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// Path relative to the workspace root.
    path: String,
    /// The line's number, counted from 1.
    line: u64,
    /// The line. With `context_lines`: also the lines around it; the matching line begins with `--> `.
    content: String,
}

#[derive(Default, PartialEq, Serialize, JsonSchema)]
struct Skipped {
    /// Files that are not text.
    binary: u64,
    /// Files that `.gitignore` excludes.
    ignored: u64,
    /// JSON files that are too large when formatted as text.
    too_large: u64,
    /// Files and directories that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<u64>,
    /// Files and directories with an invalid name: not UTF-8, or with control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    unnamed: Option<u64>,
}

fn shown(line: LineMatch, has_context: bool) -> Match {
    let content = if has_context {
        let around = |line: String| format!("    {line}");
        let lines = line.before.into_iter().map(around);
        let lines = lines.chain([format!("--> {}", line.line)]).chain(line.after.into_iter().map(around));
        lines.collect::<Vec<_>>().join("\n")
    } else {
        line.line
    };
    Match { path: line.path.without_slash().to_owned(), line: line.line_number, content }
}

#[async_trait]
impl Tool for Search {
    const NAME: &'static str = "file.search";
    const DESCRIPTION: &'static str = "Search the text of files for a regular expression";
    const ACTION: Action = Action::Read;
    type Args = Args;
    type Output = Output;

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Output> {
        let context = args.context_lines.unwrap_or(0);
        if context > MAX_CONTEXT {
            let message = format!("`context_lines` must be from 0 to {MAX_CONTEXT}, not {context}");
            return Err(ToolError::argument("context_lines", message));
        }
        let ignored = arguments::ignored_files(args.include_ignored);
        let extent = SkipRules { hidden: args.include_hidden.unwrap_or(false), ignored };
        let tree = TreeSearch {
            pattern: args.pattern,
            case: if args.case_sensitive.unwrap_or(true) { Case::Sensitive } else { Case::Ignored },
            path: &arguments::relative_path(cx, "path", args.path.as_deref().unwrap_or("."))?,
            glob: args.glob.as_deref(),
            extent,
            limit: args.max_results.map_or(RESULTS, NonZeroUsize::get),
            context,
        };
        let found = search_tree(cx, tree).await.map_err(arguments::naming_pattern("glob"))?;
        let toolrest_core::Skipped { binary, too_large, ignored, unreadable, unnamed } = found.skipped;
        let skipped =
            Skipped { binary, ignored, too_large, unreadable: counted(unreadable), unnamed: counted(unnamed) };
        Ok(Output {
            matches: found.matches.into_iter().map(|line| shown(line, context > 0)).collect(),
            truncated: found.truncated,
            skipped: (skipped != Skipped::default()).then_some(skipped),
        })
    }

    fn text(&self, output: &Output) -> Option<String> {
        let shown = |found: &Match| text::search_match(&found.path, found.line, &found.content);
        let mut text = text::lines(output.matches.iter().map(shown), "no matches");
        if output.truncated {
            text::push_line(&mut text, "[there are more matches; narrow the search or raise `max_results`]");
        }
        if let Some(Skipped { binary, ignored, too_large, unreadable, unnamed }) = &output.skipped {
            let counts = [
                (Some(*binary), "not text"),
                (Some(*ignored), "ignored"),
                (Some(*too_large), "too large"),
                (*unreadable, "unreadable"),
                (*unnamed, "with an invalid name"),
            ];
            text::push_left_out(&mut text, &counts);
        }
        Some(text)
    }
}
