//! What a call would do, as a person sees it before deciding.

use crate::runtime::Runtime;
use sha2::{Digest, Sha256};
use std::{collections::BTreeSet, fmt::Write};
use toolrest_core::{
    ApprovalPreview, Ask, Call, CallCx, CallPreview, Content, ErrorKind, Expect, FileType, Intent, MAX_PATH_BYTES,
    Result, WsPath, hex,
};

/// Maximum size of the diff that is shown and stored.
const MAX_DIFF_BYTES: usize = 1 << 20;
/// Maximum number of files named by commands whose hashes are shown.
const MAX_NAMED_FILES: usize = 50;
/// Maximum size of a file that is read for its hash.
const MAX_HASHED_BYTES: u64 = 4 << 20;

/// What a call would do: what it asks, how it is shown, and the state of the files that it depends on.
pub(crate) struct Shown {
    pub(crate) asks: Vec<Ask>,
    pub(crate) preview: ApprovalPreview,
    pub(crate) conditions: Vec<Expect>,
}

impl Shown {
    /// Finds out what a call would do, without doing it.
    pub(crate) async fn of(runtime: &Runtime, call: &Call) -> Result<Self> {
        let CallPreview { asks, intents, changes, cx } = runtime.engine.preview(call).await?;
        let (mut diff, mut conditions) = (String::new(), Vec::new());
        for change in changes {
            for effect in toolrest_ops::merge_moves(change.effects) {
                let max_bytes = u64::try_from(cx.limits.response_bytes).unwrap_or(u64::MAX);
                let source = effect.from.as_ref().unwrap_or(&effect.path);
                let before = match cx.workspace.read(source, max_bytes).await {
                    Ok(file) => Some(file),
                    Err(error) if error.kind == ErrorKind::NotFound => None,
                    // The caller may change what it may not read; the content is not shown then.
                    Err(error) if matches!(error.kind, ErrorKind::Forbidden | ErrorKind::ApprovalDenied) => {
                        push_cut(&mut diff, &format!("# {} {}\n", op_name(effect.op), effect.path));
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                conditions.extend(match &before {
                    Some(file) => Expect::unchanged(&file.entry),
                    None => Some(Expect::Absent(source.clone())),
                });
                let after = change.contents.iter().rev().find(|(path, _)| *path == effect.path);
                let after = after.map(|(_, content)| content.clone());
                let text = effect_text(&cx, effect, before.and_then(|file| file.content), after).await?;
                push_cut(&mut diff, &text);
            }
        }
        let mut command = command_of(&intents);
        if let Some(command) = &mut command {
            // A person approves what is run, not only the name of a script.
            command.push_str(&named_files(&cx, &intents).await?);
        }
        let mut hasher = Sha256::new();
        hasher.update(without_line_numbers(&diff));
        hasher.update([0]);
        hasher.update(command.as_deref().unwrap_or_default());
        let shown = hex(&hasher.finalize());
        Ok(Self {
            asks,
            preview: ApprovalPreview { diff: visible(&diff), command: command.map(|text| visible(&text)), shown },
            conditions,
        })
    }
}

/// Returns one effect as a diff. An effect without contents, such as a removal, is shown with what it removes.
async fn effect_text(
    cx: &CallCx,
    effect: toolrest_core::Effect,
    before: Option<Content>,
    after: Option<Content>,
) -> Result<String> {
    let (op, path): (_, WsPath) = (effect.op, effect.path.clone());
    let text = toolrest_ops::effect_diff(cx, effect, before, after).await?;
    if text.is_empty() { Ok(format!("# {} {path}\n", op_name(op))) } else { Ok(text) }
}

fn op_name(op: toolrest_core::EffectKind) -> String {
    format!("{op:?}").to_lowercase()
}

/// Adds a text up to the limit. What is left out is counted by its hash, so that it is part of what is shown.
fn push_cut(diff: &mut String, text: &str) {
    if diff.len() + text.len() <= MAX_DIFF_BYTES {
        diff.push_str(text);
        return;
    }
    let hash = hex(&Sha256::digest(text));
    // Writing to a string cannot fail.
    let _ = writeln!(diff, "# A change of {} bytes is too long to be shown; its SHA-256 is {hash}", text.len());
}

/// Returns the command or the code that a call would run.
fn command_of(intents: &[Intent]) -> Option<String> {
    let texts: Vec<String> = intents
        .iter()
        .map(|intent| match intent {
            Intent::Exec { language, command, secrets, .. } if secrets.is_empty() => format!("{language}: {command}"),
            Intent::Exec { language, command, secrets, .. } => {
                format!("with the secrets {}: {language}: {command}", secrets.join(", "))
            }
            Intent::Input { process, text } => format!("input for process {process}: {text}"),
            Intent::Fetch { method, url, .. } => format!("{method} {url}"),
            Intent::GitHub { operation, repository } => format!("GitHub {repository}: {operation}"),
            Intent::Memory { operation, key } => format!("{operation} the memory {key}"),
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Returns the files of the workspace that commands name, with the hashes of their contents. The approval is bound to them: if
/// a script changes while its command waits, the command is asked about again.
async fn named_files(cx: &CallCx, intents: &[Intent]) -> Result<String> {
    let mut seen: BTreeSet<WsPath> = BTreeSet::new();
    for intent in intents {
        let Intent::Exec { command, .. } = intent else { continue };
        let is_word = |c: char| !c.is_whitespace() && !"\"'`;|&<>()=,".contains(c);
        let words = command.split(|c| !is_word(c)).filter(|word| word.len() <= MAX_PATH_BYTES);
        let below_mount = |word: &str| word.strip_prefix("/workspace/").map(str::to_owned);
        let paths =
            words.filter_map(|word| WsPath::relative(&below_mount(word).unwrap_or_else(|| word.to_owned())).ok());
        seen.extend(paths.filter(|path| !path.is_root()).take(MAX_NAMED_FILES));
    }
    let mut text = String::new();
    for path in seen.iter().take(MAX_NAMED_FILES) {
        let file = match cx.workspace.read(path, MAX_HASHED_BYTES).await {
            Ok(file) => file,
            // A word that is no file, or a file that the caller may not see.
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::NotFound
                        | ErrorKind::IsDirectory
                        | ErrorKind::ThroughFile
                        | ErrorKind::NotADirectory
                        | ErrorKind::InvalidPath
                        | ErrorKind::OutsideWorkspace
                        | ErrorKind::Forbidden
                        | ErrorKind::ApprovalDenied
                ) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        if file.entry.file_type == FileType::Folder {
            continue;
        }
        let state =
            file.entry.hash.map_or_else(|| format!("{} bytes", file.entry.size), |hash| format!("sha256 {hash}"));
        let _ = write!(text, "\n# {} {state}", path.without_slash());
    }
    Ok(text)
}

/// Returns a diff without the line numbers of its hunks: a change elsewhere in the file moves a hunk, and does not change
/// what it does.
fn without_line_numbers(diff: &str) -> String {
    diff.lines().map(|line| if line.starts_with("@@ ") { "@@" } else { line }).collect::<Vec<_>>().join("\n")
}

/// Returns a text with control characters, and those that change the direction of text, made visible.
fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    if !text.contains(is_hidden) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}
