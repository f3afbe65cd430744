//! Events about changes to files, made by anybody.

use crate::WsPath;
use serde::Serialize;
use tokio::sync::broadcast;

/// A change to a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum FileEvent {
    /// It was created.
    Created {
        /// Its path.
        path: WsPath,
    },
    /// Its content or its permissions changed.
    Changed {
        /// Its path.
        path: WsPath,
    },
    /// It was removed.
    Removed {
        /// Its old path.
        path: WsPath,
    },
    /// It was moved.
    Moved {
        /// Its old path.
        from: WsPath,
        /// Its new path.
        path: WsPath,
    },
    /// Events were lost: anything may have changed.
    Unknown,
}

/// A stream of the events since its creation.
pub struct FileEvents {
    /// The receiver of the events.
    pub receiver: broadcast::Receiver<FileEvent>,
    /// The watcher that sends the events; dropping it ends them.
    pub source: Box<dyn Send + Sync>,
}

impl FileEvents {
    /// Waits for the next event. Returns `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<FileEvent> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(FileEvent::Unknown),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
