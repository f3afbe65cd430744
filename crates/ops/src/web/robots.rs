//! `robots.txt`: what hosts ask programs not to fetch.

use crate::outside::http_client::{HttpClient, HttpLimits, HttpRequest, HttpUrl};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use toolrest_core::{ErrorKind, Result, ToolError};

/// The name under which hosts address this server.
const NAME: &str = "toolrest";
/// Maximum size of the file.
const MAX_BYTES: usize = 512 << 10;
/// Maximum number of hosts that are remembered.
const MAX_HOSTS: usize = 1_000;
/// Maximum size of all rules that are remembered. A caller can have many hosts with long rules asked.
const MAX_REMEMBERED_BYTES: usize = 16 << 20;
/// Maximum number of rules of a host that are kept.
const MAX_RULES: usize = 2_000;
/// How long the rules of a host are remembered.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The rules of the hosts that were asked recently.
#[derive(Default)]
pub(super) struct RobotsCache(Mutex<HashMap<String, (Instant, Arc<Rules>)>>);

/// The rules of one host for this server.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rules(Vec<(Permission, String)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Permission {
    Disallow,
    Allow,
}

impl RobotsCache {
    /// Refuses an address that its host does not want to be fetched. A host without the file allows everything.
    pub(super) async fn check(&self, client: &HttpClient, url: &HttpUrl, deadline: Instant) -> Result<()> {
        let file = url.with_path("/robots.txt");
        let known = self
            .known()
            .get(&file.to_string())
            .filter(|(read, _)| read.elapsed() < LIFETIME)
            .map(|(_, rules)| rules.clone());
        let rules = if let Some(rules) = known { rules } else { self.read(client, &file, deadline).await? };
        if rules.allow(&url.path_and_query()) {
            return Ok(());
        }
        let message =
            format!("{} does not want {} to be fetched by programs ({file})", url.host_and_port(), url.path());
        Err(ToolError::new(ErrorKind::ApprovalDenied, message).detail("setting", "web.robots_txt"))
    }

    /// Reads the file of a host, and remembers its rules.
    async fn read(&self, client: &HttpClient, file: &HttpUrl, deadline: Instant) -> Result<Arc<Rules>> {
        let limits = HttpLimits { deadline, response_bytes: MAX_BYTES };
        let is_same_host = |next: &HttpUrl| next.host() == file.host();
        let response = client.send(HttpRequest::get(file.clone()), limits, &is_same_host).await;
        let response = response.map_err(|error| error.to_tool_error(Some("url"), super::LIMIT_SETTING))?;
        let text = if response.status.is_success() { String::from_utf8_lossy(&response.body) } else { "".into() };
        let rules = Arc::new(Rules::parse(&text));
        self.remember(file.to_string(), Arc::clone(&rules));
        Ok(rules)
    }

    fn remember(&self, file: String, rules: Arc<Rules>) {
        let mut known = self.known();
        let bytes = known.values().map(|(_, rules)| rules.bytes()).sum::<usize>() + rules.bytes();
        if known.len() >= MAX_HOSTS || bytes > MAX_REMEMBERED_BYTES {
            known.clear();
        }
        known.insert(file, (Instant::now(), rules));
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, (Instant, Arc<Rules>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rules {
    /// Reads the group for this server, or else the one for all.
    fn parse(text: &str) -> Self {
        let (mut ours, mut for_all) = (None::<Vec<_>>, Vec::new());
        let (mut is_ours, mut is_for_all, mut in_names) = (false, false, false);
        for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
            let Some((name, value)) = line.split_once(':') else { continue };
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            let permission = match name.as_str() {
                "user-agent" => {
                    if !in_names {
                        (is_ours, is_for_all, in_names) = (false, false, true);
                    }
                    is_ours |= value.eq_ignore_ascii_case(NAME);
                    is_for_all |= value == "*";
                    if is_ours {
                        ours.get_or_insert_default();
                    }
                    continue;
                }
                "allow" => Permission::Allow,
                "disallow" => Permission::Disallow,
                _ => continue,
            };
            in_names = false;
            // An empty pattern matches nothing.
            let rule = (!value.is_empty()).then(|| (permission, value.to_owned()));
            if is_ours && let Some(ours) = &mut ours {
                ours.extend(rule.clone());
            }
            if is_for_all {
                for_all.extend(rule);
            }
        }
        let mut rules = ours.unwrap_or(for_all);
        rules.truncate(MAX_RULES);
        Self(rules)
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, pattern)| pattern.len()).sum()
    }

    /// Whether a path may be fetched: the longest pattern that matches decides, of equally long ones the one that allows.
    fn allow(&self, path: &str) -> bool {
        let matching = self.0.iter().filter(|(_, pattern)| matches(pattern, path));
        let decisive = matching.max_by_key(|(permission, pattern)| (pattern.len(), *permission));
        decisive.is_none_or(|(permission, _)| *permission == Permission::Allow)
    }
}

/// Whether a pattern, in which `*` stands for anything and `$` for the end, matches the beginning of a path.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, to_end) = pattern.strip_suffix('$').map_or((pattern, false), |pattern| (pattern, true));
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if to_end && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    !to_end || rest.is_empty()
}

#[cfg(test)]
#[path = "robots_tests.rs"]
mod robots_tests;
