//! Files, their history, and the chats that appear among them.

use crate::error::{Result, StoreError};
use crate::plan::FileRow;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use toolrest_core::{
    Access, CallCx, CallId, Changeset, ChatId, Commit, CommitId, CommitInfo, Content, Depth, Entry, ErrorKind, File,
    FileId, FileType, Found, JsonText, Listing, MAX_NAME_BYTES, Search, Timestamp, UserId, Version, VersionId, WsPath,
    now,
};

/// The call on whose behalf a change is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallInfo {
    /// The call's id.
    pub id: CallId,
    /// Its toolset.
    pub toolset: Cow<'static, str>,
    /// Its tool.
    pub tool: Cow<'static, str>,
    /// Who called.
    pub caller: UserId,
    /// When it began.
    pub started_at: Timestamp,
}

impl CallInfo {
    /// The making of the folder that chats appear in.
    pub(crate) fn chats(caller: UserId) -> Self {
        Self { id: CallId::new(), toolset: "api".into(), tool: "chat".into(), caller, started_at: now() }
    }

    /// What became of a folder while the process ran that the call has started. It cannot be told who did it.
    #[must_use]
    pub fn while_process_ran(self) -> Self {
        let tool = CommitInfo::while_process_ran(&self.id.short());
        Self { toolset: CommitInfo::FOLDER.into(), tool: tool.into(), ..self }
    }

    /// Whether a commit of it is what the call did.
    pub(crate) fn is_done_by_call(&self) -> bool {
        self.toolset != CommitInfo::FOLDER
    }

    /// The call that is under way.
    pub fn of(cx: &CallCx) -> Self {
        Self {
            id: cx.id,
            toolset: cx.toolset.into(),
            tool: cx.tool.into(),
            caller: cx.caller.user,
            started_at: cx.started_at,
        }
    }
}

/// A part of a long list, newest first.
#[derive(Clone, Copy, Debug)]
pub struct Page<T> {
    /// Only what is older than this.
    pub before: Option<T>,
    /// At most so many.
    pub limit: u32,
}

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chat {
    /// Its id, and that of the file that shows it.
    pub id: ChatId,
    /// Where it appears.
    pub path: WsPath,
    /// Its title as given.
    pub title: String,
    /// When it began.
    pub created_at: Timestamp,
    /// When its last message came.
    pub updated_at: Timestamp,
    /// What was said, in order.
    pub messages: Vec<Message>,
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Its id.
    pub id: uuid::Uuid,
    /// Who speaks: `user`, `assistant`, `system` or `tool`.
    pub role: String,
    /// What is said.
    pub content: String,
    /// When.
    pub created_at: Timestamp,
}

/// The most that the messages of one chat may hold: a chat is read as a whole.
const CHAT_MOST_BYTES: i64 = 16 << 20;

impl Chat {
    /// Refuses a message for which a chat of this size has no room.
    pub(crate) fn check_room(size: i64, message: &Message) -> Result<()> {
        let more = i64::try_from(message.content.len()).unwrap_or(i64::MAX);
        if size.saturating_add(more) <= CHAT_MOST_BYTES {
            return Ok(());
        }
        let message = format!(
            "The chat holds {size} bytes and the message {more}; a chat holds {CHAT_MOST_BYTES} at most, so begin another"
        );
        Err(StoreError::refused(ErrorKind::PayloadTooLarge, message))
    }

    /// The virtual file without its content, for a chat whose messages have more bytes than are wanted.
    pub(crate) fn too_large(row: FileRow, size: i64) -> File {
        File { entry: Entry { size, ..row.into() }, content: None }
    }

    /// The chat that a virtual file shows.
    pub(crate) fn of(row: &FileRow, messages: Vec<Message>) -> Self {
        Self {
            id: ChatId(row.id.0),
            path: row.path.clone(),
            title: row.display_name.clone().unwrap_or_else(|| row.path.name().to_owned()),
            created_at: row.created_at,
            updated_at: row.updated_at,
            messages,
        }
    }

