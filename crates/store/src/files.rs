//! Files, their history, and chats, which are shown as files.

use crate::error::{Result, StoreError};
use crate::plan::FileRow;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, sync::Arc};
use toolrest_core::{
    Access, ApprovalId, CallCx, CallDetails, CallId, Changeset, ChatId, Commit, CommitId, CommitInfo, Content, Depth,
    Entry, ErrorKind, File, FileId, FileType, Guard, JsonText, Listing, MAX_NAME_BYTES, Page, Preview, REST_TOOLSET,
    Role, Search, SearchResult, Timestamp, UserId, Version, VersionId, WsPath, now,
};

/// The call that makes a change.
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
    /// When it started.
    pub started_at: Timestamp,
    /// What its record says besides its result. Journals of earlier releases lack it.
    #[serde(default)]
    pub details: CallDetails,
    /// Where its record is written. Journals of earlier releases lack it.
    #[serde(default)]
    pub record: RecordPlace,
    /// The approval that the call executes, and the server process that executes it. Its first commit spends the approval.
    /// Journals of earlier releases lack it.
    #[serde(default)]
    pub approval: Option<(ApprovalId, uuid::Uuid)>,
    /// What its caller may change. It is not stored: a commit in a journal was judged before it was written there.
    #[serde(skip)]
    pub guard: Arc<Guard>,
}

/// Where the record of a call is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordPlace {
    /// In the transaction of its commit.
    #[default]
    WithCommit,
    /// At the end of the call, because it has effects outside of the workspace's files, or elsewhere.
    Separately,
}

impl CallInfo {
    /// The change that creates the folder of chats. It is part of the call that creates a chat.
    pub(crate) fn chats(caller: UserId) -> Self {
        Self {
            id: CallId::new(),
            toolset: REST_TOOLSET.into(),
            tool: "chat".into(),
            caller,
            started_at: now(),
            details: CallDetails::default(),
            record: RecordPlace::Separately,
            approval: None,
            guard: Arc::default(),
        }
    }

    /// Returns the call for changes in a folder while a background process of the call ran. Who made them is unknown.
    #[must_use]
    pub fn while_process_ran(self) -> Self {
        let tool = CommitInfo::while_process_ran(&self.id.short());
        Self { toolset: CommitInfo::FOLDER.into(), tool: tool.into(), ..self }
    }

    /// Whether the record of the call is written in the transaction of its commit.
    pub(crate) fn is_recorded_with_commit(&self) -> bool {
        self.record == RecordPlace::WithCommit && self.toolset != CommitInfo::FOLDER
    }

    /// Returns who called: the key, or else the person.
    pub(crate) fn principal(&self) -> uuid::Uuid {
        self.details.principal(self.caller)
    }

    /// Returns the path of the record.
    pub(crate) fn path(&self) -> Option<&str> {
        self.details.path.as_ref().map(WsPath::as_str)
    }

