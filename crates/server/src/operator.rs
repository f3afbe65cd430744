//! Account administration for operators. It works on the database, whether or not servers are running.

use crate::accounts::{check_email, check_password, normal_email};
use crate::auth::Passwords;
pub use crate::local::ACCOUNT as LOCAL_ACCOUNT;
use crate::runtime::{StartError, open_existing_store};
use crate::secrets::SecretVault;
use crate::settings::Settings;
use std::sync::Arc;
use toolrest_core::{ErrorKind, Result, ToolError};
use toolrest_store::{NewUser, Store, User};

/// Encrypts the secrets of all workspaces with a new key. Returns how many there are. Servers on the same data folder can
/// keep running; they read the key from the file each time.
pub async fn rotate_secrets_key(settings: &Settings) -> Result<u64, StartError> {
    let store = open_existing_store(settings).await?;
    Ok(SecretVault::new(store, settings).rotate().await?)
}

/// The accounts of a database.
pub struct Accounts {
    store: Arc<dyn Store>,
    passwords: Passwords,
}

impl Accounts {
    /// Opens the database of these settings, which must exist.
    pub async fn open(settings: &Settings) -> Result<Self, StartError> {
        Ok(Self { store: open_existing_store(settings).await?, passwords: Passwords::new()? })
    }

    /// Lists all accounts by their addresses.
    pub async fn list(&self) -> Result<Vec<User>> {
        Ok(self.store.users().await?)
    }

    /// Creates an account, whether or not registration is open.
    pub async fn add(&self, email: &str, password: String) -> Result<User> {
        let email = check_email(email)?;
        check_password(&password)?;
        let password_hash = self.passwords.hash(password).await?;
        Ok(self.store.create_user(NewUser { email, password_hash, full_name: None }).await?)
    }

    /// Disables an account and ends its sessions.
    pub async fn disable(&self, email: &str) -> Result<User> {
        let user = self.find(email).await?;
        self.store.disable_user(user.id).await?;
        Ok(user)
    }

    /// Lets a disabled account sign in again, with the memberships that it had.
    pub async fn enable(&self, email: &str) -> Result<User> {
        let user = self.find(email).await?;
        self.store.enable_user(user.id).await?;
        Ok(user)
    }

    /// Ends an account's sessions and returns their number. The account of `serve --dir` has a token but no sessions.
    pub async fn end_sessions(&self, email: &str) -> Result<u64> {
        let user = if normal_email(email) == LOCAL_ACCOUNT {
            self.known(LOCAL_ACCOUNT).await?
        } else {
            self.find(email).await?
        };
        Ok(self.store.end_sessions(user.id).await?)
    }

    /// Changes an account's password, and ends its sessions.
    pub async fn reset_password(&self, email: &str, password: String) -> Result<User> {
        let user = self.find(email).await?;
        check_password(&password)?;
        self.store.set_password(user.id, self.passwords.hash(password).await?).await?;
        Ok(user)
    }

    /// Returns the account with this address. The account of `serve --dir` has no address, so it is never found.
    async fn find(&self, email: &str) -> Result<User> {
        self.known(&check_email(email)?).await
    }

    async fn known(&self, email: &str) -> Result<User> {
        let found = self.store.credentials(email).await?;
        let missing = || ToolError::new(ErrorKind::NotFound, format!("There is no account with the email '{email}'"));
        found.map(|found| found.user).ok_or_else(missing)
    }
}
