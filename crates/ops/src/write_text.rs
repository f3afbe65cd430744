//! Writing a whole file as text or bytes, whatever its type.

use crate::document::Editable;
use crate::edit::changeable;
use crate::heavy;
use crate::move_remove::commit_one;
use crate::read::read_bounded;
use std::borrow::Cow;
use std::sync::Arc;
use toolrest_core::{
    CallCx, Change, Content, ContentHash, ErrorKind, Expect, File, FileType, Parents, Put, Result, ToolError, WsPath,
};
use toolrest_edit::{StopFlag, diff};

/// Options of [`write_text`].
#[derive(Clone, Copy)]
pub struct TextOptions {
    /// What to do if folders are missing.
    pub parents: Parents,
    /// What must hold of the file before.
    pub expected: ExpectedFile,
    /// Whether the content is text or bytes.
    pub given: ContentForm,
}

/// What must hold of a file before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedFile {
    /// Nothing.
    Any,
    /// It does not exist.
    Missing,
    /// It has this hash.
    Hash(ContentHash),
}

impl From<Option<ContentHash>> for ExpectedFile {
    fn from(hash: Option<ContentHash>) -> Self {
        hash.map_or(Self::Any, Self::Hash)
    }
}

/// The form of the new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentForm {
    /// Text in UTF-8. A file in another encoding keeps its encoding.
    Text,
    /// The exact bytes of the file.
    Bytes,
}

/// The result of [`write_text`].
pub struct WriteResult {
    /// Whether the file did not exist before.
    pub created: bool,
    /// The size of the file, as programs see it.
    pub bytes: usize,
    /// The hash of the new content.
    pub hash: ContentHash,
    /// The change as a unified diff.
    pub diff: String,
    /// The number of lines before; none if there was no text.
    pub lines_before: Option<usize>,
    /// The number of lines; none if it is not text.
    pub lines: Option<usize>,
}

