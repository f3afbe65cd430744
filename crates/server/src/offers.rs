//! The permissions that a person can give together with a decision.

use std::collections::BTreeMap;
use toolrest_core::rules::{Target, folder_pattern, grant_pattern};
use toolrest_core::{Action, Ask, ErrorKind, NewGrant, Result, Timestamp, ToolError, WsPath};

/// Maximum number of patterns of a permission.
const MAX_PARTS: usize = 20;
/// The pattern of everything.
const EVERYTHING: &str = "**";

/// A permission that covers everything that a call asks: actions with their patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer(Vec<(Action, String)>);

impl Offer {
    /// Returns the permissions for what a call asks, the narrowest first. There are none if nothing but the call itself can
    /// be allowed.
    pub(crate) fn all(asks: &[Ask]) -> Vec<Self> {
        if asks.is_empty() || asks.iter().any(|ask| ask.grant.is_none()) {
            return Vec::new();
        }
        let exact = asks.iter().filter_map(|ask| Some((ask.action, ask.grant.clone()?)));
        let mut by_action: BTreeMap<&str, (Action, Vec<&str>)> = BTreeMap::new();
        for ask in asks {
            by_action.entry(ask.action.name()).or_insert((ask.action, Vec::new())).1.push(&ask.subject);
        }
        let wider = |pattern: fn(Action, &[&str]) -> Option<String>| -> Option<Vec<(Action, String)>> {
            by_action.values().map(|(action, subjects)| Some((*action, pattern(*action, subjects)?))).collect()
        };
        let mut offers: Vec<Self> = Vec::new();
        for mut offer in [Some(exact.collect()), wider(group_pattern), wider(widest_pattern)].into_iter().flatten() {
            let mut seen: Vec<(Action, String)> = Vec::new();
            Vec::retain(&mut offer, |one| {
                !seen.contains(one) && {
                    seen.push(one.clone());
                    true
                }
            });
            let is_short = offer.len() <= MAX_PARTS;
            if is_short && !offers.iter().any(|other| other.0 == offer || other.is_everything()) {
                offers.push(Self(offer));
            }
        }
        offers
    }

    /// Returns what a call asks, as rules are offered for it: at its own paths first, although a grant for the session may
    /// begin with all paths.
    pub(crate) fn asks_for_rules(asks: &[Ask]) -> Vec<Ask> {
        let narrowed = |ask: &Ask| match WsPath::within(&ask.subject) {
            Ok(path) if ask.action.is_about_files() && ask.grant.is_some() => {
                let grant = grant_pattern(ask.action, &Target::Path { path: &path, overwrite: false });
                Ask { grant, ..ask.clone() }
            }
            _ => ask.clone(),
        };
        asks.iter().map(narrowed).collect()
    }

    /// Returns the offer that a decision chooses: the narrowest, if it chooses none.
    pub(crate) fn choose(asks: &[Ask], text: Option<&str>) -> Result<Self> {
        let mut offers = Self::all(asks);
        let Some(text) = text else {
            let none = "No permission can cover this call; decide with the scope `once`";
            return if offers.is_empty() { Err(ToolError::argument("scope", none)) } else { Ok(offers.remove(0)) };
        };
        let known: Vec<String> = offers.iter().map(|offer| format!("`{offer}`")).collect();
        offers.into_iter().find(|offer| offer.to_string() == text).ok_or_else(|| {
            let message = format!("The grant `{text}` is not offered for this call; offered are {}", known.join("; "));
            ToolError::new(ErrorKind::InvalidArgument, message).about("grant")
        })
    }

    /// Returns the grants to store.
    pub(crate) fn grants(&self, is_denial: bool, expires_at: Timestamp) -> Vec<NewGrant> {
        let grant = |(action, pattern): &(Action, String)| NewGrant {
            action: *action,
            pattern: pattern.clone(),
            is_denial,
            expires_at,
        };
        self.0.iter().map(grant).collect()
    }

    /// Returns the actions with their patterns.
    pub(crate) fn parts(&self) -> &[(Action, String)] {
        &self.0
    }

    fn is_everything(&self) -> bool {
        self.0.iter().all(|(_, pattern)| pattern == EVERYTHING)
    }
}

/// Writes it as rules are written: `write(docs/a.md), delete(docs/b.md)`.
impl std::fmt::Display for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, (action, pattern)) in self.0.iter().enumerate() {
            write!(f, "{}{}({pattern})", if n == 0 { "" } else { ", " }, action.name())?;
        }
        Ok(())
    }
}

/// Returns the pattern of the folder of some paths, or of the program of some commands.
fn group_pattern(action: Action, subjects: &[&str]) -> Option<String> {
    match action {
        Action::Exec => {
            let mut programs = subjects.iter().map(|command| command.split_whitespace().next());
            let first = programs.next()??;
            programs.all(|other| other == Some(first)).then(|| first.to_owned())
        }
        action if action.is_about_files() => folder_pattern(subjects.iter().copied()),
        _ => None,
    }
}

/// Returns the pattern of everything, which is offered for files alone.
fn widest_pattern(action: Action, _: &[&str]) -> Option<String> {
    action.is_about_files().then(|| EVERYTHING.to_owned())
}

#[cfg(test)]
#[path = "offers_tests.rs"]
mod tests;
