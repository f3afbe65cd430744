//! Calls: as they are received, prepared to run, and with their result.

use crate::{
    Action, Answer, ApprovalId, Ask, BoundTool, CallCx, CallId, Caller, CommitId, Content, DynTool, Effect, ErrorKind,
    Expect, Intent, JsonText, Notice, Result, ToolError, Toolset, WorkspaceId, WsPath,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// A call of a tool, as a surface receives it.
///
/// It can be stored and run later, by another server. So it has no deadline: the time for running starts when it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Its id, in logs and in the record.
    pub id: CallId,
    /// The caller's id for the call, which is logged too.
    pub correlation: String,
    /// The name of the toolset.
    pub toolset: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments.
    pub args: JsonText,
    /// Who calls.
    pub caller: Caller,
    /// The workspace to work in.
    pub workspace: WorkspaceId,
    /// The caller's label for its session, to which grants are limited; may be empty.
    #[serde(default)]
    pub session: String,
}

/// Who allows what the rules ask about.
#[derive(Clone, Debug, Default)]
pub enum Permission {
    /// Nobody yet: the call stops where a rule asks, with an error that says what is asked ([`ToolError::asks`]).
    #[default]
    Ask,
    /// Nobody yet, and nobody is expected to be asked: the defaults of toolsets ask only if rules, or when calls ask, were
    /// set. Rules ask and deny as always.
    AskIfConfigured,
    /// Like [`Permission::Ask`]. If the rules turn out to have changed while calls of the caller are unanswered, the call stops
    /// before it does anything, with an error of [`ToolError::is_rules_changed`]: it may repeat one of those, which has run.
    AskOrAttach,
    /// The caller, a person who makes the call directly.
    OwnHand,
    /// A person who approved the call.
    Approved(ApprovedCall),
    /// An approver of this program, to which the call was shown. The conditions must hold when the call commits, so that
    /// it does what was shown.
    ApprovedHere(Vec<Expect>),
}

/// An approved call that this process runs.
#[derive(Clone, Debug)]
pub struct ApprovedCall {
    /// The approval, which the commit of the call spends.
    pub approval: ApprovalId,
    /// The process.
    pub instance: Uuid,
    /// What must hold when the call commits, so that it does what was shown.
    pub conditions: Vec<Expect>,
}

/// What a call would do, found out without doing it.
pub struct CallPreview {
    /// What the rules ask about.
    pub asks: Vec<Ask>,
    /// What the call would do beyond the files.
    pub intents: Vec<Intent>,
    /// The changes that it would make.
    pub changes: Vec<PreviewedChange>,
    /// The context in which the files can be read.
    pub cx: CallCx,
}

/// A changeset that was not applied.
#[derive(Clone, Debug)]
pub struct PreviewedChange {
    /// Its effects.
    pub effects: Vec<Effect>,
    /// The new contents by path.
    pub contents: Vec<(WsPath, Content)>,
}

/// A call whose tool was found and whose arguments are bound. Nothing was done yet.
pub struct PreparedCall<'a> {
    /// The call.
    pub call: &'a Call,
    /// Its toolset.
    pub toolset: &'a Toolset,
    /// Its tool.
    pub tool: &'a dyn DynTool,
    /// What it will do beyond the workspace's files.
    pub intents: Vec<Intent>,
    pub(crate) bound: Box<dyn BoundTool + 'a>,
}

impl PreparedCall<'_> {
    /// Returns what the tool mainly does.
    pub fn action(&self) -> Action {
        self.tool.action()
    }

    /// Whether the call only shows what it would change.
    pub fn is_dry_run(&self) -> bool {
        self.bound.is_dry_run()
    }
}

/// The result of a call that succeeded. The surface that sends it renders it.
pub struct CallOutcome {
    /// The answer of the tool.
    pub answer: Box<dyn Answer>,
    /// Warnings about the call, which are part of the answer.
    pub warnings: Vec<Notice>,
    /// The commit, if the call changed something.
    pub commit: Option<CommitId>,
    /// What a dry run would change.
    pub previewed: Vec<Effect>,
    /// Maximum size of the rendered answer.
    pub limit_bytes: usize,
    pub(crate) advice: &'static str,
}

impl fmt::Debug for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CallOutcome");
        shown.field("warnings", &self.warnings).field("commit", &self.commit).finish_non_exhaustive()
    }
}

impl CallOutcome {
    /// Returns the answer of the tool as JSON, without the warnings.
    pub fn json(&self) -> Result<String> {
        self.answer.json(self.limit_bytes)?.ok_or_else(|| self.too_long())
    }

    /// Returns the answer of the tool as a text for models and people; if the tool has none, its JSON.
    pub fn text(&self) -> Result<String> {
        match self.answer.text() {
            Some(text) => self.within_limit(text),
            None => self.json(),
        }
    }

    /// Returns a rendered answer, or the error for one that is too long.
    pub fn within_limit<T: AsRef<[u8]>>(&self, rendered: T) -> Result<T> {
        if rendered.as_ref().len() <= self.limit_bytes { Ok(rendered) } else { Err(self.too_long()) }
    }

    fn too_long(&self) -> ToolError {
        let message = format!("The answer is over the limit of {} bytes; {}", self.limit_bytes, self.advice);
        ToolError::new(ErrorKind::ResponseTooLarge, message)
    }
}
