//! Writing a whole file.

use crate::document::fit;
use crate::place::{commit_one, make_dir};
use toolrest_core::{
    CallCx, Change, ContentHash, ErrorKind, Expect, FileType, JsonText, Outcome, Parents, Put, Result, ToolError,
    WsPath,
};

/// How to write a file.
pub struct WriteOptions {
    /// The type of the file; that of the existing one, or a document, where none is given.
    pub file_type: Option<FileType>,
    /// The hash that the file must still have.
    pub expected: Option<ContentHash>,
    /// What to do about folders that are missing.
    pub parents: Parents,
}

/// Writes a file from a JSON value that fits its type.
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
    // Nearly every write is to a document or says its type, so that is tried first, without looking.
    let first = match fit(value, file_type) {
        Ok(content) => put(cx, path, file_type, content, options).await,
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

/// A file where a folder was to be written has another type; one above it is in the way.
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
    content: toolrest_core::Content,
    options: &WriteOptions,
) -> Result<Outcome> {
    let put = Put { path: path.clone(), file_type, content, parents: options.parents, executable: None };
    let expect = options.expected.map(|hash| Expect::Hash(path.clone(), hash));
    commit_one(cx, Change::Put(put), expect).await
}
