//! Passwords, hashed with Argon2id.

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use std::sync::Arc;
use tokio::sync::Semaphore;
use toolrest_core::{Result, ToolError};

/// Hashes and checks passwords away from the threads that serve requests.
///
/// A hash takes tens of milliseconds and 19 MB on purpose, so only as many run at once as there are cores.
#[derive(Clone)]
pub(crate) struct Passwords {
    places: Arc<Semaphore>,
    /// Checked when there is no such account, so that the time taken does not tell.
    decoy: Arc<str>,
}

impl Passwords {
    pub(crate) fn new() -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { places: Arc::new(Semaphore::new(cores)), decoy: hash("no account has this password")?.into() })
    }

    pub(crate) async fn hash(&self, password: String) -> Result<String> {
        self.aside(move || hash(&password)).await?
    }

    /// Whether the password is the one that was hashed; never, if there is no hash.
    pub(crate) async fn verify(&self, password: String, hash: Option<String>) -> Result<bool> {
        let decoy = Arc::clone(&self.decoy);
        self.aside(move || {
            let known = hash.is_some();
            let hash = PasswordHash::new(hash.as_deref().unwrap_or(&decoy)).map_err(ToolError::internal)?;
            Ok(Argon2::default().verify_password(password.as_bytes(), &hash).is_ok() && known)
        })
        .await?
    }

    async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let _place = self.places.acquire().await.map_err(ToolError::internal)?;
        tokio::task::spawn_blocking(work).await.map_err(ToolError::internal)
    }
}

fn hash(password: &str) -> Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes()).map_err(ToolError::internal)?;
    Ok(hash.to_string())
}
