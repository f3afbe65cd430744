//! Changes that anybody makes beneath the root, told as they happen.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use notify::{
    Config, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{ModifyKind, RenameMode},
};

use crate::{ErrorKind, Result, Root, is_temporary};

/// Events that come closer together than this are told together.
const QUIET: Duration = Duration::from_millis(20);
/// Nobody waits longer than this for the first of them.
const LONGEST_DELAY: Duration = Duration::from_millis(200);
/// How many different events are held for a slow listener. Past that it is told to look for itself.
const MOST_WAITING: usize = 10_000;

/// A change beneath the root. Paths are relative to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Created(PathBuf),
    Changed(PathBuf),
    Removed(PathBuf),
    Moved {
        from: PathBuf,
        to: PathBuf,
    },
    /// Events were lost: anything may have changed.
    Unknown,
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watch {
    // Dropped first: no more events come in, then the teller is told to end.
    _watcher: RecommendedWatcher,
    _end: End,
}

#[derive(Debug)]
struct End(Arc<Waiting>);

/// Events that were not told yet. Equal ones are held once.
#[derive(Debug, Default)]
struct Waiting {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    events: BTreeSet<Event>,
    ended: bool,
}

impl Root {
    /// Tells `sink` of the changes beneath the root, from now on, on a thread of its own.
    ///
    /// A slow sink delays only itself. The events of one call are sorted, not in the order of their happening; equal
    /// ones are told once. The temporary files of commits are left out.
    pub fn watch(&self, sink: impl FnMut(Vec<Event>) + Send + 'static) -> Result<Watch> {
        let failed = |error: notify::Error| ErrorKind::Io(std::io::Error::other(error)).at(self.real_path());
        let waiting = Arc::new(Waiting::default());
        let (incoming, root) = (Arc::clone(&waiting), self.real_path().to_owned());
        let receive = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => incoming.add([Event::Unknown]),
            Ok(event) => incoming.add(translate(&event, &root)),
            Err(_) => incoming.add([Event::Unknown]),
        };
        let config = Config::default().with_follow_symlinks(false);
        let mut watcher = RecommendedWatcher::new(receive, config).map_err(failed)?;
        watcher.watch(self.real_path(), RecursiveMode::Recursive).map_err(failed)?;
        let told = Arc::clone(&waiting);
        let teller = thread::Builder::new().name("directory-watch".to_owned()).spawn(move || told.tell(sink));
        teller.map_err(|error| ErrorKind::Io(error).at(self.real_path()))?;
        Ok(Watch { _watcher: watcher, _end: End(waiting) })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.0.news.notify_all();
    }
}

impl Waiting {
    fn add(&self, events: impl IntoIterator<Item = Event>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            // The two ends of a move are told one by one before it.
            if let Event::Moved { from, to } = &event {
                state.events.remove(&Event::Removed(from.clone()));
                state.events.remove(&Event::Changed(to.clone()));
            }
            state.events.insert(event);
        }
        if state.events.len() > MOST_WAITING {
            state.events = BTreeSet::from([Event::Unknown]);
        }
        drop(state);
        self.news.notify_all();
    }

    fn tell(&self, mut sink: impl FnMut(Vec<Event>)) {
        while let Some(events) = self.next() {
            sink(events.into_iter().collect());
        }
    }

    /// Waits for events, and then until there is a pause in them.
    fn next(&self) -> Option<BTreeSet<Event>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = |state: &mut State| state.events.is_empty() && !state.ended;
        let mut state = self.news.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
        let first = Instant::now();
        while !state.ended && first.elapsed() < LONGEST_DELAY {
            let waited = self.news.wait_timeout(state, QUIET).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if waited.1.timed_out() {
                break;
            }
        }
        (!state.ended).then(|| std::mem::take(&mut state.events))
    }
}

/// Says what an event means to somebody who does not see temporary files.
fn translate(event: &notify::Event, root: &Path) -> Vec<Event> {
    let below = |path: &PathBuf| path.strip_prefix(root).map(Path::to_owned).ok();
    let visible = |path: &PathBuf| !path.components().any(|part| is_temporary(part.as_os_str()));
    let paths: Vec<PathBuf> = event.paths.iter().filter_map(below).collect();
    let each = |told: fn(PathBuf) -> Event| paths.iter().filter(|path| visible(path)).cloned().map(told).collect();
    match event.kind {
        EventKind::Create(_) => each(Event::Created),
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => each(Event::Removed),
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => match &paths[..] {
            [from, to] if visible(from) && visible(to) => vec![Event::Moved { from: from.clone(), to: to.clone() }],
            [from, _] if visible(from) => vec![Event::Removed(from.clone())],
            [_, to] if visible(to) => vec![Event::Changed(to.clone())],
            _ => Vec::new(),
        },
        // That includes a file which took its name from a temporary one: it may be new or have replaced an old one.
        EventKind::Modify(_) | EventKind::Any => each(Event::Changed),
        EventKind::Access(_) | EventKind::Other => Vec::new(),
    }
}
