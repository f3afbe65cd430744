//! Which hosts and web origins a request may name.
//!
//! A browser lets any web page send requests to this server: directly, which its `Origin` shows, or under a name of the
//! page's own that was made to resolve to the server's address (DNS rebinding), which its `Host` shows. Programs that
//! are not browsers send no `Origin` and name the server as they know it.

use super::request::cookie;
use crate::settings::Settings;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use std::net::{IpAddr, SocketAddr};
use toolrest_core::{ErrorKind, Result, ToolError};

/// Maximum length of a DNS name.
const NAME_BYTES: usize = 253;

/// Time for which a browser may cache the answer of a preflight request.
const PREFLIGHT_SECONDS: &str = "600";

/// A host in comparable form: an address, or a name in lower case without a final dot.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Parses a host and its port.
    fn with_port(text: &str) -> Option<(Self, Option<u16>)> {
        let (host, port) = match text.rsplit_once(':') {
            // The colons of an IPv6 address are within brackets.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        let is_number = |port: &&str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            Some(port) => Some(port.parse().ok().filter(|_| is_number(&port))?),
            None => None,
        };
        Some((Self::parse(host)?, port))
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(address) = text.strip_prefix('[') {
            let address: IpAddr = address.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(address.to_canonical()));
        }
        if let Ok(IpAddr::V4(address)) = text.parse() {
            return Some(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_part);
        (name.len() <= NAME_BYTES && name.split('.').all(is_label)).then(|| Self::Name(name.to_ascii_lowercase()))
    }

    fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(address) => address.is_loopback(),
        }
    }
}

/// An entry of `server.allowed_hosts`: one name or address, all names below a name, or any host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostPattern {
    Any,
    Below(String),
    One(String),
}

impl HostPattern {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        let (top, is_below) = text.strip_prefix("*.").map_or((text, false), |top| (top, true));
        match Host::parse(top)? {
            Host::Name(name) if is_below => Some(Self::Below(format!(".{name}"))),
            Host::Name(name) => Some(Self::One(name)),
            Host::Address(_) if is_below => None,
            Host::Address(address) => Some(Self::One(address.to_string())),
        }
    }

    fn fits(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Below(top), Host::Name(name)) => name.len() > top.len() && name.ends_with(top.as_str()),
            (Self::Below(_), Host::Address(_)) => false,
            (Self::One(listed), Host::Name(name)) => listed == name,
            (Self::One(listed), Host::Address(address)) => *listed == address.to_string(),
        }
    }
}

/// The origin of a web page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    is_https: bool,
    host: Host,
    port: u16,
}

impl Origin {
    /// Parses an origin. `null`, which pages without an origin send, is refused.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_https = match scheme {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let (host, port) = Host::with_port(rest)?;
        Some(Self { is_https, host, port: port.unwrap_or(default_port(is_https)) })
    }

    /// Whether it is the origin of this server, by the name under which the request reached it.
    fn is_at(&self, (host, port): &(Host, Option<u16>)) -> bool {
        // A proxy in front of the server may use HTTPS, so the default port depends on the page's scheme.
        self.host == *host && self.port == port.unwrap_or(default_port(self.is_https))
    }
}

fn default_port(is_https: bool) -> u16 {
    if is_https { 443 } else { 80 }
}

/// The hosts and origins that requests may name.
pub(crate) struct HostRules {
    /// Whether the server listens on a loopback address only.
    is_loopback: bool,
    hosts: Vec<HostPattern>,
    origins: Vec<Origin>,
}

/// The origin of a request, which `server.allowed_origins` lists.
pub(crate) struct ListedOrigin(HeaderValue);

impl HostRules {
    pub(crate) fn new(settings: &Settings, address: SocketAddr) -> Self {
        let server = &settings.server;
        Self {
            is_loopback: address.ip().to_canonical().is_loopback(),
            // The settings were checked when they were read.
            hosts: server.allowed_hosts.iter().filter_map(|name| HostPattern::parse(name)).collect(),
            origins: server.allowed_origins.iter().filter_map(|origin| Origin::parse(origin)).collect(),
        }
    }

    /// Allows loopback names only, whatever the settings list.
    #[must_use]
    pub(crate) fn loopback_only(self) -> Self {
        Self { is_loopback: true, hosts: Vec::new(), ..self }
    }

