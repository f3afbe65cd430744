//! The folder that a client works in, if the command line does not name it: the first of the client's roots.

#![allow(deprecated, reason = "clients of earlier versions tell their folder in no other way")]

use super::resources::unescaped;
use rmcp::RoleServer;
use rmcp::service::NotificationContext;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Time in which a client tells its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in which a client begins the protocol.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(60);

/// The folder to work in.
#[derive(Clone, Debug)]
pub enum Folder {
    /// The folder that the user named.
    Named(PathBuf),
    /// The first root of the client; the folder of this process if the client tells none.
    OfClient(PathBuf),
}

/// Tells which folder the client has, once.
#[derive(Default)]
pub(crate) struct FolderSender(Mutex<Option<oneshot::Sender<Option<PathBuf>>>>);

impl FolderSender {
    pub(super) fn new() -> (Self, oneshot::Receiver<Option<PathBuf>>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Mutex::new(Some(sender))), receiver)
    }

    /// Tells the folder, unless it was told before.
    pub(super) fn tell(&self, folder: Option<PathBuf>) {
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The runtime does not wait for it if the user named a folder.
            let _ = sender.send(folder);
        }
    }

    fn is_awaited(&self) -> bool {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    /// Asks the client for its roots, and tells the first one that is a folder.
    pub(super) async fn ask(&self, context: &NotificationContext<RoleServer>) {
        let declares_roots = context.peer.peer_info().is_some_and(|client| client.capabilities.roots.is_some());
        if !self.is_awaited() {
            return;
        }
        let mut folder = None;
        if declares_roots {
            let asked = tokio::time::timeout(ROOTS_TIMEOUT, context.peer.list_roots()).await;
            match asked {
                Ok(Ok(listed)) => folder = listed.roots.iter().find_map(|root| folder_of(&root.uri)),
                Ok(Err(error)) => tracing::warn!(%error, "the client did not tell its roots"),
                Err(_) => tracing::warn!("the client did not tell its roots in time"),
            }
        }
        self.tell(folder);
    }
}

/// Returns the folder to work in, as soon as it is known.
pub(super) async fn resolve(folder: Folder, told: oneshot::Receiver<Option<PathBuf>>) -> PathBuf {
    match folder {
        Folder::Named(folder) => folder,
        Folder::OfClient(own) => {
            let told = tokio::time::timeout(BEGIN_TIMEOUT, told).await;
            told.ok().and_then(Result::ok).flatten().unwrap_or(own)
        }
    }
}

/// Returns the real path of a root that is a folder of this machine.
fn folder_of(uri: &str) -> Option<PathBuf> {
    let path = unescaped(uri.strip_prefix("file://")?)?;
    let real = Path::new(&path).canonicalize().ok()?;
    (path.starts_with('/') && real.is_dir()).then_some(real)
}
