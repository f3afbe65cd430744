//! Paths as models and programs write them, with the lines that may follow them.

use super::Kit;
use serde_json::json;
use toolrest_core::{CallCx, Entry, ErrorKind, Result, ToolError, WsPath};

/// Lines before and after a line that is asked for alone.
const LINES_BEFORE: usize = 30;
const LINES_AFTER: usize = 50;

/// Folders that programs see and tools do not.
const SEEN_BY_PROGRAMS: [&str; 6] = ["/usr/", "/bin/", "/lib", "/etc/", "/opt/", "/tmp/"];

/// The lines of a file that a path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// All.
    All,
    /// This one, with lines around it.
    Around(usize),
    /// From this one to that one.
    Range(usize, usize),
}

impl Lines {
    /// Returns the first and the last line.
    pub(super) fn bounds(self) -> (usize, usize) {
        match self {
            Self::All => (1, usize::MAX),
            Self::Around(line) => (line.saturating_sub(LINES_BEFORE).max(1), line.saturating_add(LINES_AFTER)),
            Self::Range(from, to) => (from, to),
        }
    }

    /// Returns the line that was meant, if it is one.
    pub(super) fn line(self) -> Option<usize> {
        match self {
            Self::All => None,
            Self::Around(line) | Self::Range(line, _) => Some(line),
        }
    }
}

/// A path that was found, or that was meant.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) path: WsPath,
    pub(super) lines: Lines,
    /// None if nothing is there.
    pub(super) entry: Option<Entry>,
}

/// Splits the lines off a path: `a.rs:40-90`, `a.rs:40-`, `a.rs:57`, `a.rs:57:5`, `a.rs#L40-L90`.
pub(super) fn split_lines(text: &str) -> (&str, Lines) {
    let of_link = text.rsplit_once("#L").and_then(|(path, lines)| Some((path, parse(&lines.replace('L', ""))?)));
    let split = of_link.or_else(|| {
        let (path, lines) = text.rsplit_once(':')?;
        let found = parse(lines)?;
        // A column follows the line.
        match path.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse::<usize>().ok()?))) {
            Some((path, line)) if matches!(found, Lines::Around(_)) => Some((path, Lines::Around(line.max(1)))),
            _ => Some((path, found)),
        }
    });
    split.filter(|(path, _)| !path.is_empty()).unwrap_or((text, Lines::All))
}

/// Parses `40-90`, `40-`, `57`. Lines count from 1, and a reversed range is turned round.
fn parse(text: &str) -> Option<Lines> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text.parse::<usize>().ok().map(|line| line.max(1)) } else { None }
    };
    match text.split_once('-') {
        None => number(text).map(Lines::Around),
        Some((from, "")) => number(from).map(|from| Lines::Range(from, usize::MAX)),
        Some((from, to)) => {
            let (from, to) = (number(from)?, number(to)?);
            Some(Lines::Range(from.min(to), from.max(to)))
        }
    }
}

/// Finds what a path means. A file that really has such a name wins; then the lines are split off, then what diffs and
/// other systems add to paths is removed. If nothing is there, the path without lines is what was meant.
async fn located(cx: &CallCx, text: &str) -> Result<Located> {
    let text = &without_scheme(text.trim_matches(['\n', '\r']));
    let literal = resolve(cx, text).await?;
    if let Some(entry) = stat(cx, &literal).await? {
        return Ok(Located { path: literal, lines: Lines::All, entry: Some(entry) });
    }
    let (base, lines) = split_lines(text);
    let mut meant = literal;
    if lines != Lines::All {
        meant = resolve(cx, base).await?;
        if let Some(entry) = stat(cx, &meant).await? {
            return Ok(Located { path: meant, lines, entry: Some(entry) });
        }
    }
    for cleaned in cleaned(base) {
        if let Ok(path) = resolve(cx, &cleaned).await
            && let Some(entry) = stat(cx, &path).await?
        {
            return Ok(Located { path, lines, entry: Some(entry) });
        }
    }
    cx.note_path(&meant);
    Ok(Located { path: meant, lines, entry: None })
}

async fn stat(cx: &CallCx, path: &WsPath) -> Result<Option<Entry>> {
    if path.is_root() {
        // The root is always there; its entry has no content.
        return cx.workspace.stat(path).await;
    }
    match cx.workspace.stat(path).await {
        Ok(Some(entry)) => {
            cx.note_path(path);
            Ok(Some(entry))
        }
        Err(error) if matches!(error.kind, ErrorKind::ThroughFile | ErrorKind::NotADirectory) => Ok(None),
        other => other,
    }
}

/// Returns other forms of a path: without what diffs put before it, and with slashes.
fn cleaned(text: &str) -> Vec<String> {
    let slashed = text.replace('\\', "/");
    let mut forms = Vec::new();
    for form in [text, &slashed] {
        let without_side = form.strip_prefix("a/").or_else(|| form.strip_prefix("b/"));
        forms.extend(without_side.map(str::to_owned));
    }
    if slashed != text {
        forms.push(slashed);
    }
    forms
}

/// Removes `file://`, and decodes the escapes of such an address.
fn without_scheme(text: &str) -> String {
    let Some(path) = text.strip_prefix("file://") else { return text.to_owned() };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = more.get(..2).filter(|_| *first == b'%').and_then(|digits| str::from_utf8(digits).ok());
        if let Some(byte) = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = &more[2..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

/// Parses a path. An absolute one is one of the host's or of programs, or one from the root if its first name is there, or if
/// it has one name.
async fn resolve(cx: &CallCx, text: &str) -> Result<WsPath> {
    if text.is_empty() {
        return Ok(WsPath::root());
    }
    if !text.starts_with('/') || cx.workspace.below_mount(text).is_some() {
        return toolrest_ops::locate_absolute(cx, text).await.map_err(|error| not_in_project(error, text));
    }
    let path = WsPath::within(text).map_err(|error| not_in_project(error, text))?;
    let first = path.folders_above().nth(1).map(|first| WsPath::from_normal(first.to_owned()));
    match first {
        Some(first) if cx.workspace.stat(&first).await?.is_none() => Err(outside(text)),
        _ => Ok(path),
    }
}

fn outside(text: &str) -> ToolError {
    not_in_project(ToolError::new(ErrorKind::OutsideWorkspace, text.to_owned()), text)
}

fn not_in_project(error: ToolError, text: &str) -> ToolError {
    match error.kind {
        ErrorKind::OutsideWorkspace => ToolError::new(error.kind, format!("{text} is not in the project")),
        _ => error,
    }
}

impl Kit {
    /// Finds what a path means. The error for one outside of the project names the call that shows the file.
    pub(super) async fn locate(&self, cx: &CallCx, text: &str) -> Result<Located> {
        located(cx, text).await.map_err(|error| {
            if error.kind != ErrorKind::OutsideWorkspace {
                return error;
            }
            let address = without_scheme(text.trim_matches(['\n', '\r']));
            let (path, _) = split_lines(&address);
            if self.options.has_programs && SEEN_BY_PROGRAMS.iter().any(|folder| path.starts_with(folder)) {
                return error.with_hint(run_call(&format!("sed -n 1,80p {path}")));
            }
            error.with_hint("use a path of the project; `ls` shows them")
        })
    }
}

/// Returns the call that runs a command.
pub(super) fn run_call(command: &str) -> String {
    format!("run {}", json!({ "command": command }))
}

#[cfg(test)]
#[path = "locate_tests.rs"]
mod tests;
