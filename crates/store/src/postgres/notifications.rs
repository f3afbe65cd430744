//! Wakes waiting tasks of this replica and of others after commits.
//!
//! Writing transactions never notify: PostgreSQL serialises transactions that notify, over the whole cluster and across
//! their fsync. Instead a replica collects the ids of what it changed and sends them some milliseconds apart, on a
//! connection of its own. Other replicas listen on another connection of their own. Both are outside the pool, because
//! they are held for long. If one of them is lost, the poll of each second finds the changes.

use super::tls::Connector;
use super::{Postgres, to_store_error};
use crate::error::Result;
use crate::wakeups::Wakeups;
use futures_util::{StreamExt, stream};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_postgres::{AsyncMessage, Client, Notification};
use uuid::Uuid;

/// The channel of notifications. Each database has its own.
const CHANNEL: &str = "toolrest_changes";
/// Minimum time between two notifications of a replica.
const SEND_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of ids in a notification. PostgreSQL limits it to 8,000 bytes.
const MAX_IDS: usize = 200;
/// Interval at which the database is asked for changes, in case a notification was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Delay before a lost connection is opened again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Signals within this replica and between replicas.
pub(super) struct Signals {
    pub(super) wakeups: Wakeups,
    config: Connector,
    outgoing: Arc<Outgoing>,
    sender: JoinHandle<()>,
}

/// The ids that other replicas have not been told yet.
#[derive(Default)]
struct Outgoing {
    ids: Mutex<BTreeSet<Uuid>>,
    added: Notify,
    /// The process id of the database's end of the sending connection, to recognise the replica's own notifications.
    backend: AtomicI32,
}

impl Signals {
    /// Starts the sender, which connects when there is something to send.
    pub(super) fn start(config: Connector) -> Self {
        let outgoing = Arc::<Outgoing>::default();
        let sender = tokio::spawn(send(config.clone(), Arc::clone(&outgoing)));
        Self { wakeups: Wakeups::default(), config, outgoing, sender }
    }

    /// Wakes those who wait for an id, on this replica at once and on others soon. To be called after the commit.
    pub(super) fn changed(&self, id: Uuid) {
        self.wakeups.wake(id);
        self.outgoing.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        self.outgoing.added.notify_one();
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.sender.abort();
    }
}

/// Sends notifications, for ever.
async fn send(config: Connector, outgoing: Arc<Outgoing>) {
    let mut connected = None;
    loop {
        outgoing.added.notified().await;
        let ids = std::mem::take(&mut *outgoing.ids.lock().unwrap_or_else(PoisonError::into_inner));
        if ids.is_empty() {
            continue;
        }
        if let Err(error) = notify(&mut connected, &config, &outgoing, &ids).await {
            tracing::debug!(%error, "other replicas could not be notified; they will poll");
            connected = None;
            tokio::time::sleep(RETRY_DELAY).await;
        }
        tokio::time::sleep(SEND_INTERVAL).await;
    }
}

async fn notify(
    connected: &mut Option<Client>,
    config: &Connector,
    outgoing: &Outgoing,
    ids: &BTreeSet<Uuid>,
) -> Result<()> {
    let client = match connected {
        Some(client) => client,
        None => connected.insert(connect(config, outgoing).await?),
    };
    // Without ids it wakes everybody.
    let ids = Some(ids).filter(|ids| ids.len() <= MAX_IDS);
    let ids: Vec<String> = ids.into_iter().flatten().map(|id| id.simple().to_string()).collect();
    // The ids have only hexadecimal digits.
    let sql = format!("NOTIFY {CHANNEL}, '{}'", ids.join(","));
    client.batch_execute(&sql).await.map_err(to_store_error)
}

async fn connect(config: &Connector, outgoing: &Outgoing) -> Result<Client> {
    let (client, connection) = config.connect().await.map_err(to_store_error)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection for notifications was lost");
        }
    });
    // Notifications need not reach a standby.
    client.batch_execute("SET synchronous_commit = local").await.map_err(to_store_error)?;
    let row = client.query_one("SELECT pg_backend_pid()", &[]).await.map_err(to_store_error)?;
    outgoing.backend.store(row.get(0), Ordering::Relaxed);
    Ok(client)
}

/// Wakes subscribers of what other replicas changed. Ends when nobody is subscribed.
pub(super) async fn watch(store: Postgres) {
    tokio::select! {
        () = listen(&store.signals) => {}
        () = poll(&store) => {}
    }
}

/// Listens for notifications, for ever.
async fn listen(signals: &Signals) {
    loop {
        if let Err(error) = listen_once(signals).await {
            tracing::debug!(%error, "the connection that listens for changes was lost; will reconnect");
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Listens until the connection is lost.
async fn listen_once(signals: &Signals) -> Result<()> {
    let (client, mut connection) = signals.config.connect().await.map_err(to_store_error)?;
    let mut messages = stream::poll_fn(|cx| connection.poll_message(cx));
    let receive = async {
        while let Some(message) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message.map_err(to_store_error)? {
                signals.received(&notification);
            }
        }
        Ok(())
    };
    let start = async {
        client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map_err(to_store_error)?;
        // What happened before is not notified.
        signals.wakeups.wake_all();
        // The connection ends with the client.
        std::future::pending().await
    };
    tokio::select! {
        ended = receive => ended,
        failed = start => failed,
    }
}

impl Signals {
    fn received(&self, notification: &Notification) {
        // Subscribers of this replica were woken already.
        if notification.process_id() == self.outgoing.backend.load(Ordering::Relaxed) {
            return;
        }
        if notification.payload().is_empty() {
            return self.wakeups.wake_all();
        }
        for id in notification.payload().split(',').filter_map(|id| Uuid::try_parse(id).ok()) {
            self.wakeups.wake(id);
        }
    }
}

/// Asks the database for changes at intervals, in one statement for all subscriptions. Returns when there are none.
async fn poll(store: &Postgres) {
    let wakeups = &store.signals.wakeups;
    let mut since: Option<String> = None;
    while !wakeups.stop_if_unused() {
        let changed = match &since {
            None => store.current_snapshot().await.map(|now| (now, Vec::new())),
            Some(since) => store.changed_feeds(&wakeups.subscribed(), since).await,
        };
        match changed {
            Ok((now, ids)) => {
                if since.replace(now).is_none() {
                    wakeups.wake_all();
                }
                for id in ids {
                    wakeups.wake(id);
                }
            }
            Err(error) => tracing::debug!(%error, "could not ask for changes; will retry"),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
