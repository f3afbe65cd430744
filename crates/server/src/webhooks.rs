//! Webhooks: messages about approvals and failed calls to addresses of the operator.
//!
//! A message is signed, and sent again a few times if it does not arrive. No call waits for a message: if too many wait to be
//! sent, new ones are dropped, which the log says: those of the account that has a quarter of the room already, or else any. The
//! event feed has everything.

use crate::settings::Settings;
use async_trait::async_trait;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Value, json};
use sha2::Sha256;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use toolrest_core::{
    Access, Approval, ByteBudget, CallRecord, HeldBytes, OUTCOME_OK, RecordPermit, Recorder, Result, ToolError, UserId,
    WorkspaceId, hex, now,
};
use toolrest_ops::outside::http_client::{HttpClient, HttpLimits, HttpRequest, HttpUrl};
use toolrest_store::WriteBehind;

/// Maximum number of messages that wait to be sent.
const MAX_WAITING: usize = 1_000;
/// Minimum size that a message counts for, so that the room for bytes also limits the number of messages of an account.
const MESSAGE_BYTES: usize = 16 << 10;
/// Maximum number of messages that are sent at once.
const AT_ONCE: usize = 16;
/// Delays before a message is sent again.
const RETRY_DELAYS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];
/// Time limit of one attempt.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer, which nobody reads.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Sends messages. Without addresses it does nothing.
#[derive(Clone, Default)]
pub(crate) struct Webhooks(Option<Outbox>);

/// Where messages wait to be sent.
#[derive(Clone)]
struct Outbox {
    messages: mpsc::Sender<Message>,
    /// The memory of messages, of which one account gets a quarter.
    room: Arc<ByteBudget<UserId>>,
}

/// A message, ready to be sent.
struct Message {
    event: &'static str,
    body: String,
    _room: HeldBytes<UserId>,
}

/// What messages are sent with.
struct Delivery {
    client: HttpClient,
    urls: Vec<HttpUrl>,
    mac: Hmac<Sha256>,
}

impl Webhooks {
    /// Starts the sender, if the settings have addresses.
    pub(crate) fn start(settings: &Settings, client: HttpClient) -> Result<Self> {
        let urls: Vec<HttpUrl> = settings.webhooks.urls.iter().filter_map(|url| HttpUrl::parse(url).ok()).collect();
        if urls.is_empty() {
            return Ok(Self::default());
        }
        let Some(secret) = &settings.webhooks.secret else {
            let message = "webhooks.urls also needs the setting webhooks.secret, with which messages are signed";
            return Err(ToolError::argument("webhooks.secret", message));
        };
        let mac = Hmac::new_from_slice(secret.as_bytes()).map_err(ToolError::internal)?;
        let (messages, receiver) = mpsc::channel(MAX_WAITING);
        tokio::spawn(send_all(receiver, Arc::new(Delivery { client, urls, mac })));
        let room = Arc::new(ByteBudget::new(MAX_WAITING * MESSAGE_BYTES, MESSAGE_BYTES));
        Ok(Self(Some(Outbox { messages, room })))
    }

    /// Sends that something happened to an approval: `approval.asked`, `approval.decided`.
    pub(crate) fn approval(&self, event: &'static str, approval: &Approval) {
        let details = || {
            json!({
                "id": approval.id,
                "state": approval.state,
                "revision": approval.revision,
                "call_id": approval.call.id,
                "toolset": approval.call.toolset,
                "tool": approval.call.tool,
                "user_id": approval.call.caller.user,
                "key_id": approval.call.caller.key_id(),
                "reason": approval.reason,
                "asks": approval.asks,
            })
        };
        let of = (approval.call.workspace, approval.call.caller.user);
        self.send(event, of, "approval", details);
    }

    fn failed_call(&self, record: &CallRecord) {
        self.send("call.failed", (record.workspace, record.user), "call", || json!(record));
    }