    /// Returns the current call.
    pub fn of(cx: &CallCx) -> Self {
        Self {
            id: cx.id,
            toolset: cx.toolset.into(),
            tool: cx.tool.into(),
            caller: cx.caller.user,
            started_at: cx.started_at,
            details: cx.details(),
            record: if cx.is_recorded_with_commit() { RecordPlace::WithCommit } else { RecordPlace::Separately },
            approval: cx.approval,
            guard: Arc::clone(&cx.guard),
        }
    }
}

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Chat {
    /// Its id, which is also that of its file.
    pub id: ChatId,
    /// The path of its file.
    pub path: WsPath,
    /// Its title as given.
    pub title: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The time of its last message.
    pub updated_at: Timestamp,
    /// The messages, in order.
    pub messages: Vec<Message>,
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Message {
    /// Its id.
    pub id: uuid::Uuid,
    /// The author: `user`, `assistant`, `system` or `tool`.
    pub role: String,
    /// The text.
    pub content: String,
    /// When it was added.
    pub created_at: Timestamp,
}

/// Maximum size of all messages of a chat: a chat is read as a whole.
const MAX_CHAT_BYTES: i64 = 16 << 20;

impl Chat {
    /// Refuses a message that would exceed the maximum size of a chat.
    pub(crate) fn check_room(size: i64, message: &Message) -> Result<()> {
        let more = i64::try_from(message.content.len()).unwrap_or(i64::MAX);
        if size.saturating_add(more) <= MAX_CHAT_BYTES {
            return Ok(());
        }
        let message = format!(
            "The chat holds {size} bytes and the message {more}; a chat holds {MAX_CHAT_BYTES} at most, so begin another"
        );
        Err(StoreError::refused(ErrorKind::PayloadTooLarge, message))
    }

    /// Returns the virtual file without its content, for a chat larger than the caller's limit.
    pub(crate) fn too_large(row: FileRow, size: i64) -> File {
        File { entry: Entry { size, ..row.into() }, content: None }
    }

    /// Creates the chat of a virtual file.
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

    /// Returns the virtual file as file tools see it. It has no version: its content is generated from the messages.
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

    /// Formats the chat as the text that is shown and searched: its title, then each message with its author.
    pub(crate) fn readable(title: Option<&str>, messages: &[Message]) -> String {
        let said = messages.iter().map(|message| (message.role.as_str(), message.content.as_str()));
        toolrest_core::chat_text(title, said)
    }

    /// Returns names for the file of a chat, in order of preference: the title as a file name, then the title with the
    /// end of the chat's id, which is unique.
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

/// Creates the row of a chat's file. Chats are not created by changesets, because changesets must not change them.
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

/// Stores files. Every method checks the caller's rights in the statement that does the work.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Checks the caller's rights.
    async fn authorise(&self, access: Access) -> Result<()>;

    /// Whether the caller is an owner. Fails if the caller is not a member.
    async fn is_owner(&self, access: Access) -> Result<bool> {
        match self.authorise(Access { need: Role::Owner, ..access }).await {
            Ok(()) => Ok(true),
            Err(StoreError::RoleTooLow { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the file or folder at the path.
    async fn stat(&self, access: Access, path: &WsPath) -> Result<Option<Entry>>;

    /// Reads the file at the path. The content is left out if it has more than `max_bytes` bytes.
    async fn read(&self, access: Access, path: &WsPath, max_bytes: i64) -> Result<File>;

    /// Lists a folder, sorted by path.
    async fn list(&self, access: Access, folder: &WsPath, depth: Depth, limit: usize) -> Result<Listing>;

    /// Finds lines in the texts of files.
    async fn search(&self, access: Access, search: Search) -> Result<SearchResult>;

    /// Applies all changes or none, and records the call with them.
    async fn commit(&self, access: Access, changes: Changeset, call: CallInfo) -> Result<Commit>;

    /// Returns what a commit of the changes would do, read in one snapshot without locks.
    async fn preview(&self, access: Access, changes: Changeset, call: CallInfo) -> Result<Preview>;

    /// Reads a file by its id, in the trash or not. The content is left out if it has more than `max_bytes` bytes.
    async fn file(&self, access: Access, file: FileId, max_bytes: i64) -> Result<File>;

    /// Lists a file's versions, newest first.
    async fn versions(&self, access: Access, file: FileId, page: Page<i64>) -> Result<Vec<Version>>;

    /// Reads one version of a file. The content is left out if it has more than `max_bytes` bytes.
    async fn version(
        &self,
        access: Access,
        file: FileId,
        version: VersionId,
        max_bytes: i64,
    ) -> Result<(Version, Option<Content>)>;

    /// Lists the trash, newest first.
    async fn trash(&self, access: Access, page: Page<FileId>) -> Result<Vec<Entry>>;

    /// Lists commits, newest first.
    async fn commits(&self, access: Access, page: Page<CommitId>) -> Result<Vec<CommitInfo>>;

    /// Returns one commit.
    async fn commit_info(&self, access: Access, commit: CommitId) -> Result<CommitInfo>;

    /// Returns the commit that undid another, if there is one and it was not undone itself.
    async fn undone_by(&self, access: Access, commit: CommitId) -> Result<Option<CommitId>>;

    /// Creates a chat, which is shown as a file below `/chats`.
    async fn create_chat(&self, access: Access, title: String) -> Result<Chat>;

    /// Adds a message to a chat.
    async fn add_message(&self, access: Access, chat: ChatId, role: String, content: String) -> Result<Message>;

    /// Reads a chat with its messages.
    async fn chat(&self, access: Access, chat: ChatId) -> Result<Chat>;
}
