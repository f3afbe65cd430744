//! The protocol on standard input and output, passed on to a server over HTTP. For agents that only start programs.

use super::catalogue::Offer;
use futures_util::StreamExt;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinSet;
use tokio_util::codec::{FramedRead, LinesCodec};
use toolrest_ops::outside::{AddressRange, OutboundConnector};

/// Maximum length of a message of the client.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Maximum length of an answer of the server.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Number of answers that wait for the client.
const WAITING_ANSWERS: usize = 64;
/// Time that running calls have after the client has closed standard input.
const GRACE: Duration = Duration::from_secs(1);
/// The header with the label of the session.
const SESSION: &str = "mcp-session-id";

/// A server to which messages are passed on.
pub struct Remote {
    uri: Uri,
    host: String,
    port: u16,
    token: HeaderValue,
    connector: OutboundConnector,
    /// The label of the session, and the version of the protocol, which the server has told.
    session: OnceCell<(Option<HeaderValue>, Option<HeaderValue>)>,
}

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The address of the server is wrong.
    #[error("'{0}' is not the address of a server; it must be like http://127.0.0.1:3000")]
    Address(String),
    /// Encrypted connections are not built in.
    #[error("{0} needs an encrypted connection, which `toolrest mcp` cannot make; connect the agent to {0}/mcp itself")]
    Encrypted(String),
    /// The token cannot be sent.
    #[error("the variable TOOLREST_TOKEN has characters that no key or token has")]
    Token,
    /// Standard input or output failed.
    #[error("standard input or output failed: {0}")]
    Pipe(String),
}

/// What must be known about a message of the client.
#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: String,
}

