//! The words of Toolrest and the one road of a call.
//!
//! Everything that the other crates talk about is named here: tools and toolsets, workspaces and the changes made to
//! them, callers and their rights, errors. [`Engine::call`] is the only way from any surface to any tool. There is no
//! input or output in this crate; what needs it stands behind a trait.

mod binding;
mod byte_budget;
mod caller;
mod change;
mod chat;
mod checkout;
mod content;
mod encoding;
mod engine;
mod error;
mod event;
mod fair_queue;
mod find;
mod gate;
mod id;
mod json_text;
mod near;
mod notice;
mod path;
mod policy;
mod record;
mod search;
mod settings;
mod time;
mod tool;
mod toolset;
mod workspace;

pub use binding::{bind, without_position};
pub use byte_budget::{ByteBudget, HeldBytes};
pub use caller::{Access, Caller, Role};
pub use change::{Change, Changeset, Commit, Destination, Effect, EffectKind, Expect, Outcome, Parents, Put, Removal};
pub use chat::chat_text;
pub use checkout::{
    Attribution, CheckedIn, Checkout, CheckoutMode, CheckoutOptions, ExecutionRoot, FolderHandle, KeepLimits, LeftOut,
    LeftOutReason, ProgramChange, ProgramChangeKind, ProgramConflict,
};
pub use content::{Content, ContentHash, ContentHasher, EncodedText, FileType, Form};
pub use encoding::{BYTE_ORDER_MARK, Decoder, Encoding, EncodingDetector, NotText};
pub use engine::{Call, Engine, Limits, Reply};
pub use error::{ErrorKind, FailedOperation, PATH_DETAILS, Result, ToolError};
pub use event::{FileEvent, FileEvents};
pub use fair_queue::{FairQueue, Full, QueueLimits, QueueSlot, Scope};
pub use find::{FileFound, Find, FindResult, IgnoredFiles};
pub use id::{CallId, ChatId, CommitId, FileId, UserId, VersionId, WorkspaceId};
pub use json_text::{JsonText, json_bytes_of, json_string_bytes, push_json_string, to_json_within};
pub use notice::Notice;
pub use path::{MAX_NAME_BYTES, MAX_PATH_BYTES, WsPath};
pub use policy::{AllowAll, Decision, Policy};
pub use record::{CallRecord, Recorder};
pub use search::{
    Found, Interrupt, LineMatch, LineMatcher, LinePattern, PathFilter, Requirement, Search, Skipped, line_text,
    lines_around,
};
pub use settings::{RunSettings, RunSettingsPatch, WorkspaceSettings, WorkspaceSettingsPatch};
pub use time::{Timestamp, now};
pub use tool::{Action, Approval, CallCx, DynTool, Render, Tool};
pub use toolset::{CatalogueFormat, Dialect, Toolset, Toolsets};
pub use workspace::{
    CommitInfo, Depth, Entry, File, Listed, Listing, OpenFile, ReadSeek, Version, WORKSPACE_MOUNT, Workspace,
    Workspaces, below_workspace_mount,
};
