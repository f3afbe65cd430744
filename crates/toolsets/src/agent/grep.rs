use super::answer::{Answer, append, count, push};
use super::arguments::{compact, number};
use super::locate::Located;
use super::{Kit, READER, results};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use toolrest_core::{
    Action, Annotations, CallCx, ErrorKind, IgnoredFiles, LineMatch, Result, SearchResult, Skipped, Tool, ToolError,
    WsPath,
};
use toolrest_ops::{
    Case, MatchFinder, SkipRules, TextLimits, TreeSearch, plain_pattern, search_text, search_tree, tree_files,
};

/// Maximum number of matches that are counted and kept.
const MAX_MATCHES: usize = 100_000;
/// Maximum number of lines around a match.
const MAX_CONTEXT: f64 = 20.0;
/// Few matches come with lines around: up to so many matches with so many lines.
const CONTEXT_OF_FEW: [(usize, usize); 2] = [(1, 20), (3, 8)];
/// Numbers of matches of each file that are tried, if not all fit.
const FIRST_OF_EACH: [usize; 4] = [10, 5, 3, 1];
/// A line is cut to this size around its match.
const LINE_BYTES: usize = 200;
/// A line is cut to this size in a result that is kept.
const KEPT_LINE_BYTES: usize = 2_000;
/// Maximum number of matches in the data.
const MAX_DATA: usize = 1_000;
/// Room for the header and the notes.
const AROUND_BYTES: usize = 400;