    /// Refuses a request whose host or origin is not allowed. Returns the origin if it is another site's.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<Option<ListedOrigin>> {
        let host = self.host(request)?;
        let mut origins = request.headers().get_all(header::ORIGIN).iter();
        let Some(value) = origins.next() else { return Ok(None) };
        let refused = || {
            let message = format!(
                "Requests from the web page {} are refused; its origin is neither this server's own nor listed in \
                 server.allowed_origins",
                shown(value)
            );
            ToolError::new(ErrorKind::Forbidden, message)
        };
        let origin = value.to_str().ok().and_then(Origin::parse).filter(|_| origins.next().is_none());
        let origin = origin.ok_or_else(refused)?;
        if host.is_some_and(|host| origin.is_at(&host)) {
            return Ok(None);
        }
        if self.origins.contains(&origin) { Ok(Some(ListedOrigin(value.clone()))) } else { Err(refused()) }
    }

    /// Returns the host that a request names; `None` only for HTTP/1.0, which allows requests without a host.
    fn host<B>(&self, request: &Request<B>) -> Result<Option<(Host, Option<u16>)>> {
        let mut given = request.headers().get_all(header::HOST).iter();
        let named = given.next();
        if given.next().is_some() {
            return Err(ToolError::new(ErrorKind::InvalidArgument, "The header Host is given more than once"));
        }
        let in_target = request.uri().authority().map(|authority| HeaderValue::from_str(authority.as_str()));
        let in_target = in_target.transpose().map_err(ToolError::internal)?;
        if named.is_none() && in_target.is_none() {
            if request.version() <= Version::HTTP_10 {
                return Ok(None);
            }
            return Err(ToolError::new(ErrorKind::InvalidArgument, "The header Host is missing"));
        }
        let mut host = None;
        // If the target is an absolute URL, its host counts; the header must be allowed too.
        for value in named.into_iter().chain(&in_target) {
            let parsed = value.to_str().ok().and_then(Host::with_port);
            let parsed = parsed.filter(|(host, _)| self.allows(host)).ok_or_else(|| {
                let message = format!(
                    "The host {} is not one of this server's; name it by its address, or list the host in \
                     server.allowed_hosts",
                    shown(value)
                );
                ToolError::new(ErrorKind::Forbidden, message)
            })?;
            host = Some(parsed);
        }
        Ok(host)
    }

    fn allows(&self, host: &Host) -> bool {
        // Unlike a name, an address cannot be made to resolve to another address.
        let is_address = matches!(host, Host::Address(_)) && !self.is_loopback;
        is_address || host.is_loopback() || self.hosts.iter().any(|pattern| pattern.fits(host))
    }
}

/// The header that pages of this server send with changes. A page of another site cannot send it.
static REQUESTED_WITH: HeaderName = HeaderName::from_static("x-requested-with");

/// Refuses a change that a browser sends with the cookies of a session but without the header `X-Requested-With`.
///
/// The origin is checked as well. Programs send no `Origin`, and nobody can make them send a request with a cookie.
pub(crate) fn check_cookie_use<B>(request: &Request<B>) -> Result<()> {
    let headers = request.headers();
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let has_cookie = ["access_token", "refresh_token"].iter().any(|name| cookie(headers, name).is_some());
    let is_from_browser = headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site");
    let is_by_cookie = is_from_browser && has_cookie && !headers.contains_key(header::AUTHORIZATION);
    if is_change && is_by_cookie && !headers.contains_key(&REQUESTED_WITH) {
        let message =
            "A web page that changes something with the cookies of a session must send the header X-Requested-With";
        return Err(ToolError::new(ErrorKind::Forbidden, message));
    }
    Ok(())
}

/// Returns the value of a header for a message, shortened and without control characters.
fn shown(value: &HeaderValue) -> String {
    const MAX_CHARS: usize = 100;
    let text = String::from_utf8_lossy(value.as_bytes());
    format!("'{}'", text.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect::<String>())
}

impl ListedOrigin {
    /// Returns the answer to a preflight request, if the request is one.
    pub(crate) fn preflight<B, R: Default>(request: &Request<B>) -> Option<Response<R>> {
        let asks = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if request.method() != Method::OPTIONS || !asks {
            return None;
        }
        let mut response = Response::new(R::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
            (
                header::ACCESS_CONTROL_ALLOW_HEADERS,
                "authorization, content-type, range, x-correlation-id, x-request-id",
            ),
            (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Some(response)
    }

    /// Adds the headers that let the page read the answer.
    pub(crate) fn allow_reading(self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        let exposed = HeaderValue::from_static("content-range, retry-after, x-correlation-id, x-request-id");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
