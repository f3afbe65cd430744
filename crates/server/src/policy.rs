//! The rules of the server and of its workspaces.

use crate::settings::Settings;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolrest_core::rules::{ApprovalMode, FetchHosts, GrantList, Rule, RuleList, RuleLists};
use toolrest_core::{
    Caller, MemberRules, Policy, Result, Role, RulesInForce, ToolError, Toolsets, UserId, WorkspaceId,
};
use toolrest_store::Store;

/// Maximum number of workspaces whose compiled rules are kept in memory.
const MAX_COMPILED: usize = 1_000;
/// Maximum number of callers whose rules are kept in memory.
const MAX_CACHED: usize = 10_000;

/// What an owner can set for a workspace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkspaceRules {
    /// The rules.
    pub(crate) rules: Vec<Rule>,
    /// When calls ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approvals: Option<ApprovalMode>,
}

/// The rules in the settings, and those of workspaces, which the database keeps.
///
/// The rules of a caller are kept in memory. They may be out of date: the statements that do the work compare their
/// revision. A caller that is not in memory counts as one without rules, whose revision is 0.
pub(crate) struct StoredPolicy {
    store: Arc<dyn Store>,
    server: Arc<RuleList>,
    mode: Option<ApprovalMode>,
    fetch_hosts: Arc<FetchHosts>,
    without_rules: Arc<RulesInForce>,
    known: Mutex<HashMap<(WorkspaceId, UserId), Arc<RulesInForce>>>,
    /// The compiled rules of workspaces, which their members share.
    compiled: Mutex<HashMap<WorkspaceId, Compiled>>,
}

/// The rules of a workspace.
#[derive(Clone)]
struct Compiled {
    /// What they were compiled from.
    text: Option<Arc<str>>,
    list: Arc<RuleList>,
    approvals: Option<ApprovalMode>,
}

impl StoredPolicy {
    pub(crate) fn new(store: Arc<dyn Store>, settings: &Settings, toolsets: &Toolsets) -> Result<Self> {
        let server = Arc::new(RuleList::compile_new(settings.policy.rules.clone(), toolsets)?);
        let mode = settings.policy.approvals;
        let lists = RuleLists { server: Arc::clone(&server), workspace: Arc::default() };
        let fetch_hosts = Arc::new(FetchHosts::new(settings.web.fetch_hosts.iter().map(String::as_str)));
        let without_rules = RulesInForce {
            lists,
            grants: GrantList::default(),
            mode: mode.unwrap_or_default(),
            is_mode_set: mode.is_some(),
            fetch_hosts: Arc::clone(&fetch_hosts),
            has_unanswered: false,
            revision: Some(0),
        };
        Ok(Self {
            store,
            server,
            mode,
            fetch_hosts,
            without_rules: Arc::new(without_rules),
            known: Mutex::default(),
            compiled: Mutex::default(),
        })
    }

    /// Returns when calls of a workspace ask. Its owner cannot loosen what the operator has set.
    fn mode(&self, of_workspace: Option<ApprovalMode>) -> ApprovalMode {
        let strictness = |mode: &ApprovalMode| match mode {
            ApprovalMode::Off => 0,
            ApprovalMode::Spec => 1,
            ApprovalMode::All => 2,
            ApprovalMode::Never => 3,
        };
        self.mode.into_iter().chain(of_workspace).max_by_key(strictness).unwrap_or_default()
    }

    /// Returns the compiled rules of a workspace, and compiles them if they are others than before.
    async fn compiled(&self, workspace: WorkspaceId, text: Option<String>) -> Result<Compiled> {
        let text: Option<Arc<str>> = text.map(Into::into);
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(&workspace).cloned();
        if let Some(known) = known.filter(|known| known.text == text) {
            return Ok(known);
        }
        let WorkspaceRules { rules, approvals } = match &text {
            Some(text) => serde_json::from_str(text).map_err(ToolError::internal)?,
            None => WorkspaceRules::default(),
        };
        // Many patterns take a while.
        let list =
            tokio::task::spawn_blocking(move || RuleList::compile(rules)).await.map_err(ToolError::internal)??;
        let compiled = Compiled { text, list: Arc::new(list), approvals };
        let mut all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_COMPILED {
            all.clear();
        }
        all.insert(workspace, compiled.clone());
        Ok(compiled)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(WorkspaceId, UserId), Arc<RulesInForce>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Policy for StoredPolicy {
    fn rules(&self, workspace: WorkspaceId, caller: Caller) -> Arc<RulesInForce> {
        let known = self.known();
        Arc::clone(known.get(&(workspace, caller.member())).unwrap_or(&self.without_rules))
    }

    async fn reload(&self, workspace: WorkspaceId, caller: Caller) -> Result<()> {
        let stored = self.store.member_rules(caller.access(workspace, Role::Viewer)).await?;
        let MemberRules { revision, rules, grants, has_unanswered } = stored;
        let Compiled { list, approvals, .. } = self.compiled(workspace, rules).await?;
        let lists = RuleLists { server: Arc::clone(&self.server), workspace: list };
        let grants = GrantList::compile(grants);
        let (mode, fetch_hosts) = (self.mode(approvals), Arc::clone(&self.fetch_hosts));
        let is_mode_set = self.mode.or(approvals).is_some();
        let rules =
            RulesInForce { lists, grants, mode, is_mode_set, fetch_hosts, has_unanswered, revision: Some(revision) };
        let mut known = self.known();
        if known.len() >= MAX_CACHED {
            known.clear();
        }
        known.insert((workspace, caller.member()), Arc::new(rules));
        Ok(())
    }
}
