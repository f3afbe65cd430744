//! A small HTTP/1.1 client, so that tests see exactly what is on the wire.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::reply::Reply;
use crate::schemas::check_tool_call;

/// Longer than any deadline of the server: past it the server hangs.
const HANG: Duration = Duration::from_secs(60);

/// A request to be sent.
#[derive(Debug, Clone)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    chunked: bool,
}

impl Request {
    pub fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: None, chunked: false }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    /// Sets a JSON body and its content type.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("Content-Type", "application/json").body(body.to_string())
    }

    /// Sets a body as it is, with no content type.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends the body in chunks, without saying its length first.
    #[must_use]
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// Describes the request for the message of a failing test.
    fn summary(&self) -> String {
        let body = String::from_utf8_lossy(self.body.as_deref().unwrap_or_default());
        let body: String = body.chars().take(300).collect();
        format!("{} {} {body}", self.method, self.path)
    }

    /// Gives the bytes that go over the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += "Host: localhost\r\n";
        }
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let body = self.body.as_deref().unwrap_or_default();
        if self.chunked {
            head += "Transfer-Encoding: chunked\r\n\r\n";
            let mut bytes = head.into_bytes();
            for chunk in body.chunks(64 * 1024) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            return bytes;
        }
        if self.body.is_some() {
            let _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        bytes
    }
}

/// A client with keep-alive connections; clones share them, each request in flight has one of its own.
#[derive(Clone)]
pub struct Client {
    address: String,
    idle: Arc<Mutex<Vec<TcpStream>>>,
}

impl Client {
    /// `address` is `HOST:PORT`.
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), idle: Arc::default() }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request and reads the answer; panics when there is none.
    #[track_caller]
    pub fn send(&self, request: Request) -> impl Future<Output = Reply> {
        let caller = std::panic::Location::caller();
        async move {
            self.try_send(&request)
                .await
                .unwrap_or_else(|error| panic!("{} {} at {caller}: no answer: {error}", request.method, request.path))
        }
    }

    /// Sends a request and reads the answer; never sends it twice.
    pub async fn try_send(&self, request: &Request) -> io::Result<Reply> {
        let reply = tokio::time::timeout(HANG, self.exchange(request))
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {HANG:?}"))))?;
        let body = request.body.as_deref().unwrap_or_default();
        check_tool_call(self, &request.method, &request.path, body, &reply).await;
        Ok(reply)
    }

    pub(crate) async fn exchange(&self, request: &Request) -> io::Result<Reply> {
        let mut stream = self.connection().await?;
        let bytes = request.to_bytes();
        let (mut reader, mut writer) = stream.split();
        // An answer may come before the request is read whole (a body that is too long).
        let mut is_written = false;
        let answer = {
            let read = read_answer(&mut reader);
            tokio::pin!(read);
            tokio::select! {
                biased;
                answer = &mut read => answer,
                written = writer.write_all(&bytes) => {
                    is_written = written.is_ok();
                    read.await
                }
            }
        }?;
        if is_written && answer.keeps_alive {
            self.idle.lock().unwrap().push(stream);
        }
        let text = String::from_utf8(answer.body).map_err(|_| io::Error::other("the body is not UTF-8"))?;
        assert!(
            !text.contains("password_hash") && !text.contains("$argon2"),
            "{} {} gave away a password hash: {text}",
            request.method,
            request.path
        );
        Ok(Reply { status: answer.status, headers: answer.headers, text, request: request.summary() })
    }

    async fn connection(&self) -> io::Result<TcpStream> {
        loop {
            let idle = self.idle.lock().unwrap().pop();
            let Some(stream) = idle else { break };
            // A closed connection shows it before use, so that no request needs to be sent a second time.
            let state = stream.try_read(&mut [0; 1]);
            if matches!(&state, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                return Ok(stream);
            }
        }
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    keeps_alive: bool,
}

async fn read_answer(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Answer> {
    let mut buffer = Buffer::new(reader);
    loop {
        let (status, headers) = read_head(&mut buffer).await?;
        if status == 100 {
            continue;
        }
        let header =
            |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.to_ascii_lowercase());
        let mut keeps_alive = header("connection").as_deref() != Some("close");
        let body = if status == 204 || status == 304 {
            Vec::new()
        } else if header("transfer-encoding").as_deref() == Some("chunked") {
            read_chunks(&mut buffer).await?
        } else if let Some(length) = header("content-length") {
            let length = length.parse().map_err(|_| malformed(&format!("content-length {length}")))?;
            buffer.take(length).await?
        } else {
            keeps_alive = false;
            buffer.take_to_end().await?
        };
        return Ok(Answer { status, headers, body, keeps_alive });
    }
}

async fn read_head<R: AsyncRead + Unpin>(buffer: &mut Buffer<'_, R>) -> io::Result<(u16, Vec<(String, String)>)> {
    let line = buffer.line().await?;
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| malformed(&line))?;
    let mut headers = Vec::new();
    loop {
        let line = buffer.line().await?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed(&line))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

async fn read_chunks<R: AsyncRead + Unpin>(buffer: &mut Buffer<'_, R>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = buffer.line().await?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(digits, 16).map_err(|_| malformed(&line))?;
        if length == 0 {
            while !buffer.line().await?.is_empty() {}
            return Ok(body);
        }
        body.extend(buffer.take(length).await?);
        let end = buffer.line().await?;
        if !end.is_empty() {
            return Err(malformed(&end));
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed answer: {what}"))
}

/// Bytes of an answer as they arrive.
struct Buffer<'a, R> {
    reader: &'a mut R,
    bytes: Vec<u8>,
    start: usize,
}

impl<'a, R: AsyncRead + Unpin> Buffer<'a, R> {
    fn new(reader: &'a mut R) -> Self {
        Self { reader, bytes: Vec::with_capacity(8192), start: 0 }
    }

    /// Reads more; false at the end of the stream.
    async fn fill(&mut self) -> io::Result<bool> {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.reserve(8192);
        Ok(self.reader.read_buf(&mut self.bytes).await? > 0)
    }

    async fn fill_or_fail(&mut self) -> io::Result<()> {
        if self.fill().await? {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed before the answer was whole"))
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            let unread = &self.bytes[self.start..];
            if let Some(end) = unread.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8_lossy(&unread[..end]).into_owned();
                self.start += end + 2;
                return Ok(line);
            }
            self.fill_or_fail().await?;
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.bytes.len() - self.start < length {
            self.fill_or_fail().await?;
        }
        let taken = self.bytes[self.start..self.start + length].to_vec();
        self.start += length;
        Ok(taken)
    }

    async fn take_to_end(&mut self) -> io::Result<Vec<u8>> {
        while self.fill().await? {}
        Ok(std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
