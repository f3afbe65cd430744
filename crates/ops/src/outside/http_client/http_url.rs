//! Addresses that the client accepts.

use http::HeaderValue;
use std::fmt;
use url::{Host, Origin, Url};

/// Maximum length of an address.
const MAX_URL_BYTES: usize = 8 << 10;

/// An address of the web: `http` or `https`, with a host, without a user name. It has no fragment, which is never sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl(Url);

/// Why a text is no address that the client accepts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// It cannot be parsed.
    #[error("{0:?} is not a valid address; expected one such as https://example.com/page")]
    Malformed(String),
    /// It has another scheme.
    #[error("only http and https addresses can be reached, not {0}:")]
    Scheme(String),
    /// It has a user name or a password.
    #[error("an address must not have a user name or a password; send credentials in a header instead")]
    UserInfo,
    /// It is too long.
    #[error("an address may have at most {MAX_URL_BYTES} bytes")]
    TooLong,
    /// It has characters that parsers of addresses treat differently.
    #[error("{0:?} has a space, a backslash or a control character; write it in percent-encoding")]
    Ambiguous(String),
}

impl HttpUrl {
    /// Parses an address.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let text = text.trim();
        check_text(text)?;
        Self::checked(Url::parse(text).map_err(|_| BadUrl::Malformed(text.to_owned()))?)
    }

    /// Resolves a reference, such as the target of a redirect.
    pub fn join(&self, reference: &str) -> Result<Self, BadUrl> {
        check_text(reference)?;
        Self::checked(self.0.join(reference).map_err(|_| BadUrl::Malformed(reference.to_owned()))?)
    }

    /// Parses an address that is part of the program.
    #[allow(clippy::expect_used, reason = "a test parses each of these addresses")]
    pub fn fixed(text: &'static str) -> Self {
        Self::parse(text).expect("an address of the program is valid")
    }

    fn checked(mut url: Url) -> Result<Self, BadUrl> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUrl::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadUrl::UserInfo);
        }
        // One dot may follow a name. With more of them it would be another name for rules than for the resolver.
        let name = url.host_str().map(|host| host.strip_suffix('.').unwrap_or(host));
        if name.is_none_or(|name| name.is_empty() || name.ends_with('.')) {
            return Err(BadUrl::Malformed(url.to_string()));
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns the host, without brackets.
    pub fn host(&self) -> String {
        match self.0.host() {
            Some(Host::Domain(name)) => name.strip_suffix('.').unwrap_or(name).to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            // An address without a host is not accepted.
            None => String::new(),
        }
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// Returns the host, with the port if it is not the usual one of the scheme.
    pub fn host_and_port(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        let host = host.strip_suffix('.').unwrap_or(host);
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns the value of the field `Host`.
    pub(super) fn host_field(&self) -> Result<HeaderValue, BadUrl> {
        HeaderValue::from_str(&self.host_and_port()).map_err(|_| BadUrl::Malformed(self.to_string()))
    }

    /// Returns what a request asks the host for.
    pub(crate) fn path_and_query(&self) -> String {
        let query = self.0.query().map_or_else(String::new, |query| format!("?{query}"));
        format!("{}{query}", self.0.path())
    }

    /// Returns the path, in percent-encoding.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// Returns the scheme, the host and the port together.
    pub(crate) fn origin(&self) -> Origin {
        self.0.origin()
    }

    /// Returns the address of a path below this one. Each segment is percent-encoded.
    #[must_use]
    pub fn below<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Self {
        let mut url = self.0.clone();
        url.set_query(None);
        // Only addresses without a host have no path.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        Self(url)
    }

    /// Returns the address of another path of the same host.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        let mut url = self.0.clone();
        url.set_path(path);
        url.set_query(None);
        Self(url)
    }

    /// Adds parameters to the query.
    #[must_use]
    pub fn with_query<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut url = self.0.clone();
        url.query_pairs_mut().extend_pairs(pairs);
        Self(url)
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn check_text(text: &str) -> Result<(), BadUrl> {
    if text.len() > MAX_URL_BYTES {
        return Err(BadUrl::TooLong);
    }
    let is_ambiguous = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if text.contains(is_ambiguous) {
        return Err(BadUrl::Ambiguous(text.to_owned()));
    }
    Ok(())
}
