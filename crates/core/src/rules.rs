//! Rules: what calls may do, what a person must allow first, and what is refused.
//!
//! A rule has an effect, an action or a tool, and patterns. Within one list the last rule that matches counts; of several
//! lists, the strictest result.

mod pattern;
mod text;

use crate::toolset::name_for_models;
use crate::{Action, Grant, Result, Timestamp, ToolError, Toolsets, WsPath};
use pattern::{Case, CommandPrefix, Globs, HostPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use pattern::{FetchHosts, folder_pattern, grant_pattern};

/// Maximum number of rules in a list.
const MAX_RULES: usize = 1_000;
/// Maximum number of patterns of a rule.
const MAX_PATTERNS: usize = 100;
/// Maximum number of patterns of all rules of a list.
const MAX_PATTERNS_OF_ALL: usize = 2_000;
/// Maximum length of the reason of a rule.
const MAX_REASON_BYTES: usize = 1_000;
/// Maximum number of addresses of those who may decide, and maximum length of each.
const MAX_APPROVERS: usize = 100;
const MAX_ADDRESS_BYTES: usize = 320;
/// Maximum length of a pattern.
const MAX_PATTERN_BYTES: usize = 1_000;

/// When calls wait for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// As the specification of each toolset and the rules say.
    #[default]
    Spec,
    /// Never: what would ask is allowed.
    Off,
    /// Before everything but reading, unless a rule allows it.
    All,
    /// Never: what would ask is refused. For runs without a person.
    Never,
}

/// What a rule says. Later ones are stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleEffect {
    /// It is allowed.
    Allow,
    /// A person must allow it.
    Ask,
    /// It is refused.
    Deny,
}

/// A rule. It can also be given in its short form, such as `ask write(docs/**)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "text::GivenRule", into = "text::RuleObject")]
pub struct Rule {
    /// What it says.
    pub effect: RuleEffect,
    /// The action that it is about; any if there is none.
    pub action: Option<Action>,
    /// The tool that it is about, such as `system/write_file` or `system/*`; any if there is none.
    pub tool: Option<String>,
    /// The paths, commands or hosts that it is about; all if there are none.
    pub patterns: Vec<String>,
    /// The paths, commands or hosts that it is not about.
    pub except: Vec<String>,
    /// Whether it is only about changes that overwrite something, or only about those that do not.
    pub overwrite: Option<bool>,
    /// Why there is this rule.
    pub because: Option<String>,
    /// The addresses of those who may decide; empty for all members with the role to approve.
    pub approvers: Vec<String>,
}

