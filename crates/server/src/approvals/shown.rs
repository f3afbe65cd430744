//! What a call would do, as a person sees it before deciding.

use crate::runtime::Runtime;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write,
};
use toolrest_core::{
    Action, ApprovalPreview, Ask, Call, CallCx, CallPreview, Content, ContentHash, EffectKind, ErrorKind, Expect,
    FileType, Intent, MAX_PATH_BYTES, Result, WsPath, hex,
};

/// Maximum size of the diff that is shown and stored.
const MAX_DIFF_BYTES: usize = 1 << 20;
/// Maximum number of words of commands that are looked for as files.
const MAX_WORDS: usize = 2_000;
/// Maximum number of folders in which they are looked for.
const MAX_FOLDERS: usize = 8;
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
            // The paths of files before the call, by their new paths.
            let mut moved: HashMap<WsPath, WsPath> = HashMap::new();
            for effect in toolrest_ops::merge_moves(change.effects) {
                let max_bytes = u64::try_from(cx.limits.response_bytes).unwrap_or(u64::MAX);
                if let Some(from) = &effect.from {
                    let first = moved.remove(from).unwrap_or_else(|| from.clone());
                    moved.insert(effect.path.clone(), first);
                }
                let source = moved.get(&effect.path).unwrap_or(&effect.path);
                let before = match cx.workspace.read(source, max_bytes).await {
                    Ok(file) => Some(file),
                    Err(error) if error.kind == ErrorKind::NotFound => None,
                    // The caller may change what it may not read; the content is not shown then.
                    Err(error) if is_hidden_from_caller(error.kind) => {
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
                let hash_before = before.as_ref().and_then(|file| file.entry.hash);
                let (is_move, path) = (effect.from.is_some(), effect.path.clone());
                let hash_after = after.as_ref().map(Content::hash).transpose()?;
                let mut text = effect_text(&cx, effect, before.and_then(|file| file.content), after).await?;
                // What the text does not show is bound by its hash.
                if is_move || leaves_something_out(&text) {
                    let shown =
                        |hash: Option<ContentHash>| hash.map_or_else(|| "none".to_owned(), |hash| hash.to_string());
                    let (old, new) = (shown(hash_before), shown(hash_after));
                    let _ = writeln!(text, "# sha256 of {path}: {old} before, {new} of the new content");
                }
                push_cut(&mut diff, &text);
            }
        }
        // What must not be read without asking is not previewed; it may be an error, or the whole file.
        for ask in asks.iter().filter(|ask| ask.action == Action::Read) {
            let _ = writeln!(diff, "# reads {}; what the call does is not shown before it may read that", ask.subject);
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
    if op == EffectKind::Touch {
        return Ok(format!("# {} {path}\n", op_name(op)));
    }
    let text = toolrest_ops::effect_diff(cx, effect, before, after).await?;
    if text.is_empty() { Ok(format!("# {} {path}\n", op_name(op))) } else { Ok(text) }
}

fn op_name(op: EffectKind) -> String {
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

/// Whether a read fails because the caller may not see the content.
fn is_hidden_from_caller(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Forbidden | ErrorKind::ApprovalRequired | ErrorKind::ApprovalDenied)
}

/// Whether a diff does not show all contents. Lines of files begin with a sign or a space.
fn leaves_something_out(diff: &str) -> bool {
    diff.lines().any(|line| line.starts_with("Binary files ") || line.starts_with("# the diff is cut"))
}

/// Returns the command or the code that a call would run.
fn command_of(intents: &[Intent]) -> Option<String> {
    let texts: Vec<String> = intents
        .iter()
        .map(|intent| match intent {
            Intent::Exec { language, command, secrets, inputs, .. } => {
                let mut text = format!("{language}: {command}");
                if !inputs.is_empty() {
                    let _ = write!(text, "\n# with the arguments and variables {}", inputs.join(" "));
                }
                if !secrets.is_empty() {
                    let _ = write!(text, "\n# with the secrets {}", secrets.join(", "));
                }
                text
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
        let Intent::Exec { command, inputs, .. } = intent else { continue };
        let is_word = |c: char| !c.is_whitespace() && !"\"'`;|&<>()=,".contains(c);
        let texts = std::iter::once(command).chain(inputs);
        let words = texts.flat_map(|text| text.split(|c| !is_word(c))).filter(|word| word.len() <= MAX_PATH_BYTES);
        // Words behind `cd` are folders in which the other words are looked for too.
        let (mut folders, mut is_folder) = (vec![WsPath::root()], false);
        for word in words.filter(|word| !word.is_empty()) {
            let below = cx.workspace.below_mount(word);
            let relative = below.as_deref().map_or(word, |below| below.trim_start_matches('/'));
            if std::mem::replace(&mut is_folder, word == "cd" || word == "pushd") && folders.len() < MAX_FOLDERS {
                folders.extend(WsPath::relative(relative).ok());
            }
            let paths = folders.iter().filter_map(|folder| folder.descend(relative).ok());
            seen.extend(paths.filter(|path| !path.is_root()));
        }
    }
    let mut text = String::new();
    if seen.len() > MAX_WORDS {
        // Writing to a string cannot fail.
        let _ =
            write!(text, "\n# this names too much: files it uses beyond the first {MAX_WORDS} words can still change");
    }
    for path in seen.iter().take(MAX_WORDS) {
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
                        | ErrorKind::ApprovalRequired
                        | ErrorKind::ApprovalDenied
                ) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        // Only the hash is kept.
        cx.workspace.make_room(0).await?;
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
pub(crate) fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(
                c,
                '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                    | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
            )
    };
    if !text.contains(is_hidden) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}
