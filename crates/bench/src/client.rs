//! A minimal HTTP/1.1 client: one kept-alive connection, requests rendered beforehand, nothing allocated per request.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Long enough for any call that succeeds; a stalled server must end the bench, not hang it.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub struct Response<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl Connection {
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server takes connections");
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        stream.set_read_timeout(Some(PATIENCE)).expect("a read time-out can be set");
        Self { stream, buffer: vec![0; 16 * 1024] }
    }

    /// Sends one rendered request and waits for its whole response.
    pub fn exchange(&mut self, request: &[u8]) -> Response<'_> {
        self.stream.write_all(request).expect("the server reads the request");
        let mut filled = 0;
        let head = loop {
            filled += self.read_more(filled);
            if let Some(head) = Head::parse(&self.buffer[..filled]) {
                break head;
            }
        };
        let end = head.length + head.body_length;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        while filled < end {
            filled += self.read_more(filled);
        }
        assert_eq!(filled, end, "the server sent more than the response's Content-Length");
        Response { status: head.status, body: &self.buffer[head.length..end] }
    }

    fn read_more(&mut self, filled: usize) -> usize {
        if filled == self.buffer.len() {
            self.buffer.resize(2 * filled, 0);
        }
        let count = self.stream.read(&mut self.buffer[filled..]).expect("the server answers in time");
        assert!(count > 0, "the server closed a kept-alive connection");
        count
    }
}

struct Head {
    status: u16,
    length: usize,
    body_length: usize,
}

impl Head {
    /// Reads a response's head; `None` while it is incomplete.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let text = str::from_utf8(&bytes[..end]).expect("a response's head is ASCII");
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok())
            .unwrap_or_else(|| panic!("not an HTTP/1.1 response: {text}"));
        let body_length = lines
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.trim().parse().ok())
            .unwrap_or_else(|| panic!("a response without Content-Length: {text}"));
        Some(Self { status, length: end + 4, body_length })
    }
}

/// Renders a request with a JSON body.
pub fn render(method: &str, path: &str, token: Option<&str>, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    if let Some(token) = token {
        let _ = write!(request, "Authorization: Bearer {token}\r\n");
    }
    let _ = write!(request, "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    request.into_bytes()
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
