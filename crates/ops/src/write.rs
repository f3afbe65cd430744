//! Writing a whole file.

use crate::document::{Editable, fit};
use crate::move_remove::{commit_expecting, commit_one, make_dir};
use crate::read;
use toolrest_core::{
    CallCx, Change, Content, ContentHash, ErrorKind, Expect, FileType, Form, JsonText, Outcome, Parents, Put, Result,
    ToolError, WsPath,
};

/// Options of [`write`].
pub struct WriteOptions {
    /// The type of the file. Default: the type of the existing file, or a document.
    pub file_type: Option<FileType>,
    /// The hash that the file must still have.
    pub expected: Option<ContentHash>,
    /// What to do if folders are missing.
    pub parents: Parents,
}

/// Converts a JSON value into content of the file's type and writes it, or creates a folder.
pub async fn write(cx: &CallCx, path: &WsPath, value: &JsonText, options: &WriteOptions) -> Result<Outcome> {
    if path.is_root() {
        return Err(ToolError::new(ErrorKind::IsDirectory, "The root folder cannot be written to"));
    }
    if options.file_type == Some(FileType::Folder) {
        return match make_dir(cx, path, options.expected).await {
            Err(error) if error.kind == ErrorKind::ThroughFile => Err(not_this_type(cx, path, error).await),
            other => other,
        };
    }
    let file_type = options.file_type.unwrap_or(FileType::Document);
    // First try the requested type, or a document, without reading the existing file: this is right for most writes.
    let first = match fit(value, file_type) {
        Ok(content) => match put(cx, path, file_type, content, options).await {
            // The file has another type, or is text that is not plain UTF-8 (`Expect::NotEncoded`).
            Err(error) if error.kind == ErrorKind::WrongType => match put_encoded(cx, path, value, options).await? {
                Some(outcome) => return Ok(outcome),
                None => Err(error),
            },
            other => other,
        },
        Err(error) => Err(error),
    };
    let error = match first {
        Err(error) if error.kind == ErrorKind::WrongType && options.file_type.is_none() => error,
        other => return other,
    };
    match cx.workspace.stat(path).await?.map(|entry| entry.file_type) {
        Some(FileType::Folder) => {
            let message = format!("{path} is a folder; content can only be written to a file");
            Err(ToolError::new(ErrorKind::IsDirectory, message))
        }
        Some(actual) if actual != file_type => put(cx, path, actual, fit(value, actual)?, options).await,
        _ => Err(error),
    }
}

/// Writes a text to a file with a byte order mark or an encoding other than UTF-8, and keeps the mark and the encoding.
/// Returns `None` if the file is not such a text.
async fn put_encoded(cx: &CallCx, path: &WsPath, value: &JsonText, options: &WriteOptions) -> Result<Option<Outcome>> {
    let text = match fit(value, FileType::Document) {
        Ok(Content::Text(text)) => text,
        Ok(Content::Encoded(text)) => text.text().into_owned(),
        _ => return Ok(None),
    };
    loop {
        let (entry, before) = match read(cx, path).await {
            Ok(read) => read,
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::IsDirectory) => return Ok(None),
            Err(error) => return Err(error),
        };
        if !matches!(before, Content::Encoded(_)) {
            return Ok(None);
        }
        if options.expected.is_some_and(|expected| Some(expected) != entry.hash) {
            return Err(ToolError::stale(path, entry.hash));
        }
        let editable = Editable::of(before, entry.file_type, path, cx.limits.response_bytes)?;
        let content = editable.replace_whole(text.clone())?;
        let (path, file_type) = (path.clone(), content.form().plain_type());
        let put = Put { path, file_type, content, parents: options.parents, executable: None };
        match commit_one(cx, Change::Put(put), Expect::unchanged(&entry)).await {
            // Another call changed the file; try again with its new content.
            Err(error) if error.kind == ErrorKind::Stale && options.expected.is_none() => {}
            done => return done.map(Some),
        }
    }
}

/// Returns the error for a folder that cannot be created because of a file: at its own path, or at a parent.
async fn not_this_type(cx: &CallCx, path: &WsPath, error: ToolError) -> ToolError {
    match cx.workspace.stat(path).await {
        Ok(Some(entry)) => {
            let message = format!("{path} is a {}; it cannot become a Folder", entry.file_type);
            ToolError::new(ErrorKind::WrongType, message).about("file_type")
        }
        Ok(None) => error,
        Err(unreadable) => unreadable,
    }
}

async fn put(
    cx: &CallCx,
    path: &WsPath,
    file_type: FileType,
    content: Content,
    options: &WriteOptions,
) -> Result<Outcome> {
    let is_text = matches!(content.form(), Form::Text | Form::Encoded);
    let put = Put { path: path.clone(), file_type, content, parents: options.parents, executable: None };
    let expected = options.expected.map(|hash| Expect::Hash(path.clone(), hash));
    let not_encoded = is_text.then(|| Expect::NotEncoded(path.clone()));
    commit_expecting(cx, Change::Put(put), expected.into_iter().chain(not_encoded)).await
}