/// What an action is done to.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A file or folder, and whether something is there that would be overwritten.
    Path {
        /// Its path.
        path: &'a WsPath,
        /// Whether it would be overwritten.
        overwrite: bool,
    },
    /// A simple command.
    Command(&'a str),
    /// A command line or code whose commands are not known one by one. Only patterns of everything match it.
    Code(&'a str),
    /// A host, with or without a port.
    Host(&'a str),
    /// A repository of GitHub, whose names have no case.
    Repository(&'a str),
    /// The key of a memory.
    Name(&'a str),
    /// Nothing in particular.
    None,
}

/// What a rule list is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The toolset.
    pub toolset: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The action.
    pub action: Action,
    /// What it is done to.
    pub target: Target<'a>,
}

/// A list of rules, ready to be asked.
#[derive(Debug, Default)]
pub struct RuleList(Vec<CompiledRule>);

#[derive(Debug)]
struct CompiledRule {
    rule: Rule,
    patterns: Patterns,
    except: Patterns,
}

/// The same patterns, read as patterns of paths, of commands and of hosts.
#[derive(Debug)]
struct Patterns {
    paths: Globs,
    repositories: Globs,
    commands: Vec<CommandPrefix>,
    hosts: Vec<HostPattern>,
    /// Whether it matches everything.
    all: bool,
}

impl Patterns {
    /// Compiles the patterns of an action, or of all actions. Those of commands and hosts need not be globs.
    fn compile(patterns: &[String], action: Option<Action>) -> Result<Self, String> {
        let of = |is_needed| if is_needed { patterns } else { &[] };
        let has_paths = !matches!(action, Some(Action::Exec | Action::Fetch | Action::GitHub));
        let has_repositories = matches!(action, None | Some(Action::GitHub));
        Ok(Self {
            paths: Globs::compile(of(has_paths), Case::Sensitive)?,
            repositories: Globs::compile(of(has_repositories), Case::Insensitive)?,
            commands: patterns.iter().map(|pattern| CommandPrefix::new(pattern)).collect(),
            hosts: patterns.iter().map(|pattern| HostPattern::new(pattern)).collect(),
            all: patterns.iter().any(|pattern| matches!(pattern.as_str(), "**" | "/**" | "*")),
        })
    }

    fn matches(&self, target: &Target<'_>) -> bool {
        match target {
            Target::Path { path, .. } => self.paths.matches(path),
            Target::Command(command) => self.commands.iter().any(|prefix| prefix.matches(command)),
            Target::Host(host) => self.hosts.iter().any(|pattern| pattern.matches(host)),
            Target::Repository(name) => self.repositories.matches_name(name),
            Target::Name(name) => self.paths.matches_name(name),
            Target::Code(_) | Target::None => self.all,
        }
    }
}

impl RuleList {
    /// Compiles rules. The error names the rule at fault.
    pub fn compile(rules: Vec<Rule>) -> Result<Self> {
        if rules.len() > MAX_RULES {
            let message = format!("There are {} rules; the limit is {MAX_RULES}", rules.len());
            return Err(ToolError::argument("rules", message));
        }
        let patterns: usize = rules.iter().map(|rule| rule.patterns.len() + rule.except.len()).sum();
        if patterns > MAX_PATTERNS_OF_ALL {
            let message = format!("The rules have {patterns} patterns together; the limit is {MAX_PATTERNS_OF_ALL}");
            return Err(ToolError::argument("rules", message));
        }
        rules.into_iter().map(CompiledRule::new).collect::<Result<_>>().map(Self)
    }

    /// Compiles rules that somebody sets now. Refuses also those that would never match.
    pub fn compile_new(rules: Vec<Rule>, toolsets: &Toolsets) -> Result<Self> {
        for rule in &rules {
            rule.check(toolsets).map_err(|what| wrong_rule(rule, &what))?;
        }
        Self::compile(rules)
    }

    /// Whether it has no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a rule can ask or refuse this action in calls of a tool, whatever its patterns are.
    pub fn restricts(&self, action: Action, toolset: &str, tool: &str) -> bool {
        let restricts = |compiled: &CompiledRule| {
            let rule = &compiled.rule;
            rule.effect != RuleEffect::Allow && rule.is_about(action) && rule.is_about_tool(toolset, tool)
        };
        self.0.iter().any(restricts)
    }

    /// Whether a rule asks before something is read.
    pub fn asks_reading(&self) -> bool {
        self.0.iter().any(|compiled| compiled.rule.effect == RuleEffect::Ask && compiled.rule.is_about(Action::Read))
    }

    /// Returns the last rule about a tool that matches.
    pub fn judge_tool(&self, question: &Question<'_>) -> Option<&Rule> {
        let about_tools = self.0.iter().rev().filter(|rule| rule.rule.tool.is_some());
        about_tools.into_iter().find(|rule| rule.matches(question)).map(|compiled| &compiled.rule)
    }

    /// Whether a rule refuses single commands.
    pub fn denies_commands(&self) -> bool {
        let denies = |compiled: &CompiledRule| {
            compiled.rule.effect == RuleEffect::Deny && compiled.rule.action == Some(Action::Exec)
        };
        self.0.iter().any(denies)
    }

    /// Returns the last rule that matches.
    pub fn judge(&self, question: &Question<'_>) -> Option<&Rule> {
        self.0.iter().rev().find(|rule| rule.matches(question)).map(|compiled| &compiled.rule)
    }

    /// Whether a rule for this action distinguishes paths.
    pub fn has_path_rules(&self, action: Action) -> bool {
        self.0.iter().any(|compiled| {
            let distinguishes = !compiled.rule.patterns.is_empty() && !compiled.patterns.all;
            compiled.rule.is_about(action) && (distinguishes || !compiled.rule.except.is_empty())
        })
    }

    /// Whether a rule that asks or refuses this action may match something below a folder.
    pub fn may_match_below(&self, action: Action, folder: &WsPath) -> bool {
        let may_match = |compiled: &CompiledRule| {
            let Rule { effect, patterns, .. } = &compiled.rule;
            let reaches = patterns.is_empty() || compiled.patterns.paths.may_match_below(folder);
            *effect != RuleEffect::Allow && compiled.rule.is_about(action) && reaches
        };
        self.0.iter().any(may_match)
    }

    /// Whether a rule distinguishes commands.
    pub fn has_narrow_command_rules(&self) -> bool {
        let is_narrow = |compiled: &CompiledRule| {
            let distinguishes = !compiled.rule.patterns.is_empty() && !compiled.patterns.all;
            compiled.rule.action == Some(Action::Exec) && (distinguishes || !compiled.rule.except.is_empty())
        };
        self.0.iter().any(is_narrow)
    }
}

impl Rule {
    /// Creates a rule about one action and one pattern.
    pub fn about(effect: RuleEffect, action: Action, pattern: String) -> Self {
        Self {
            effect,
            action: Some(action),
            tool: None,
            patterns: vec![pattern],
            except: Vec::new(),
            overwrite: None,
            because: None,
            approvers: Vec::new(),
        }
    }

    fn is_about(&self, action: Action) -> bool {
        self.action.is_none_or(|own| own == action)
    }

    fn is_about_tool(&self, toolset: &str, tool: &str) -> bool {
        let Some(own) = &self.tool else { return true };
        let (own_toolset, own_tool) = own.split_once('/').unwrap_or(("*", own));
        // A tool has two spellings of its name.
        let is_tool = || own_tool == "*" || own_tool == tool || name_for_models(own_tool) == name_for_models(tool);
        (own_toolset == "*" || own_toolset == toolset) && is_tool()
    }

    /// Returns why the rule would never match: its tool does not exist, or its hosts are none.
    fn check(&self, toolsets: &Toolsets) -> Result<(), String> {
        if let Some(own) = &self.tool {
            let (toolset, tool) = own.split_once('/').unwrap_or(("*", own));
            let mut named = toolsets.iter().filter(|one| toolset == "*" || one.name() == toolset);
            if !named.any(|one| tool == "*" || one.find(tool).is_some()) {
                return Err(format!("there is no tool '{own}'; write one such as `system/write_file` or `system/*`"));
            }
        }
        if self.action == Some(Action::Fetch) {
            return self.patterns.iter().chain(&self.except).try_for_each(|pattern| HostPattern::check(pattern));
        }
        Ok(())
    }
}

/// Creates the error for a rule that cannot be used.
fn wrong_rule(rule: &Rule, what: &str) -> ToolError {
    ToolError::argument("rules", format!("The rule `{rule}` is wrong: {what}"))
}

impl CompiledRule {
    fn new(rule: Rule) -> Result<Self> {
        let wrong = |what: String| wrong_rule(&rule, &what);
        for patterns in [&rule.patterns, &rule.except] {
            if patterns.len() > MAX_PATTERNS {
                return Err(wrong(format!("it has {} patterns; the limit is {MAX_PATTERNS}", patterns.len())));
            }
            if patterns.iter().any(|pattern| pattern.trim().is_empty() || pattern.len() > MAX_PATTERN_BYTES) {
                return Err(wrong(format!("a pattern must have 1 to {MAX_PATTERN_BYTES} bytes")));
            }
        }
        if rule.because.as_ref().is_some_and(|because| because.len() > MAX_REASON_BYTES) {
            return Err(wrong(format!("its `because` has more than {MAX_REASON_BYTES} bytes")));
        }
        if rule.approvers.len() > MAX_APPROVERS || rule.approvers.iter().any(|one| one.len() > MAX_ADDRESS_BYTES) {
            let limit = format!("at most {MAX_APPROVERS} addresses of {MAX_ADDRESS_BYTES} bytes");
            return Err(wrong(format!("`approvers` takes {limit}")));
        }
        let patterns = Patterns::compile(&rule.patterns, rule.action).map_err(wrong)?;
        let except = Patterns::compile(&rule.except, rule.action).map_err(wrong)?;
        Ok(Self { rule, patterns, except })
    }

    fn matches(&self, question: &Question<'_>) -> bool {
        let Question { toolset, tool, action, target } = question;
        let Rule { patterns, overwrite, .. } = &self.rule;
        if !self.rule.is_about(*action) || !self.rule.is_about_tool(toolset, tool) {
            return false;
        }
        let overwrites = matches!(target, Target::Path { overwrite: true, .. });
        if overwrite.is_some_and(|own| own != overwrites) {
            return false;
        }
        (patterns.is_empty() || self.patterns.matches(target)) && !self.except.matches(target)
    }
}

/// The rules that hold in a workspace.
#[derive(Clone, Debug, Default)]
pub struct RuleLists {
    /// The rules of the server.
    pub server: Arc<RuleList>,
    /// The rules of the workspace.
    pub workspace: Arc<RuleList>,
}

/// What the rules say about a question.
#[derive(Clone, Copy, Debug)]
pub struct Judgement<'a> {
    /// What they say.
    pub effect: RuleEffect,
    /// The rule.
    pub rule: &'a Rule,
    /// Whose rule it is: `server` or `workspace`.
    pub from: &'static str,
}

impl RuleLists {
    fn both(&self) -> [(&RuleList, &'static str); 2] {
        [(&self.server, "server"), (&self.workspace, "workspace")]
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.both().into_iter().all(|(list, _)| list.is_empty())
    }

    /// Returns the strictest result of the lists; none if no rule matches.
    pub fn judge(&self, question: &Question<'_>) -> Option<Judgement<'_>> {
        let judged = self.both().into_iter().filter_map(|(list, from)| {
            let rule = list.judge(question)?;
            Some(Judgement { effect: rule.effect, rule, from })
        });
        judged.max_by_key(|judgement| judgement.effect)
    }

    /// Whether a rule for this action distinguishes paths.
    pub fn has_path_rules(&self, action: Action) -> bool {
        self.both().into_iter().any(|(list, _)| list.has_path_rules(action))
    }

    /// Whether a rule can ask or refuse this action in calls of a tool, whatever its patterns are.
    pub fn restricts(&self, action: Action, toolset: &str, tool: &str) -> bool {
        self.both().into_iter().any(|(list, _)| list.restricts(action, toolset, tool))
    }

    /// Whether a rule asks before something is read.
    pub fn asks_reading(&self) -> bool {
        self.both().into_iter().any(|(list, _)| list.asks_reading())
    }

    /// Whether a rule refuses single commands.
    pub fn denies_commands(&self) -> bool {
        self.both().into_iter().any(|(list, _)| list.denies_commands())
    }

    /// Returns the strictest result of the rules about tools; none if no such rule matches.
    pub fn judge_tool(&self, question: &Question<'_>) -> Option<Judgement<'_>> {
        let judged = self.both().into_iter().filter_map(|(list, from)| {
            let rule = list.judge_tool(question)?;
            Some(Judgement { effect: rule.effect, rule, from })
        });
        judged.max_by_key(|judgement| judgement.effect)
    }

    /// Whether a rule distinguishes paths of files.
    pub fn has_rules_about_paths(&self) -> bool {
        Action::ALL.into_iter().filter(|action| action.is_about_files()).any(|action| self.has_path_rules(action))
    }

    /// Whether a rule that asks or refuses this action may match something below a folder.
    pub fn may_match_below(&self, action: Action, folder: &WsPath) -> bool {
        self.both().into_iter().any(|(list, _)| list.may_match_below(action, folder))
    }

    /// Whether a rule distinguishes commands.
    pub fn has_narrow_command_rules(&self) -> bool {
        self.both().into_iter().any(|(list, _)| list.has_narrow_command_rules())
    }
}

/// The grants of a caller, ready to be asked.
#[derive(Debug, Default)]
pub struct GrantList(Vec<(Grant, Patterns)>);

impl GrantList {
    /// Compiles grants. One whose pattern is not valid covers nothing.
    pub fn compile(grants: Vec<Grant>) -> Self {
        let compiled = |grant: Grant| {
            let pattern = std::slice::from_ref(&grant.grant.pattern);
            let patterns = Patterns::compile(pattern, Some(grant.grant.action)).ok()?;
            Some((grant, patterns))
        };
        Self(grants.into_iter().filter_map(compiled).collect())
    }

    /// Whether a grant covers an action: `Some(false)` if it is allowed, `Some(true)` if it is refused.
    pub fn covers(&self, session: &str, action: Action, target: &Target<'_>, now: Timestamp) -> Option<bool> {
        let covers = |(grant, patterns): &&(Grant, Patterns)| {
            let Grant { session: own, grant: given, .. } = grant;
            // A refusal holds in every session: a caller chooses the label of its session itself.
            (own == session || given.is_denial)
                && given.action == action
                && given.expires_at > now
                && patterns.matches(target)
        };
        // A refusal counts more than a permission.
        self.0.iter().filter(covers).map(|(grant, _)| grant.grant.is_denial).max()
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
