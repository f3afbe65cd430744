use super::answer::{Answer, Block, append, count, push, short_hash, size};
use super::arguments::{compact, list};
use super::locate::{Lines, Located, run_call};
use super::{Kit, READER, errors, results, tree};
use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use toolrest_core::{
    Action, Annotations, CallCx, ContentHash, Entry, ErrorKind, FileType, Page, Result, Tool, ToolError, WsPath,
};
use toolrest_ops::{Excerpt, ExcerptLine, ExcerptOptions, excerpt, excerpt_of_text, is_picture, picture};

/// Maximum number of files of a call.
const MAX_PATHS: usize = 20;
/// Maximum number of pictures of an answer.
const MAX_PICTURES: usize = 4;
/// Maximum size of a picture file.
const MAX_PICTURE_BYTES: usize = 32 << 20;
/// A longer line is cut, unless it is asked for alone.
const LINE_BYTES: usize = 1_000;
/// What is shown of a file that does not fit: its beginning, and an outline.
const HEAD_BYTES: usize = 8 << 10;
const OUTLINE_BYTES: usize = 4 << 10;
/// Room for the lines of the tool around the lines of a file.
const AROUND_BYTES: usize = 400;

pub(super) struct Read(pub(super) Arc<Kit>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Files, each with optional lines: `a.rs`, `a.rs:40-90`, `a.rs:40-`, `a.rs:57` (around 57). Paths as programs print them work too. `out:ID` is the whole of an answer that was shortened.
    #[serde(
        alias = "path",
        alias = "file",
        alias = "file_path",
        alias = "filePath",
        alias = "files",
        deserialize_with = "list"
    )]
    paths: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Data {
    /// What was read, in the order of the paths.
    files: Vec<File>,
}

/// What was read at one path.
#[derive(Default, Serialize, JsonSchema)]
struct File {
    /// The path.
    path: String,
    /// The hash of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
    /// The first line that is given, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<usize>,
    /// The last line that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<usize>,
    /// The number of all lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// The lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The index of the picture in `blocks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<usize>,
    /// The listing of a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<tree::Entry>>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What was found at a path, before the budget is divided.
enum Found {
    Text { name: String, lines: Lines, excerpt: Excerpt, note: Option<String> },
    Ready { text: String, file: File, block: Option<Block> },
    Failed(ToolError),
}

#[async_trait]
impl Tool for Read {
    const NAME: &'static str = "read";
    const DESCRIPTION: &'static str = "Read files, several at once: text with line numbers from 1, images as pictures, folders as listings. Ask for whole files or large ranges rather than small slices.";
    const ACTION: Action = Action::Read;
    const ANNOTATIONS: Option<Annotations> = Some(READER);
    type Args = Args;
    type Output = Answer<Data>;

    fn shape_schema(schema: &mut Value) {
        compact(schema);
    }

    async fn run(&self, cx: &CallCx, args: Args) -> Result<Answer<Data>> {
        if args.paths.is_empty() || args.paths.len() > MAX_PATHS {
            let message = format!("`paths` must have 1 to {MAX_PATHS} paths, not {}", args.paths.len());
            return Err(ToolError::argument("paths", message));
        }
        let budget = self.0.options.read_bytes;
        let mut found = Vec::with_capacity(args.paths.len());
        let mut pictures = 0;
        for path in &args.paths {
            // Of the file before, only an excerpt is left.
            cx.workspace.make_room(0).await?;
            found.push(match self.find(cx, path, budget, &mut pictures).await {
                Ok(found) => found,
                Err(error) if !error.asks().is_empty() || error.is_rules_changed() => return Err(error),
                Err(error) => Found::Failed(error),
            });
        }
        if found.iter().all(|found| matches!(found, Found::Failed(_))) {
            return Err(joined(found));
        }
        Ok(self.0.finish(cx, answer(found, budget)))
    }

