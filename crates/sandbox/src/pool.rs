//! Interpreters that wait for their script, already isolated, so that a short script need not wait for them.
//!
//! Each is used once: what a script leaves behind, no other one sees.

mod interpreter;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

pub use interpreter::{Interpreter, Language, Script};

use rustix::fs::AtFlags;

use crate::{
    Access, Job, Mount, Place, Result, Running, Sandbox, Source,
    wire::{Act, Clock, Order},
};

/// How many interpreters wait, and for how long.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// How many wait in all; the one that has waited longest makes room for another.
    pub waiting: usize,
    /// How long one waits before it is let go.
    pub idle: Duration,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { waiting: 8, idle: Duration::from_secs(600) }
    }
}

/// Interpreters that wait, one for each place and language. Clones share them.
#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sandbox: Sandbox,
    options: PoolOptions,
    waiting: Mutex<Vec<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    /// The place without what is only decided when the script comes.
    place: Place,
    interpreter: Interpreter,
    frozen: Vec<Identity>,
    running: Running,
    since: Instant,
}

/// Device and inode of what has a name, if anything has.
type Identity = Option<(u64, u64)>;

impl Pool {
    pub fn new(sandbox: Sandbox, options: PoolOptions) -> Self {
        Self { shared: Arc::new(Shared { sandbox, options, waiting: Mutex::default() }) }
    }

    /// Runs a script, in an interpreter that waits for it if there is one; in one of its own where it sets variables that
    /// only count at the start. Another one is made to wait in its place when it has ended, or later, as
    /// [`Running::take_after`] says. None waits on an overlay, which holds still only while nobody has it mounted.
    pub async fn run(&self, place: &Place, interpreter: &Interpreter, mut script: Script) -> Result<Running> {
        let at_start = script.take_start_env();
        let encoded = interpreter.encode(&script)?;
        if !at_start.is_empty() {
            let place = at_start.into_iter().fold(place.clone(), |place, (name, value)| place.env(name, value));
            let mut running = self.shared.start(&place, interpreter).await?;
            running.begin(&place.limits, encoded, script.stdin)?;
            return Ok(running);
        }
        let mut running = match self.shared.take(place, interpreter) {
            Some(running) => running,
            None => self.shared.start(place, interpreter).await?,
        };
        running.begin(&place.limits, encoded, script.stdin)?;
        if place.has_overlay() {
            return Ok(running);
        }
        let (pool, place, interpreter) = (Arc::downgrade(&self.shared), place.clone(), interpreter.clone());
        running.afterwards(move || replenish(pool, place, interpreter));
        Ok(running)
    }

    /// Has an interpreter wait, unless one does already.
    pub async fn warm(&self, place: &Place, interpreter: &Interpreter) -> Result<()> {
        self.shared.warm(place, interpreter).await
    }

    /// Lets go of everything that waits in a place that uses the folder.
    pub fn forget(&self, folder: &Path) {
        let is_it = |path: &PathBuf| path == folder;
        let uses =
            |waiting: &Waiting| waiting.place.sources().iter().any(|(source, _)| source.paths().iter().any(is_it));
        self.shared.lock().retain(|waiting| !uses(waiting));
    }

    /// How many interpreters wait.
    pub fn waiting(&self) -> usize {
        self.shared.lock().len()
    }
}

/// Makes another interpreter wait where one was used.
fn replenish(pool: Weak<Shared>, place: Place, interpreter: Interpreter) {
    // Without a runtime the server is ending: nobody will ask again.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        if let Some(pool) = pool.upgrade() {
            // The next script that comes will be told why.
            let _ = pool.warm(&place, &interpreter).await;
        }
    });
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, place: &Place, interpreter: &Interpreter) -> Option<Running> {
        let place = settled(place);
        let frozen = frozen_entries(&place);
        let mut waiting = self.lock();
        waiting.retain_mut(|one| !one.running.is_over());
        let found = waiting.iter().position(|one| one.place == place && one.interpreter == *interpreter)?;
        let found = waiting.remove(found);
        // What was not there when the interpreter began to wait is not frozen for it: it is let go.
        (found.frozen == frozen).then_some(found.running)
    }

    async fn start(&self, place: &Place, interpreter: &Interpreter) -> Result<Running> {
        let mut place = place.clone();
        for folder in interpreter.folders() {
            let (source, target) = (Source::open(folder)?, folder.clone());
            place.mounts.push(Mount::Folder { source, target, access: Access::ReadOnly, frozen: Vec::new() });
        }
        let job = Job::new(place, interpreter.argv());
        self.sandbox.order(&Order { job, act: Act::Program, clock: Clock::OnBegin, script: true }).await
    }

    async fn warm(self: &Arc<Self>, place: &Place, interpreter: &Interpreter) -> Result<()> {
        let settled = settled(place);
        let is_it =
            |one: &mut Waiting| one.place == settled && one.interpreter == *interpreter && !one.running.is_over();
        if self.options.waiting == 0 || place.has_overlay() || self.lock().iter_mut().any(is_it) {
            return Ok(());
        }
        // Before it starts: an entry that is replaced meanwhile is then another one.
        let frozen = frozen_entries(&settled);
        let running = self.start(&settled, interpreter).await?;
        let since = Instant::now();
        let one = Waiting { place: settled, interpreter: interpreter.clone(), frozen, running, since };
        {
            let mut waiting = self.lock();
            while waiting.len() >= self.options.waiting {
                waiting.remove(0);
            }
            waiting.push(one);
        }
        let (pool, idle) = (Arc::downgrade(self), self.options.idle);
        tokio::spawn(async move {
            tokio::time::sleep(idle).await;
            if let Some(pool) = pool.upgrade() {
                pool.lock().retain(|one| one.since.elapsed() < idle);
            }
        });
        Ok(())
    }
}

/// The place as it must be known before the script comes. How long it may run and how much it may print is decided
/// outside of the cell.
fn settled(place: &Place) -> Place {
    let mut place = place.clone();
    let limits = crate::Limits::default();
    place.limits.wall = limits.wall;
    place.limits.output_bytes = limits.output_bytes;
    place.limits.output_kept_bytes = limits.output_kept_bytes;
    place
}

/// What the entries are by now that are to be frozen.
fn frozen_entries(place: &Place) -> Vec<Identity> {
    let mut entries = Vec::new();
    for mount in &place.mounts {
        if let Mount::Folder { source, frozen, .. } = mount {
            let identity = |name| {
                let stat = rustix::fs::statat(source.descriptor().ok()?, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                Some((stat.st_dev, stat.st_ino))
            };
            entries.extend(frozen.iter().map(identity));
        }
    }
    entries
}
