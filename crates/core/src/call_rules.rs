//! The rules that hold for one call: those of the server and the workspace, the grants of its caller, and the defaults of
//! its toolset.

use crate::rules::{
    ApprovalMode, FetchHosts, GrantList, Judgement, Question, RuleEffect, RuleLists, Target, grant_pattern,
};
use crate::{Action, Ask, ErrorKind, Intent, Result, Timestamp, ToolError, WsPath};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The rules and grants that hold for a caller in a workspace.
#[derive(Debug, Default)]
pub struct RulesInForce {
    /// The rules.
    pub lists: RuleLists,
    /// The grants of the caller.
    pub grants: GrantList,
    /// When calls ask.
    pub mode: ApprovalMode,
    /// The hosts that `web_fetch` reaches without asking.
    pub fetch_hosts: Arc<FetchHosts>,
    /// Whether somebody has set when calls ask.
    pub is_mode_set: bool,
    /// Whether earlier calls of the caller wait for a person, or ended without an answer to the caller, as of the revision.
    pub has_unanswered: bool,
    /// The revision of the rules and grants, which statements compare. None if there is no database that keeps it.
    pub revision: Option<i64>,
}

impl RulesInForce {
    /// No rules, and nothing that asks.
    pub fn none() -> Self {
        Self { mode: ApprovalMode::Off, ..Self::default() }
    }

    /// Whether nothing is forbidden or asked, whatever is called.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.mode == ApprovalMode::Off
    }
}

/// What happens where a rule asks.
#[derive(Debug)]
pub enum Asking {
    /// The call stops, and the engine returns what it asks.
    Stop,
    /// Like `Stop`, but the defaults of toolsets ask only if rules, or when calls ask, were set.
    StopIfConfigured,
    /// The call goes on, because a person makes the change directly.
    OwnHand,
    /// The call goes on, because a person approved it.
    Approved,
    /// The call goes on, and what it asks is collected. Nothing is changed meanwhile.
    Collect(Mutex<CollectedAsks>),
}

/// What a call asks, each once and in its order.
#[derive(Debug, Default)]
pub struct CollectedAsks {
    list: Vec<Ask>,
    known: HashSet<Ask>,
}

impl CollectedAsks {
    fn add(&mut self, ask: Ask) {
        if self.known.insert(ask.clone()) {
            self.list.push(ask);
        }
    }
}

/// The rules of one call.
#[derive(Debug)]
pub struct CallRules {
    in_force: Arc<RulesInForce>,
    toolset: String,
    tool: String,
    session: String,
    now: Timestamp,
    asking: Asking,
    action: Action,
}

/// Whether the defaults of the toolset apply. They judge what a tool does, not what a program changes, nor the reading and
/// deleting that a move implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defaults {
    Apply,
    Ignore,
}

/// What the rules say about one action.
enum Ruling {
    Allow,
    Ask(Ask),
    Deny(ToolError),
}

impl CallRules {
    /// Creates the rules of a call.
    pub fn new(
        in_force: Arc<RulesInForce>,
        (toolset, tool, action): (&str, &str, Action),
        session: &str,
        asking: Asking,
    ) -> Self {
        let (toolset, tool, session) = (toolset.to_owned(), tool.to_owned(), session.to_owned());
        Self { in_force, toolset, tool, session, now: crate::now(), asking, action }
    }

    /// Whether no rule and no default can forbid or ask anything in this call.
    pub(crate) fn is_empty(&self) -> bool {
        self.in_force.lists.is_empty() && !self.has_defaults()
    }

    /// Returns when this call asks.
    fn mode(&self) -> ApprovalMode {
        let RulesInForce { lists, mode, is_mode_set, .. } = &*self.in_force;
        let is_configured = *is_mode_set || !lists.is_empty();
        if matches!(self.asking, Asking::StopIfConfigured) && !is_configured { ApprovalMode::Off } else { *mode }
    }

    fn has_defaults(&self) -> bool {
        match self.mode() {
            ApprovalMode::Off => false,
            ApprovalMode::All => true,
            ApprovalMode::Spec | ApprovalMode::Never => matches!(self.toolset.as_str(), "system" | "coding" | "agent"),
        }
    }

