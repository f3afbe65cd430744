//! Patterns of paths, commands and hosts.

use super::Target;
use crate::{Action, WsPath};
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Characters with a meaning in globs.
const GLOB_CHARACTERS: [char; 6] = ['*', '?', '[', ']', '{', '}'];

/// Globs of paths.
#[derive(Debug)]
pub(super) struct Globs {
    set: GlobSet,
    /// The folders below which each glob can match: its part before the first special character, up to a slash.
    prefixes: Vec<String>,
}

impl Globs {
    /// Compiles globs. `docs/**` also matches the folder `docs` itself.
    pub(super) fn compile(patterns: &[String], case: Case) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        let mut prefixes = Vec::new();
        for pattern in patterns {
            let pattern = from_root(pattern);
            set.add(glob(&pattern, case)?);
            if let Some(folder) = pattern.strip_suffix("/**") {
                set.add(glob(folder, case)?);
            }
            prefixes.push(literal_prefix(&pattern));
        }
        let set = set.build().map_err(|error| error.to_string())?;
        Ok(Self { set, prefixes })
    }

    pub(super) fn matches(&self, path: &WsPath) -> bool {
        self.set.is_match(path.without_slash())
    }

    /// Whether a glob matches a name, which need not be written like a path: `/a` and `a//b` are keys of memories.
    pub(super) fn matches_name(&self, name: &str) -> bool {
        self.set.is_match(name) || self.set.is_match(from_root(name).trim_end_matches("/**"))
    }

    /// Whether a glob may match something below a folder.
    pub(super) fn may_match_below(&self, folder: &WsPath) -> bool {
        let folder = if folder.is_root() { "" } else { folder.without_slash() };
        let may_match = |prefix: &String| {
            let is_below = |path: &str, folder: &str| {
                folder.is_empty()
                    || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            is_below(prefix, folder) || is_below(folder, prefix)
        };
        self.prefixes.iter().any(may_match)
    }
}

/// Whether globs distinguish upper and lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Sensitive,
    Insensitive,
}

/// Returns a pattern in the form of the paths that it is compared with: from the root, without empty names, `.` and `..`. A
/// pattern in another form would match nothing, and a rule that denies nothing is worse than none. With a slash at its end
/// it is about a folder and everything in it.
fn from_root(pattern: &str) -> String {
    let pattern = pattern.trim();
    let mut names = Vec::new();
    for name in pattern.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    if names.is_empty() || pattern.ends_with('/') {
        names.push("**");
    }
    names.join("/")
}

fn glob(pattern: &str, case: Case) -> Result<Glob, String> {
    let mut builder = GlobBuilder::new(pattern);
    builder.literal_separator(true).backslash_escape(true).case_insensitive(case == Case::Insensitive);
    builder.build().map_err(|error| error.to_string())
}

/// Returns the folder that a glob begins with, without special characters.
fn literal_prefix(pattern: &str) -> String {
    let special = pattern.find(|c| GLOB_CHARACTERS.contains(&c) || c == '\\');
    match special {
        None => pattern.to_owned(),
        Some(at) => pattern[..at].rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned()),
    }
}

/// The first words of a command.
#[derive(Debug)]
pub(super) struct CommandPrefix(Vec<String>);

impl CommandPrefix {
    pub(super) fn new(pattern: &str) -> Self {
        let words = pattern.split_whitespace().map(str::to_owned).collect();
        if matches!(pattern.trim(), "*" | "**") { Self(Vec::new()) } else { Self(words) }
    }

    pub(super) fn matches(&self, command: &str) -> bool {
        let mut words = command.split_whitespace();
        self.0.iter().all(|word| words.next() == Some(word))
    }
}

/// A host, `*.` before a domain for its subdomains, and possibly a port.
#[derive(Debug)]
pub(super) struct HostPattern {
    host: String,
    port: Option<String>,
}

impl HostPattern {
    pub(super) fn new(pattern: &str) -> Self {
        let (host, port) = split_port(pattern.trim());
        Self { host: host.strip_suffix('.').unwrap_or(&host).to_owned(), port }
    }

