//! The forms in which rules are written: an object, or the short form `ask write(docs/**)`.

use super::{Rule, RuleEffect};
use crate::{Action, ErrorKind, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A rule as an object.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleObject {
    effect: RuleEffect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(rename = "match", default, skip_serializing_if = "Vec::is_empty")]
    patterns: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    except: Vec<String>,
    #[serde(default, skip_serializing_if = "Condition::is_empty")]
    when: Condition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    because: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    approvers: Vec<String>,
}

/// The condition of a rule.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Condition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overwrite: Option<bool>,
}

impl Condition {
    fn is_empty(&self) -> bool {
        self.overwrite.is_none()
    }
}

/// A rule in either form.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a rule is a text such as `deny read(**/.env)`, or an object with `effect`, `action` or `tool`, and `match`"
)]
pub(super) enum GivenRule {
    Short(String),
    Object(RuleObject),
}

impl TryFrom<GivenRule> for Rule {
    type Error = ToolError;

    fn try_from(given: GivenRule) -> Result<Self, ToolError> {
        match given {
            GivenRule::Short(text) => text.parse(),
            GivenRule::Object(object) => {
                let RuleObject { effect, action, tool, patterns, except, when, because, approvers } = object;
                if action.is_none() && tool.is_none() {
                    return Err(wrong("a rule", "it needs an `action` or a `tool`"));
                }
                let overwrite = when.overwrite;
                // The object form of `*`.
                let tool = tool.filter(|tool| action.is_some() || tool != "*/*");
                Ok(Self { effect, action, tool, patterns, except, overwrite, because, approvers })
            }
        }
    }
}

impl From<Rule> for RuleObject {
    fn from(rule: Rule) -> Self {
        let Rule { effect, action, tool, patterns, except, overwrite, because, approvers } = rule;
        // A rule about every action has no action; the object needs one of the two, so it names every tool.
        let tool = if action.is_none() && tool.is_none() { Some("*/*".to_owned()) } else { tool };
        Self { effect, action, tool, patterns, except, when: Condition { overwrite }, because, approvers }
    }
}

/// Reads `EFFECT ACTION`, `EFFECT ACTION(PATTERN, …)`, `EFFECT *` or `EFFECT tool(TOOLSET/TOOL)`.
impl FromStr for Rule {
    type Err = ToolError;

    fn from_str(text: &str) -> Result<Self, ToolError> {
        let (effect, rest) = text
            .trim()
            .split_once(char::is_whitespace)
            .ok_or_else(|| wrong(text, "it must have an effect and an action, such as `deny write(docs/**)`"))?;
        let effect = match effect {
            "allow" => RuleEffect::Allow,
            "ask" => RuleEffect::Ask,
            "deny" => RuleEffect::Deny,
            other => return Err(wrong(text, &format!("'{other}' is not an effect; use allow, ask or deny"))),
        };
        let rest = rest.trim();
        let (name, inside) = match rest.split_once('(') {
            None => (rest, None),
            Some((name, inside)) => {
                let inside = inside.strip_suffix(')').ok_or_else(|| wrong(text, "the bracket is not closed"))?;
                (name.trim(), Some(inside))
            }
        };
        let patterns: Vec<String> =
            inside.map_or(Vec::new(), |inside| inside.split(',').map(|part| part.trim().to_owned()).collect());
        if patterns.iter().any(String::is_empty) {
            return Err(wrong(text, "a pattern is empty; leave the bracket out to mean everything"));
        }
        let empty = Self {
            effect,
            action: None,
            tool: None,
            patterns,
            except: Vec::new(),
            overwrite: None,
            because: None,
            approvers: Vec::new(),
        };
        match name {
            "*" => Ok(empty),
            "tool" => {
                let [tool] = &empty.patterns[..] else {
                    return Err(wrong(text, "`tool` needs one name, such as `tool(system/write_file)`"));
                };
                Ok(Self { tool: Some(tool.clone()), patterns: Vec::new(), ..empty })
            }
            name => {
                let action = Action::from_name(name).ok_or_else(|| {
                    let names: Vec<&str> = Action::ALL.iter().map(|action| action.name()).collect();
                    wrong(text, &format!("'{name}' is not an action; use {} or *", names.join(", ")))
                })?;
                Ok(Self { action: Some(action), ..empty })
            }
        }
    }
}

fn wrong(rule: &str, what: &str) -> ToolError {
    ToolError::new(ErrorKind::InvalidArgument, format!("The rule `{rule}` is wrong: {what}")).about("rules")
}

/// Writes the short form. What it cannot express is written behind it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.effect {
            RuleEffect::Allow => "allow ",
            RuleEffect::Ask => "ask ",
            RuleEffect::Deny => "deny ",
        })?;
        match (&self.action, &self.tool) {
            (None, Some(tool)) => write!(f, "tool({tool})")?,
            (None, None) => f.write_str("*")?,
            (Some(action), _) => f.write_str(action.name())?,
        }
        if !self.patterns.is_empty() {
            write!(f, "({})", self.patterns.join(", "))?;
        }
        if let (Some(_), Some(tool)) = (&self.action, &self.tool) {
            write!(f, " by {tool}")?;
        }
        if !self.except.is_empty() {
            write!(f, " except ({})", self.except.join(", "))?;
        }
        match self.overwrite {
            Some(true) => f.write_str(" when it overwrites"),
            Some(false) => f.write_str(" when it does not overwrite"),
            None => Ok(()),
        }
    }
}
