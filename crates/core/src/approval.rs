//! Approvals: calls that wait for the decision of a person.
//!
//! An approval is a stored call, what the call would do, and the person's decision. It survives the connection and the
//! server that asked.

use crate::{Action, ApprovalId, Call, CommitId, GrantId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Waits for a person.
    Pending,
    /// A person approved it; no server has begun to run it.
    Approved,
    /// A server runs it.
    Executing,
    /// It has run.
    Done,
    /// It could not be run, or failed.
    Failed,
    /// A person refused it.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// The caller withdrew it, or lost the right to call.
    Cancelled,
}

impl ApprovalState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Approved,
        Self::Executing,
        Self::Done,
        Self::Failed,
        Self::Denied,
        Self::Expired,
        Self::Cancelled,
    ];

    /// Returns the name, as it is stored and sent.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Executing => "executing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the state of a name of [`ApprovalState::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether the call may still run.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Approved | Self::Executing)
    }
}

/// One thing that a call does and that a person must allow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Ask {
    /// The action.
    pub action: Action,
    /// The path, the command or the host.
    pub subject: String,
    /// The rule that asks, in its short form; none if the tool's specification asks.
    pub rule: Option<String>,
    /// Why it asks.
    pub because: String,
    /// The pattern that a grant for the session would cover, such as `docs/**`; none if no grant can cover it.
    pub grant: Option<String>,
    /// The addresses of those who may decide; empty for all members with the role to approve.
    pub approvers: Vec<String>,
}

/// What a call would do, as it is shown to a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalPreview {
    /// A unified diff of every file that it would change.
    pub diff: String,
    /// The whole command or code that it would run.
    pub command: Option<String>,
    /// The hash of what is shown. An approval is bound to it.
    pub shown: String,
}

/// An approval to store.
#[derive(Clone, Debug)]
pub struct NewApproval {
    /// The call, which is run if a person approves.
    pub call: Call,
    /// The caller's label for its session; may be empty.
    pub session: String,
    /// Equal for repetitions of the call by the same caller in the same session.
    pub attach_key: String,
    /// The agent's own reason.
    pub reason: Option<String>,
    /// What must be allowed.
    pub asks: Vec<Ask>,
    /// What is shown.
    pub preview: ApprovalPreview,
    /// The machine whose folder the call works on; none if any server can run it.
    pub node: Option<String>,
    /// The arguments as they are kept after the end of the approval.
    pub redacted_args: String,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// A stored approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The call. Its arguments are redacted after the end, and are those that the person edited, if any.
    pub call: Call,
    /// The caller's label for its session.
    pub session: String,
    /// The agent's own reason.
    pub reason: Option<String>,
    /// What must be allowed.
    pub asks: Vec<Ask>,
    /// Counts how often something else was shown. A decision names the revision that it saw.
    pub revision: i64,
    /// What is shown.
    pub preview: ApprovalPreview,
    /// Its state.
    pub state: ApprovalState,
    /// The decision; none while it is pending.
    pub decided: Option<Decided>,
    /// The machine that must run it.
    pub node: Option<String>,
    /// How the call ended; none before.
    pub execution: Option<Execution>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When its state last changed.
    pub changed_at: Timestamp,
    /// When the result was sent to the caller.
    pub delivered_at: Option<Timestamp>,
}

impl Approval {
    /// Whether it has ended and its answer, if there will be one, is stored. The commit of a call ends its approval; the
    /// answer is stored right after it, unless the server is killed in between.
    pub fn has_answer(&self) -> bool {
        const ANSWER_TIME: std::time::Duration = std::time::Duration::from_secs(5);
        let is_unanswered = self.state == ApprovalState::Done
            && self.execution.as_ref().is_none_or(|execution| execution.status == 0)
            && self.decided.as_ref().is_some_and(|decided| decided.verdict == Verdict::Approve);
        let is_late = || self.changed_at.checked_add(ANSWER_TIME).is_ok_and(|end| end < crate::now());
        !self.state.is_open() && (!is_unanswered || is_late())
    }
}

