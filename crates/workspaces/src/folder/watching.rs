//! Telling of changes to a folder. It is watched once, as long as anybody listens.

use super::Folder;
use super::disk::path_of;
use std::sync::{Arc, PoisonError};
use tokio::sync::broadcast;
use toolrest_core::{ErrorKind, FileEvent, FileEvents, Result, ToolError};
use toolrest_directory::{Event, Watch};

/// How many events a listener may be behind.
const BEHIND_MOST: usize = 1_000;

/// A folder that is watched.
pub(super) struct Watching {
    sender: broadcast::Sender<FileEvent>,
    _watch: Watch,
}

impl Folder {
    /// Begins to listen. Looking at every folder below may take a while.
    pub(super) fn watch(&self) -> Result<FileEvents> {
        let mut watched = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        let watching = if let Some(watching) = watched.upgrade() {
            watching
        } else {
            let (sender, _) = broadcast::channel(BEHIND_MOST);
            let tell = sender.clone();
            let sink = move |events: Vec<Event>| {
                for event in events.into_iter().filter_map(to_tool_error) {
                    // Nobody listening is no fault.
                    let _ = tell.send(event);
                }
            };
            let watch = self.disk.root.watch(sink).map_err(|error| {
                let message = format!("The folder cannot be watched: {}", error.kind);
                ToolError::new(ErrorKind::Unavailable, message)
            })?;
            let watching = Arc::new(Watching { sender, _watch: watch });
            *watched = Arc::downgrade(&watching);
            watching
        };
        Ok(FileEvents { receiver: watching.sender.subscribe(), source: Box::new(watching) })
    }
}

/// An event by the paths of the workspace; none where no path can name what it is about.
fn to_tool_error(event: Event) -> Option<FileEvent> {
    Some(match event {
        Event::Created(path) => FileEvent::Created { path: path_of(&path)? },
        Event::Changed(path) => FileEvent::Changed { path: path_of(&path)? },
        Event::Removed(path) => FileEvent::Removed { path: path_of(&path)? },
        // What has a name at one end only came there from nowhere, or went away.
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
