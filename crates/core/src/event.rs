//! Changes to files, told as they happen, whoever makes them.

use crate::WsPath;
use serde::Serialize;
use tokio::sync::broadcast;

/// Something that happened to a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum FileEvent {
    /// It was made.
    Created {
        /// Where.
        path: WsPath,
    },
    /// Its content or its permissions are others.
    Changed {
        /// Where.
        path: WsPath,
    },
    /// It is gone.
    Removed {
        /// Where it was.
        path: WsPath,
    },
    /// It has another path.
    Moved {
        /// Where it was.
        from: WsPath,
        /// Where it is.
        path: WsPath,
    },
    /// More happened than could be told: anything may have changed.
    Unknown,
}

/// Tells of events, from the moment it was made on.
pub struct FileEvents {
    /// Where they come from.
    pub receiver: broadcast::Receiver<FileEvent>,
    /// What has to be kept for events to come.
    pub source: Box<dyn Send + Sync>,
}

impl FileEvents {
    /// The next event; none if there will be no more.
    pub async fn next(&mut self) -> Option<FileEvent> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(FileEvent::Unknown),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
