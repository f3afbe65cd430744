//! The hosts that a program may reach.

use std::{fmt, net::IpAddr};

/// Ports that an entry without one stands for.
const WEB_PORTS: [u16; 2] = [80, 443];

/// The longest name that DNS knows.
const NAME_BYTES: usize = 253;

/// The hosts that a program may reach: names (`pypi.org`), everything below one (`*.example.com`), addresses, or all
/// names (`*`); each with a port, or for 80 and 443.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList {
    entries: Vec<Entry>,
    /// The list of somebody who has more to say: what is not on that one either is not allowed.
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

/// A host as it is compared: addresses by what they are, names in small letters without the dot at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

/// A text that names no hosts.
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

    /// The hosts that are on both lists.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let other = match self.within {
            Some(inner) => inner.within(other),
            None => other,
        };
        Self { entries: self.entries, within: Some(Box::new(other)) }
    }

    /// Whether it allows nothing at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() || self.within.as_ref().is_some_and(|within| within.is_empty())
    }

    /// Whether it allows all hosts that an entry of another list stands for.
    pub fn covers(&self, entry: &str) -> Result<bool, BadEntry> {
        let entry = Entry::parse(entry).ok_or_else(|| BadEntry(entry.to_owned()))?;
        let ports = entry.port.map_or_else(|| WEB_PORTS.to_vec(), |port| vec![port]);
        let is_listed = |port: u16| {
            self.entries.iter().any(|listed| {
                listed.pattern.covers(&entry.pattern)
                    && listed.port.map_or(WEB_PORTS.contains(&port), |listed| listed == port)
            })
        };
        Ok(ports.into_iter().all(is_listed))
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
    /// Whether every host that fits the other one fits this one too.
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
    /// A host without its port. Nothing that passes can be misread as more than a host by anybody.
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

/// As a resolver takes it.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Takes a host and its port apart, if it has one.
pub(super) fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    match authority.rsplit_once(':') {
        // The colons of an address belong to it: it has brackets around it where a port follows.
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