    fn text(&self, output: &Answer<Data>) -> Option<String> {
        Some(output.text.clone())
    }
}

impl Read {
    async fn find(&self, cx: &CallCx, named: &str, budget: usize, pictures: &mut usize) -> Result<Found> {
        if named.trim().starts_with(results::PREFIX) {
            let (name, text, lines) = self.0.result(cx, named).await?;
            let excerpt = excerpt_of_text(&text, options(lines, budget));
            return Ok(Found::Text { name, lines, excerpt, note: None });
        }
        let Located { path, lines, entry } = self.0.locate(cx, named).await?;
        let is_folder = path.is_root() || entry.as_ref().is_some_and(|entry| entry.file_type == FileType::Folder);
        if is_folder {
            let listing = tree::listing(cx, &path, None, self.0.options.ls_bytes.min(budget)).await?;
            let file =
                File { path: path.without_slash().to_owned(), entries: Some(listing.entries), ..File::default() };
            return Ok(Found::Ready { text: listing.text, file, block: None });
        }
        let Some(entry) = entry else { return Err(self.0.not_found(cx, &path).await) };
        if entry.size == 0 && !entry.is_virtual {
            return Ok(self.empty(cx, &entry).await);
        }
        match excerpt(cx, &path, options(lines, budget)).await {
            Ok(excerpt) => Ok(Found::Text { name: path.without_slash().to_owned(), lines, excerpt, note: None }),
            Err(error) if error.kind == ErrorKind::Binary => self.binary(cx, &entry, pictures).await,
            Err(error) => Err(error),
        }
    }

    /// Returns an empty file, with what it had before if it was emptied.
    async fn empty(&self, cx: &CallCx, entry: &Entry) -> Found {
        let hash = entry.hash.unwrap_or_else(|| ContentHash::of(b""));
        let name = entry.path.without_slash();
        let mut text = format!("== {name} empty (0 bytes) #{}", short_hash(hash));
        if let Some(before) = self.before(cx, entry).await {
            append(&mut text, format!("; had {before}"));
        }
        let file = File { path: name.to_owned(), hash: Some(hash), total: Some(0), ..File::default() };
        Found::Ready { text, file, block: None }
    }

    /// Returns what a file had before its last change: `213 lines before commit 45c35b13 (run, 2 min ago)`.
    async fn before(&self, cx: &CallCx, entry: &Entry) -> Option<String> {
        let versions = cx.workspace.versions(entry.id, Page { before: None, limit: 2 }).await.ok()?;
        let [last, before] = &versions[..] else { return None };
        let (_, content) = cx.workspace.version(entry.id, before.id, 1 << 20).await.ok()?;
        let lines = match content {
            Some(toolrest_core::Content::Text(text)) => text.lines().count(),
            _ => return None,
        };
        let commit = cx.workspace.commit_info(last.commit_id).await.ok()?;
        Some(format!("{} before commit {}", count(lines, "line"), self.0.named_commit(cx, &commit).await))
    }

