//! Converts failures on disk to errors for callers.

use toolrest_core::{ContentHash, ErrorKind, ToolError, WsPath};
use toolrest_directory::{Error, ErrorKind as DiskError};

/// The operation that failed, for the message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attempt {
    Read,
    Write,
}

/// Converts a failure at a path.
pub(super) fn to_tool_error(error: &Error, path: &WsPath, attempt: Attempt) -> ToolError {
    let say = |kind, message: String| ToolError::new(kind, message).at_path(path);
    match &error.kind {
        DiskError::Outside => {
            say(ErrorKind::OutsideWorkspace, format!("Path outside workspace: {path} leads there by a symbolic link"))
        }
        DiskError::NotFound => ToolError::file_not_found(path),
        DiskError::IsFolder => say(ErrorKind::IsDirectory, format!("{path} is a folder")),
        DiskError::NotAFolder => say(ErrorKind::ThroughFile, format!("{path} leads through a file")),
        DiskError::Exists => say(ErrorKind::AlreadyExists, format!("A file or folder already exists at {path}")),
        DiskError::Changed { actual } => ToolError::stale(path, actual.map(|hash| ContentHash(hash.0))),
        DiskError::NotEmpty => say(ErrorKind::NotEmpty, format!("Folder is not empty: {path}")),
        DiskError::Denied => {
            let verb = match attempt {
                Attempt::Read => "read",
                Attempt::Write => "change",
            };
            say(ErrorKind::Forbidden, format!("The permissions of {path} do not let the server {verb} it"))
        }
        DiskError::NoSpace => {
            say(ErrorKind::StorageFull, "No space is left on the folder's disk; nothing was written".to_owned())
        }
        DiskError::TooLarge { size_bytes, limit_bytes } => {
            let message = format!("{path} has {size_bytes} bytes, more than the {limit_bytes} that are read at once");
            say(ErrorKind::ResponseTooLarge, message)
        }
        DiskError::Special => {
            say(ErrorKind::WrongType, format!("{path} is neither a file nor a folder, but a pipe, socket or device"))
        }
        DiskError::ThroughLink => say(
            ErrorKind::Forbidden,
            format!(
                "{path} leads through a symbolic link, and rules about paths hold here; name the file by its own path"
            ),
        ),
        DiskError::Loop => say(ErrorKind::InvalidPath, format!("{path} goes round in symbolic links")),
        DiskError::Invalid(why) => say(ErrorKind::InvalidPath, format!("{path} is not a valid path: {why}")),
        DiskError::Overlap => say(
            ErrorKind::Conflict,
            format!("Several changes meet at {path} in a way that a folder cannot make at once; nothing was written"),
        ),
        DiskError::Repository => say(
            ErrorKind::Forbidden,
            format!(
                "{path} leads into a git repository's .git, which is read-only for tools, because git on the host runs \
                 what stands in there. Run git in a program instead; the operator can allow it with folders.git_writable"
            ),
        ),
        DiskError::Unfinished => {
            say(ErrorKind::Unavailable, "An interrupted commit could not be settled; try again".to_owned())
        }
        DiskError::Locked => {
            let message = "Another process has locked the folder, and nothing was written; try again, or stop the \
                           background process that holds the lock";
            say(ErrorKind::Unavailable, message.to_owned())
        }
        DiskError::Unsupported(why) => {
            say(ErrorKind::Unavailable, format!("The file system does not allow it: {why}; nothing was written"))
        }
        DiskError::Io(cause) => ToolError::internal(format!("{path}: {cause}")),
    }
}
