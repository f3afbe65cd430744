//! Reports changes to a folder. A folder is watched once, as long as there are listeners.

use super::Folder;
use super::disk::path_of;
use std::sync::{Arc, PoisonError};
use tokio::sync::broadcast;
use toolrest_core::{ErrorKind, FileEvent, FileEvents, Result, ToolError};
use toolrest_directory::{Event, Watch};

/// Maximum number of events that a listener has not received yet.
const MAX_PENDING_EVENTS: usize = 1_000;

/// A folder that is watched.
pub(super) struct WatchedFolder {
    sender: broadcast::Sender<FileEvent>,
    _watch: Watch,
}

impl Folder {
    /// Starts to listen. To watch every folder below may take a while.
    pub(super) fn watch(&self) -> Result<FileEvents> {
        let mut watched = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        let watching = if let Some(watching) = watched.upgrade() {
            watching
        } else {
            let (sender, _) = broadcast::channel(MAX_PENDING_EVENTS);
            let tell = sender.clone();
            let sink = move |events: Vec<Event>| {
                for event in events.into_iter().filter_map(to_tool_error) {
                    // It is no error if there is no listener.
                    let _ = tell.send(event);
                }
            };
            let watch = self.disk.root.watch(sink).map_err(|error| {
                let message = format!("The folder cannot be watched: {}", error.kind);
                ToolError::new(ErrorKind::Unavailable, message)
            })?;
            let watching = Arc::new(WatchedFolder { sender, _watch: watch });
            *watched = Arc::downgrade(&watching);
            watching
        };
        Ok(FileEvents { receiver: watching.sender.subscribe(), source: Box::new(watching), filter: None })
    }
}

/// Converts an event to paths of the workspace; none if no path can name the file.
fn to_tool_error(event: Event) -> Option<FileEvent> {
    Some(match event {
        Event::Created(path) => FileEvent::Created { path: path_of(&path)? },
        Event::Changed(path) => FileEvent::Changed { path: path_of(&path)? },
        Event::Removed(path) => FileEvent::Removed { path: path_of(&path)? },
        // If only one end of a move has a path, it is a creation or a removal.
        Event::Moved { from, to } => match (path_of(&from), path_of(&to)) {
            (Some(from), Some(path)) => FileEvent::Moved { from, path },
            (Some(path), None) => FileEvent::Removed { path },
            (None, Some(path)) => FileEvent::Created { path },
            (None, None) => return None,
        },
        Event::Unknown => FileEvent::Unknown,
    })
}

#[cfg(test)]
#[path = "watching_tests.rs"]
mod tests;
