//! Lists of hosts that programs may connect to.

use std::{fmt, net::IpAddr};

/// The ports of an entry without a port.
const WEB_PORTS: [u16; 2] = [80, 443];

/// Maximum length of a DNS name.
const NAME_BYTES: usize = 253;

/// A list of hosts: names (`pypi.org`), all names below one (`*.example.com`), addresses, or all names (`*`). An
/// entry with a port allows only this port, one without a port allows 80 and 443.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList {
    entries: Vec<Entry>,
    /// A second list. Only hosts that are on both lists are allowed.
    within: Option<Box<Self>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    pattern: Pattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Host(Host),
    Below(String),
    AnyName,
}

/// A host in comparable form: an address, or a name in lower case without a final dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    Name(String),
    Address(IpAddr),
}

/// The error for a text that is not a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no host; expected one such as pypi.org, *.example.com, example.com:8443, 192.0.2.7 or [2001:db8::1]:443"
)]
pub struct BadEntry(String);

impl AllowList {
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, BadEntry> {
        let entries = entries.into_iter().map(|text| Entry::parse(text).ok_or_else(|| BadEntry(text.to_owned())));
        Ok(Self { entries: entries.collect::<Result<_, _>>()?, within: None })
    }

    /// Returns a list of the hosts that are on both lists.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let other = match self.within {
            Some(inner) => inner.within(other),
            None => other,
        };
        Self { entries: self.entries, within: Some(Box::new(other)) }
    }

    /// Whether one of the lists has no entries, so that no host is allowed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() || self.within.as_ref().is_some_and(|within| within.is_empty())
    }

    /// Whether this list, and the list that it is within, allow all hosts of an entry of another list.
    pub fn covers(&self, entry: &str) -> Result<bool, BadEntry> {
        let entry = Entry::parse(entry).ok_or_else(|| BadEntry(entry.to_owned()))?;
        Ok(self.covers_entry(&entry))
    }

    fn covers_entry(&self, entry: &Entry) -> bool {
        let ports = entry.port.map_or_else(|| WEB_PORTS.to_vec(), |port| vec![port]);
        let is_listed = |port: u16| {
            self.entries.iter().any(|listed| {
                listed.pattern.covers(&entry.pattern)
                    && listed.port.map_or(WEB_PORTS.contains(&port), |listed| listed == port)
            })
        };
        ports.into_iter().all(is_listed) && self.within.as_ref().is_none_or(|within| within.covers_entry(entry))
    }

    pub(super) fn allows(&self, host: &Host, port: u16) -> bool {
        let listed = self.entries.iter().any(|entry| {
            let fits = match (&entry.pattern, host) {
                (Pattern::Host(listed), host) => listed == host,
                (Pattern::Below(top), Host::Name(name)) => {
                    name.strip_suffix(top.as_str()).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
                }
                (Pattern::AnyName, Host::Name(_)) => true,
                (Pattern::Below(_) | Pattern::AnyName, Host::Address(_)) => false,
            };
            fits && entry.port.map_or(WEB_PORTS.contains(&port), |listed| listed == port)
        });
        listed && self.within.as_ref().is_none_or(|within| within.allows(host, port))
    }
}

impl Pattern {
    /// Whether this pattern matches every host that `other` matches.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::AnyName, Self::Host(Host::Name(_)) | Self::Below(_) | Self::AnyName) => true,
            (Self::Below(top), Self::Below(other)) if top == other => true,
            (Self::Below(top), Self::Below(name) | Self::Host(Host::Name(name))) => {
                name.strip_suffix(top.as_str()).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
            }
            (Self::Host(listed), Self::Host(host)) => listed == host,
            _ => false,
        }
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = split(text)?;
        let pattern = match host.strip_prefix("*.") {
            None if host == "*" => Pattern::AnyName,
            Some(top) => match Host::parse(top)? {
                Host::Name(top) => Pattern::Below(top),
                Host::Address(_) => return None,
            },
            None => Pattern::Host(Host::parse(host)?),
        };
        Some(Self { pattern, port })
    }
}

impl Host {
    /// Parses a host without its port. Accepts only addresses, and names of letters, digits, `-`, `_` and dots, so that
    /// the host contains no port, path or user name.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(address) = text.strip_prefix('[') {
            return address.strip_suffix(']')?.parse().ok().map(|address| Self::Address(IpAddr::V6(address)));
        }
        if let Ok(address) = text.parse() {
            return Some(Self::Address(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_part);
        (name.len() <= NAME_BYTES && name.split('.').all(is_label)).then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

/// Writes the host without brackets or port.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Splits a host and its port, if it has one.
pub(super) fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    match authority.rsplit_once(':') {
        // An IPv6 address needs brackets if a port follows.
        Some((host, _)) if host.contains(':') && !host.ends_with(']') => Some((authority, None)),
        Some((host, port)) => {
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            Some((host, Some(port.parse().ok().filter(|port| is_number && *port != 0)?)))
        }
        None => Some((authority, None)),
    }
}

#[cfg(test)]
#[path = "allow_list_tests.rs"]
mod allow_list_tests;
