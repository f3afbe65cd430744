//! A pool of idle interpreters that are already isolated, so that short scripts run without start-up time.
//!
//! Each interpreter is used once, so no script sees what another one left behind.

mod interpreter;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

pub use interpreter::{Interpreter, Language, Script};

use rustix::fs::AtFlags;

use crate::{
    Access, CellSpec, Job, Mount, Result, RunningJob, Sandbox, Source,
    wire::{ClockStart, JobRequest, Payload},
};

/// Options of the pool.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// Maximum number of idle interpreters. The oldest one is evicted first.
    pub max_idle: usize,
    /// How long an interpreter stays idle before it is ended.
    pub idle_timeout: Duration,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { max_idle: 8, idle_timeout: Duration::from_secs(600) }
    }
}

/// Idle interpreters, one per sandbox configuration ([`CellSpec`]) and interpreter. Clones share the pool.
#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sandbox: Sandbox,
    options: PoolOptions,
    idle: Mutex<Vec<IdleInterpreter>>,
    /// The configurations for which an idle interpreter is being started.
    starting: Mutex<Vec<(CellSpec, Interpreter)>>,
}

#[derive(Debug)]
struct IdleInterpreter {
    /// The sandbox configuration, with the default values of the limits that are decided per script.
    spec: CellSpec,
    interpreter: Interpreter,
    /// Identities of the read-only paths in writable mounts (`frozen` of [`Mount::Folder`]), read before the start.
    frozen: Vec<Identity>,
    running: RunningJob,
    idle_since: Instant,
}

/// Device and inode of a path, if it exists.
type Identity = Option<(u64, u64)>;

impl Pool {
    pub fn new(sandbox: Sandbox, options: PoolOptions) -> Self {
        Self { shared: Arc::new(Shared { sandbox, options, idle: Mutex::default(), starting: Mutex::default() }) }
    }

    /// Runs a script in an idle interpreter, or in a new one if none matches or if the script sets start-up variables.
    ///
    /// The next idle interpreter is started when the script has ended, or later; see [`RunningJob::take_refill`]. Cells
    /// with an overlay have no idle interpreters, because the folder below a mounted overlay must not change.
    pub async fn run(&self, spec: &CellSpec, interpreter: &Interpreter, mut script: Script) -> Result<RunningJob> {
        let startup_env = script.take_startup_env();
        let encoded = interpreter.encode(&script)?;
        if !startup_env.is_empty() {
            let spec = startup_env.into_iter().fold(spec.clone(), |spec, (name, value)| spec.env(name, value));
            let mut running = self.shared.start(&spec, interpreter).await?;
            running.send_script(&spec.limits, encoded, script.stdin)?;
            return Ok(running);
        }
        let mut running = match self.shared.take(spec, interpreter) {
            Some(running) => running,
            None => self.shared.start(spec, interpreter).await?,
        };
        running.send_script(&spec.limits, encoded, script.stdin)?;
        if spec.has_overlay() {
            return Ok(running);
        }
        let (pool, spec, interpreter) = (Arc::downgrade(&self.shared), spec.clone(), interpreter.clone());
        running.set_refill(move || replenish(pool, spec, interpreter));
        Ok(running)
    }

    /// Starts an idle interpreter, unless there is one already or one is being started.
    pub async fn warm(&self, spec: &CellSpec, interpreter: &Interpreter) -> Result<()> {
        self.shared.warm(spec, interpreter).await
    }

    /// Returns the sandbox, for programs that are no scripts.
    pub fn sandbox(&self) -> &Sandbox {
        &self.shared.sandbox
    }

    /// Ends all idle interpreters whose cells use the folder.
    pub fn evict_folder(&self, folder: &Path) {
        let matches = |path: &PathBuf| path == folder;
        let uses =
            |idle: &IdleInterpreter| idle.spec.sources().iter().any(|(source, _)| source.paths().iter().any(matches));
        self.shared.lock().retain(|idle| !uses(idle));
    }

    /// Returns the number of idle interpreters.
    pub fn idle_count(&self) -> usize {
        self.shared.lock().len()
    }
}