impl Remote {
    /// Prepares to pass messages on to a workspace of a server.
    pub fn new(server: &str, workspace: Option<&str>, token: &str, offer: &Offer) -> Result<Self, RemoteError> {
        let wrong = || RemoteError::Address(server.to_owned());
        let base: Uri = server.trim_end_matches('/').parse().map_err(|_| wrong())?;
        match base.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(RemoteError::Encrypted(server.trim_end_matches('/').to_owned())),
            _ => return Err(wrong()),
        }
        let authority = base.authority().ok_or_else(wrong)?;
        let route = workspace.map_or_else(|| "/mcp".to_owned(), |id| format!("/api/v1/workspaces/{id}/mcp"));
        let mut query = vec![format!("read_only={}&structured={}", offer.read_only, offer.structured)];
        if !offer.toolsets.is_empty() {
            query.push(format!("toolset={}", offer.toolsets.join(",")));
        }
        let uri = format!("{}{route}?{}", base.path().trim_end_matches('/'), query.join("&"));
        let mut token = HeaderValue::try_from(format!("Bearer {}", token.trim())).map_err(|_| RemoteError::Token)?;
        token.set_sensitive(true);
        // The user of this program chose the server, so it may be anywhere.
        let everywhere: [Result<AddressRange, _>; 2] = ["0.0.0.0/0".parse(), "::/0".parse()];
        Ok(Self {
            uri: uri.parse().map_err(|_| wrong())?,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(80),
            token,
            connector: OutboundConnector {
                allow_private: everywhere.into_iter().flatten().collect(),
                ..OutboundConnector::default()
            },
            session: OnceCell::new(),
        })
    }

    /// Passes messages on until the client closes standard input. Requests run beside each other; those that run then have a
    /// second to end.
    pub async fn serve(self) -> Result<(), RemoteError> {
        let remote = Arc::new(self);
        let (answers, mut to_write) = mpsc::channel::<String>(WAITING_ANSWERS);
        let writing = tokio::spawn(async move {
            let mut output = tokio::io::stdout();
            while let Some(mut answer) = to_write.recv().await {
                answer.push('\n');
                output.write_all(answer.as_bytes()).await?;
                output.flush().await?;
            }
            Ok::<_, std::io::Error>(())
        });
        let mut lines = FramedRead::new(tokio::io::stdin(), LinesCodec::new_with_max_length(MAX_LINE_BYTES));
        let mut running = JoinSet::new();
        while let Some(line) = lines.next().await {
            let line = line.map_err(|error| RemoteError::Pipe(error.to_string()))?;
            if line.trim().is_empty() {
                continue;
            }
            let message: Message = serde_json::from_str(&line).unwrap_or_default();
            let is_first = message.method == "initialize";
            let (remote, answers) = (Arc::clone(&remote), answers.clone());
            let work = async move { remote.pass_on(line, message, &answers).await };
            if is_first {
                work.await;
            } else {
                running.spawn(work);
            }
            while running.try_join_next().is_some() {}
        }
        drop(answers);
        let ended = async { while running.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GRACE, ended).await;
        // Closing a connection has the server stop its call.
        running.shutdown().await;
        let written = writing.await.map_err(|error| RemoteError::Pipe(error.to_string()))?;
        written.map_err(|error| RemoteError::Pipe(error.to_string()))
    }

    /// Sends a message, and passes the answers on. A failure is the answer to a request.
    async fn pass_on(&self, line: String, message: Message, answers: &mpsc::Sender<String>) {
        let failure = match self.post(line).await {
            Ok(response) if response.status().is_success() => self.relay(&message, response, answers).await,
            Ok(response) => Err(refusal(response).await),
            Err(error) => Err(error),
        };
        if let (Err(reason), Some(id)) = (failure, message.id) {
            let error = json!({ "code": -32603, "message": reason });
            let _ = answers.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()).await;
        }
    }

    async fn post(&self, line: String) -> Result<Response<Incoming>, String> {
        let stream = self.connector.connect(&self.host, self.port).await.map_err(|error| error.to_string())?;
        // A message is written at once, so delaying packets gains nothing.
        let _ = stream.set_nodelay(true);
        let broken = |error: hyper::Error| format!("the connection to {} broke: {error}", self.host);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
        let host = if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        };
        let mut request = Request::post(self.uri.clone())
            .header(header::HOST, host)
            .header(header::AUTHORIZATION, self.token.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        if let Some((session, version)) = self.session.get() {
            let told = [(SESSION, session), ("mcp-protocol-version", version)];
            for (name, value) in told.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))) {
                request = request.header(name, value);
            }
        }
        let request = request.body(Full::new(Bytes::from(line))).map_err(|error| error.to_string())?;
        sender.send_request(request).await.map_err(broken)
    }

    /// Notes what later requests repeat: the label of the session, and the version of the protocol.
    fn note_session(&self, label: Option<HeaderValue>, answer: &Value) {
        let version = answer["result"]["protocolVersion"].as_str();
        let version = version.and_then(|version| HeaderValue::try_from(version).ok());
        let _ = self.session.set((label, version));
    }

    /// Passes on the answers of a response: one, or those of an event stream.
    async fn relay(
        &self,
        message: &Message,
        response: Response<Incoming>,
        answers: &mpsc::Sender<String>,
    ) -> Result<(), String> {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.starts_with("text/event-stream");
        let label = response.headers().get(SESSION).cloned();
        let mut body = response.into_body();
        let mut bytes: Vec<u8> = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| format!("the answer of {} broke off: {error}", self.host))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > MAX_ANSWER_BYTES {
                return Err(format!("the answer of {} has more than {MAX_ANSWER_BYTES} bytes", self.host));
            }
            bytes.extend_from_slice(&data);
            if is_stream {
                for event in complete_events(&mut bytes) {
                    let _ = answers.send(event).await;
                }
            }
        }
        if !is_stream && !bytes.is_empty() {
            let answer: Value =
                serde_json::from_slice(&bytes).map_err(|error| format!("{} sent no message: {error}", self.host))?;
            if message.method == "initialize" {
                self.note_session(label, &answer);
            }
            let _ = answers.send(answer.to_string()).await;
        }
        Ok(())
    }
}

/// Takes the data of the events that have arrived completely.
fn complete_events(bytes: &mut Vec<u8>) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(end) = bytes.windows(2).position(|pair| pair == b"\n\n") {
        let event: Vec<u8> = bytes.drain(..end + 2).collect();
        let text = String::from_utf8_lossy(&event).into_owned();
        let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start).collect();
        if !data.concat().is_empty() {
            events.push(data.join(""));
        }
    }
    events
}

/// Returns what a server said about a message that it refused.
async fn refusal(response: Response<Incoming>) -> String {
    let status: StatusCode = response.status();
    let body = http_body_util::Limited::new(response.into_body(), 64 << 10).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let parsed: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reason = parsed["error"].as_str().map_or_else(|| String::from_utf8_lossy(&body).into_owned(), str::to_owned);
    format!("the server answered {status}: {reason}")
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