    fn send(
        &self,
        event: &'static str,
        (workspace, user): (WorkspaceId, UserId),
        name: &str,
        details: impl FnOnce() -> Value,
    ) {
        let Some(Outbox { messages, room }) = &self.0 else { return };
        let body = json!({"event": event, "at": now().to_string(), "workspace_id": workspace, name: details()});
        let body = body.to_string();
        let room = room.try_reserve(user, body.len().max(MESSAGE_BYTES));
        let sent = room.map(|room| messages.try_send(Message { event, body, _room: room }));
        if !matches!(sent, Some(Ok(()))) {
            tracing::warn!(event, user.id = %user, "too many webhook messages wait to be sent; one was dropped");
        }
    }
}

async fn send_all(mut messages: mpsc::Receiver<Message>, delivery: Arc<Delivery>) {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(message) = messages.recv().await {
        let message = Arc::new(message);
        for index in 0..delivery.urls.len() {
            // The semaphore is never closed.
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let (delivery, message) = (Arc::clone(&delivery), Arc::clone(&message));
            tokio::spawn(async move {
                delivery.deliver(&delivery.urls[index], &message).await;
                drop(slot);
            });
        }
    }
}

impl Delivery {
    /// Sends a message, again after a while if it does not arrive.
    async fn deliver(&self, url: &HttpUrl, message: &Message) {
        let mut delays = RETRY_DELAYS.iter();
        loop {
            let failure = match self.attempt(url, message).await {
                Ok(200..=299) => return,
                // The receiver refuses the message, and would again.
                Ok(status @ (400..=407 | 409..=428 | 430..=499)) => {
                    tracing::warn!(event = message.event, host = url.host(), status, "a webhook refused a message");
                    return;
                }
                Ok(status) => format!("status {status}"),
                Err(error) => error,
            };
            let Some(delay) = delays.next() else {
                tracing::warn!(event = message.event, host = url.host(), failure, "a webhook message did not arrive");
                return;
            };
            tokio::time::sleep(*delay).await;
        }
    }

    async fn attempt(&self, url: &HttpUrl, message: &Message) -> Result<u16, String> {
        let time = now().as_second().to_string();
        let mut mac = self.mac.clone();
        mac.update(time.as_bytes());
        mac.update(b".");
        mac.update(message.body.as_bytes());
        let signature = format!("t={time},v1={}", hex(&mac.finalize().into_bytes()));
        let signature = HeaderValue::from_str(&signature).map_err(|error| error.to_string())?;
        let fields = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (HeaderName::from_static("x-toolrest-event"), HeaderValue::from_static(message.event)),
            (HeaderName::from_static("x-toolrest-signature"), signature),
        ]);
        let body = message.body.clone().into();
        let request = HttpRequest { method: Method::POST, url: url.clone(), fields, body };
        let limits = HttpLimits { deadline: Instant::now() + TIMEOUT, response_bytes: MAX_ANSWER_BYTES };
        let response = self.client.send_once(request, limits).await.map_err(|error| error.to_string())?;
        Ok(response.status.as_u16())
    }
}

/// A recorder that also reports failed calls.
pub(crate) struct ReportingRecorder {
    pub(crate) records: Arc<WriteBehind>,
    pub(crate) webhooks: Webhooks,
}

#[async_trait]
impl Recorder for ReportingRecorder {
    fn redact(&self, args: &str) -> String {
        self.records.redact(args)
    }

    async fn reserve(&self) -> RecordPermit {
        self.records.reserve().await
    }

    async fn record_running(&self, access: Access, call: CallRecord) -> Result<()> {
        self.records.record_running(access, call).await
    }

    fn record(&self, record: CallRecord, permit: RecordPermit) {
        if record.outcome.as_deref().is_some_and(|outcome| outcome != OUTCOME_OK) {
            self.webhooks.failed_call(&record);
        }
        self.records.record(record, permit);
    }

    async fn flush(&self) {
        self.records.flush().await;
    }
}

#[cfg(test)]
#[path = "webhooks_tests.rs"]
mod tests;
