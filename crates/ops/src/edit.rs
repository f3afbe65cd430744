//! Editing a file in place.

use crate::document::Editable;
use crate::place::commit_one;
use crate::{Occurrences, read, replace};
use toolrest_core::{CallCx, Change, ContentHash, ErrorKind, Expect, Outcome, Parents, Put, Result, ToolError, WsPath};

/// What to replace in a file.
pub struct EditOptions<'a> {
    /// The text to find.
    pub old: &'a str,
    /// The text to put in its place.
    pub new: &'a str,
    /// Which occurrences.
    pub which: Occurrences,
    /// The hash that the file must still have.
    pub expected: Option<ContentHash>,
}

/// Replaces text in a file. Of edits that meet at one file, each is applied to what the one before left.
pub async fn edit(cx: &CallCx, path: &WsPath, options: &EditOptions<'_>) -> Result<(Outcome, usize)> {
    let _turn = cx.turn(path).await;
    loop {
        let (entry, content) = read(cx, path).await?;
        let hash = content.hash()?;
        if options.expected.is_some_and(|expected| expected != hash) {
            return Err(ToolError::stale(path, Some(hash)));
        }
        if entry.is_virtual {
            let message = format!("{path} is managed by the system and cannot be edited; use the chat API");
            return Err(ToolError::new(ErrorKind::Protected, message));
        }
        let editable = Editable::of(content, entry.file_type, path)?;
        let (text, count) = replace(&editable.text, options.old, options.new, options.which, path)?;
        let put = Put {
            path: path.clone(),
            file_type: entry.file_type,
            content: editable.put_back(text)?,
            parents: Parents::Require,
        };
        match commit_one(cx, Change::Put(put), Some(Expect::Hash(path.clone(), hash))).await {
            // Somebody on another replica came between; edit what they left. The call's deadline bounds this.
            Err(error) if error.kind == ErrorKind::Stale && options.expected.is_none() => {}
            other => return other.map(|outcome| (outcome, count)),
        }
    }
}