    pub(crate) fn is_own_hand(&self) -> bool {
        matches!(self.asking, Asking::OwnHand)
    }

    /// Whether a rule distinguishes paths, so that programs, whose reads are not judged, cannot be run.
    pub(crate) fn has_path_rules(&self) -> bool {
        self.in_force.lists.has_rules_about_paths()
    }

    /// Whether a rule can ask or refuse this action in the call, whatever its patterns are.
    pub(crate) fn restricts(&self, action: Action) -> bool {
        self.in_force.lists.restricts(action, &self.toolset, &self.tool)
    }

    /// Whether a path rule for this action may match something below a folder.
    pub(crate) fn may_match_below(&self, action: Action, folder: &WsPath) -> bool {
        self.in_force.lists.may_match_below(action, folder)
    }

    /// Whether a path may be read, or listed, without asking.
    pub(crate) fn shows(&self, path: &WsPath) -> bool {
        let target = Target::Path { path, overwrite: false };
        match self.ruling(Action::Read, &target, Defaults::Ignore) {
            Ruling::Allow => true,
            Ruling::Ask(_) => matches!(self.asking, Asking::OwnHand),
            Ruling::Deny(_) => false,
        }
    }

    /// Whether the call may go on to this host, to which it was redirected, without asking a person.
    pub(crate) fn may_go_on_to(&self, host: &str) -> bool {
        match self.ruling(Action::Fetch, &Target::Host(host), Defaults::Apply) {
            Ruling::Allow => true,
            Ruling::Ask(_) => matches!(self.asking, Asking::OwnHand),
            Ruling::Deny(_) => false,
        }
    }

    /// Judges one action at a path.
    pub(crate) fn judge_path(
        &self,
        action: Action,
        path: &WsPath,
        overwrite: bool,
        defaults: Defaults,
    ) -> Result<Option<Ask>> {
        let target = Target::Path { path, overwrite };
        // What a program changes is known only when it has run, so it cannot wait for a person then.
        if self.action != Action::Exec {
            return self.judge(action, &target, defaults);
        }
        match self.ruling(action, &target, Defaults::Ignore) {
            Ruling::Ask(ask) if !matches!(self.asking, Asking::OwnHand) => {
                let because = format!("{}, and a program cannot wait for a person after it has run", ask.because);
                Err(denied(action, &ask.subject, ask.rule.as_deref(), &because))
            }
            ruling => self.resolve(ruling),
        }
    }

    /// Whether listings and searches show a memory. One that must be asked for is left out, like a path.
    pub(crate) fn shows_memory(&self, key: &str) -> bool {
        match self.ruling(Action::Memory, &Target::Name(key), Defaults::Ignore) {
            Ruling::Allow => true,
            Ruling::Deny(_) => false,
            Ruling::Ask(_) => !matches!(self.asking, Asking::Stop),
        }
    }

    /// Judges what a call will do beyond the files of its workspace. Returns what must be asked, or why it is denied.
    pub(crate) fn judge_intents(&self, intents: &[Intent]) -> Result<Vec<Ask>> {
        let mut asks: Vec<Ask> = self.judge_tool()?.into_iter().collect();
        for intent in intents {
            match intent {
                // Rules and grants about commands are asked about each simple command.
                Intent::Exec { commands: Some(commands), .. } => {
                    for command in commands {
                        asks.extend(self.judge(Action::Exec, &Target::Command(command), Defaults::Apply)?);
                    }
                }
                // The commands are not known one by one, so no rule about single commands can allow them.
                Intent::Exec { command: text, .. } | Intent::Input { text, .. }
                    if self.in_force.lists.has_narrow_command_rules() =>
                {
                    asks.extend(self.judge_unknown_command(text)?);
                }
                Intent::Exec { command: text, .. } | Intent::Input { text, .. } => {
                    asks.extend(self.judge(Action::Exec, &Target::Code(text), Defaults::Apply)?);
                }
                Intent::Fetch { host, .. } => {
                    asks.extend(self.judge(Action::Fetch, &Target::Host(host), Defaults::Apply)?);
                }
                Intent::GitHub { repository, .. } => {
                    asks.extend(self.judge(Action::GitHub, &Target::Repository(repository), Defaults::Apply)?);
                }
                Intent::Memory { key, .. } => {
                    asks.extend(self.judge(Action::Memory, &Target::Name(key), Defaults::Apply)?);
                }
            }
        }
        Ok(asks)
    }

