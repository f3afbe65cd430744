//! The command line's own connection to the user's server: one HTTP/1.1 request for each connection.

use super::failure::{Failure, Outcome};
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use std::{error::Error, time::Duration};
use tokio::net::TcpStream;

/// The body of an answer.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The address of a server: `http://host:port`, perhaps with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerUrl {
    url: String,
    /// `host:port`, with brackets around an IPv6 address.
    authority: String,
    host: String,
    port: u16,
    path: String,
}

impl ServerUrl {
    pub(super) fn parse(text: &str) -> Outcome<Self> {
        let bad = |why: &str| Failure::Usage(format!("'{text}' is not the address of a server: {why}"));
        let text = text.trim();
        if text.starts_with("https://") {
            let why = "this program connects over http only; use a tunnel or a proxy on this machine for https";
            return Err(bad(why));
        }
        let rest = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        if rest.contains("://") {
            return Err(bad("it must begin with http://"));
        }
        let uri: http::Uri = format!("http://{rest}").parse().map_err(|_| bad("write it as http://127.0.0.1:3000"))?;
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(bad("it must have neither a user nor a query"));
        }
        let port = authority.port_u16().unwrap_or(80);
        let host = authority.host().to_owned();
        if host.is_empty() {
            return Err(bad("it has no host"));
        }
        Ok(Self {
            url: format!("http://{rest}"),
            authority: authority.as_str().to_owned(),
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.url
    }

    /// Whether what is sent there stays on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    }

    /// Sends a request, whose URI is a path below the address.
    pub(super) async fn send(&self, mut request: Request<Bytes>) -> Outcome<Response<AnswerBody>> {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::Unreachable(format!(
                "cannot reach the server {}: {why}; is it running, and is the address right?",
                self.url
            ))
        };
        let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        *request.uri_mut() = format!("{}{path}", self.path).parse().map_err(|error| failed(&error))?;
        let host = HeaderValue::try_from(&self.authority).map_err(|error| failed(&error))?;
        request.headers_mut().insert(header::HOST, host);
        let connect = TcpStream::connect((self.host.as_str(), self.port));
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, connect).await;
        let stream = stream.map_err(|_| failed(&"no answer within 10 seconds"))?.map_err(|error| failed(&error))?;
        // Requests are written completely at once, so delaying packets gains nothing.
        let _ = stream.set_nodelay(true);
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| failed(&error))?;
        // Ends when the answer was read; its errors reach the reader of the answer.
        tokio::spawn(connection);
        let answer = sender.send_request(request.map(Full::new)).await.map_err(|error| failed(&error))?;
        Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
    }
}

/// An answer that was read to its end.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    /// Reads an answer to its end.
    pub(super) async fn read(response: Response<AnswerBody>) -> Outcome<Self> {
        let (parts, body) = response.into_parts();
        let broken =
            |error| Failure::Unreachable(format!("the connection broke before the answer was complete: {error}"));
        let body = body.collect().await.map_err(broken)?.to_bytes();
        Ok(Self { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status) && self.status != 202
    }

    /// Returns the body of a successful answer; otherwise the failure that it tells of.
    pub(super) fn json(&self) -> Outcome<serde_json::Value> {
        if !self.is_success() {
            return Err(self.failure());
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::Failed(format!("the server's answer is not JSON: {error}; is it a Toolrest server?"))
        })
    }

    /// Returns the failure that an answer tells of.
    pub(super) fn failure(&self) -> Failure {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        // The formats of the toolsets differ.
        let texts = ["/error/message", "/message", "/error"];
        let message = texts.iter().find_map(|pointer| body.pointer(pointer)?.as_str());
        let message = match message {
            Some(message) => super::terminal::visible(message).into_owned(),
            None => format!("the server answered with status {}", self.status),
        };
        let fields = body.get("fields").and_then(serde_json::Value::as_object);
        let fields = fields.into_iter().flatten().filter_map(|(name, text)| Some((name, text.as_str()?)));
        let fields: Vec<String> =
            fields.filter(|(_, text)| !message.contains(text)).map(|(name, text)| format!("{name}: {text}")).collect();
        let message = if fields.is_empty() { message } else { format!("{message} ({})", fields.join("; ")) };
        Failure::of_status(self.status, message)
    }
}

#[cfg(test)]
#[path = "http_client_tests.rs"]
mod tests;
