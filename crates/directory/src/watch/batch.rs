//! Events that were not told yet, in the order in which they happened.

use std::{collections::HashMap, path::PathBuf};

use super::Event;

/// How many events are held at a time. Past that, the listener is told to look for itself.
const MOST_EVENTS: usize = 10_000;

/// Events that are told together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Nothing stands where later events have made one obsolete.
    events: Vec<Option<Event>>,
    /// Where the last event of each path stands, of those that later ones can be merged with.
    last: HashMap<PathBuf, usize>,
    /// Where the removals stand that are the first halves of moves, by the number that both halves have.
    halves: HashMap<u32, usize>,
    is_full: bool,
}

impl Batch {
    /// Adds an event, merged with the last one of the same path.
    pub(super) fn add(&mut self, event: Event) {
        if self.is_full {
            return;
        }
        let path = match &event {
            Event::Created(path) | Event::Changed(path) | Event::Removed(path) => path.clone(),
            Event::Moved { .. } => {
                // Paths mean something else from here on.
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
            // The first one tells it all.
            _ => return,
        };
        self.events[before] = None;
        self.last.remove(&path);
        if let Some(event) = merged {
            self.last.insert(path, self.events.len());
            self.push(event);
        }
    }

    /// Adds the removal of a path that may turn out to be the first half of a move. What was told of the path before
    /// stays: it is what the move begins with.
    pub(super) fn add_moved_from(&mut self, number: u32, path: PathBuf) {
        if !self.is_full {
            self.halves.insert(number, self.events.len());
            self.last.insert(path.clone(), self.events.len());
            self.push(Event::Removed(path));
        }
    }

    /// Takes out the first half of a move; nothing where it was told already, or does not stand alone.
    pub(super) fn take_moved_from(&mut self, number: u32) -> Option<PathBuf> {
        let event = self.events.get_mut(self.halves.remove(&number)?)?;
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
        if self.events.len() > MOST_EVENTS {
            *self = Self { events: vec![Some(Event::Unknown)], is_full: true, ..Self::default() };
        }
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod batch_tests;
