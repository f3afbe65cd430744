//! Parsing the head of a proxy request.
//!
//! Parsing is strict: a head that two servers could understand differently is refused. The head that is forwarded is
//! written anew from the parsed values.

use std::io;

use httparse::Status;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::Answer;
use crate::outside::allow_list::{Host, split};

const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 128;

/// Headers that only concern the connection to the proxy, or that the proxy writes itself.
const NOT_FORWARDED: [&str; 10] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) target: Target,
    /// Length of the body; 0 for a tunnel, whose contents are unknown.
    pub(super) body_bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Tunnel,
    Resource {
        method: String,
        /// `HTTP/1.0` or `HTTP/1.1`; a client of the older version must not get an answer in chunks.
        version: &'static str,
        /// Host and port, as the program has written them.
        authority: String,
        /// Path and query.
        path: String,
        /// The headers to forward.
        headers: Vec<(String, String)>,
    },
}

/// Reads a head, and returns it with the bytes received after it.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Result<(RequestHead, Vec<u8>), Answer>> {
    let mut bytes = Vec::with_capacity(1 << 10);
    loop {
        if from.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match parse(&bytes) {
            Ok(Some((head, length))) => return Ok(Ok((head, bytes.split_off(length)))),
            Ok(None) if bytes.len() < MAX_HEAD_BYTES => {}
            Ok(None) => {
                let message = format!("the head of a request may have {MAX_HEAD_BYTES} bytes");
                return Ok(Err(Answer::new(431, message)));
            }
            Err(answer) => return Ok(Err(answer)),
        }
    }
}

fn invalid(reason: impl std::fmt::Display) -> Answer {
    Answer::new(400, format!("the request is not valid: {reason}"))
}

/// Parses a head and returns it with its length; `None` if its end is missing.
fn parse(bytes: &[u8]) -> Result<Option<(RequestHead, usize)>, Answer> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Answer::new(431, format!("a request may have {MAX_HEADERS} headers")));
        }
        Err(error) => return Err(invalid(error)),
    };
    // httparse accepts a line feed alone as the end of a line, which other servers may treat as part of the line.
    if has_bare_line_feed(&bytes[..length]) {
        return Err(invalid("a line does not end with CR LF"));
    }
    let (Some(method), Some(target), Some(minor_version)) = (request.method, request.path, request.version) else {
        return Err(invalid("its first line is not `METHOD TARGET HTTP/1.1`"));
    };
    let headers = request.headers.iter().map(|header| {
        let value = str::from_utf8(header.value).map_err(|_| invalid("a header is not UTF-8"))?;
        Ok((header.name, value))
    });
    let headers: Vec<(&str, &str)> = headers.collect::<Result<_, _>>()?;
    let version = if minor_version == 0 { "HTTP/1.0" } else { "HTTP/1.1" };
    Ok(Some((head(method, target, version, &headers)?, length)))
}

fn has_bare_line_feed(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|position| position == 0 || bytes[position - 1] != b'\r')
}

fn head(method: &str, target: &str, version: &'static str, headers: &[(&str, &str)]) -> Result<RequestHead, Answer> {
    if method == "CONNECT" {
        let (host, port) = authority(target).ok_or_else(|| invalid("CONNECT needs a host and a port"))?;
        let port = port.ok_or_else(|| invalid("CONNECT needs a host and a port"))?;
        return Ok(RequestHead { host, port, target: Target::Tunnel, body_bytes: 0 });
    }
    let rest = strip_scheme(target).ok_or_else(|| invalid("a proxy takes http://HOST/PATH, and CONNECT for https"))?;
    let (named, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (host, port) = authority(named).ok_or_else(|| invalid("its target has no valid host"))?;
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let target = Target::Resource {
        method: method.to_owned(),
        version,
        authority: named.to_owned(),
        path: format!("{slash}{path}"),
        headers: forwarded(headers),
    };
    Ok(RequestHead { host, port: port.unwrap_or(80), target, body_bytes: body_bytes(headers)? })
}

fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_at_checked("http://".len())?;
    scheme.eq_ignore_ascii_case("http://").then_some(rest)
}

fn authority(text: &str) -> Option<(Host, Option<u16>)> {
    let (host, port) = split(text)?;
    Some((Host::parse(host)?, port))
}

fn values<'a>(headers: &'a [(&str, &'a str)], wanted: &'a str) -> impl Iterator<Item = &'a str> {
    headers.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value)
}

/// Returns the length of the body. A body in chunks is refused, because its end is only found by parsing all chunks.
fn body_bytes(headers: &[(&str, &str)]) -> Result<u64, Answer> {
    if values(headers, "transfer-encoding").next().is_some() {
        return Err(Answer::new(411, "send the body with a Content-Length, not in chunks"));
    }
    let mut lengths = values(headers, "content-length");
    let Some(length) = lengths.next() else { return Ok(0) };
    let number = length.parse().ok().filter(|_| length.bytes().all(|byte| byte.is_ascii_digit()));
    match (number, lengths.next()) {
        (Some(number), None) => Ok(number),
        _ => Err(invalid("it must have one Content-Length, a number")),
    }
}

fn forwarded(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    let named: Vec<String> = values(headers, "connection")
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let is_forwarded = |name: &str| !NOT_FORWARDED.contains(&name) && !named.iter().any(|other| other == name);
    let kept = headers.iter().filter(|(name, _)| is_forwarded(&name.to_ascii_lowercase()));
    kept.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

impl RequestHead {
    /// Renders the head that is sent to the host.
    pub(super) fn to_origin(&self) -> String {
        let Target::Resource { method, version, authority, path, headers } = &self.target else {
            return String::new();
        };
        let mut text = format!("{method} {path} {version}\r\nHost: {authority}\r\n");
        for (name, value) in headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        // These methods have a body, so the length is sent even if it is 0.
        if self.body_bytes > 0 || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
            text.extend(["Content-Length: ", &self.body_bytes.to_string(), "\r\n"]);
        }
        text.push_str("Connection: close\r\n\r\n");
        text
    }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod head_tests;
