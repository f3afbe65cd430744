//! A small HTTP/1.1 client that shows tests exactly what is sent and received.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::description::check_answer;
use crate::reply::Reply;
use crate::schemas::check_tool_call;

/// The longest wait for an answer. Longer than any deadline of the server.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// An HTTP request.
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

    /// Sends the body in chunks, without a Content-Length.
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

    /// Returns the bytes that are sent.
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

/// A client with a pool of keep-alive connections, which clones share.
#[derive(Clone)]
pub struct Client {
    address: String,
    idle: Arc<Mutex<Vec<TcpStream>>>,
    checks_schemas: bool,
}

impl Client {
    /// `address` is `HOST:PORT`.
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), idle: Arc::default(), checks_schemas: true }
    }

    /// Returns a client that does not validate tool calls against their schemas, which would take time in a benchmark.
    #[must_use]
    pub fn without_schema_checks(self) -> Self {
        Self { checks_schemas: false, ..self }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request and reads the answer; panics if there is none.
    #[track_caller]
    pub fn send(&self, request: Request) -> impl Future<Output = Reply> {
        let caller = std::panic::Location::caller();
        async move {
            self.try_send(&request)
                .await
                .unwrap_or_else(|error| panic!("{} {} at {caller}: no answer: {error}", request.method, request.path))
        }
    }

    /// Sends a request once and reads the answer; an error is a broken connection.
    pub async fn try_send(&self, request: &Request) -> io::Result<Reply> {
        let reply = self.exchange(request).await?;
        if self.checks_schemas {
            let body = request.body.as_deref().unwrap_or_default();
            check_tool_call(self, &request.method, &request.path, body, &reply).await;
            check_answer(self, &request.method, &request.path, &reply).await;
        }
        Ok(reply)
    }

    pub(crate) async fn exchange(&self, request: &Request) -> io::Result<Reply> {
        let answer = self.exchange_bytes(&request.to_bytes()).await?;
        let text = String::from_utf8(answer.body).map_err(|_| io::Error::other("the body is not UTF-8"))?;
        assert!(
            !text.contains("password_hash") && !text.contains("$argon2"),
            "{} {} returned a password hash: {text}",
            request.method,
            request.path
        );
        Ok(Reply { status: answer.status, headers: answer.headers, text, request: request.summary() })
    }

    /// Sends a request as it is and reads the answer, without any check of either.
    pub async fn exchange_bytes(&self, request: &[u8]) -> io::Result<RawReply> {
        tokio::time::timeout(ANSWER_LIMIT, self.exchange_unbounded(request)).await.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {ANSWER_LIMIT:?}")))
        })
    }

    async fn exchange_unbounded(&self, request: &[u8]) -> io::Result<RawReply> {
        let mut stream = self.connection().await?;
        let (mut reader, mut writer) = stream.split();
        // The answer may come before the whole request is sent, e.g. if the body is too long.
        let mut is_written = false;
        let answer = {
            let read = read_answer(&mut reader);
            tokio::pin!(read);
            tokio::select! {
                biased;
                answer = &mut read => answer,
                written = writer.write_all(request) => {
                    is_written = written.is_ok();
                    read.await
                }
            }
        }?;
        if is_written && answer.keeps_alive {
            self.idle.lock().unwrap().push(stream);
        }
        Ok(answer)
    }

    async fn connection(&self) -> io::Result<TcpStream> {
        loop {
            let idle = self.idle.lock().unwrap().pop();
            let Some(stream) = idle else { break };
            // Reading shows whether the server has closed the connection, so that no request has to be sent twice.
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

/// An answer as received.
#[derive(Debug)]
pub struct RawReply {
    pub status: u16,
    /// Names in lower case, in the order received.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    keeps_alive: bool,
}

async fn read_answer(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<RawReply> {
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
        return Ok(RawReply { status, headers, body, keeps_alive });
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

/// The bytes of an answer that were received and not parsed yet.
struct Buffer<'a, R> {
    reader: &'a mut R,
    bytes: Vec<u8>,
    start: usize,
}

impl<'a, R: AsyncRead + Unpin> Buffer<'a, R> {
    fn new(reader: &'a mut R) -> Self {
        Self { reader, bytes: Vec::with_capacity(8192), start: 0 }
    }

    /// Reads more; returns false at the end of the stream.
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
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed before the end of the answer"))
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