/// Starts another idle interpreter after one was used.
fn replenish(pool: Weak<Shared>, spec: CellSpec, interpreter: Interpreter) {
    // Without a runtime the server is shutting down.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        if let Some(pool) = pool.upgrade() {
            // An error will occur again with the next script, which reports it.
            let _ = pool.warm(&spec, &interpreter).await;
        }
    });
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<IdleInterpreter>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, spec: &CellSpec, interpreter: &Interpreter) -> Option<RunningJob> {
        let spec = pool_key(spec);
        let frozen = frozen_entries(&spec);
        let mut idle = self.lock();
        idle.retain_mut(|one| !one.running.is_over());
        let position = idle.iter().position(|one| one.spec == spec && one.interpreter == *interpreter)?;
        let found = idle.remove(position);
        // A read-only path that was created or replaced after the start is not read-only in this interpreter, so the
        // interpreter is discarded.
        (found.frozen == frozen).then_some(found.running)
    }

    async fn start(&self, spec: &CellSpec, interpreter: &Interpreter) -> Result<RunningJob> {
        let mut spec = spec.clone();
        for folder in interpreter.folders() {
            let (source, target) = (Source::open(folder)?, folder.clone());
            spec.mounts.push(Mount::Folder { source, target, access: Access::ReadOnly, frozen: Vec::new() });
        }
        let job = Job::new(spec, interpreter.argv());
        self.sandbox
            .send_request(&JobRequest { job, payload: Payload::Program, clock: ClockStart::OnScript, script: true })
            .await
    }

    async fn warm(self: &Arc<Self>, spec: &CellSpec, interpreter: &Interpreter) -> Result<()> {
        let key = pool_key(spec);
        let matches = |idle: &mut IdleInterpreter| {
            idle.spec == key && idle.interpreter == *interpreter && !idle.running.is_over()
        };
        if self.options.max_idle == 0 || spec.has_overlay() {
            return Ok(());
        }
        let Some(_starting) = Starting::begin(self, &key, interpreter) else { return Ok(()) };
        if self.lock().iter_mut().any(matches) {
            return Ok(());
        }
        // Read before the start, so that a path that is replaced meanwhile is detected as changed.
        let frozen = frozen_entries(&key);
        let running = self.start(&key, interpreter).await?;
        let idle_since = Instant::now();
        let started = IdleInterpreter { spec: key, interpreter: interpreter.clone(), frozen, running, idle_since };
        {
            let mut idle = self.lock();
            while idle.len() >= self.options.max_idle {
                idle.remove(0);
            }
            idle.push(started);
        }
        let (pool, timeout) = (Arc::downgrade(self), self.options.idle_timeout);
        tokio::spawn(async move {
            tokio::time::sleep(timeout).await;
            if let Some(pool) = pool.upgrade() {
                pool.lock().retain(|idle| idle.idle_since.elapsed() < timeout);
            }
        });
        Ok(())
    }
}

/// The start of an idle interpreter. Until it is dropped, no other one with the same configuration is started.
struct Starting<'a> {
    pool: &'a Shared,
    spec: CellSpec,
    interpreter: Interpreter,
}

impl<'a> Starting<'a> {
    /// Returns none if an interpreter with this configuration is being started already.
    fn begin(pool: &'a Shared, spec: &CellSpec, interpreter: &Interpreter) -> Option<Self> {
        let started = (spec.clone(), interpreter.clone());
        let mut starting = pool.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if starting.contains(&started) {
            return None;
        }
        starting.push(started.clone());
        let (spec, interpreter) = started;
        Some(Self { pool, spec, interpreter })
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        let mut starting = self.pool.starting.lock().unwrap_or_else(PoisonError::into_inner);
        starting.retain(|(spec, interpreter)| (spec, interpreter) != (&self.spec, &self.interpreter));
    }
}

/// Returns the configuration that identifies matching interpreters. The limits that are decided per script (run time,
/// output) have their default values, because they are enforced outside of the sandbox.
fn pool_key(spec: &CellSpec) -> CellSpec {
    let mut spec = spec.clone();
    let limits = crate::Limits::default();
    spec.limits.wall = limits.wall;
    spec.limits.output_bytes = limits.output_bytes;
    spec.limits.output_kept_bytes = limits.output_kept_bytes;
    spec
}

/// Returns the current identities of the read-only paths in writable mounts.
fn frozen_entries(spec: &CellSpec) -> Vec<Identity> {
    let mut entries = Vec::new();
    for mount in &spec.mounts {
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
