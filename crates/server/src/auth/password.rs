//! Passwords, hashed with Argon2id.
//!
//! A hash takes tens of milliseconds and 19 MB on purpose. A few dedicated threads compute all hashes, each in a buffer
//! that it reuses. Allocating such a buffer for each hash, on any thread, fragments the allocator's pools of many threads,
//! and the memory is not returned to the system.

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use tokio::sync::oneshot;
use toolrest_core::{ErrorKind, Result, ToolError};

/// Maximum number of hashing threads. Each keeps 19 MB.
const THREADS_LIMIT: usize = 4;

/// Maximum number of hashes that wait for a thread; more are refused.
const QUEUE_LIMIT: usize = 128;

const SALT_BYTES: usize = 16;

/// Hashes and verifies passwords on threads of its own.
#[derive(Clone)]
pub(crate) struct Passwords {
    queue: mpsc::SyncSender<Job>,
    /// Verified if the account does not exist, so that the time of the answer does not reveal it. Made by the first
    /// verification, because many processes never verify a password.
    dummy_hash: Arc<OnceLock<String>>,
}

type Job = Box<dyn FnOnce(&mut Vec<Block>) + Send>;

impl Passwords {
    pub(crate) fn new() -> Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_LIMIT);
        let (queue, jobs) = mpsc::sync_channel(QUEUE_LIMIT);
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..threads {
            let jobs = Arc::clone(&jobs);
            let work = move || work(&jobs);
            std::thread::Builder::new().name("passwords".into()).spawn(work).map_err(ToolError::internal)?;
        }
        Ok(Self { queue, dummy_hash: Arc::default() })
    }

    pub(crate) async fn hash(&self, password: String) -> Result<String> {
        self.on_thread(move |memory| hash(&password, memory)).await
    }

    /// Whether the password fits the hash. Without a hash, returns false after the usual time.
    pub(crate) async fn verify(&self, password: String, hash: Option<String>) -> Result<bool> {
        let dummy_hash = Arc::clone(&self.dummy_hash);
        self.on_thread(move |memory| {
            let dummy_hash = if let Some(made) = dummy_hash.get() {
                made
            } else {
                let made = self::hash("no account has this password", memory)?;
                dummy_hash.get_or_init(|| made)
            };
            let fits = verify(&password, hash.as_deref().unwrap_or(dummy_hash), memory)?;
            Ok(fits && hash.is_some())
        })
        .await
    }

    async fn on_thread<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Vec<Block>) -> Result<T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |memory| {
            // A caller that disconnected while waiting needs no hash.
            if !answer.is_closed() {
                let _ = answer.send(work(memory));
            }
        });
        self.queue.try_send(job).map_err(|_| {
            let message = "Too many sign-ins and registrations are under way; try again in a second";
            ToolError::new(ErrorKind::Unavailable, message).retry_after(1)
        })?;
        answered.await.map_err(ToolError::internal)?
    }
}

/// Runs jobs until the queue is closed.
fn work(jobs: &Mutex<mpsc::Receiver<Job>>) {
    let mut memory = Vec::new();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        job(&mut memory);
    }
}

fn hash(password: &str, memory: &mut Vec<Block>) -> Result<String> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(ToolError::internal)?;
    let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
    fill(&Params::DEFAULT, Version::default(), password, &salt, &mut output, memory)?;
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::default().into()),
        params: ParamsString::try_from(&Params::DEFAULT).map_err(ToolError::internal)?,
        salt: Some(Salt::new(&salt).map_err(ToolError::internal)?),
        hash: Some(Output::new(&output).map_err(ToolError::internal)?),
    };
    Ok(hash.to_string())
}

fn verify(password: &str, hash: &str, memory: &mut Vec<Block>) -> Result<bool> {
    let known = PasswordHash::new(hash).map_err(ToolError::internal)?;
    let broken = || ToolError::internal("a password's hash lacks its salt, its output or its algorithm");
    if known.algorithm != Algorithm::Argon2id.ident() {
        return Err(broken());
    }
    let params = Params::try_from(&known).map_err(ToolError::internal)?;
    let version = known.version.map_or(Ok(Version::default()), Version::try_from).map_err(ToolError::internal)?;
    let (salt, expected) = known.salt.zip(known.hash).ok_or_else(broken)?;
    let mut output = vec![0; expected.as_bytes().len()];
    fill(&params, version, password, &salt, &mut output, memory)?;
    // Outputs are compared in constant time.
    Ok(Output::new(&output).map_err(ToolError::internal)? == expected)
}

fn fill(
    params: &Params,
    version: Version,
    password: &str,
    salt: &[u8],
    output: &mut [u8],
    memory: &mut Vec<Block>,
) -> Result<()> {
    memory.resize(params.block_count(), Block::default());
    let argon2 = Argon2::new(Algorithm::Argon2id, version, params.clone());
    argon2.hash_password_into_with_memory(password.as_bytes(), salt, output, memory).map_err(ToolError::internal)
}

#[cfg(test)]
#[path = "password_tests.rs"]
mod tests;