    /// The virtual file as the file tools see it. It has no version of its own: its content is made from the messages.
    pub(crate) fn into_file(self, row: FileRow) -> Result<File> {
        #[derive(Serialize)]
        struct Shown {
            title: String,
            messages: Vec<Message>,
        }
        let readable = Self::readable(Some(&self.title), &self.messages);
        let content = JsonText::of(&Shown { title: self.title, messages: self.messages })?;
        let size = i64::try_from(readable.len()).map_err(StoreError::internal)?;
        let content = Content::Json(content);
        let entry = Entry { hash: Some(content.hash()?), size, ..row.into() };
        Ok(File { entry, content: Some(content) })
    }

    /// The chat as a text that people read and that can be searched: its title, then each message after its speaker.
    pub(crate) fn readable(title: Option<&str>, messages: &[Message]) -> String {
        let said = messages.iter().map(|message| (message.role.as_str(), message.content.as_str()));
        toolrest_core::chat_text(title, said)
    }

    /// Names for the file that shows a chat with this title, the best first: the title, made fit for a path; the same
    /// with the end of the chat's id, which nobody else has.
    pub(crate) fn file_names(title: &str, id: FileId) -> [String; 2] {
        let id = id.0.simple().to_string();
        let mut name: String = title.trim().chars().map(|c| if c == '/' || c.is_control() { '-' } else { c }).collect();
        while name.len() + " ().chat".len() + id.len() > MAX_NAME_BYTES {
            name.pop();
        }
        let name = name.trim_end();
        [format!("{name}.chat"), format!("{name} ({}).chat", &id[id.len() - 12..])]
    }
}

/// The row of a chat's file. Chats are not made by changesets, because no changeset may touch them.
pub(crate) fn chat_row(path: WsPath, title: String) -> FileRow {
    let at = now();
    FileRow {
        id: FileId::new(),
        path,
        display_name: Some(title),
        file_type: FileType::Chat,
        is_virtual: true,
        head: None,
        mode: None,
        created_at: at,
        updated_at: at,
        deleted_at: None,
    }
}

/// Keeps files. Every method checks the caller's rights in the statement that does the work.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Checks the caller's rights and nothing else.
    async fn authorise(&self, access: Access) -> Result<()>;

    /// Tells what stands at the path.
    async fn stat(&self, access: Access, path: &WsPath) -> Result<Option<Entry>>;

    /// Reads what stands at the path. The content of a file that has more than so many bytes is left out.
    async fn read(&self, access: Access, path: &WsPath, most_bytes: i64) -> Result<File>;

    /// Lists a folder, sorted by path.
    async fn list(&self, access: Access, folder: &WsPath, depth: Depth, limit: usize) -> Result<Listing>;

    /// Finds lines in the files' texts.
    async fn search(&self, access: Access, search: Search) -> Result<Found>;

    /// Applies all of the changes or none, and records the call with them.
    async fn commit(&self, access: Access, changes: Changeset, call: CallInfo) -> Result<Commit>;

    /// Reads a file by its id, in the trash or not. The content of one that has more than so many bytes is left out.
    async fn file(&self, access: Access, file: FileId, most_bytes: i64) -> Result<File>;

    /// Lists a file's versions, newest first.
    async fn versions(&self, access: Access, file: FileId, page: Page<i64>) -> Result<Vec<Version>>;

    /// Reads one version of a file. The content of one that has more than so many bytes is left out.
    async fn version(
        &self,
        access: Access,
        file: FileId,
        version: VersionId,
        most_bytes: i64,
    ) -> Result<(Version, Option<Content>)>;

    /// Lists what is in the trash, newest first.
    async fn trash(&self, access: Access, page: Page<FileId>) -> Result<Vec<Entry>>;

    /// Lists commits, newest first.
    async fn commits(&self, access: Access, page: Page<CommitId>) -> Result<Vec<CommitInfo>>;

    /// Finds one commit.
    async fn commit_info(&self, access: Access, commit: CommitId) -> Result<CommitInfo>;

    /// The commit that took another back, if one did and was not taken back itself.
    async fn undone_by(&self, access: Access, commit: CommitId) -> Result<Option<CommitId>>;

    /// Begins a chat, which appears as a file below `/chats`.
    async fn create_chat(&self, access: Access, title: String) -> Result<Chat>;

    /// Adds a message to a chat.
    async fn add_message(&self, access: Access, chat: ChatId, role: String, content: String) -> Result<Message>;

    /// Reads a chat with its messages.
    async fn chat(&self, access: Access, chat: ChatId) -> Result<Chat>;
}