pub(super) struct Grep(pub(super) Arc<Kit>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Regular expression.
    #[serde(alias = "query", alias = "regex")]
    pattern: String,
    /// File or folder, or `out:ID`. Default: the project.
    #[serde(alias = "file", alias = "file_path", alias = "filePath", alias = "dir", alias = "directory")]
    path: Option<String>,
    /// Files to search, like `*.rs` or `src/**/*.ts`.
    #[serde(alias = "include")]
    glob: Option<String>,
    /// Lines around each match, at most 20.
    #[serde(default, deserialize_with = "number")]
    #[schemars(with = "Option<u32>")]
    context: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Data {
    /// The matches, at most 1,000.
    matches: Vec<DataMatch>,
    /// The number of all matches.
    total: usize,
    /// The number of files with matches.
    files: usize,
    /// The kept result with all matches, if the text has not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct DataMatch {
    /// The path.
    path: String,
    /// The line's number.
    line: u64,
    /// The line.
    text: String,
}

/// What is searched.
enum Place {
    Tree(WsPath),
    Result { name: String, text: String },
}

/// A match, wherever it was found.
struct Match {
    name: String,
    line: u64,
    text: String,
    before: Vec<String>,
    after: Vec<String>,
}

/// The matches of a pattern, and how it was understood.
struct Found {
    matches: Vec<Match>,
    is_cut: bool,
    pattern: String,
    note: Option<String>,
    skipped: Skipped,
}

#[async_trait]
impl Tool for Grep {
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str = "Search file contents with a regular expression (ripgrep syntax, `(?i)` ignores case). Few matches come with surrounding lines, very many as counts per file.";
    const ACTION: Action = Action::Read;
    const ANNOTATIONS: Option<Annotations> = Some(READER);
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        if args.pattern.is_empty() {
            return Err(ToolError::argument("pattern", "`pattern` is empty").with_hint("`.` finds every line"));
        }
        let named = args.path.as_deref().map(str::trim).filter(|path| !path.is_empty());
        let place = self.place(cx, named).await?;
        let glob = args.glob.as_deref().map(str::trim).filter(|glob| !glob.is_empty());
        let search = Search { cx, place: &place, glob };
        let found = search.as_understood(&args.pattern).await?;
        if found.matches.is_empty() {
            let text = search.nothing(&args.pattern, found).await?;
            let data = Data { matches: Vec::new(), total: 0, files: 0, out: None };
            return Ok(self.0.finish(cx, Answer::new(text, data)));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited to a small number")]
        let context = args.context.map(|lines| lines.clamp(0.0, MAX_CONTEXT) as usize);
        let answer = self.shown(&search, found, context).await?;
        Ok(self.0.finish(cx, answer))
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

impl Grep {
    async fn place(&self, cx: &CallCx, named: Option<&str>) -> Result<Place> {
        let Some(named) = named else { return Ok(Place::Tree(WsPath::root())) };
        if named.starts_with(results::PREFIX) {
            let (name, text, _) = self.0.result(cx, named).await?;
            return Ok(Place::Result { name, text });
        }
        let Located { path, entry, .. } = self.0.locate(cx, named).await?;
        if entry.is_none() && !path.is_root() {
            return Err(self.0.not_found(cx, &path).await);
        }
        Ok(Place::Tree(path))
    }

    async fn shown(&self, search: &Search<'_>, mut found: Found, context: Option<usize>) -> Result<Answer<Data>> {
        let total = found.matches.len();
        let few = CONTEXT_OF_FEW.iter().find(|(most, _)| total <= *most).map_or(0, |(_, lines)| *lines);
        let room = self.0.options.grep_bytes.saturating_sub(AROUND_BYTES);
        let finder = MatchFinder::new(&found.pattern, Case::Sensitive)?;
        let mut body = None;
        for lines in [context.unwrap_or(few), 8, 3, 0] {
            if lines > context.unwrap_or(few) || (lines > 0 && total > room / LINE_BYTES * 4) {
                continue;
            }
            if lines > 0 {
                found.matches = search.matches(&found.pattern, lines, total).await?.matches;
            }
            let text = lines_of(&found.matches, usize::MAX, &finder);
            if text.len() <= room {
                body = Some(text);
                break;
            }
        }
        let mut by_file: BTreeMap<&str, Vec<&Match>> = BTreeMap::new();
        for one in &found.matches {
            by_file.entry(&one.name).or_default().push(one);
        }
        let (files, over) = (by_file.len(), if found.is_cut { "over " } else { "" });
        let mut header = format!("== {over}{} in {}", count(total, "match"), count(files, "file"));
        let note = found.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        let mut out = None;
        let body = if let Some(body) = body {
            append(&mut header, &note);
            body
        } else {
            let (body, how) = shortened(&found.matches, &by_file, room, &finder);
            let kept = self.0.keep(search.cx, &all_lines(&found.matches)).await?;
            append(&mut header, format!(", {how}; all in {kept}. Narrow with path or glob{note}"));
            out = Some(kept);
            body
        };
        let mut text = header;
        push(&mut text, body);
        push_skipped(&mut text, found.skipped);
        let matches = found.matches.into_iter().take(MAX_DATA);
        let matches = matches.map(|one| DataMatch { path: one.name, line: one.line, text: one.text }).collect();
        Ok(Answer::new(text, Data { matches, total, files, out }))
    }
}

/// A search in one place.
struct Search<'a> {
    cx: &'a CallCx,
    place: &'a Place,
    glob: Option<&'a str>,
}

impl Search<'_> {
    /// Searches for a pattern as it was meant: one that is no regular expression is tried with fewer backslashes and as plain
    /// text, and one that finds nothing is tried as plain text.
    async fn as_understood(&self, pattern: &str) -> Result<Found> {
        let is_special = plain_pattern(pattern) != pattern;
        let first = match self.matches(pattern, 0, MAX_MATCHES).await {
            Ok(found) if found.matches.is_empty() && is_special => found,
            Ok(found) => return Ok(found),
            Err(error) if error.kind == ErrorKind::InvalidPattern && error.argument_at_fault() != Some("glob") => {
                let halved = pattern.replace("\\\\", "\\");
                if halved != pattern
                    && let Ok(found) = self.matches(&halved, 0, MAX_MATCHES).await
                {
                    let note = Some(format!("as \"{halved}\": \"{pattern}\" is no regular expression"));
                    return Ok(Found { note, ..found });
                }
                let found = self.matches(&plain_pattern(pattern), 0, MAX_MATCHES).await?;
                let note = Some(format!("as plain text: \"{pattern}\" is no regular expression"));
                return Ok(Found { note, ..found });
            }
            Err(error) => return Err(error),
        };
        let plain = self.matches(&plain_pattern(pattern), 0, MAX_MATCHES).await?;
        if plain.matches.is_empty() {
            return Ok(first);
        }
        let note = Some(format!("as plain text: \"{pattern}\" finds nothing as a regular expression"));
        Ok(Found { note, ..plain })
    }

    async fn matches(&self, pattern: &str, context: usize, limit: usize) -> Result<Found> {
        self.matches_with(pattern, Case::Sensitive, IgnoredFiles::LeaveOut, context, limit).await
    }

    async fn matches_with(
        &self,
        pattern: &str,
        case: Case,
        ignored: IgnoredFiles,
        context: usize,
        limit: usize,
    ) -> Result<Found> {
        let found = |matches: Vec<Match>, is_cut, skipped| Found {
            matches,
            is_cut,
            pattern: pattern.to_owned(),
            note: None,
            skipped,
        };
        let path = match self.place {
            Place::Tree(path) => path,
            Place::Result { name, text } => {
                let deadline = Instant::now() + self.cx.limits.search_timeout;
                let (bytes, pattern) = (text.clone().into_bytes(), pattern.to_owned());
                let limits = TextLimits { matches: limit, bytes: self.cx.limits.response_bytes };
                let work = move || search_text(&bytes, &pattern, case, context, limits, deadline);
                let (matches, is_cut) = toolrest_ops::blocking(self.cx, text.len(), work).await?;
                let of_text = |one: toolrest_ops::TextMatch| Match {
                    name: name.clone(),
                    line: one.line_number,
                    text: one.line,
                    before: one.before,
                    after: one.after,
                };
                return Ok(found(matches.into_iter().map(of_text).collect(), is_cut, Skipped::default()));
            }
        };
        let tree = TreeSearch {
            pattern: pattern.to_owned(),
            case,
            path,
            glob: self.glob,
            extent: SkipRules { hidden: true, ignored },
            limit,
            context,
        };
        let SearchResult { matches, truncated, skipped, warnings } =
            search_tree(self.cx, tree).await.map_err(crate::arguments::naming_pattern("glob"))?;
        for warning in warnings {
            self.cx.warn(warning);
        }
        let of_file = |one: LineMatch| Match {
            name: one.path.without_slash().to_owned(),
            line: one.line_number,
            text: one.line,
            before: one.before,
            after: one.after,
        };
        Ok(found(matches.into_iter().map(of_file).collect(), truncated && context == 0, skipped))
    }

    /// Returns the text for a pattern that finds nothing, with what would find something.
    async fn nothing(&self, pattern: &str, found: Found) -> Result<String> {
        let mut text = match self.place {
            Place::Result { name, .. } => format!("== no matches in {name}"),
            Place::Tree(path) => {
                let is_file = self
                    .cx
                    .workspace
                    .stat(path)
                    .await?
                    .is_some_and(|entry| entry.file_type != toolrest_core::FileType::Folder && !path.is_root());
                let files = if is_file { 1 } else { tree_files(self.cx, path, self.glob, 1).await?.total };
                format!("== no matches in {}", count(files, "file"))
            }
        };
        if let Some(note) = found.note {
            append(&mut text, format!(" ({note})"));
        }
        let attempt = |case, ignored| self.matches_with(&found.pattern, case, ignored, 0, MAX_MATCHES);
        let without_case = attempt(Case::Ignored, IgnoredFiles::LeaveOut).await.map_or(0, |found| found.matches.len());
        if without_case > 0 {
            push(&mut text, format!(".. {without_case} ignoring case: (?i){pattern}"));
        }
        if matches!(self.place, Place::Tree(_)) {
            let ignored = attempt(Case::Sensitive, IgnoredFiles::Include).await.map_or(0, |found| found.matches.len());
            if ignored > 0 {
                push(&mut text, format!(".. {ignored} in ignored files"));
            }
        }
        push_skipped(&mut text, found.skipped);
        if found.skipped.binary > 0 {
            push(&mut text, format!(".. {} not searched: not text", found.skipped.binary));
        }
        Ok(text)
    }
}

/// Adds what was not searched and may have matches. Files that are not text, and ignored ones, are left out as a rule.
fn push_skipped(text: &mut String, skipped: Skipped) {
    let reasons = [
        (skipped.unreadable, "could not be read"),
        (skipped.unnamed, "no path can name"),
        (skipped.too_large, "too large"),
    ];
    for (number, reason) in reasons.into_iter().filter(|(number, _)| *number > 0) {
        push(text, format!(".. {number} not searched: {reason}"));
    }
}

/// Writes the first matches of each file, with the lines around them.
fn lines_of(matches: &[Match], of_each: usize, finder: &MatchFinder) -> String {
    let mut text = String::new();
    for of_file in matches.chunk_by(|one, next| one.name == next.name) {
        push(&mut text, &of_file[0].name);
        let mut last = 0;
        for one in of_file.iter().take(of_each) {
            let before = one.before.len() as u64;
            let first = one.line.saturating_sub(before).max(last + 1);
            if last > 0 && first > last + 1 && (before > 0 || !one.after.is_empty()) {
                push(&mut text, "--");
            }
            for (at, line) in one.before.iter().enumerate() {
                let number = one.line - before + at as u64;
                if number >= first {
                    push(&mut text, format!("{number}-{}", cut(line, None)));
                }
            }
            if one.line > last {
                push(&mut text, format!("{}:{}", one.line, cut(&one.text, finder.find(&one.text))));
            } else {
                // It was shown as a line around the match before.
                text = mark_match(&text, one.line);
            }
            last = last.max(one.line);
            for (at, line) in one.after.iter().enumerate() {
                let number = one.line + 1 + at as u64;
                if number > last {
                    push(&mut text, format!("{number}-{}", cut(line, None)));
                    last = number;
                }
            }
        }
        if of_file.len() > of_each {
            push(&mut text, format!("… {} more", of_file.len() - of_each));
        }
    }
    text
}

/// Marks a line that was shown around another match as a match.
fn mark_match(text: &str, line: u64) -> String {
    let (as_context, as_match) = (format!("\n{line}-"), format!("\n{line}:"));
    match text.rfind(&as_context) {
        Some(at) => format!("{}{as_match}{}", &text[..at], &text[at + as_context.len()..]),
        None => text.to_owned(),
    }
}

/// Cuts a long line around its match.
fn cut(line: &str, found: Option<std::ops::Range<usize>>) -> String {
    let line = line.trim_end_matches('\r');
    if line.len() <= LINE_BYTES {
        return line.to_owned();
    }
    let at = found.map_or(0, |found| found.start.min(line.len()));
    let start = at.saturating_sub(LINE_BYTES / 3).min(line.len() - LINE_BYTES);
    let start = (0..=start).rev().find(|start| line.is_char_boundary(*start)).unwrap_or(0);
    let end = (start..=start + LINE_BYTES).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(line.len());
    let (before, after) = (if start > 0 { "…" } else { "" }, line.len() - end);
    let after = if after > 0 { format!("… +{after} bytes") } else { String::new() };
    format!("{before}{}{after}", &line[start..end])
}

/// Writes less than all matches: the first of each file, or counts.
fn shortened(
    matches: &[Match],
    by_file: &BTreeMap<&str, Vec<&Match>>,
    room: usize,
    finder: &MatchFinder,
) -> (String, String) {
    for of_each in FIRST_OF_EACH {
        if by_file.len().saturating_mul(of_each) > room / 8 {
            continue;
        }
        let text = lines_of(matches, of_each, finder);
        if text.len() <= room {
            return (text, format!("first {of_each} of each file"));
        }
    }
    let files: Vec<String> = by_file.iter().map(|(name, matches)| format!("{name} ({})", matches.len())).collect();
    let text = files.join("\n");
    if text.len() <= room {
        return (text, "counts only".to_owned());
    }
    let mut depth = by_file.keys().map(|name| name.matches('/').count()).max().unwrap_or(0);
    loop {
        let mut by_folder: BTreeMap<String, usize> = BTreeMap::new();
        for (name, matches) in by_file {
            let names: Vec<&str> = name.split('/').collect();
            let folders = &names[..names.len().saturating_sub(1).min(depth)];
            let folder = if folders.is_empty() { "./".to_owned() } else { format!("{}/", folders.join("/")) };
            *by_folder.entry(folder).or_default() += matches.len();
        }
        let text = by_folder.iter().map(|(name, number)| format!("{name} ({number})")).collect::<Vec<_>>().join("\n");
        if text.len() <= room || depth == 0 {
            return (super::answer::head(&text, room).to_owned(), "counts of folders only".to_owned());
        }
        depth -= 1;
    }
}

/// Writes all matches, one on each line.
fn all_lines(matches: &[Match]) -> String {
    let mut text = String::new();
    for one in matches {
        let end = (0..=KEPT_LINE_BYTES.min(one.text.len())).rev().find(|end| one.text.is_char_boundary(*end));
        let shown = &one.text[..end.unwrap_or(0)];
        push(&mut text, format!("{}:{}:{shown}", one.name, one.line));
    }
    text
}

#[cfg(test)]
#[path = "grep_tests.rs"]
mod tests;