/// Writes a file. A document with more fields than `text` keeps them. A JSON file must contain JSON afterwards. Bytes
/// that a JSON file would not preserve exactly are refused.
pub async fn write_text(cx: &CallCx, path: &WsPath, bytes: Vec<u8>, options: &TextOptions) -> Result<WriteResult> {
    if path.is_root() {
        return Err(ToolError::new(ErrorKind::IsDirectory, "The root folder cannot be written to"));
    }
    let _lock = cx.lock_for_edit(path).await;
    let bytes: Arc<[u8]> = bytes.into();
    loop {
        let before = existing(cx, path).await?;
        let current = before.as_ref().and_then(|file| file.entry.hash);
        match options.expected {
            ExpectedFile::Hash(expected) if current != Some(expected) => return Err(ToolError::stale(path, current)),
            ExpectedFile::Missing if before.is_some() => {
                let message = format!("{path} exists already");
                return Err(ToolError::new(ErrorKind::AlreadyExists, message).at_path(path));
            }
            _ => {}
        }
        let expect = match &before {
            None => Some(Expect::Absent(path.clone())),
            Some(file) => Expect::unchanged(&file.entry),
        };
        let old_size = before.as_ref().map_or(0, |file| usize::try_from(file.entry.size).unwrap_or(usize::MAX));
        let held = before.and_then(|file| Some((file.entry.file_type, file.content?)));
        let (limit_bytes, parents, given) = (cx.limits.response_bytes, options.parents, options.given);
        let size = bytes.len().saturating_add(old_size);
        let (path_of_it, new) = (path.clone(), Arc::clone(&bytes));
        let work =
            move |stop: StopFlag<'_>| written(held.as_ref(), &path_of_it, &new, given, parents, limit_bytes, stop);
        let (put, written) = heavy::run(cx, size, work).await?;
        match commit_one(cx, Change::Put(put), expect).await {
            Ok(_) => return Ok(written),
            // Another call changed the file; write over its new content.
            Err(error) if error.kind == ErrorKind::Stale && options.expected == ExpectedFile::Any => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the change that writes a file, and the result to report.
fn written(
    held: Option<&TypedContent>,
    path: &WsPath,
    bytes: &[u8],
    given: ContentForm,
    parents: Parents,
    limit_bytes: usize,
    stop: StopFlag<'_>,
) -> Result<(Put, WriteResult)> {
    let put = match given {
        ContentForm::Text => put_bytes(held, path, bytes, parents, limit_bytes)?,
        ContentForm::Bytes => put_exactly(held, path, bytes, parents, limit_bytes)?,
    };
    let old = visible_bytes_if_any(held, path, limit_bytes)?;
    let new = (put.file_type, put.content);
    let shown = visible_bytes(&new, path, limit_bytes)?;
    let written = WriteResult {
        created: held.is_none(),
        bytes: new.1.shown_bytes(new.0),
        hash: new.1.hash()?,
        diff: diff::unified(path.without_slash().as_bytes(), old.as_deref(), Some(&shown), stop),
        lines_before: old.as_deref().and_then(line_count),
        lines: line_count(&shown),
    };
    drop(shown);
    Ok((Put { content: new.1, ..put }, written))
}

/// Returns the number of lines of a text; a final newline does not begin another. None for bytes that are not text.
fn line_count(bytes: &[u8]) -> Option<usize> {
    let text = str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    Some(text.lines().count())
}

async fn existing(cx: &CallCx, path: &WsPath) -> Result<Option<File>> {
    match read_bounded(cx, path).await {
        Ok(file) if file.content.is_none() => {
            let message = format!("{path} is a folder; content can only be written to a file");
            Err(ToolError::new(ErrorKind::IsDirectory, message))
        }
        Ok(file) => changeable(&file.entry).map(|()| Some(file)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The type and the content of a file.
pub(crate) type TypedContent = (FileType, Content);

/// Returns the change that gives a file new text. A text in another encoding keeps it.
pub(crate) fn put_bytes(
    before: Option<&TypedContent>,
    path: &WsPath,
    bytes: &[u8],
    parents: Parents,
    limit_bytes: usize,
) -> Result<Put> {
    let put = |file_type, content| Put { path: path.clone(), file_type, content, parents, executable: None };
    let new = Content::of_bytes(bytes.to_vec());
    let text = match &new {
        Content::Text(_) | Content::Encoded(_) => str::from_utf8(bytes).ok(),
        Content::Json(_) | Content::Bytes(_) => None,
    };
    match (before, text) {
        (Some((file_type, Content::Json(_))), None) => {
            let message = format!("{path} is a {file_type} and must hold text; bytes were given");
            Err(ToolError::new(ErrorKind::WrongType, message).about("content"))
        }
        (Some((file_type, old @ (Content::Json(_) | Content::Encoded(_)))), Some(text)) => {
            let editable = Editable::of(old.clone(), *file_type, path, limit_bytes)?;
            Ok(put(*file_type, editable.replace_whole(text.to_owned())?))
        }
        _ => Ok(put(new.form().plain_type(), new)),
    }
}

/// Returns the change that gives a file exactly these bytes.
fn put_exactly(
    before: Option<&TypedContent>,
    path: &WsPath,
    bytes: &[u8],
    parents: Parents,
    limit_bytes: usize,
) -> Result<Put> {
    let Some((file_type, Content::Json(_))) = before else {
        return put_bytes(None, path, bytes, parents, limit_bytes);
    };
    let put = put_bytes(before, path, bytes, parents, limit_bytes)?;
    if put.content.clone().shown(*file_type) == bytes {
        return Ok(put);
    }
    let message = format!(
        "{path} is a {file_type}: its JSON is reformatted, so it would not have exactly these bytes. Write it as \
         utf-8, or delete the file first"
    );
    Err(ToolError::new(ErrorKind::WrongType, message).about("content"))
}

/// [`visible_bytes`] of a file that may not exist.
pub(crate) fn visible_bytes_if_any<'c>(
    held: Option<&'c TypedContent>,
    path: &WsPath,
    limit_bytes: usize,
) -> Result<Option<Cow<'c, [u8]>>> {
    held.map(|held| visible_bytes(held, path, limit_bytes)).transpose()
}

/// Returns the bytes that programs and diffs see: text in UTF-8, formatted JSON, or the bytes themselves.
pub(crate) fn visible_bytes<'c>(
    (file_type, content): &'c TypedContent,
    path: &WsPath,
    limit_bytes: usize,
) -> Result<Cow<'c, [u8]>> {
    match content {
        Content::Text(text) => Ok(text.as_bytes().into()),
        Content::Encoded(encoded) => Ok(encoded.text().into_owned().into_bytes().into()),
        Content::Bytes(bytes) => Ok(bytes.into()),
        Content::Json(_) => Ok(Editable::of(content.clone(), *file_type, path, limit_bytes)?.text.into_bytes().into()),
    }
}
