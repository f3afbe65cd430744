//! The types that all crates share, and the engine that runs tool calls.
//!
//! The types are tools and toolsets, workspaces and changes to them, callers and their roles, and errors.
//! [`Engine::call`] is the only way to call a tool. This crate does no I/O; traits such as [`Workspace`] stand for what
//! does.

mod action;
mod approval;
mod binding;
mod byte_budget;
mod call;
mod call_rules;
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
mod feed;
mod find;
mod guard;
mod guarded_workspace;
mod hex;
mod history;
mod id;
mod json_text;
mod keyed_semaphore;
mod memory;
mod metrics;
mod notice;
mod path;
mod policy;
mod record;
mod redact;
pub mod rules;
mod search;
mod secrets;
mod session;
mod settings;
mod similar_paths;
mod time;
mod tool;
mod toolset;
mod waiting_calls;
mod workspace;

pub use action::{Action, ActionSet, Annotations, Intent, ToolHints};
pub use approval::{
    Approval, ApprovalEvent, ApprovalPreview, ApprovalState, Ask, Decided, Execution, Grant, MemberRules, NewApproval,
    NewDecision, NewGrant, NewRules, Verdict,
};
pub use binding::{bind, without_position};
pub use byte_budget::{ByteBudget, HeldBytes};
pub use call::{ApprovedCall, Call, CallOutcome, CallPreview, Permission, PreparedCall, PreviewedChange};
pub use call_rules::{Asking, CallRules, RulesInForce};
pub use caller::{Access, Caller, Key, Role};
pub use change::{Change, Changeset, Commit, Destination, Effect, EffectKind, Expect, Outcome, Parents, Put, Removal};
pub use chat::chat_text;
pub use checkout::{
    Attribution, CheckedIn, Checkout, CheckoutMode, CheckoutOptions, ExecutionRoot, FolderHandle, KeepLimits, LeftOut,
    LeftOutReason, ProgramChange, ProgramChangeKind, ProgramConflict, ProgramHome,
};
pub use content::{Content, ContentHash, ContentHasher, EncodedText, FileType, Form};
pub use encoding::{BYTE_ORDER_MARK, Decoder, Encoding, EncodingDetector, NotText};
pub use engine::{Engine, Limits};
pub use error::{ErrorKind, FailedOperation, PATH_DETAILS, Result, ToolError};
pub use event::{EventFilter, FileEvent, FileEvents};
pub use fair_queue::{FairQueue, Full, LimitScope, QueueDepth, QueueLimits, QueueSlot};
pub use feed::{
    ApprovalFeedEvent, CallEvent, CommitEvent, FeedCursor, FeedEvent, FeedGap, FeedPage, FeedRecord, FeedSources,
    PathChange,
};
pub use find::{Find, FindResult, FoundFile, IgnoredFiles};
pub use guard::{Guard, MovedFolder, NetChange, NetEffect, net_effects};
pub use hex::hex;
pub use history::{History, Page};
pub use id::{ApprovalId, CallId, ChatId, CommitId, FileId, GrantId, KeyId, UserId, VersionId, WorkspaceId};
pub use json_text::{JsonText, json_bytes_of, json_string_bytes, push_json_string, to_json_within};
pub use memory::{
    MAX_MEMORY_KEY_BYTES, MAX_MEMORY_QUERY_BYTES, MAX_MEMORY_TAG_BYTES, MAX_MEMORY_TAGS, MAX_MEMORY_VALUE_BYTES,
    Memories, Memory, MemoryFilter, MemoryPage, NewMemory, NoMemories, WordMatch, check_memory_key, distinct_tags,
    no_such_memory,
};
pub use metrics::{CallMetrics, CallTimer, DURATION_BUCKETS_US, ToolCounts, UNKNOWN_TOOL};
pub use notice::Notice;
pub use path::{MAX_NAME_BYTES, MAX_PATH_BYTES, WsPath};
pub use policy::{NoRules, Policy};
pub use record::{
    CallDetails, CallRecord, CallStart, NoRecords, OUTCOME_INTERRUPTED, OUTCOME_OK, OpenRecord, REST_TOOLSET,
    RecordHandle, RecordPermit, Recorder, is_outcome,
};
pub use redact::Redactor;
pub use search::{
    Interrupt, LineMatch, LineMatcher, LinePattern, PathFilter, Requirement, Search, SearchResult, Skipped, line_text,
    lines_around,
};
pub use secrets::{
    MAX_SECRET_BYTES, MAX_SECRET_NAME_BYTES, MIN_SECRET_BYTES, NoSecrets, Secret, Secrets, check_secret_name,
    no_such_secret, secret_of_call,
};
pub use session::{
    MAX_RESULT_BYTES, MAX_RESULTS_OF_ACCOUNT, MAX_RESULTS_OF_WORKSPACE, NoSessions, RESULT_LIFETIME, SessionCommit,
    Sessions,
};
pub use settings::{RunSettings, RunSettingsPatch, WorkspaceSettings, WorkspaceSettingsPatch};
pub use time::{Timestamp, now};
pub use tool::{Answer, BoundTool, CallCx, DynTool, Render, Tool};
pub use toolset::{CatalogueFormat, Dialect, Success, Toolset, ToolsetMask, Toolsets, WaitingCall, name_for_models};
pub use waiting_calls::{NoWaitingCalls, WaitedCall, WaitingCalls};
pub use workspace::{
    CommitInfo, Depth, Entry, File, Listed, Listing, OpenFile, Preview, ReadSeek, SymbolicLinks, Version,
    WORKSPACE_MOUNT, Workspace, Workspaces, below_workspace_mount,
};
