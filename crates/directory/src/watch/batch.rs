//! Merges events that are not yet reported, in their order.

use std::{collections::HashMap, path::PathBuf};

use super::Event;

/// Maximum number of events. If there are more, they are replaced by `Unknown`.
const MAX_EVENTS: usize = 10_000;

/// Events that are reported together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// `None` if a later event made it obsolete.
    events: Vec<Option<Event>>,
    /// For each path, the index of its last event, with which the next event of the path can be merged.
    last: HashMap<PathBuf, usize>,
    /// Index of removals that may be the source of a move, by the cookie of the move.
    move_sources: HashMap<u32, usize>,
    is_full: bool,
}

impl Batch {
    /// Adds an event, and merges it with the last one of the same path.
    pub(super) fn add(&mut self, event: Event) {
        if self.is_full {
            return;
        }
        let path = match &event {
            Event::Created(path) | Event::Changed(path) | Event::Removed(path) => path.clone(),
            Event::Moved { .. } => {
                // After a move, the same paths may mean other files.
                self.last.clear();
                return self.push(event);
            }
            Event::Unknown if self.events.last() == Some(&Some(Event::Unknown)) => return,
            Event::Unknown => return self.push(event),
        };
        let Some(before) = self.last.get(&path).copied() else {
            self.last.insert(path, self.events.len());
            return self.push(event);
        };
        let merged = match (&self.events[before], event) {
            (Some(Event::Removed(_)), Event::Created(_) | Event::Changed(_)) => Some(Event::Changed(path.clone())),
            (Some(Event::Created(_)), Event::Removed(_)) => None,
            (Some(Event::Changed(_)), event @ Event::Removed(_)) => Some(event),
            // The first event already covers it.
            _ => return,
        };
        self.events[before] = None;
        self.last.remove(&path);
        if let Some(event) = merged {
            self.last.insert(path, self.events.len());
            self.push(event);
        }
    }

    /// Adds a removal that may be the source of a move. Earlier events of the path stay, because they happened before
    /// the move.
    pub(super) fn add_moved_from(&mut self, cookie: u32, path: PathBuf) {
        if !self.is_full {
            self.move_sources.insert(cookie, self.events.len());
            self.last.insert(path.clone(), self.events.len());
            self.push(Event::Removed(path));
        }
    }

    /// Removes and returns the source of a move, unless it was already reported or merged.
    pub(super) fn take_moved_from(&mut self, cookie: u32) -> Option<PathBuf> {
        let event = self.events.get_mut(self.move_sources.remove(&cookie)?)?;
        match event.take() {
            Some(Event::Removed(path)) => {
                self.last.remove(&path);
                Some(path)
            }
            other => {
                *event = other;
                None
            }
        }
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.events.into_iter().flatten().collect()
    }

    fn push(&mut self, event: Event) {
        self.events.push(Some(event));
        if self.events.len() > MAX_EVENTS {
            *self = Self { events: vec![Some(Event::Unknown)], is_full: true, ..Self::default() };
        }
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod batch_tests;