    /// Returns a file that is not text: a picture, or one line about it.
    async fn binary(&self, cx: &CallCx, entry: &Entry, pictures: &mut usize) -> Result<Found> {
        let name = entry.path.without_slash();
        let bytes = beginning(cx, &entry.path, entry.size).await?;
        let hash = ContentHash::of(&bytes);
        let is_whole = i64::try_from(bytes.len()).is_ok_and(|read| read == entry.size);
        let shown_hash = if is_whole { format!(" #{}", short_hash(hash)) } else { String::new() };
        let file = File { path: name.to_owned(), hash: is_whole.then_some(hash), ..File::default() };
        let kind = kind_of(&bytes);
        if is_picture(&bytes)
            && is_whole
            && *pictures < MAX_PICTURES
            && let Ok(picture) = picture(cx, bytes).await
        {
            *pictures += 1;
            let ((width, height), (shown_width, shown_height)) = (picture.original, picture.shown);
            let shown = if picture.original == picture.shown {
                String::new()
            } else {
                format!(", shown at {shown_width}x{shown_height}")
            };
            let text = format!("== {name} image {width}x{height}{shown}{shown_hash}");
            let data = BASE64_STANDARD.encode(&picture.bytes);
            let block = Block { kind: "image", data, mime_type: picture.media_type };
            return Ok(Found::Ready { text, file: File { image: Some(0), ..file }, block: Some(block) });
        }
        let bytes = u64::try_from(entry.size).unwrap_or(0);
        let mut text = format!("== {name} binary ({kind}), {}{shown_hash}", size(bytes));
        if kind == "PDF" && self.0.options.has_programs {
            append(&mut text, format!("\nnext: {}", run_call(&format!("pdftotext -layout {name} -"))));
        }
        Ok(Found::Ready { text, file, block: None })
    }
}

fn options(lines: Lines, budget: usize) -> ExcerptOptions {
    let (from, to) = lines.bounds();
    ExcerptOptions { from, to, bytes: budget.saturating_sub(AROUND_BYTES), line_bytes: LINE_BYTES }
}

/// Reads a file that is not text, or its beginning if it is large.
async fn beginning(cx: &CallCx, path: &WsPath, file_size: i64) -> Result<Vec<u8>> {
    let wanted = usize::try_from(file_size).unwrap_or(usize::MAX).min(MAX_PICTURE_BYTES);
    cx.workspace.make_room(wanted as u64).await?;
    let mut open = toolrest_ops::open(cx, path).await?;
    let read = move || {
        let mut bytes = vec![0; wanted];
        let mut filled = 0;
        while filled < bytes.len() {
            match open.bytes.read(&mut bytes[filled..]).map_err(ToolError::internal)? {
                0 => break,
                read => filled += read,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    };
    toolrest_ops::blocking(cx, wanted, read).await
}

/// Returns the kind of a file that is not text, by its first bytes.
fn kind_of(bytes: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 14] = [
        (b"\x7fELF", "ELF program"),
        (b"\x89PNG", "PNG"),
        (b"\xff\xd8\xff", "JPEG"),
        (b"GIF8", "GIF"),
        (b"%PDF-", "PDF"),
        (b"PK\x03\x04", "ZIP"),
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ", "xz"),
        (b"BZh", "bzip2"),
        (b"SQLite format 3", "SQLite database"),
        (b"\xca\xfe\xba\xbe", "Java class"),
        (b"\0asm", "WebAssembly"),
        (b"MZ", "Windows program"),
    ];
    KINDS.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or("data", |(_, kind)| kind)
}

/// Returns one error for several paths.
fn joined(found: Vec<Found>) -> ToolError {
    let failed: Vec<ToolError> = found
        .into_iter()
        .filter_map(|found| match found {
            Found::Failed(error) => Some(error),
            _ => None,
        })
        .collect();
    let others: Vec<String> = failed.iter().skip(1).map(errors::text).collect();
    let Some(mut first) = failed.into_iter().next() else { return ToolError::internal("nothing failed") };
    if !others.is_empty() {
        let whole = errors::text(&first);
        let code = whole.find(": ").map_or(0, |at| at + 2);
        first = ToolError::new(first.kind, format!("{}\n{}", &whole[code..], others.join("\n")));
    }
    first
}

/// Divides the budget: each text gets an equal part, and what others leave.
fn shares(needs: &[usize], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| needs[*index]);
    let (mut left, mut shares) = (budget, vec![0; needs.len()]);
    for (done, index) in order.into_iter().enumerate() {
        let share = left / (needs.len() - done);
        shares[index] = needs[index].min(share);
        left -= shares[index];
    }
    shares
}

fn answer(found: Vec<Found>, budget: usize) -> Answer<Data> {
    let need = |found: &Found| match found {
        Found::Text { excerpt, .. } if excerpt.next.is_some() => usize::MAX,
        Found::Text { excerpt, .. } => {
            excerpt.lines.iter().map(ExcerptLine::shown_bytes).sum::<usize>() + AROUND_BYTES / 2
        }
        Found::Ready { text, .. } => text.len() + 1,
        Found::Failed(error) => errors::text(error).len() + 1,
    };
    let shares = shares(&found.iter().map(need).collect::<Vec<_>>(), budget);
    let mut answer = Answer::new(String::new(), Data { files: Vec::new() });
    for (found, share) in found.into_iter().zip(shares) {
        match found {
            Found::Text { name, lines, excerpt, note } => {
                let (text, file) = shown(&name, lines, excerpt, share);
                push(&mut answer.text, text);
                if let Some(note) = note {
                    push(&mut answer.text, note);
                }
                answer.data.files.push(file);
            }
            Found::Ready { text, mut file, block } => {
                push(&mut answer.text, text);
                if let Some(block) = block {
                    file.image = Some(answer.blocks.len());
                    answer.blocks.push(block);
                }
                answer.data.files.push(file);
            }
            Found::Failed(error) => {
                let text = errors::text(&error);
                answer.data.files.push(File { error: Some(text.clone()), ..File::default() });
                push(&mut answer.text, text);
            }
        }
    }
    answer
}

/// Writes the lines of a file that fit.
fn shown(name: &str, lines: Lines, mut excerpt: Excerpt, share: usize) -> (String, File) {
    let is_whole = lines == Lines::All;
    let room = share.saturating_sub(AROUND_BYTES / 2);
    let needed: usize = excerpt.lines.iter().map(ExcerptLine::shown_bytes).sum();
    let is_over = excerpt.next.is_some() || needed > room;
    let has_outline = is_over && is_whole && room >= HEAD_BYTES + OUTLINE_BYTES;
    let most = if has_outline { HEAD_BYTES } else { room };
    if is_over {
        let mut bytes = 0;
        let fitting = excerpt.lines.iter().take_while(|line| {
            bytes += line.shown_bytes();
            bytes <= most
        });
        let fitting = fitting.count().max(1).min(excerpt.lines.len());
        if let Some(line) = excerpt.lines.get(fitting) {
            excerpt.next = Some(line.number);
        }
        excerpt.lines.truncate(fitting);
    }
    let (first, last) = (excerpt.lines.first().map(|line| line.number), excerpt.lines.last().map(|line| line.number));
    let mut text = header(name, lines, &excerpt, first.zip(last));
    let mut body = String::new();
    for line in &excerpt.lines {
        let cut = if line.cut_bytes > 0 { format!("… +{} bytes", line.cut_bytes) } else { String::new() };
        push(&mut body, format!("{}\t{}{cut}", line.number, line.text));
    }
    if !body.is_empty() {
        push(&mut text, &body);
    }
    if let Some(next) = excerpt.next {
        let (_, to) = lines.bounds();
        let to = to.min(excerpt.total);
        if has_outline {
            push_outline(&mut text, &excerpt.outline, next);
        }
        push(
            &mut text,
            format!(".. {}: read \"{name}:{next}-{to}\"", count((to + 1).saturating_sub(next), "more line")),
        );
    }
    let file = File {
        path: name.to_owned(),
        hash: excerpt.hash,
        from: first,
        to: last,
        total: Some(excerpt.total),
        text: Some(body),
        ..File::default()
    };
    (text, file)
}

fn header(name: &str, lines: Lines, excerpt: &Excerpt, given: Option<(usize, usize)>) -> String {
    let total = excerpt.total;
    let mut header = match (lines, given) {
        (Lines::All, _) => format!("== {name} {}", count(total, "line")),
        (_, Some((from, to))) if from == to => format!("== {name} {from} of {total}"),
        (_, Some((from, to))) => format!("== {name} {from}-{to} of {total}"),
        (_, None) => format!("== {name} has {}", count(total, "line")),
    };
    if let Some(hash) = excerpt.hash {
        append(&mut header, format!(" #{}", short_hash(hash)));
    }
    for form in &excerpt.forms {
        header.push(' ');
        header.push_str(form);
    }
    header
}

/// Adds the definitions and headings below the lines that are shown. If there are too many, the innermost are left out.
fn push_outline(text: &mut String, outline: &[(usize, String)], from: usize) {
    let rest: Vec<&(usize, String)> = outline.iter().filter(|(number, _)| *number >= from).collect();
    let bytes = |lines: &[&(usize, String)]| lines.iter().map(|(_, line)| line.len() + 8).sum::<usize>();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut shown = rest.clone();
    for most in [8, 4, 0] {
        if bytes(&shown) <= OUTLINE_BYTES {
            break;
        }
        shown.retain(|(_, line)| indent(line) <= most);
    }
    let mut room = OUTLINE_BYTES;
    let fitting: Vec<String> = shown
        .iter()
        .map_while(|(number, line)| {
            room = room.checked_sub(line.len() + 8)?;
            Some(format!("{number} {line}"))
        })
        .collect();
    if !fitting.is_empty() {
        push(text, format!(".. outline of the rest, {} of {}:", fitting.len(), rest.len()));
        push(text, fitting.join("\n"));
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