    /// Returns why a text is not a host, so that a pattern which would match nothing is not accepted.
    pub(super) fn check(pattern: &str) -> Result<(), String> {
        let own = Self::new(pattern).host;
        let name = own.strip_prefix("*.").unwrap_or(&own);
        let is_name = |name: &str| {
            let is_part = |part: &str| {
                !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            };
            name.split('.').all(is_part)
        };
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_address = address.is_some_and(|text| {
            // Compared as text, so it must be written in the one form that addresses of the web have.
            text.parse::<core::net::Ipv6Addr>().is_ok_and(|address| address.to_string() == text)
        });
        if matches!(own.as_str(), "*" | "**") || is_name(name) || (is_address && name == own) {
            return Ok(());
        }
        Err(format!(
            "'{pattern}' is not a host; write one such as `example.com`, `*.example.com`, `example.com:8443` or \
             `[2001:db8::1]`, without a scheme and a path, in letters of ASCII (`xn--…`)"
        ))
    }

    pub(super) fn matches(&self, host: &str) -> bool {
        let (host, port) = split_port(host);
        let is_host = match (self.host.as_str(), self.host.strip_prefix("*.")) {
            ("*" | "**", _) => true,
            (_, Some(domain)) => host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            (own, None) => host == own,
        };
        // A host without a port is at the usual one of its scheme.
        let is_port = |own: &String| port.as_ref().map_or(matches!(own.as_str(), "80" | "443"), |port| port == own);
        is_host && self.port.as_ref().is_none_or(is_port)
    }
}

/// The hosts that `web_fetch` reaches without asking, with patterns such as `docs.rs`, `*.example.com`, `example.com:8443`
/// or `*`. A pattern without a port is about the usual ports of the schemes.
#[derive(Debug, Default)]
pub struct FetchHosts(Vec<HostPattern>);

impl FetchHosts {
    /// Reads the patterns.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        Self(patterns.into_iter().map(HostPattern::new).collect())
    }

    /// Whether a host is among them. It has a port if that is not the usual one of its scheme.
    pub(crate) fn contains(&self, host: &str) -> bool {
        let (_, port) = split_port(host);
        self.0.iter().any(|pattern| pattern.port == port && pattern.matches(host))
    }
}

fn split_port(text: &str) -> (String, Option<String>) {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match text.rsplit_once(':').filter(|(_, port)| is_port(port)) {
        Some((host, port)) => (host.to_ascii_lowercase(), Some(port.to_owned())),
        None => (text.to_ascii_lowercase(), None),
    }
}

/// Returns the narrowest pattern that covers an action, which is offered to a person: exactly this path or host, or the
/// first two words of a command.
pub fn grant_pattern(_action: Action, target: &Target<'_>) -> Option<String> {
    match target {
        Target::Path { path, .. } => Some(escaped(path.without_slash())),
        Target::Command(command) => {
            let words: Vec<&str> = command.split_whitespace().take(2).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        Target::Host(host) => Some((*host).to_owned()),
        Target::Repository(name) | Target::Name(name) => Some(escaped(name)),
        // What is not known exactly cannot be granted.
        Target::Code(_) | Target::None => None,
    }
}

/// Returns the pattern of everything below the narrowest folder that has all these paths; none if that is the root.
pub fn folder_pattern<'a>(mut paths: impl Iterator<Item = &'a str>) -> Option<String> {
    let folder = |path: &'a str| path.trim_start_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
    let first = folder(paths.next()?);
    let common = paths.map(folder).fold(first, |common, other| {
        let mut end = 0;
        for (part, other) in common.split('/').zip(other.split('/')) {
            if part != other {
                break;
            }
            end += part.len() + usize::from(end > 0);
        }
        &common[..end]
    });
    (!common.is_empty()).then(|| format!("{}/**", escaped(common)))
}

/// Returns a glob that matches exactly this text.
fn escaped(text: &str) -> String {
    let escape = |c: char| if GLOB_CHARACTERS.contains(&c) || c == '\\' { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escape).collect()
}
