//! Editing a file in place.

use crate::document::Editable;
use crate::place::commit_one;
use crate::{Occurrences, read, replace};
use toolrest_core::{
    CallCx, Change, Content, ContentHash, Entry, ErrorKind, Expect, Outcome, Parents, Put, Result, ToolError, WsPath,
};

/// Contents from here on are edited away from the threads that serve requests.
const HEAVY_FROM_BYTES: i64 = 256 << 10;

/// What to replace in a file.
#[derive(Clone)]
pub struct EditOptions {
    /// The text to find.
    pub old: String,
    /// The text to put in its place.
    pub new: String,
    /// Which occurrences.
    pub which: Occurrences,
    /// The hash that the file must still have.
    pub expected: Option<ContentHash>,
}

/// Replaces text in a file. Of edits that meet at one file, each is applied to what the one before left.
pub async fn edit(cx: &CallCx, path: &WsPath, options: &EditOptions) -> Result<Outcome> {
    let _turn = cx.turn(path).await;
    loop {
        let (entry, content) = read(cx, path).await?;
        if entry.is_virtual {
            let message = format!("{path} is managed by the system and cannot be edited; use the chat API");
            return Err(ToolError::new(ErrorKind::Protected, message));
        }
        let hash = entry.hash.map_or_else(|| content.hash(), Ok)?;
        if options.expected.is_some_and(|expected| expected != hash) {
            return Err(ToolError::stale(path, Some(hash)));
        }
        let (file_type, file, version) = (entry.file_type, entry.id, entry.version);
        let content = edited(entry, content, options, cx.limits.response_bytes).await?;
        let put = Put { path: path.clone(), file_type, content, parents: Parents::Require };
        // The version and not the hash: contents that differ may share one, as numbers beyond a double's reach do.
        let unchanged = version.map(|version| Expect::Version(file, version));
        match commit_one(cx, Change::Put(put), unchanged).await {
            // Somebody on another replica came between; edit what they left. The call's deadline bounds this.
            Err(error) if error.kind == ErrorKind::Stale && options.expected.is_none() => {}
            other => return other,
        }
    }
}

async fn edited(entry: Entry, content: Content, options: &EditOptions, limit_bytes: usize) -> Result<Content> {
    let (heavy, options) = (entry.size >= HEAVY_FROM_BYTES, options.clone());
    let work = move || {
        let editable = Editable::of(content, entry.file_type, &entry.path, limit_bytes)?;
        let EditOptions { old, new, which, .. } = &options;
        let text = replace(&editable.text, old, new, *which, &entry.path, limit_bytes)?;
        editable.put_back(text)
    };
    if heavy { tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)? } else { work() }
}
