//! The head of a request: what is wanted, and of whom.
//!
//! It is read strictly: what two readers could understand in two ways is refused, and what is passed on is written
//! anew from what was understood.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::Answer;
use crate::outside::allow_list::{Host, split};

const HEAD_BYTES: usize = 16 << 10;

const END: &[u8] = b"\r\n\r\n";

/// Headers that are between the program and the proxy, or that the proxy writes itself.
const NOT_PASSED_ON: [&str; 10] = [
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
pub(super) struct Head {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) target: Target,
    /// How long what follows it is; nothing is known of that in a tunnel.
    pub(super) body_bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Tunnel,
    Resource {
        method: String,
        /// `HTTP/1.0` or `HTTP/1.1`: who speaks the older one must not be answered in chunks.
        version: String,
        /// Host and port, as the program has written them.
        authority: String,
        /// The path and the query.
        path: String,
        /// Those that are passed on.
        headers: Vec<(String, String)>,
    },
}

/// Reads a head, and what has come after it.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Result<(Head, Vec<u8>), Answer>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(END.len()).position(|window| window == END) {
            let rest = bytes.split_off(end + END.len());
            bytes.truncate(end);
            return Ok(parse(&bytes).map(|head| (head, rest)));
        }
        if bytes.len() >= HEAD_BYTES {
            return Ok(Err(Answer::new(431, format!("the head of a request may have {HEAD_BYTES} bytes"))));
        }
        if from.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Understands a head, without the empty line at its end.
fn parse(bytes: &[u8]) -> Result<Head, Answer> {
    let bad = |what: &str| Answer::new(400, format!("the request is not valid: {what}"));
    let text = std::str::from_utf8(bytes).map_err(|_| bad("it is not UTF-8"))?;
    let mut lines = text.split("\r\n");
    if text.replace("\r\n", "").contains(|character: char| character.is_control() && character != '\t') {
        return Err(bad("it has a control character in it"));
    }
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version @ ("HTTP/1.1" | "HTTP/1.0")] = first[..] else {
        return Err(bad("its first line is not `METHOD TARGET HTTP/1.1`"));
    };
    if !is_token(method) {
        return Err(bad("its method is no word"));
    }
    let headers = lines.map(|line| header(line).ok_or_else(|| bad("one of its headers is not `Name: value`")));
    let headers: Vec<(&str, &str)> = headers.collect::<Result<_, _>>()?;
    if method == "CONNECT" {
        let (host, port) = authority(target).ok_or_else(|| bad("CONNECT takes a host and a port"))?;
        let port = port.ok_or_else(|| bad("CONNECT takes a host and a port"))?;
        return Ok(Head { host, port, target: Target::Tunnel, body_bytes: 0 });
    }
    let rest = strip_scheme(target).ok_or_else(|| bad("a proxy takes http://HOST/PATH, and CONNECT for https"))?;
    let (named, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (host, port) = authority(named).ok_or_else(|| bad("its target names no host"))?;
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let target = Target::Resource {
        method: method.to_owned(),
        version: version.to_owned(),
        authority: named.to_owned(),
        path: format!("{slash}{path}"),
        headers: passed_on(&headers),
    };
    Ok(Head { host, port: port.unwrap_or(80), target, body_bytes: body_bytes(&headers)? })
}

fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_at_checked("http://".len())?;
    scheme.eq_ignore_ascii_case("http://").then_some(rest)
}

fn authority(text: &str) -> Option<(Host, Option<u16>)> {
    let (host, port) = split(text)?;
    Some((Host::parse(host)?, port))
}

fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    is_token(name).then(|| (name, value.trim_matches([' ', '\t'])))
}

fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

fn values<'a>(headers: &'a [(&str, &'a str)], wanted: &'a str) -> impl Iterator<Item = &'a str> {
    headers.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value)
}

/// How long the body is. One in chunks would have to be taken apart to find its end; who sends one is asked for its
/// length instead.
fn body_bytes(headers: &[(&str, &str)]) -> Result<u64, Answer> {
    if values(headers, "transfer-encoding").next().is_some() {
        return Err(Answer::new(411, "send the body with a Content-Length, not in chunks"));
    }
    let mut lengths = values(headers, "content-length");
    let Some(length) = lengths.next() else { return Ok(0) };
    let number = length.parse().ok().filter(|_| length.bytes().all(|byte| byte.is_ascii_digit()));
    match (number, lengths.next()) {
        (Some(number), None) => Ok(number),
        _ => Err(Answer::new(400, "the request is not valid: it needs one Content-Length, which is a number")),
    }
}

fn passed_on(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    let named: Vec<String> = values(headers, "connection")
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let passes = |name: &str| !NOT_PASSED_ON.contains(&name) && !named.iter().any(|other| other == name);
    let kept = headers.iter().filter(|(name, _)| passes(&name.to_ascii_lowercase()));
    kept.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

impl Head {
    /// The head as the host itself gets it.
    pub(super) fn to_origin(&self) -> String {
        let Target::Resource { method, version, authority, path, headers } = &self.target else {
            return String::new();
        };
        let mut text = format!("{method} {path} {version}\r\nHost: {authority}\r\n");
        for (name, value) in headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        // A method that comes with a body says so even where it is empty.
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