    /// Judges the call by the rules about its tool, whatever it does.
    fn judge_tool(&self) -> Result<Option<Ask>> {
        let target = Target::None;
        let question = Question { toolset: &self.toolset, tool: &self.tool, action: self.action, target };
        let Some(judged) = self.in_force.lists.judge_tool(&question) else { return Ok(None) };
        let ask = self.resolve(self.ruling_of(judged, self.action, &target))?;
        Ok(ask.map(|ask| Ask { subject: format!("{}/{}", self.toolset, self.tool), ..ask }))
    }

    fn judge_unknown_command(&self, command: &str) -> Result<Option<Ask>> {
        if let Some(ask) = self.judge(Action::Exec, &Target::Code(command), Defaults::Apply)? {
            return Ok(Some(ask));
        }
        let because = "there are rules about single commands, and this text is not a plain list of commands";
        let ask = Ask {
            action: Action::Exec,
            subject: command.to_owned(),
            rule: None,
            because: because.to_owned(),
            grant: None,
            approvers: Vec::new(),
        };
        self.resolve(match self.mode() {
            // Where nobody is asked, a command that may be a forbidden one is refused.
            ApprovalMode::Off if !self.in_force.lists.denies_commands() => Ruling::Allow,
            ApprovalMode::Off | ApprovalMode::Never => Ruling::Deny(denied(Action::Exec, command, None, because)),
            ApprovalMode::Spec | ApprovalMode::All => Ruling::Ask(ask),
        })
    }

    fn judge(&self, action: Action, target: &Target<'_>, defaults: Defaults) -> Result<Option<Ask>> {
        self.resolve(self.ruling(action, target, defaults))
    }

    fn resolve(&self, ruling: Ruling) -> Result<Option<Ask>> {
        match (ruling, &self.asking) {
            (Ruling::Deny(error), _) => Err(error),
            (Ruling::Allow, _) | (Ruling::Ask(_), Asking::OwnHand | Asking::Approved) => Ok(None),
            (Ruling::Ask(ask), Asking::Stop | Asking::StopIfConfigured) => Ok(Some(ask)),
            (Ruling::Ask(ask), Asking::Collect(asks)) => {
                asks.lock().unwrap_or_else(PoisonError::into_inner).add(ask);
                Ok(None)
            }
        }
    }

    /// Takes what was collected so far.
    pub(crate) fn collected(&self) -> Vec<Ask> {
        match &self.asking {
            Asking::Collect(asks) => std::mem::take(&mut *asks.lock().unwrap_or_else(PoisonError::into_inner)).list,
            _ => Vec::new(),
        }
    }

    fn ruling(&self, action: Action, target: &Target<'_>, defaults: Defaults) -> Ruling {
        let question = Question { toolset: &self.toolset, tool: &self.tool, action, target: *target };
        match self.in_force.lists.judge(&question) {
            Some(judged) => self.ruling_of(judged, action, target),
            None if defaults == Defaults::Apply => match self.default_ask(action, target) {
                Some(because) => self.ruling_by((RuleEffect::Ask, None, because, Vec::new()), action, target),
                None => Ruling::Allow,
            },
            None => Ruling::Allow,
        }
    }

    /// Returns what a rule says.
    fn ruling_of(&self, judged: Judgement<'_>, action: Action, target: &Target<'_>) -> Ruling {
        let rule = judged.rule;
        let because = rule.because.clone().unwrap_or_else(|| format!("the {} has the rule `{rule}`", judged.from));
        self.ruling_by((judged.effect, Some(rule.to_string()), because, rule.approvers.clone()), action, target)
    }