/// A decision about an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    /// What was decided.
    pub verdict: Verdict,
    /// Who decided; none if a rule or a grant did.
    pub by: Option<UserId>,
    /// How it was decided: `api`, `cli`, `elicitation`, `rule`.
    pub via: String,
    /// The reason for the agent, or the answer to it.
    pub reason: Option<String>,
    /// The arguments that replace those of the call, as JSON. After the end they are redacted.
    pub args: Option<String>,
    /// What the call with those arguments would do, as the person saw it. It replaces the preview of the approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<ApprovalPreview>,
    /// The form of `args` that is kept after the end.
    #[serde(default)]
    pub redacted_args: Option<String>,
    /// The grants that were given with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<NewGrant>,
}

impl Decided {
    /// The decision of rules or grants that cover what a call asks.
    pub fn by_rule(via: String) -> Self {
        Self {
            verdict: Verdict::Approve,
            by: None,
            via,
            reason: None,
            args: None,
            preview: None,
            redacted_args: None,
            grants: Vec::new(),
        }
    }
}

/// A decision to store.
#[derive(Clone, Debug)]
pub struct NewDecision {
    /// The revision that the person saw; without it, only the first is decided.
    pub revision: Option<i64>,
    /// The decision.
    pub decided: Decided,
    /// The address of the person's client.
    pub address: Option<String>,
    /// The rules that the workspace has from then on, if the decision adds some.
    pub rules: Option<NewRules>,
}

/// Rules of a workspace that replace those of a certain revision.
#[derive(Clone, Debug)]
pub struct NewRules {
    /// The revision that is replaced.
    pub if_match: i64,
    /// The rules, as JSON.
    pub body: String,
}

/// What a person decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call runs.
    Approve,
    /// The call is refused.
    Deny,
    /// The agent gets an answer and the call does not run.
    Respond,
}

/// How an approved call ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// `ok`, `responded`, `interrupted` or the name of an error kind.
    pub outcome: String,
    /// The body that the caller gets, if it is not too long to be kept.
    pub result: Option<Value>,
    /// The answer as a text for models, if the tool has one and it is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The HTTP status of that body.
    pub status: u16,
    /// The message of the error.
    pub message: Option<String>,
    /// The commit, if something was changed.
    pub commit: Option<CommitId>,
}

/// Something that happened to an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalEvent {
    /// Counts the events of the approval, from 1.
    pub seq: i64,
    /// When it happened.
    pub at: Timestamp,
    /// `asked`, `attached`, `revised`, `approved`, `denied`, `responded`, `executing`, `done`, `failed`, `finished` (the
    /// call ended after its commit), `expired`, `cancelled`.
    pub kind: String,
    /// Who did it; none for the server.
    pub by: Option<Uuid>,
    /// How: `api`, `cli`, `elicitation`, `rule`.
    pub via: Option<String>,
    /// The address of the client.
    pub address: Option<String>,
    /// The revision at that time.
    pub revision: i64,
    /// More about it: original and final arguments, reason, rule.
    pub detail: Value,
}

/// A permission to store: it lifts `ask`, never `deny`. With `is_denial` it refuses what it covers without asking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewGrant {
    /// The action.
    pub action: Action,
    /// The pattern of paths, commands or hosts.
    pub pattern: String,
    /// Whether it refuses instead of allowing.
    pub is_denial: bool,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A stored grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// The member whose calls it covers: a key or a person.
    pub principal: Uuid,
    /// The session that it covers.
    pub session: String,
    /// What it covers.
    #[serde(flatten)]
    pub grant: NewGrant,
    /// The approval that it was given with.
    pub approval: Option<ApprovalId>,
    /// Who gave it.
    pub granted_by: UserId,
    /// When it was given.
    pub created_at: Timestamp,
}

/// The rules of a workspace and the grants of one member, with the revision by which a statement notices changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberRules {
    /// Changes whenever rules or grants of the member change; 0 if the workspace never had rules or grants.
    pub revision: i64,
    /// The rules and the approval settings of the workspace, as JSON; none if there are none.
    pub rules: Option<String>,
    /// The grants of the member that have not ended.
    pub grants: Vec<Grant>,
    /// Whether calls of the member wait for a person, or have ended without an answer to the member. A repetition of such a
    /// call must not run, although nothing asks about it any more.
    pub has_unanswered: bool,
}
