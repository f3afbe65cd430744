//! Events about changes to files, made by anybody.

use crate::WsPath;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast;

/// A change to a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
    /// Which paths the reader may see; all if there is no filter.
    pub filter: Option<EventFilter>,
}

/// Says whether a reader may see a path.
pub type EventFilter = Box<dyn Fn(&WsPath) -> bool + Send + Sync>;

impl FileEvents {
    /// Waits for the next event. Returns `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<FileEvent> {
        loop {
            match self.receiver.recv().await {
                Ok(event) if !self.is_shown(&event) => {}
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => return Some(FileEvent::Unknown),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    fn is_shown(&self, event: &FileEvent) -> bool {
        let Some(shows) = &self.filter else { return true };
        match event {
            FileEvent::Created { path } | FileEvent::Changed { path } | FileEvent::Removed { path } => shows(path),
            FileEvent::Moved { from, path } => shows(from) && shows(path),
            FileEvent::Unknown => true,
        }
    }
}