    fn ruling_by(
        &self,
        (effect, rule, because, approvers): (RuleEffect, Option<String>, String, Vec<String>),
        action: Action,
        target: &Target<'_>,
    ) -> Ruling {
        let subject = subject(target);
        match effect {
            RuleEffect::Allow => Ruling::Allow,
            RuleEffect::Deny => Ruling::Deny(denied(action, &subject, rule.as_deref(), &because)),
            RuleEffect::Ask => match self.in_force.grants.covers(&self.session, action, target, self.now) {
                Some(true) => {
                    let because = "a person refused this for the session and does not want to be asked again";
                    Ruling::Deny(denied(action, &subject, rule.as_deref(), because))
                }
                // A rule that names who may decide asks them each time: others may have given the grant.
                Some(false) if approvers.is_empty() => Ruling::Allow,
                _ => match self.mode() {
                    ApprovalMode::Off => Ruling::Allow,
                    ApprovalMode::Never => Ruling::Deny(denied(action, &subject, rule.as_deref(), &because)),
                    ApprovalMode::Spec | ApprovalMode::All => {
                        let grant = match rule {
                            // The first edit of a session asks; the answer can be given for all of them.
                            None if self.toolset == "coding" => Some("**".to_owned()),
                            // The answer to the first change or command can be given for all of the session; deletions ask each time.
                            None if self.toolset == "agent" && action != Action::Delete => Some("**".to_owned()),
                            Some(_) if !approvers.is_empty() => None,
                            _ => grant_pattern(action, target),
                        };
                        Ruling::Ask(Ask { action, subject, rule, because, grant, approvers })
                    }
                },
            },
        }
    }

    /// Returns why an action is asked for although no rule says so.
    fn default_ask(&self, action: Action, target: &Target<'_>) -> Option<String> {
        if self.mode() == ApprovalMode::Off || action == Action::Read {
            return None;
        }
        if self.mode() == ApprovalMode::All {
            return Some("the setting `approvals` asks before everything but reading".to_owned());
        }
        match (self.toolset.as_str(), action, target) {
            ("system", Action::Write, Target::Path { overwrite: true, .. }) => {
                Some("the system toolset asks before it overwrites a file".to_owned())
            }
            ("system", Action::Delete, _) => Some("the system toolset asks before it deletes".to_owned()),
            ("system", Action::Fetch, Target::Host(host))
                if self.tool == "web_fetch" && !self.in_force.fetch_hosts.contains(host) =>
            {
                Some(
                    "the system toolset asks before it fetches from a host that is not in `web.fetch_hosts`".to_owned(),
                )
            }
            ("agent", Action::Delete, _) => Some("the agent toolset asks before it deletes".to_owned()),
            ("agent", Action::Write | Action::Move, _) => {
                Some("the agent toolset asks before the first edit of a session".to_owned())
            }
            ("agent", Action::Exec, _) => {
                Some("the agent toolset asks before the first command of a session".to_owned())
            }
            ("agent", Action::Fetch, Target::Host(host)) if !self.in_force.fetch_hosts.contains(host) => {
                Some("the agent toolset asks before it fetches from a host that is not in `web.fetch_hosts`".to_owned())
            }
            ("coding", Action::Write | Action::Delete | Action::Move, _) => {
                Some("the coding toolset asks before the first edit of a session".to_owned())
            }
            _ => None,
        }
    }
}

fn subject(target: &Target<'_>) -> String {
    match target {
        Target::Path { path, .. } => path.to_string(),
        Target::Command(text)
        | Target::Code(text)
        | Target::Host(text)
        | Target::Repository(text)
        | Target::Name(text) => (*text).to_owned(),
        Target::None => String::new(),
    }
}

/// Creates the error for something that a rule forbids. It is made from the path and the rule alone, so that it does not
/// say whether the file exists.
fn denied(action: Action, subject: &str, rule: Option<&str>, because: &str) -> ToolError {
    let (action, of) = (action.name(), if subject.is_empty() { String::new() } else { format!(" {subject}") });
    let message =
        format!("Not allowed: {action}{of}, because {because}. Nothing was done; go on without it, or ask a person");
    let error = ToolError::new(ErrorKind::ApprovalDenied, message).detail("action", action);
    match rule {
        Some(rule) => error.detail("rule", rule),
        None => error,
    }
}
